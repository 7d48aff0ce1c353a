#!/bin/sh
# taut measure: every map, lower <= upper, growth with the length, tables as CSV, the published bounds; bad input.
. tests/cli/lib.sh
run=$tmp/run

ordered() { # FILE: of every pair of numbers called lower and upper, the first is not the larger
    awk -F'[:,]' '/"lower"/ { low = $2 } /"upper"/ { n++; if ($2 != "null" && low > $2 * (1 + 1e-6)) bad++ }
                  END { exit n == 0 || bad > 0 }' "$1"
}

# shellcheck disable=SC2086 # $small is words
check "a small run" "$TAUT" train $small --out "$run"
for map in bare attention branch residual block; do
    check "map $map" sh -c '"$TAUT" measure "$1" --map "$2" --tokens 8 --ball 0.01 --json >"$3"' - "$run" "$map" "$tmp/$map.json"
    check "map $map: says which" grep -q "\"map\":.*\"$map\"" "$tmp/$map.json"
    check "map $map: lower <= upper" ordered "$tmp/$map.json"
done
check "exact mode" sh -c '"$TAUT" measure "$1" --exact --tokens 6 --json >"$2"' - "$run" "$tmp/exact.json"
check "exact mode: says so" grep -q '"exact"' "$tmp/exact.json"
check "exact mode: lower <= upper" ordered "$tmp/exact.json"
strict() { # FILE: the same of the heads, without any slack
    awk -F'[:,]' '/"lower"/ { low = $2 } /"upper"/ { n++; if ($2 != "null" && low + 0 > $2 + 0) bad++ }
                  END { exit n == 0 || bad > 0 }' "$1"
}
check "a sharp search" sh -c '"$TAUT" measure "$1" --exact --tolerance 1e-7 --tokens 6 --json >"$2"' - "$run" "$tmp/sharp.json"
check "a sharp search: lower <= upper" strict "$tmp/sharp.json"
check "power: no probabilistic number" sh -c '"$TAUT" measure "$1" --method power --tokens 4 --json >"$2"' - "$run" "$tmp/power.json"
check "power: no probabilistic number" grep -q '"probabilistic":.*null' "$tmp/power.json"
check "one token" "$TAUT" measure "$run" --tokens 1
check "in words, one layer" sh -c '"$TAUT" measure "$1" --layer 0 --tokens 8 >"$2"' - "$run" "$tmp/words"
check "in words: the published bounds" grep -q "jasmin_3" "$tmp/words"
check "in words: the map" grep -q "map: bare" "$tmp/words"
check "power iteration" "$TAUT" measure "$run" --method power --tokens 4
check "the reference kernels" sh -c '"$TAUT" measure "$1" --tokens 8 --kernels ref --json >"$2"' - "$run" "$tmp/ref.json"
first() { awk -F"[:,]" '/"lower"/ { print $2; exit }' "$1"; }
check "cpu and ref agree" near "$(first "$tmp/ref.json")" "$(first "$tmp/bare.json")" 1e-3

check "lengths" sh -c '"$TAUT" measure "$1" --lengths 2:14:4 --samples 3 --json --csv "$3" >"$2"' - "$run" "$tmp/l.json" "$tmp/l.csv"
check "lengths: an exponent and its interval" grep -q exponent_low "$tmp/l.json"
check "lengths: a line a point" [ "$(wc -l <"$tmp/l.csv")" = 13 ]
check "lengths: the map and the text" grep -q '^2,[^,]*,[^,]*,0,bare,"brackets"$' "$tmp/l.csv"
check "adversarial" sh -c '"$TAUT" measure "$1" --lengths 4:16:4 --adversarial --radius 50 --json >"$2"' - "$run" "$tmp/a.json"
check "adversarial: no text" grep -q '"text":.*"adversarial tokens"' "$tmp/a.json"
check "adversarial: a gap" grep -q '"gap"' "$tmp/a.json"
check "layers as CSV" "$TAUT" measure "$run" --tokens 4 --csv "$tmp/layers.csv"
check "layers as CSV: a layer, its heads" [ "$(wc -l <"$tmp/layers.csv")" = 4 ]

check "layers as CSV: the map, the text, what papers print" sh -c 'head -n 1 "$1" | grep -q "exact,map,text,.*jasmin_3"' - "$tmp/layers.csv"
check "layers as CSV: as many cells in every line" sh -c \
    'sed "s/\"[^\"]*\"/text/g" "$1" | awk -F, "NR == 1 { n = NF } NF != n { exit 1 }"' - "$tmp/layers.csv"
check "one length" sh -c '"$TAUT" measure "$1" --lengths 1:1 >"$2"' - "$run" "$tmp/one"
check "one length: no exponent" grep -q "one length: no exponent" "$tmp/one"
check "adversarial, from two tokens on" sh -c '"$TAUT" measure "$1" --adversarial --lengths 1:2 >"$2"' - "$run" "$tmp/two"
check "adversarial, two tokens: no exponent" grep -q "no exponent" "$tmp/two"
check "a huge step" "$TAUT" measure "$run" --lengths 2:3:9223372036854775806 --samples 1
check "a search that ends early says so" sh -c '"$TAUT" measure "$1" --steps 2 --tolerance 1e-9 | grep -q "ended before"' - "$run"

# one head of ALiBi is not searched: no number, rather than 0
# shellcheck disable=SC2086
check "a run with ALiBi" "$TAUT" train $small --set model.positions=alibi --out "$tmp/alibi"
check "ALiBi" sh -c '"$TAUT" measure "$1" --tokens 6 --layer 0 --json >"$2"' - "$tmp/alibi" "$tmp/alibi.json"
check "ALiBi: no lower bound of a head" [ "$(grep -c '"lower":.*null' "$tmp/alibi.json")" = 2 ]
check "ALiBi, in words" sh -c '"$TAUT" measure "$1" --tokens 6 --layer 0 >"$2"' - "$tmp/alibi" "$tmp/words"
check "ALiBi, in words: a dash" grep -Eq '^ +0 +- +[0-9.e+]+ +-$' "$tmp/words"

far=9223372036854775807
refuse "lengths without end" "reads 16" "$TAUT" measure "$run" --lengths 1:$far:9223372036854775806
refuse "adversarial lengths without end" "16384" "$TAUT" measure "$run" --adversarial --lengths 1:$far:9223372036854775806
refuse "adversarial lengths too far" "16384" "$TAUT" measure "$run" --adversarial --lengths 2:1000000:999998
refuse "junk behind the lengths" "first:last:step" "$TAUT" measure "$run" --lengths 2:10:2x
refuse "junk behind two lengths" "first:last:step" "$TAUT" measure "$run" --lengths 2:10x
refuse "a colon behind the lengths" "first:last:step" "$TAUT" measure "$run" --lengths 2:10:
refuse "lanczos has 128 steps" "--steps" "$TAUT" measure "$run" --steps 129
for option in "--ball 1" "--exact" "--tokens 4"; do
    # shellcheck disable=SC2086 # an option and its value
    refuse "$option with lengths" "no meaning with --lengths" "$TAUT" measure "$run" --lengths 2:6:2 $option
done
for option in "--head 0" "--radius 1" "--castin"; do
    # shellcheck disable=SC2086
    refuse "$option without adversarial" "is for --adversarial" "$TAUT" measure "$run" $option
done
refuse "a text with adversarial" "no meaning with --adversarial" "$TAUT" measure "$run" --adversarial --text "$tmp/words"
refuse "samples without lengths" "is for --lengths" "$TAUT" measure "$run" --samples 3
refuse "lengths of maps" "no meaning with --maps" "$TAUT" measure "$run" --maps --lengths 2:6:2
refuse "a ball around maps" "no meaning with --maps" "$TAUT" measure "$run" --maps --ball 0.1
"$TAUT" measure "$run" --maps --tokens 5 --json >"$tmp/maps.json"
check "maps as JSON" json "$tmp/maps.json"
check "of so many tokens" [ "$(json_get "$tmp/maps.json" tokens)" = 5 ]
"$TAUT" measure "$run" --maps --tokens 5 >"$tmp/maps"
check "the first token listens to itself" [ "$(sed -n 2p "$tmp/maps")" = "@    " ]
refuse "a map of the network" "no meaning with --network" "$TAUT" measure "$run" --network 2 --map bare
refuse "unknown map" "did you mean residual" "$TAUT" measure "$run" --map residul
refuse "no such layer" "layer 7" "$TAUT" measure "$run" --layer 7
refuse "too many tokens" "tokens 999" "$TAUT" measure "$run" --tokens 999
refuse "lengths that are none" "first:last:step" "$TAUT" measure "$run" --lengths 9:2
refuse "lengths beyond the context" "reads 16" "$TAUT" measure "$run" --lengths 2:40:2
refuse "unknown method" "lanczos or power" "$TAUT" measure "$run" --method magic
refuse "adversarial with a residual" "bare or attention" "$TAUT" measure "$run" --adversarial --map residual
refuse "no such model" "nowhere" "$TAUT" measure "$tmp/nowhere"
refuse "no such text" "missing.txt" "$TAUT" measure "$run" --text "$tmp/missing.txt"
printf '([])\n' >"$tmp/short.txt"
refuse "a text too short" "fewer than 8" "$TAUT" measure "$run" --text "$tmp/short.txt" --tokens 8
printf '(\303\251)\n' >"$tmp/other.txt"
refuse "characters outside the vocabulary" "other.txt" "$TAUT" measure "$run" --text "$tmp/other.txt" --tokens 2
: >"$tmp/empty.txt"
refuse "an empty text" "empty" "$TAUT" measure "$run" --text "$tmp/empty.txt"
# shellcheck disable=SC2086
check "attention by position" "$TAUT" train $small --set model.attention=position --set model.positions=none --out "$tmp/position"
refuse "no softmax, layers" "no softmax" "$TAUT" measure "$tmp/position"
refuse "no softmax, lengths" "no softmax" "$TAUT" measure "$tmp/position" --lengths 2:4:2
refuse "no softmax, adversarial" "no softmax" "$TAUT" measure "$tmp/position" --adversarial --lengths 2:4:2
# texts with classes: one of them, not a long text
check "a classifier of texts" "$TAUT" train recipes/classifier-animals.ini --set model.attention=softmax --set train.steps=2 --out "$tmp/kinds"
check "its third text" sh -c '"$TAUT" measure "$1" --from 2 --tokens 9 --json >"$2"' - "$tmp/kinds" "$tmp/kinds.json"
check "its third text: lower <= upper" ordered "$tmp/kinds.json"
refuse "no such text" "from 0 to" "$TAUT" measure "$tmp/kinds" --from 100000
refuse "more tokens than it reads" "from 1 to" "$TAUT" measure "$tmp/kinds" --tokens 100000
refuse "growth over short texts" "many short texts" "$TAUT" measure "$tmp/kinds" --lengths 2:6:2

# what is proved of a head is the smallest of all that is
"$TAUT" measure "$run" --tokens 4 --exact --json >"$tmp/exact.json"
check "--exact: a head's upper is never above its exact" awk '/"upper":/ { upper = $2 + 0 }
    /"exact":/ { n++; bad += !(upper <= $2 + 0) } END { exit !(n && !bad) }' "$tmp/exact.json"

finish "measure"
