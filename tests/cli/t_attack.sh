#!/bin/sh
# taut attack: what it prints, what it refuses, that a state is taken up again, and that a contradiction is exit code 2.
. tests/cli/lib.sh
mlp=$tmp/mlp vit=$tmp/vit gpt=$tmp/gpt
check "an mlp" "$TAUT" train recipes/mlp-shapes-small.ini --out "$mlp" --set train.steps=60 --set model.hidden=24 \
    --set data.length=2000
check "a vit" "$TAUT" train recipes/vit-shapes-small.ini --out "$vit" --set train.steps=3 --set data.length=200
# shellcheck disable=SC2086
check "a gpt" "$TAUT" train $small --out "$gpt" --set train.steps=200 --set train.batch=8 --set train.lr=0.01

attack() { "$TAUT" attack "$mlp" --n-ex 12 --steps 10 --queries 50 "$@"; }
attack --attack fgsm,pgd,aa-standard --norm L2 --eps 0.05,0.5 --json >"$tmp/a.json"
check "exit code 0" [ $? = 0 ]
check "one JSON object" json "$tmp/a.json"
for key in clean_acc robust_acc certified_acc robustbench autoattack_acc eps n_ex contradictions warnings; do
    check "has $key" grep -q "\"$key\":" "$tmp/a.json"
done
attack --attack aa-standard --norm L2 --eps 0.05,0.5 >"$tmp/text"
check "clean, attacked, certified" grep -q "certified" "$tmp/text"
check "no further than eps" [ "$(awk '/largest/ { e = $4; sub(";", "", e); if ($NF > e * 1.000001) print }' "$tmp/text")" = "" ]
check "each attack" [ "$(grep -c "after" "$tmp/text")" = 8 ]
for batch in 1 5; do
    attack --attack pgd,aa-standard --norm Linf --eps 8/255 --json --batch-size $batch --threads $batch |
        sed 's/"seconds":.*//' >"$tmp/b$batch"
done
check "the same for any batch size and thread count" cmp "$tmp/b1" "$tmp/b5"
check "the defaults need no more" "$TAUT" attack "$mlp" --n-ex 2 --attack pgd
check "one image" attack --n-ex 1 --attack aa-plus --norm L1 --eps 3
check "more images than there are" attack --n-ex 100000 --attack fgsm --no-certify
attack --attack fgsm --no-certify >"$tmp/out"
check "without certificates it says so" grep -q "no certified" "$tmp/out"
attack --attack pgd --norm L2 --eps 1,4 --gallery 3 --json >"$tmp/g.json"
check "a gallery is JSON" json "$tmp/g.json"
shown=$(grep -c '"attacked":' "$tmp/g.json")
check "of one to three images: $shown" [ "$shown" -ge 1 ] && check "and no more" [ "$shown" -le 3 ]
check "each with all its pixels" [ "$(sed -n 's/.*"clean":[[:space:]]*"\([0-9a-f]*\)".*/\1/p' "$tmp/g.json" | awk 'length != 2 * 16 * 16 * 3' | wc -l)" = 0 ]
check "and the classes by name" grep -Eq '"label":[[:space:]]*"(disc|square|triangle|plus|ring|stripes)"' "$tmp/g.json"
check "no gallery unless asked for" [ "$(grep -c gallery "$tmp/a.json")" = 0 ]
refuse "a gallery of a text" "for images" "$TAUT" attack "$gpt" --eps 0.1 --gallery 3
check "a vit's pixels" "$TAUT" attack "$vit" --n-ex 3 --attack aa-standard --steps 3 --queries 9

# the embeddings of a text: held by a ball that hardly moves them, broken in one that moves them far
text() { "$TAUT" attack "$gpt" --n-ex 10 --steps 5 --queries 20 --json "$@"; }
for norm in L2 Linf L1; do
    text --attack fgsm,pgd,aa-standard,ta-10 --norm $norm --eps 1e-5 >"$tmp/held.json"
    text --attack fgsm,pgd,aa-standard,ta-10 --norm $norm --eps 9 >"$tmp/broken.json"
    check "a gpt is right about some" less 0 "$(json_get "$tmp/held.json" clean_acc)"
    check "$norm, all of them held" grep -q "\"autoattack_acc\":	\"$(awk -v a="$(json_get "$tmp/held.json" clean_acc)" \
        'BEGIN { printf "%.2f", 100 * a }')\"" "$tmp/held.json"
    check "$norm, broken" grep -q '"autoattack_acc":	"0.00"' "$tmp/broken.json"
    check "certified or said why not" grep -q -e certified_acc -e not_certified "$tmp/broken.json"
done

# the whole network's slopes stay below what is proved
for model in "$mlp" "$gpt"; do
    "$TAUT" measure "$model" --network 5 --json --csv "$tmp/slopes.csv" >"$tmp/slopes.json"
    check "slopes of the network" [ $? = 0 ]
    check "below the proved constant" less "$(json_get "$tmp/slopes.json" max)" "$(json_get "$tmp/slopes.json" proved)"
    check "the smallest is below the largest" less "$(json_get "$tmp/slopes.json" min)" "$(json_get "$tmp/slopes.json" max)"
    check "a line each" [ "$(wc -l <"$tmp/slopes.csv")" = 6 ]
done
refuse "no examples" "network 0" "$TAUT" measure "$mlp" --network 0

# a model without a finite bound: no certified column, said so
check "a vit without a bound" "$TAUT" train recipes/vit-shapes-small.ini --out "$tmp/free" --set train.steps=2 \
    --set data.length=200 --set model.norm=rmsnorm --set model.norm_eps=0
"$TAUT" attack "$tmp/free" --n-ex 4 --attack pgd >"$tmp/free.txt"
check "no bound, said so" grep -q "no certified column: no finite" "$tmp/free.txt"
check "no bound, no column" [ "$(grep -c "  certified" "$tmp/free.txt")" = 0 ]

# interrupted and taken up again
attack --attack pgd,apgd-t --norm L2 --eps 0.3 --state "$tmp/state" --batch-size 5 --json >"$tmp/s1.json"
attack --attack pgd,apgd-t --norm L2 --eps 0.3 --state "$tmp/state" --json >"$tmp/s2.json"
check "a finished state has nothing left to do" [ "$(json_get "$tmp/s2.json" forwards)" = 0 ]
for s in s1 s2; do grep -v -e forwards -e backwards -e seconds "$tmp/$s.json" >"$tmp/$s"; done
check "and the same result" cmp "$tmp/s1" "$tmp/s2"
refuse "a state of another attack" "another attack" attack --attack pgd --norm L2 --eps 0.3 --state "$tmp/state"
refuse "a state of another attack" "no-certify differ" attack --attack pgd,apgd-t --norm L2 --eps 0.3 --state "$tmp/state" --no-certify
attack --attack pgd --norm L2 --eps 0.3 --state "$tmp/unheld" --no-certify >"$tmp/out"
refuse "results that no certificate was held against" "no-certify differ" attack --attack pgd --norm L2 --eps 0.3 --state "$tmp/unheld"
refuse "a state that is none" "no state" attack --attack pgd --state recipes/tiny.ini
sed -i 's/"alarms":0/"alarms":1/' "$tmp/state"
attack --attack pgd,apgd-t --norm L2 --eps 0.3 --state "$tmp/state" >"$tmp/out"
check "a contradiction is exit code 2" [ $? = 2 ]
check "and said" grep -q CONTRADICTION "$tmp/out"

for eps in -0.1 0 8 -8/255 x 0.1, nan; do refuse "eps $eps" "eps" attack --attack pgd --eps "$eps"; done
refuse "a forgotten /255" "8/255" attack --attack pgd --eps 8
refuse "an unknown attack" "did you mean pgd" attack --attack pgb
refuse "an unknown norm" "Linf, L2 or L1" attack --norm L3
refuse "no eps for embeddings" "eps is needed" "$TAUT" attack "$gpt" --attack pgd
refuse "no model" "nothing" "$TAUT" attack "$tmp/nothing"
refuse "no reproducer" "no reproducer" "$TAUT" attack "$mlp" --replay "$mlp/model.safetensors"
finish "attack"
