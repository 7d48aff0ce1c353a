#!/bin/sh
# What is printed claims no more than what is proved: hypotheses are rounded down, conclusions up, and the inputs that
# a constant is about stand beside it.
. tests/cli/lib.sh
at_most() { awk -v a="$1" -v b="$2" 'BEGIN { exit !(a != "" && b != "" && a + 0 <= b + 0) }'; } # two decimals
before() { sed -n "s/.*$2 \([0-9.e+-]*\).*/\1/p" "$1" | tail -n 1; } # FILE WORDS: the last number behind them
image="recipes/mlp-shapes-small.ini --set train.steps=4 --set train.batch=4 --set data.length=100"

# shellcheck disable=SC2086 # words, here and below
check "a model of texts" "$TAUT" train $small --out "$tmp/text"
# shellcheck disable=SC2086
check "a model of images" "$TAUT" train $image --out "$tmp/image"

# radii whose nearest six digits lie above them
for radius in 0.33696496 0.0123456789 1.9999999; do
    for run in text image; do
        "$TAUT" certify "$tmp/$run" --n-ex 2 --radius $radius --local >"$tmp/out"
        shown=$(before "$tmp/out" "certified, moved less than")
        check "$run, radius $radius: $shown is not more" at_most "$shown" $radius
        check "$run, radius $radius: $shown is not much less" less "$(echo "$radius" | cut -c 1-6)" "$shown"
        check "$run, radius $radius: nor where the region is told" at_most "$(before "$tmp/out" "example, moved by up to")" $radius
    done
done

# the region, and constants
"$TAUT" certify "$tmp/text" >"$tmp/out"
"$TAUT" certify "$tmp/text" --json --out "$tmp/cert.json" >"$tmp/out.json"
reach=$(sed -n 's/.*"reach":[[:space:]]*\([0-9.e+-]*\).*/\1/p' "$tmp/cert.json") # inside the region
check "certify: the region is not larger than proved" at_most "$(before "$tmp/out" within)" "$reach"
check "certify: the constant is not smaller than proved" at_most "$(json_get "$tmp/out.json" lip)" "$(before "$tmp/out" proved:)"
"$TAUT" check "$tmp/cert.json" "$tmp/text" >"$tmp/out"
check "check: the same region" at_most "$(before "$tmp/out" within)" "$reach"
"$TAUT" info "$tmp/text" --bound >"$tmp/out"
check "info: the region" at_most "$(before "$tmp/out" within)" "$reach"
"$TAUT" plan --target 10.0000004 >"$tmp/out"
check "plan: a target is not printed below itself" at_most 10.0000004 "$(before "$tmp/out" "L <=")"

"$TAUT" measure "$tmp/text" --ball 0.0123456789 >"$tmp/out"
check "measure: a ball is not printed larger than it is" at_most "$(before "$tmp/out" "each moved by at most")" 0.0123456789

# no constant without the inputs it is about, and the defect
waves="recipes/forecast-waves.ini --set train.steps=2 --set data.length=600"
attlip="recipes/encoder-1lip.ini --set model.width=8 --set model.mlp=8 --set model.depth=1 --set train.steps=1"
# shellcheck disable=SC2086
check "a forecaster" "$TAUT" train $waves --out "$tmp/waves"
# shellcheck disable=SC2086
check "an AttLip" "$TAUT" train $attlip --out "$tmp/attlip"
about_text="for 16 tokens, each an embedding of the model, or anything within [0-9.]* of the origin"
about_image="for images whose pixels are in .0, 1."
about_waves="for windows whose rows (values and time features, standardised) are at most [0-9.]* long"
states() { # PATTERN COMMAND...
    pattern=$1; shift
    "$@" >"$tmp/out" && grep -q -e "$pattern" "$tmp/out"
}
check "certify, text" states "$about_text" "$TAUT" certify "$tmp/text" --out "$tmp/text/certificate.json"
check "certify, image" states "$about_image" "$TAUT" certify "$tmp/image" --out "$tmp/image/certificate.json"
check "certify, series" states "$about_waves" "$TAUT" certify "$tmp/waves" --out "$tmp/waves/certificate.json"
check "certify, defect" states "$about_image; of the exact network: .* add up to [0-9.]* to" "$TAUT" certify "$tmp/attlip"
check "check, text" states "$about_text" "$TAUT" check "$tmp/text/certificate.json" "$tmp/text"
check "check, image" states "$about_image" "$TAUT" check "$tmp/image/certificate.json" "$tmp/image"
check "check, series" states "$about_waves" "$TAUT" check "$tmp/waves/certificate.json" "$tmp/waves"
check "info, text" states "$about_text" "$TAUT" info "$tmp/text" --bound
check "info, image" states "$about_image" "$TAUT" info "$tmp/image" --bound
check "info, series" states "for windows of any rows" "$TAUT" info "$tmp/waves" --bound
check "info, defect" states "$about_image; of the exact network" "$TAUT" info "$tmp/attlip" --bound
check "measure, text" states "proved .* $about_text" "$TAUT" measure "$tmp/text" --network 1
check "measure, image" states "proved .* $about_image" "$TAUT" measure "$tmp/image" --network 1
"$TAUT" certify "$tmp/waves" --rows 100 --radius 0.01 >"$tmp/long"
"$TAUT" eval "$tmp/waves" --noise 0.01 >"$tmp/noise"
check "eval --noise" grep -q -e "^    $about_waves, each moved by at most 0.01" "$tmp/noise"
check "eval --noise: of its split, not of all rows" less "$(before "$tmp/noise" "are at most")" "$(before "$tmp/long" "are at most")"
check "sweep" states "bound .* $about_text" "$TAUT" sweep "$tmp/text/recipe.ini" --out "$tmp/sweep" --grid train.seed=1
check "plan" states "for tokens that enter the first block with an RMS of at most 1" "$TAUT" plan --target 10
for run in text image waves; do
    "$TAUT" measure "$tmp/$run" --network 1 --json >"$tmp/$run/network.json" 2>/dev/null || rm "$tmp/$run/network.json"
    "$TAUT" eval "$tmp/$run" --noise 0.01 --json >"$tmp/$run/forecast.json" 2>/dev/null || rm "$tmp/$run/forecast.json"
    check "report of $run" "$TAUT" report "$tmp/$run" --out "$tmp/$run.html"
done
check "report, text" grep -q "moves by at most [0-9.e+]* d (l2, by the largest token), $about_text" "$tmp/text.html"
check "report, image" grep -q "moves by at most [0-9.e+]* d (l2, over everything), $about_image" "$tmp/image.html"
check "report, series" grep -q "moves by at most [0-9.e+]* d (l2, by the largest token), $about_waves" "$tmp/waves.html"
check "report, a network" grep -q "the constant that is proved ($about_image)" "$tmp/image.html"
check "report, a band" grep -q "would have moved by more than [0-9.e+]* (both standardised), $about_waves, each moved by at most 0.01" "$tmp/waves.html"

finish "printed      hypotheses down, conclusions up"
