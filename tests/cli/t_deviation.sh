#!/bin/sh
# taut measure --deviation: how far plash and clustered attention of trained models are from softmax, for texts, images and series.
. tests/cli/lib.sh
waves="recipes/forecast-waves.ini --set train.steps=20 --set model.width=16 --set model.mlp=32 --set train.eval_every=0 --set data.length=1500"
plash="--set model.attention=plash --set model.plash_groups=4 --set model.plash_sizes=32"
clustered="--set model.attention=clustered --set model.clusters=4"

proved() { # FILE: in every head the deviation is at most fast, audit and trivial
    awk -F'[:,]' '/"deviation"/ { d = $2 } /"(fast|audit|trivial)"/ { n++; if (d + 0 > $2 + 0) bad++ }
                  END { exit n == 0 || bad > 0 }' "$1"
}
heads() { grep -c '"layer"' "$1"; }

# shellcheck disable=SC2086 # $waves and the like are words
check "a forecaster with plash" "$TAUT" train $waves $plash --out "$tmp/plash"
check "is measured" sh -c '"$TAUT" measure "$1" --deviation --json --csv "$3" >"$2"' - "$tmp/plash" "$tmp/plash.json" "$tmp/plash.csv"
check "nothing is beaten" [ "$(json_get "$tmp/plash.json" beaten)" = 0 ]
check "by default at four examples" [ "$(json_get "$tmp/plash.json" examples)" = 4 ]
check "two layers and the one that asks, four heads each" [ "$(heads "$tmp/plash.json")" = 12 ]
check "what is proved holds" proved "$tmp/plash.json"
check "the paper's is there" grep -q '"corrected":.*[0-9]' "$tmp/plash.json"
check "with its probability" grep -q '"delta":.*1' "$tmp/plash.json"
check "and a line for each as CSV" [ "$(wc -l <"$tmp/plash.csv")" = 13 ]
check "in words" sh -c '"$TAUT" measure "$1" --deviation --samples 1 | grep -q "printed is no bound"' - "$tmp/plash"
check "the reference kernels" sh -c '"$TAUT" measure "$1" --deviation --kernels ref --json >"$2"' - "$tmp/plash" "$tmp/ref.json"
first() { awk -F"[:,]" '/"deviation"/ { print $2; exit }' "$1"; }
check "cpu and ref agree" near "$(first "$tmp/ref.json")" "$(first "$tmp/plash.json")" 1e-3

for kind in "" "--set model.cluster_first=true"; do
    # shellcheck disable=SC2086
    check "a forecaster with clusters $kind" "$TAUT" train $waves $clustered $kind --out "$tmp/clustered"
    check "is measured $kind" sh -c '"$TAUT" measure "$1" --deviation --samples 2 --json >"$2"' - "$tmp/clustered" "$tmp/clustered.json"
    check "what is proved holds $kind" proved "$tmp/clustered.json"
    check "the paper has nothing to say of it" grep -q '"corrected":.*null' "$tmp/clustered.json"
    rm -rf "$tmp/clustered"
done

# shellcheck disable=SC2086
check "an encoder of texts" "$TAUT" train $small --set model.arch=encoder $plash --out "$tmp/text"
check "is measured" sh -c '"$TAUT" measure "$1" --deviation --json >"$2"' - "$tmp/text" "$tmp/text.json"
check "what is proved holds" proved "$tmp/text.json"
# shellcheck disable=SC2086
check "an image model" "$TAUT" train recipes/vit-shapes-plash-small.ini --set train.steps=2 --set train.batch=4 --out "$tmp/vit"
check "is measured" sh -c '"$TAUT" measure "$1" --deviation --json >"$2"' - "$tmp/vit" "$tmp/vit.json"
check "what is proved holds" proved "$tmp/vit.json"
# shellcheck disable=SC2086
check "sketches too small for a reference" "$TAUT" train $waves $plash --set model.plash_sizes=16 --out "$tmp/narrow"
check "it says so" sh -c '"$TAUT" measure "$1" --deviation --samples 1 | grep -q "no paper.s certificate"' - "$tmp/narrow"

# shellcheck disable=SC2086
check "a softmax model" "$TAUT" train $small --out "$tmp/soft"
refuse "softmax" "neither plash nor clustered attention" "$TAUT" measure "$tmp/soft" --deviation
refuse "an option that means nothing" "has no meaning with --deviation" "$TAUT" measure "$tmp/plash" --deviation --layer 1
refuse "no examples" "samples" "$TAUT" measure "$tmp/plash" --deviation --samples 0
finish "cli deviation"
