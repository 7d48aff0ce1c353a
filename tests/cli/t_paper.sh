#!/bin/sh
# taut paper: the list, what it refuses, and three tables on runs that are there already, which are measured and not run again.
. tests/cli/lib.sh
"$TAUT" paper --list >"$tmp/list"
for id in enforced-table1 enforced-fig2 enforced-fig3 enforced-fig4 jasmin-table1 jasmin-table2 attlip-table2; do
    check "$id is listed" grep -q "^  $id " "$tmp/list"
done
refuse "a table that is not there" "did you mean enforced-table1" "$TAUT" paper enforced-table2
refuse "a scale" "small or full" "$TAUT" paper enforced-table1 --scale middle
"$TAUT" paper castin-fig3 >"$tmp/table"
check "a number of a figure's own is printed below its table" grep -q '^exponent 1\.999' "$tmp/table"

gpt=$tmp/gpt vit=$tmp/vit
for run in NanoGPT Modula free LipsFormer normalise-8 softcap-8 normalise-1 normalise-16; do
    # shellcheck disable=SC2086
    check "a small run $run" "$TAUT" train $small --out "$gpt/$run"
done
"$TAUT" paper enforced-table1 --out "$gpt" >"$tmp/table"
check "enforced-table1" [ $? = 0 ]
check "two lines a network, ours and theirs" [ "$(grep -c "^       published" "$tmp/table")" = 8 ]
check "a published bound" grep -q "1e+264" "$tmp/table"
check "a sentence on why they differ" grep -q "cannot be compared" "$tmp/table"
"$TAUT" paper enforced-table1 --out "$gpt" --json >"$tmp/table.json"
check "as JSON" json "$tmp/table.json"

for run in 0 1 2 3 4 5 6; do
    check "a small run $run" "$TAUT" train recipes/vit-shapes-small.ini --out "$vit/$run" --set train.steps=3 \
        --set data.length=200
done
"$TAUT" paper jasmin-table2 --out "$vit" >"$tmp/table"
check "jasmin-table2" [ $? = 0 ]
check "two lines a method" [ "$(grep -c "^       published" "$tmp/table")" = 7 ]
check "a published figure" grep -q "98.56" "$tmp/table"
check "a sentence on why they differ" grep -q "pretrained on ImageNet" "$tmp/table"

for name in none softmax l2 attlip; do
    check "a small run $name" "$TAUT" train "recipes/mlm-$name-small.ini" --out "$tmp/mlm/$name" --set data.source=brackets \
        --set train.steps=2 --set model.width=16 --set model.context=16 --set model.mlp=16 --set data.length=4000
done
"$TAUT" paper attlip-table2 --out "$tmp/mlm" >"$tmp/table"
check "attlip-table2" [ $? = 0 ]
check "two lines an attention" [ "$(grep -c "^       published" "$tmp/table")" = 4 ]
check "published figures" grep -q "141 *1 *141" "$tmp/table"
check "every constant is proved" [ "$(grep -c inf "$tmp/table")" = 0 ]
check "a sentence on why they differ" grep -q "cannot be compared" "$tmp/table"
finish "paper        three tables, the list"
