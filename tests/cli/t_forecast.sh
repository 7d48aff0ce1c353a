#!/bin/sh
# A forecaster from one recipe on built-in waves: trains, evaluates, draws; and what is wrong with a series is said in one line.
# Predicting the mean has a squared error of about 1.
. tests/cli/lib.sh
long
run=$tmp/run
waves="recipes/forecast-waves.ini --set train.steps=60 --set model.width=16 --set model.mlp=32 --set train.batch=8 --set train.eval_every=0 --set data.length=1500"

for attention in softmax plash clustered probsparse l2 attlip window cosformer performer nystrom none; do
    set -- --set model.attention=$attention
    [ $attention = none ] && set -- --set model.attention_blocks=0
    [ $attention = plash ] && set -- "$@" --set model.plash_groups=8 --set model.plash_sizes=32 --set model.plash_prototypes=kmeans
    [ $attention = clustered ] && set -- "$@" --set model.clusters=8
    # shellcheck disable=SC2086
    check "$attention trains" "$TAUT" train $waves "$@" --out "$run-$attention"
    cp "$tmp/check.log" "$tmp/train.log"
    check "$attention: its errors" grep -Eq 'test MSE +[0-9.]+ +MAE +[0-9]' "$tmp/train.log"
    check "$attention: test MSE $(json_get "$run-$attention/summary.json" test_mse)" \
        less "$(json_get "$run-$attention/summary.json" test_mse)" 0.9
done
run=$run-plash
check "evaluates" "$TAUT" eval "$run" --test --json
cp "$tmp/check.log" "$tmp/eval.json"
check "277 windows" [ "$(json_get "$tmp/eval.json" windows)" = 277 ]
check "as the summary says" near "$(json_get "$tmp/eval.json" mse)" "$(json_get "$run/summary.json" test_mse)" 1e-6
check "draws" "$TAUT" eval "$run" --test --windows 4 --plot "$tmp/page.html"
check "a page" grep -q "forecast" "$tmp/page.html"
check "and pictures" [ -s "$tmp/forecast-column-2.svg" ]

# how far a forecast can move: finite where the attention has a bound, and said not to be where it has none
# shellcheck disable=SC2086
check "under a cap, without norms" "$TAUT" train $waves --set model.norm=none --set model.depth=1 --set constrain.method=normalise \
    --set constrain.cap=0.5 --out "$run-cap"
check "is bounded" "$TAUT" eval "$run-cap" --windows 2 --noise 0.01 --json
cp "$tmp/check.log" "$tmp/noise.json"
check "moves $(json_get "$tmp/noise.json" moves)" less 0 "$(json_get "$tmp/noise.json" moves)"
check "and noise was found that moves it less" less "$(json_get "$tmp/noise.json" found)" "$(json_get "$tmp/noise.json" moves)"
check "but does move it" less 0 "$(json_get "$tmp/noise.json" found)"
for tiny in 1e-15 1e-17 1e-300; do # noise that is lost in rounding moves nothing, and is no contradiction
    check "noise of $tiny" "$TAUT" eval "$run-cap" --windows 2 --noise $tiny --json
    cp "$tmp/check.log" "$tmp/noise.json"
    check "found $(json_get "$tmp/noise.json" found)" less "$(json_get "$tmp/noise.json" found)" 1e-12
done
for attention in l2 attlip cosine position window cosformer performer; do
    # shellcheck disable=SC2086
    check "$attention under a cap" "$TAUT" train $waves --set model.norm=none --set model.depth=1 --set constrain.method=normalise \
        --set constrain.cap=0.5 --set train.steps=20 --set model.attention=$attention --out "$tmp/cap-$attention"
    check "$attention is bounded" "$TAUT" eval "$tmp/cap-$attention" --windows 2 --noise 0.01 --json
    cp "$tmp/check.log" "$tmp/noise.json"
    check "$attention: found $(json_get "$tmp/noise.json" found), proved $(json_get "$tmp/noise.json" moves)" \
        less "$(json_get "$tmp/noise.json" found)" "$(json_get "$tmp/noise.json" moves)"
done
check "certifies" "$TAUT" certify "$run-cap" --out "$tmp/c.json"
cp "$tmp/check.log" "$tmp/certify.txt"
check "and says what it is about" grep -q "rows to forecasts" "$tmp/certify.txt"
check "layer by layer" grep -q "^  embed\.[a-z]*\.value  *linear" "$tmp/certify.txt"
same() { awk -v a="$1" -v b="$2" 'BEGIN { exit !(a > 0 && a - b <= 1e-12 * b && b - a <= 1e-12 * b) }'; }
for split in "" --test; do # one source: what eval proves is the certificate for the rows that it has
    # shellcheck disable=SC2086
    check "noise $split" "$TAUT" eval "$run-cap" $split --windows 2 --noise 0.25 --json
    cp "$tmp/check.log" "$tmp/noise.json"
    check "the certificate $split" "$TAUT" certify "$run-cap" --rows "$(json_get "$tmp/noise.json" rows)" --radius 0.25 --json
    cp "$tmp/check.log" "$tmp/rows.json"
    check "they agree $split" same "$(json_get "$tmp/noise.json" moves)" "$(awk -v l="$(json_get "$tmp/rows.json" lip)" 'BEGIN { printf "%.17g", 0.25 * l }')"
done
check "in norm flat" "$TAUT" certify "$run-cap" --norm flat --json
cp "$tmp/check.log" "$tmp/flat.json"
check "finite: $(json_get "$tmp/flat.json" lip)" less "$(json_get "$tmp/flat.json" lip)" 1e9
check "known rows stand twice in an input" same "$(json_get "$tmp/flat.json" lip_series)" \
    "$(awk -v l="$(json_get "$tmp/flat.json" lip)" 'BEGIN { printf "%.17g", sqrt(2) * l }')"
check "rows of any length" "$TAUT" certify "$run-cap" --rows inf
cp "$tmp/check.log" "$tmp/certify.txt"
check "softmax has no constant for them" grep -q "no finite constant for rows of any length" "$tmp/certify.txt"
check "clusters" "$TAUT" certify "$tmp/run-clustered"
cp "$tmp/check.log" "$tmp/certify.txt"
check "say why they have none" grep -q "no finite constant: a key that changes its cluster" "$tmp/certify.txt"
check "landmarks" "$TAUT" certify "$tmp/run-nystrom"
cp "$tmp/check.log" "$tmp/certify.txt"
check "say why they have none" grep -q "no finite constant: the inverse of the landmarks" "$tmp/certify.txt"
check "info says what it is about" sh -c '"$TAUT" info "$1" --bound | grep -q "for windows of any rows"' - "$run-cap"
refuse "rows below 0" "rows" "$TAUT" certify "$run-cap" --rows -1
refuse "rows that are no number" "rows" "$TAUT" certify "$run-cap" --rows many
refuse "examples of a forecaster" "is a forecaster" "$TAUT" certify "$run-cap" --n-ex 2
# shellcheck disable=SC2086
check "a gpt" "$TAUT" train $small --out "$tmp/gpt"
refuse "has no rows" "for forecasters" "$TAUT" certify "$tmp/gpt" --rows 1
check "clusters have no bound" "$TAUT" eval "$tmp/run-clustered" --windows 2 --noise 0.01 --json
cp "$tmp/check.log" "$tmp/noise.json"
check "and say so" [ "$(json_get "$tmp/noise.json" moves)" = inf ]

bad() { # WHAT PATTERN ROWS
    printf 'date,a,b\n2016-07-01 00:00:00,1,2\n%s\n' "$3" >"$tmp/bad.csv"
    # shellcheck disable=SC2086
    refuse "$1" "$2" "$TAUT" train $waves --set "data.source=$tmp/bad.csv" --out "$tmp/fresh"
}
bad "a missing value" "line 3: no value for b" "2016-07-01 01:00:00,1,"
bad "a wrong column count" "line 3 has 4 columns" "2016-07-01 01:00:00,1,2,3"
bad "a date in the past" "line 3.*is earlier than" "2016-06-01 01:00:00,1,2"
bad "no date" "line 3: 'soon' is no date" "soon,1,2"
bad "NaN" "line 3: 'nan' is no number" "2016-07-01 01:00:00,nan,2"
bad "a constant column" "column b is constant" "2016-07-01 01:00:00,3,2
2016-07-01 02:00:00,4,2
2016-07-01 03:00:00,5,2"
# shellcheck disable=SC2086
refuse "shorter than a window" "shorter than a window" "$TAUT" train $waves --set data.length=100 --out "$tmp/fresh"
# shellcheck disable=SC2086
refuse "no such series" "nowhere.csv" "$TAUT" train $waves --set data.source=nowhere.csv --out "$tmp/fresh"
refuse "a folder" "$tmp is a folder, where a file is wanted" "$TAUT" forecast "$run-cap" "$tmp"
# shellcheck disable=SC2086
check "stops early" "$TAUT" train $waves --set train.eval_every=5 --set train.patience=1 --set train.lr=0.5 --set train.schedule=constant \
    --out "$tmp/early" --json
check "before its last step" less "$(json_get "$tmp/early/summary.json" steps)" 60
refused_key() { # WHAT PATTERN KEY=VALUE...
    what=$1 pattern=$2; shift 2
    sets=
    for key; do sets="$sets --set $key"; done
    # shellcheck disable=SC2086
    refuse "$what" "$pattern" "$TAUT" train $waves $sets --out "$tmp/fresh"
}
refused_key "more representatives than rows" "plash_groups = 100" model.attention=plash model.plash_groups=100
refused_key "a sketch that is no power of two" "plash_sizes = 100 wants powers of two" model.attention=plash model.plash_sizes=100
refused_key "degree 0" "plash_degrees = 0" model.attention=plash model.plash_degrees=0
refused_key "tau 0" "model.plash_tau" model.attention=plash model.plash_tau=0
refused_key "tau below 0" "model.plash_tau" model.attention=plash model.plash_tau=-1
refused_key "more known rows than there are" "model.label = 49 is more than model.seq = 48" model.label=49
refused_key "heads that do not fit" "model.width = 16 is not a multiple of model.heads = 5" model.heads=5 \
    model.attention=plash model.plash_groups=8
refused_key "no such protocol" "data.protocol" data.protocol=2021
refuse "attacks" "forecaster" "$TAUT" attack "$run"
refuse "measures" "forecaster" "$TAUT" measure "$run"
refuse "noise that is none" "noise 0 moves nothing" "$TAUT" eval "$run" --noise 0
refuse "two splits" "not both" "$TAUT" eval "$run" --train --test
refuse "sliding" "slide" "$TAUT" eval "$run" --test --slide 4
check "none of these made a folder" [ ! -e "$tmp/fresh" ]
finish "forecast     ten attentions on waves, and none, $checks checks"
