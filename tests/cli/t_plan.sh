#!/bin/sh
# taut plan: caps that meet a budget, a recipe that realises them and certifies, and one clear line for what cannot be.
. tests/cli/lib.sh

refuses() { # WORD ARGUMENTS...: exit 1, one line on stderr that holds the word, nothing on stdout
    word=$1; shift
    "$TAUT" plan "$@" >"$tmp/out" 2>"$tmp/err"
    [ $? = 1 ] && [ ! -s "$tmp/out" ] && [ "$(wc -l <"$tmp/err")" = 1 ] && grep -q -- "$word" "$tmp/err"
}

"$TAUT" plan --table >"$tmp/table"
check "table: sound caps" grep -q 'scale 1/d_head, out 1/3  *1.00547  *1.16679  *1.22756' "$tmp/table"
check "table: RoPE" grep -q 'scale 1/d, out 1/3, RoPE  *1.16086  *1.37296  *1.44969' "$tmp/table"
check "table: printed ones are labelled" [ "$(grep -c 'printed, unsound' "$tmp/table")" = 2 ]
check "table as JSON" "$TAUT" plan --table --json

"$TAUT" plan --target 2 --depth 3 --width 256 --heads 4 --attention inv_head --out-scale 1/3 --rope --json >"$tmp/plan.json"
check "four digits of the table" near "$(json_get "$tmp/plan.json" cap)" 0.9720 0.00006
check "the constant attained is below" less "$(json_get "$tmp/plan.json" lipschitz)" 2
check "the printed cap is larger" near "$(json_get "$tmp/plan.json" printed_code_cap)" 1.2523 0.00006

check "below the residual floor" refuses 'cannot be met' --target 0.3 --depth 3
check "a smaller head makes room" "$TAUT" plan --target 0.3 --depth 3 --head-cap 0.5
check "no target" refuses target --depth 3
check "a negative target" refuses target --target -2
check "not a number" refuses target --target nan
check "heads that do not fit" refuses heads --target 2 --width 256 --heads 5
check "norm layers" refuses norm --target 2 --norm layernorm
check "l2 without a vocabulary" refuses vocab --target 2 --units l2
check "an unknown scale" refuses attention --target 2 --attention inv_root
check "an operand" refuses many --target 2 please

# the printed recipe trains, and what it trains certifies
for units in rms l2; do
    "$TAUT" plan --target 3 --depth 2 --width 16 --heads 2 --units $units --vocab 40 >"$tmp/$units.ini"
    printf '\n[data]\nlength = 3000\n' >>"$tmp/$units.ini"
    check "the recipe trains" "$TAUT" train "$tmp/$units.ini" --set model.context=16 --set train.steps=12 \
        --set train.batch=2 --set train.lr=0.5 --set train.checkpoint_every=5 --out "$tmp/run-$units"
    "$TAUT" info "$tmp/run-$units" --bound --json >"$tmp/info.json"
    bound=$(awk -v l="$(json_get "$tmp/info.json" bound_tokens)" -v v="$(json_get "$tmp/info.json" tokens)" -v u=$units \
        'BEGIN { printf "%.9g", u == "l2" ? l : l * sqrt(16 / v) }')
    check "and certifies: $bound" less "$bound" 3
done

finish "plan         $checks checks"
