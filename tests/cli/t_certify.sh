#!/bin/sh
# taut certify: units, constants around examples, and input that has no answer or a degenerate one.  What is proved is
# confirmed by taut check each time; what cannot be proved is said in one line.
. tests/cli/lib.sh
run=$tmp/run cert=$tmp/cert.json
says() { "$TAUT" certify "$@" >"$tmp/out" 2>"$tmp/err" && grep -q -- "$pattern" "$tmp/out"; }
refused() { "$TAUT" certify "$@" >"$tmp/out" 2>"$tmp/err"; [ $? = 1 ] && [ "$(wc -l <"$tmp/err")" = 1 ] && grep -q -- "$pattern" "$tmp/err"; }
confirmed() { "$TAUT" certify "$@" --out "$cert" >"$tmp/out" 2>&1 && "$TAUT" check "$cert" "$1" >"$tmp/out" 2>&1; }
# shellcheck disable=SC2086
train() { rm -rf "$run"; "$TAUT" train $small "$@" --out "$run" >"$tmp/log" 2>&1; }

check "train" train
# ---- units: RMS is sqrt(16 / 27) or so times l2; flat is sqrt(16) times tokens
"$TAUT" certify "$run" --json >"$tmp/json"
not_the_file() { "$TAUT" check "$tmp/json" "$run" 2>&1 | grep -q -e '--out FILE writes'; }
check "what --json says is no certificate" not_the_file
check "four units" [ "$(grep -o '"factor"' "$tmp/json" | wc -l)" = 4 ]
pattern="norm flat   RMS"
check "units in words" says "$run" --units
# ---- around examples
pattern="around each example, moved by up to 0.001"
check "around examples" says "$run" --n-ex 3 --radius 0.001 --local
pattern="around each example, moved by up to 0:"
check "radius 0" says "$run" --n-ex 2 --radius 0 --local
check "radius 0, confirmed" confirmed "$run" --n-ex 2 --radius 0
pattern=examples
check "around no examples" refused "$run" --local
pattern="radius"
for r in -1 nan inf 1e400 x; do check "radius $r" refused "$run" --n-ex 2 --radius $r --local; done
check "a huge radius" confirmed "$run" --n-ex 2 --radius 1e300
# ---- weights that are not finite: the last one of the file
for bits in '\000\000\300\177' '\000\000\200\377'; do
    cp "$run/model.safetensors" "$tmp/bad"
    size=$(wc -c <"$tmp/bad")
    # shellcheck disable=SC2059
    printf "$bits" | dd of="$tmp/bad" bs=1 seek=$((size - 4)) conv=notrunc 2>/dev/null
    pattern="no finite constant: a weight is NaN or infinite"
    check "not finite" says "$tmp/bad"
    check "not finite, confirmed" confirmed "$tmp/bad"
    check "with examples too" confirmed "$tmp/bad" --n-ex 2
    check "it promises nothing" grep -q 'an infinite constant promises nothing' "$tmp/out"
    pattern="median certified radius 0"
    check "no radius" says "$tmp/bad" --n-ex 2 --radius 0.1 --local --data "$(sed -n 's/^source = //p' "$run/recipe.ini")"
done
# ---- degenerate shapes
check "zero matrices" train --set model.init_std=0 --set model.norm=none --set train.steps=1 --set train.lr=0
check "zero matrices, confirmed" confirmed "$run"
check "zero matrices, flat" confirmed "$run" --norm flat
check "1 by 1 matrices" train --set model.width=1 --set model.heads=1 --set model.mlp=1 --set model.norm=none
check "1 by 1 matrices, confirmed" confirmed "$run" --n-ex 2
check "1 by N matrices" train --set model.mlp=1
check "1 by N matrices, confirmed" confirmed "$run" --norm flat
# ---- a target is kept also where a hundred stated numbers multiply
check "a deep model under a target" train --set model.width=4 --set model.mlp=4 --set model.depth=128 --set model.norm=none \
    --set model.residual=convex --set model.tied=false --set model.init=orthogonal --set train.steps=1 --set constrain.method=none \
    --set constrain.fill=1 --set constrain.target_lipschitz=2
"$TAUT" certify "$run" --json >"$tmp/deep" 2>/dev/null
check "stays under it: $(json_get "$tmp/deep" lip_rms)" less "$(json_get "$tmp/deep" lip_rms)" 2
# ---- no global bound
check "eps 0" train --set model.norm_eps=0
pattern="no finite constant: model.norm_eps = 0"
check "eps 0 is said" says "$run"
check "eps 0, confirmed" confirmed "$run"
# ---- a network that gives no answer: K steps miss their tolerance.  Of 24 examples some are of class 0
check "K steps" "$TAUT" train recipes/encoder-1lip.ini --set model.width=8 --set model.mlp=8 --set model.depth=1 \
    --set model.attlip_steps=1 --set train.steps=1 --out "$tmp/k"
pattern="no answer to 24 of 24 examples, which count as wrong: the residual did not fall"
check "no answer is said" says "$tmp/k" --n-ex 24
check "no answer is not right" grep -q 'nothing moved .* 0.00 %  of 24' "$tmp/out"
"$TAUT" certify "$tmp/k" --n-ex 24 --json >"$tmp/json"
check "no answer, in JSON" [ "$(json_get "$tmp/json" abstained)" = 24 ]
check "of so many that were asked" [ "$(json_get "$tmp/json" n_ex)" = 24 ]
"$TAUT" attack "$tmp/k" --attack fgsm --kernels ref --norm L2 --eps 0.1 --n-ex 4 >"$tmp/out" 2>&1
check "an attack says so too" grep -q '4 of 4 inputs have no answer' "$tmp/out"
check "and does not take it for chance" [ "$(grep -c randomised "$tmp/out")" = 0 ]
# ---- no model
: >"$tmp/empty"
printf '\002\000\000\000\000\000\000\000{}' >"$tmp/header"
pattern="empty"
check "an empty file" refused "$tmp/empty"
pattern="header"
check "a file without tensors" refused "$tmp/header"
# the norm of the model's own target, else that of its kind
for norm in tokens flat; do
    # shellcheck disable=SC2086 # words
    check "a run with a target in norm $norm" "$TAUT" train $small --set constrain.target_lipschitz=50 --set constrain.norm=$norm \
        --set constrain.method=normalise --out "$tmp/own-$norm"
    "$TAUT" certify "$tmp/own-$norm" --json >"$tmp/own.json"
    check "its own norm is $norm" grep -Eq "\"norm\":[[:space:]]*\"$norm\"" "$tmp/own.json"
done
check "a run on images" "$TAUT" train recipes/vit-shapes-small.ini --set train.steps=1 --set train.warmup=1 --set data.length=200 --out "$tmp/own-vit"
"$TAUT" certify "$tmp/own-vit" --json >"$tmp/own.json"
check "images are flat" grep -Eq '"norm":[[:space:]]*"flat"' "$tmp/own.json"
finish "certify      units, local constants, degenerate input, $checks checks"
