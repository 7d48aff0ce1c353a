#!/bin/sh
# The three demos in their shortest form: every step runs, the page is there, the summary has its numbers.
. tests/cli/lib.sh
long
. tests/cli/browser.sh
export DEMO_OUT="$tmp/demo" DEMO_STEPS=3
demo() { # KIND PAGE [FILE]
    kind=$1 page=$2; shift 2
    tools/demo "$kind" "$@" >"$tmp/o" 2>"$tmp/e"
    rc=$?
    check "demo $kind: exit code 0, not $rc: $(tail -n 2 "$tmp/e")" [ $rc = 0 ]
    check "demo $kind: its page" [ -s "$tmp/demo/$page" ]
    sed -n '/^== in short/,$p' "$tmp/o" >"$tmp/short"
    lines=$(sed '/^$/,$d' "$tmp/short" | wc -l)
    check "demo $kind: a summary of ten lines at most: $lines" [ "$lines" -le 10 ]
    check "demo $kind: not of fewer than five" [ "$lines" -ge 5 ]
    check "demo $kind: and where to go next, no longer" [ "$(wc -l <"$tmp/short")" -le 20 ]
    check "demo $kind: it says where the page is" grep -q "$page" "$tmp/short"
    for name in $charts; do check "demo $kind: $name" grep -q "<figure id=\"$name\"" "$tmp/demo/$page"; done
    check "demo $kind: a table behind every chart" [ "$(grep -c '<figure' "$tmp/demo/$page")" -le "$(grep -c '<table' "$tmp/demo/$page")" ]
    look "$tmp/demo/$page" "$(grep -c '^<svg' "$tmp/demo/$page")" || seen=" (no browser starts here: nobody looked at the pages)"
    check "demo $kind: no escape codes" [ -z "$(tr -d '\040-\176\n\t' <"$tmp/e" | tr -d '\200-\377')" ]
}
seen=
charts="image-waterfall image-sizes image-attacked image-gallery image-network image-attention image-loss"
demo image report.html
check "no attack beat a certificate" grep -q 'beat a certificate *0' "$tmp/short"
check "the constant is a number" grep -Eq 'proved Lipschitz constant +[0-9.]+' "$tmp/short"
check "the proof was checked" grep -q '^confirmed' "$tmp/o"
printf 'the quick brown fox jumps over the lazy dog. %.0s' $(seq 400) >"$tmp/fox.txt"
charts="frontier-val_loss frontier-val_acc text-waterfall text-network text-attention text-free-sandwich text-free-heads text-free-growth text-free-attention"
demo text text.html "$tmp/fox.txt"
check "both losses" grep -Eq 'validation loss +[0-9.]+ +[0-9.]+' "$tmp/short"
charts="forecast-column-0 forecast-column-1 forecast-column-2 forecast-loss"
demo forecast forecast.html
check "a proved distance" grep -Eq '^ +[0-9.]+ +proved' "$tmp/short"
printf '{\n\t"lip":\t"inf",\n\t"proof":\t{\n\t\t"lip":\t1.00049\n\t}\n}\n' >"$tmp/inf.json"
said() ( # EXPRESSION, in the demo's own words
    eval "$(sed -n '/^number() {/,/^}/p; /^is_number()/p; /^percent()/p; /^up()/p; /^short()/p' tools/demo)"
    eval "$1"
)
check "an infinite constant is said to be infinite" [ "$(said 'up "$(number "$tmp/inf.json" lip)"')" = inf ]
check "a number that is not there is not 0" [ "$(said 'percent "$(number "$tmp/inf.json" accuracy)"')" = '?' ]
check "a constant rounds up" [ "$(said 'up 1.00049')" = 1.001 ]
check "a demo nobody knows" sh -c '! tools/demo music 2>/dev/null'
check "built-in images do where no others are" "$TAUT" train recipes/vit-fashion-lip.ini --out "$tmp/shapes" --set data.source=shapes \
    --set model.patch=8 --set train.steps=2
finish "make demo$seen"
