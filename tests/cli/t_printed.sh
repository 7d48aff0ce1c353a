#!/bin/sh
# What is printed claims no more than what is proved: hypotheses are rounded down, conclusions up.
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
        check "$run, radius $radius: nor where the region is told" at_most "$(before "$tmp/out" "moved by [a-z]* [a-z]*")" $radius
    done
done

# the region, and constants
"$TAUT" certify "$tmp/text" >"$tmp/out"
"$TAUT" certify "$tmp/text" --json --out "$tmp/cert.json" >"$tmp/out.json"
reach=$(json_get "$tmp/out.json" reach)
check "certify: the region is not larger than proved" at_most "$(before "$tmp/out" within)" "$reach"
check "certify: the constant is not smaller than proved" at_most "$(json_get "$tmp/out.json" lip)" "$(before "$tmp/out" proved:)"
"$TAUT" check "$tmp/cert.json" "$tmp/text" >"$tmp/out"
check "check: the same region" at_most "$(before "$tmp/out" within)" "$reach"
"$TAUT" info "$tmp/text" --bound >"$tmp/out"
check "info: the region" at_most "$(before "$tmp/out" within)" "$reach"
"$TAUT" plan --target 10.0000004 >"$tmp/out"
check "plan: a target is not printed below itself" at_most 10.0000004 "$(before "$tmp/out" "L <=")"

finish "printed      hypotheses down, conclusions up"
