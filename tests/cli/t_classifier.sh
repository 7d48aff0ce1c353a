#!/bin/sh
# Texts in classes from the command line: the built-in set trains, is certified, checked and attacked; a table of one's own, in
# four commands; what is refused.
. tests/cli/lib.sh
run=$tmp/animals
"$TAUT" train recipes/classifier-animals.ini --out "$run" --json --set data.length=1000 --set train.steps=60 >"$tmp/train.json" 2>"$tmp/err"
rc=$?
check "animals train: $(cat "$tmp/err")" [ $rc = 0 ]
"$TAUT" eval "$run" --json >"$tmp/eval.json"
check "eval finds the same loss" near "$(json_get "$tmp/eval.json" loss)" "$(json_get "$tmp/train.json" val_loss)" 1e-6
check "100 texts validate" [ "$(json_get "$tmp/eval.json" targets)" = 100 ]
check "better than chance, which is 0.25" less 0.5 "$(json_get "$tmp/eval.json" accuracy)"
for norm in tokens flat; do
    check "certified, norm $norm" "$TAUT" certify "$run" --norm $norm --n-ex 10 --out "$tmp/cert.json"
    check "confirmed, norm $norm" "$TAUT" check "$tmp/cert.json" "$run"
done
"$TAUT" check "$tmp/cert.json" "$run" --json >"$tmp/check.json"
check "radii in norm flat" less 4 "$(json_get "$tmp/check.json" certified)"
sed 's/"radius":[[:space:]]*0\.[0-9]*/"radius":0.99/' "$tmp/cert.json" >"$tmp/far.json"
"$TAUT" check "$tmp/far.json" "$run" >"$tmp/out" 2>&1
rc=$?
check "a larger radius is refused" [ $rc = 2 ]
"$TAUT" certify "$run" --n-ex 5 --swaps 2 --json >"$tmp/swaps.json"
rc=$?
check "swaps: no contradiction" [ $rc = 0 ]
check "all swaps are counted" grep -q '"all":[[:space:]]*1312' "$tmp/swaps.json"
check "and printed" sh -c "\"$TAUT\" certify \"$run\" --n-ex 5 --swaps 2 | grep -q '2 at once: proved to leave the answer'"
check "and what could be contradicted" sh -c "\"$TAUT\" certify \"$run\" --n-ex 5 --swaps 2 | grep -Eq 'forward passes(; no swap is covered|, [0-9]+ of them with covered swaps: no contradiction)'"
"$TAUT" certify "$run" --norm flat --n-ex 10 --radius 4 >"$tmp/out"
"$TAUT" certify "$run" --norm flat --n-ex 10 --radius 4 --json >"$tmp/near.json"
"$TAUT" certify "$run" --norm flat --n-ex 10 --radius 4 --json --tolerance 0.01 >"$tmp/nearer.json"
"$TAUT" certify "$run" --norm flat --n-ex 10 --radius 4 --tolerance 0.01 --out "$tmp/off.json" >"$tmp/off"
check "a runtime that is off is spoken of" grep -q "any runtime whose logits are within 0.01 " "$tmp/off"
check "and not without" sh -c "! grep -q 'any runtime' '$tmp/out'"
check "its certificate is confirmed" "$TAUT" check "$tmp/off.json" "$run"
check "its radii are smaller" less "$(json_get "$tmp/nearer.json" median_radius)" "$(json_get "$tmp/near.json" median_radius)"
sed 's/"tolerance":[[:space:]]*0\.01/"tolerance": 100/' "$tmp/off.json" >"$tmp/far.json"
"$TAUT" check "$tmp/far.json" "$run" >"$tmp/out" 2>&1
rc=$?
check "a larger tolerance is refused" [ $rc = 2 ]
refuse "a tolerance of no example" "say how many with --n-ex" "$TAUT" certify "$run" --tolerance 1
refuse "a tolerance that is lost" "tolerance 1e-400 is not" "$TAUT" certify "$run" --n-ex 1 --tolerance 1e-400
refuse "a tolerance below 0" "tolerance" "$TAUT" certify "$run" --n-ex 1 --tolerance -1
refuse "swaps of no example" "say how many with --n-ex" "$TAUT" certify "$run" --swaps 1
refuse "too many swaps" "from 1 to 16" "$TAUT" certify "$run" --n-ex 1 --swaps 17
refuse "tries of nothing" "is for --swaps" "$TAUT" certify "$run" --n-ex 1 --tries 5
check "attacked" "$TAUT" attack "$run" --attack pgd --norm L2 --eps 0.5 --n-ex 20 --out "$tmp"
check "info" "$TAUT" info "$run" --bound
check "no text from it" sh -c "! \"$TAUT\" sample \"$run\" 2>/dev/null"

# ---- a table of one's own
awk 'BEGIN { print "Category;Message"
    for (i = 0; i < 60; i++) print (i % 2 ? "good" : "bad") ";" (i % 2 ? "fine; " : "poor ") "\"x\" number " i % 7 }' |
    sed 's/fine; "x"/fine x/' >"$tmp/own.csv"
check "an own table trains" "$TAUT" train recipes/classifier-animals.ini --set data.source="$tmp/own.csv" --set model.context=8 \
    --set train.steps=20 --out "$tmp/own"
check "its classes are kept" grep -q '^class_names = bad,good$' "$tmp/own/recipe.ini"
check "certified" "$TAUT" certify "$tmp/own" --n-ex 6 --out "$tmp/own/certificate.json"
check "confirmed" "$TAUT" check "$tmp/own/certificate.json" "$tmp/own"
check "a page" "$TAUT" report "$tmp/own" --out "$tmp/own.html"
awk 'BEGIN { print "text\tlabel"; for (i = 0; i < 20; i++) print (i % 2 ? "poor \"x\" number 3\tbad" : "fine x number 3\tgood") }' >"$tmp/other.tsv"
"$TAUT" eval "$tmp/own" --data "$tmp/other.tsv" --json >"$tmp/eval.json"
check "other data by name: all right" [ "$(json_get "$tmp/eval.json" accuracy)" = 1 ]
printf 'text,label\nfine,up\npoor,down\nfine,up\npoor,down\n' >"$tmp/strange.csv"
refuse "classes of another model" 'line 2: the class "up" is none of bad,good' "$TAUT" eval "$tmp/own" --data "$tmp/strange.csv"
refuse "an image model's key" "model.pool" "$TAUT" train recipes/classifier-animals.ini --out "$tmp/bad" --set model.pool=concat
refuse "no such column" "data.label = kind" "$TAUT" train recipes/classifier-animals.ini --out "$tmp/bad" \
    --set data.source="$tmp/own.csv" --set data.label=kind
refuse "no labels" "no columns" "$TAUT" train recipes/classifier-animals.ini --out "$tmp/bad" --set data.source=LICENSE
refuse "words are for classes" "neither bytes nor chars" "$TAUT" train recipes/tiny-free.ini --out "$tmp/bad" --set data.tokens=words
finish "classifier   built-in texts, a table, what is refused"
