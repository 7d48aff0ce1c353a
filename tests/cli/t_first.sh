#!/bin/sh
# What stopped first users: data that only has to be looked at, recipes and data that lie elsewhere, memory that is too small, a run
# that is stopped or ends in numbers that are none.
. tests/cli/lib.sh

# ---- a converted model has no training split: whoever looks at data needs none, whoever trains does
npy() { # TYPE SHAPE: a header of 128 bytes; the numbers follow
    printf '\223NUMPY\001\000v\000%-117s\n' "{'descr': '$1', 'fortran_order': False, 'shape': $2, }"
}
mkdir "$tmp/arrays"
{ npy '|u1' '(4, 8, 8, 3)'; awk 'BEGIN { for (i = 0; i < 768; i++) printf "%c", 33 + i * 7 % 90 }'; } >"$tmp/arrays/x.npy"
{ npy '|u1' '(4,)'; printf '\001\002\003\000'; } >"$tmp/arrays/y.npy"
vit=$tmp/vit.safetensors
check "convert a ViT" "$TAUT" convert tests/golden/hf_vit --out "$vit"
cp "$tmp/check.log" "$tmp/said"
check "it says what no tensor tells: $(cat "$tmp/said")" grep -q 'model.heads = 4, model.norm_place = pre, .*: as config.json says$' "$tmp/said"
"$TAUT" eval "$vit" --data "$tmp/arrays" --json >"$tmp/eval.json" 2>"$tmp/err"
check "evaluated on all images: $(cat "$tmp/err")" [ "$(json_get "$tmp/eval.json" targets)" = 4 ]
check "certified" "$TAUT" certify "$vit" --data "$tmp/arrays" --n-ex 2
check "attacked" "$TAUT" attack "$vit" --data "$tmp/arrays" --n-ex 2 --attack fgsm --eps 0.01 --out "$tmp"
check "predicted" "$TAUT" predict "$vit" "$tmp/arrays"
refuse "but not trained" "nothing is left to train on" "$TAUT" train recipes/mlp-shapes-small.ini --out "$tmp/never" \
    --set "data.source=$tmp/arrays" --set data.val_fraction=1
refuse "nor on what is built in" "nothing is left to train on" "$TAUT" train recipes/mlp-shapes-small.ini --out "$tmp/never" \
    --set data.val_fraction=1 --set data.length=100

# ---- recipes by their names, data beside the recipe or above the run
taut=$(cd "$(dirname "$TAUT")" && pwd)/$(basename "$TAUT")
mkdir -p "$tmp/bin" "$tmp/share/taut/recipes" "$tmp/project" "$tmp/far"
cp "$taut" "$tmp/bin/taut"
cp recipes/tiny-free.ini "$tmp/share/taut/recipes/mine.ini"
for name in mine.ini recipes/mine.ini; do
    check "$name is found where it is installed" sh -c 'cd "$1/far" && "$1/bin/taut" recipe "$2" >/dev/null' - "$tmp" $name
done
refuse "one that is not there, and its neighbour" "nor a recipe of that name in .*share/taut/recipes; did you mean mine.ini?" "$tmp/bin/taut" recipe mine
refuse "other folders are not" "No such file" "$tmp/bin/taut" recipe nowhere/mine.ini
awk 'BEGIN { for (i = 0; i < 200; i++) printf "the quick brown fox %d\n", i % 7 }' >"$tmp/project/own.txt"
sed "s/^source = .*/source = own.txt/" recipes/tiny-free.ini >"$tmp/project/own.ini"
small_keys="--set model.width=16 --set model.depth=1 --set model.heads=2 --set model.context=16 --set train.steps=2 --set train.batch=2"
# shellcheck disable=SC2086
check "data beside the recipe" sh -c 'cd "$1/far" && t=$2 && shift 2 && "$t" train ../project/own.ini --out away "$@"' - "$tmp" "$taut" $small_keys
# shellcheck disable=SC2086
check "a run with relative data" sh -c 'cd "$1/project" && t=$2 && shift 2 && "$t" train own.ini --out runs/a "$@"' - "$tmp" "$taut" $small_keys
check "keeps them relative" grep -qx 'source = own.txt' "$tmp/project/runs/a/recipe.ini"
check "and is used from elsewhere" sh -c 'cd "$1/far" && "$2" eval ../project/runs/a' - "$tmp" "$taut"
: >"$tmp/empty.ini"
refuse "an empty recipe" "an empty recipe" "$TAUT" train "$tmp/empty.ini" --out "$tmp/never"
check "nothing was begun" [ ! -e "$tmp/never" ]

# ---- OpenBLAS would ask for memory for ever
if (ulimit -v 300000 && timeout 20 "$TAUT" --version) >/dev/null 2>&1; then # not where a sanitizer has taken all addresses
    # shellcheck disable=SC2016,SC2086
    refuse "too few addresses" "MB of addresses are left (ulimit -v), and 2 threads" timeout 60 sh -c 'ulimit -v 300000 && OMP_NUM_THREADS=2 exec "$@"' - \
        "$TAUT" train $small --threads 2 --out "$tmp/never"
    # shellcheck disable=SC2016,SC2086
    check "enough for one thread" timeout 120 sh -c 'ulimit -v 500000 && "$@"' - "$TAUT" train $small --threads 1 --out "$tmp/one"
fi

# ---- numbers that are none are not saved: the last step's weights are finite, what they answer is not
# shellcheck disable=SC2086
refuse "a step too far" "is not finite" "$TAUT" train $small --set train.optimiser=sgd --set train.clip=0 --set train.lr=1e6 \
    --set train.warmup=0 --set model.norm=none --set model.depth=2 --set train.steps=1 --out "$tmp/nan"
check "no model of it" [ ! -e "$tmp/nan/model.safetensors" ]
finish "first        $checks checks"
