#!/bin/sh
# taut attack on images of one's own: two classes, one image, files that are damaged or of another size, a model without
# gradients, every profile in every norm; and an input that contradicts nothing, looked at again with --replay.
. tests/cli/lib.sh
byte() { printf "\\$(printf %03o "$1")"; }
idx() { # FOLDER SPLIT COUNT SIDE: bright images of class 1 and dark ones of class 0 in turn, as IDX
    mkdir -p "$1"
    { printf '\0\0\010\003\0\0\0'; byte "$3"; printf '\0\0\0'; byte "$4"; printf '\0\0\0'; byte "$4"
      for i in $(seq "$3"); do for _ in $(seq $(($4 * $4))); do byte $((60 + 90 * (i % 2))); done; done
    } >"$1/$2-images-idx3-ubyte"
    { printf '\0\0\010\001\0\0\0'; byte "$3"; for i in $(seq "$3"); do byte $((i % 2)); done; } >"$1/$2-labels-idx1-ubyte"
}
two=$tmp/two model=$tmp/model
idx "$two" train 8 4; idx "$two" t10k 4 4
check "a model of two classes" "$TAUT" train recipes/mlp-shapes-small.ini --out "$model" --set "data.source=$two" \
    --set model.image_height=4 --set model.image_width=4 --set model.image_channels=1 --set model.classes=2 \
    --set model.hidden=8 --set train.steps=200 --set train.batch=4 --set train.lr=0.02
attack() { "$TAUT" attack "$model" --steps 10 --queries 50 "$@"; }

# the file names its data and its pixels: nothing else is asked
check "the model names its data" sh -c 'tr -d "\000" <"$1" | grep -q "source = $2"' - "$model/model.safetensors" "$two"
all=fgsm,pgd,aa-standard,aa-plus,aa-rand,ta-10
for norm in Linf L2 L1; do
    attack --attack $all --norm $norm --eps 1 >"$tmp/$norm"
    check "$norm, two classes" grep -q "clean accuracy 100.00 %" "$tmp/$norm"
    check "$norm breaks all with eps 1" [ "$norm" = L1 -o "$(grep -c "  worst case         0.00" "$tmp/$norm")" = 1 ]
    check "the margin loss, said" grep -q "2 classes: APGD-T uses the margin loss" "$tmp/$norm"
    check "one target, said" grep -q "FAB-T has 1 targets, not 9" "$tmp/$norm"
    attack --attack $all --norm $norm --eps 1e-6 --n-ex 1 >"$tmp/$norm"
    check "$norm, one image held" grep -q "  worst case       100.00 %" "$tmp/$norm"
    check "and certified" [ "$norm" = Linf -o "$(grep -c "  certified        100.00 %" "$tmp/$norm")" = 1 ]
done

# damaged, cut short, of other sizes, labels out of range
with() { rm -rf "$tmp/bad"; cp -r "$two" "$tmp/bad"; cat >"$tmp/bad/$1"; } # FILE <bytes
bad() { attack --attack pgd --data "$tmp/bad"; }
head -c 40 "$two/t10k-images-idx3-ubyte" | with t10k-images-idx3-ubyte
refuse "images cut short" "promise 64 bytes, it has 24" bad
printf x | with t10k-images-idx3-ubyte
refuse "no images" "not IDX" bad
{ head -c 8 "$two/t10k-labels-idx1-ubyte"; printf '\001\000\007\000'; } | with t10k-labels-idx1-ubyte
refuse "a label out of range" "in 8 classes; the model reads 4 x 4 x 1 in 2" bad
{ head -c 8 "$two/t10k-labels-idx1-ubyte"; printf '\001\000'; } | with t10k-labels-idx1-ubyte
refuse "labels cut short" "promise 4 bytes, it has 2" bad
gzip -c "$two/t10k-images-idx3-ubyte" | head -c 30 | with t10k-images-idx3-ubyte.gz
rm "$tmp/bad/t10k-images-idx3-ubyte"
refuse "a compressed file cut short" "damaged or truncated" bad
idx "$tmp/five" train 4 5; idx "$tmp/five" t10k 3 5
refuse "images of another size" "5 x 5 x 1 in 2 classes; the model reads 4 x 4" attack --data "$tmp/five"
refuse "no such images" "nowhere" attack --data "$tmp/nowhere"
refuse "a text" "brackets" attack --data brackets

# every weight 0: no gradient anywhere, said; nothing is broken, and nothing is certified by more than a tie
file=$model/model.safetensors
len=$(($(od -An -tu8 -N8 "$file" | tr -d ' ') + 8)) size=$(wc -c <"$file")
{ head -c $len "$file"; head -c $((size - len)) /dev/zero; } >"$tmp/zero.safetensors"
"$TAUT" attack "$tmp/zero.safetensors" --attack aa-standard --steps 10 --queries 50 --json >"$tmp/zero.json"
check "a model without gradients" [ $? = 0 ]
check "is said to be one" grep -q "4 of 4 inputs have gradient 0" "$tmp/zero.json"
check "and held unreliable" grep -q '"unreliable":	true' "$tmp/zero.json"
check "nothing is certified on a tie" grep -q '"certified_acc":	0,' "$tmp/zero.json"

# replay: a white image called an attack on a black one
reproducer() { # SHA NUMBERS
    header=$(printf '{"__metadata__":{"taut.model":"%s","taut.attack":"PGD","taut.norm":"L2","taut.eps":"9",%s},' "$1" \
        '"taut.example":"3","taut.seed":"0","taut.label":"0","taut.predicted":"0","taut.radius":"5","taut.distance":"4"')
    header="$header$(printf '"adv":{"dtype":"F64","shape":[%d],"data_offsets":[0,%d]},' "$2" $((8 * $2)))"
    header="$header$(printf '"x":{"dtype":"F64","shape":[%d],"data_offsets":[%d,%d]}}' "$2" $((8 * $2)) $((16 * $2)))"
    byte $((${#header} % 256)); byte $((${#header} / 256)); printf '\0\0\0\0\0\0%s' "$header"
    for _ in $(seq "$2"); do printf '\0\0\0\0\0\0\360\077'; done
    head -c $((8 * $2)) /dev/zero
}
sha=$(sha256sum "$file" | cut -d ' ' -f 1)
reproducer "$sha" 16 >"$tmp/rep"
attack --replay "$tmp/rep" >"$tmp/out"
check "replay, nothing contradicted: exit code 0" [ $? = 0 ]
check "who attacked what, and how far" grep -q "PGD on example 3: class 0, then 1 at l2 distance 4.000" "$tmp/out"
check "the radius is proved anew, not read" sh -c '! grep -q "radius 5" "$1" && grep -q "no contradiction" "$1"' - "$tmp/out"
attack --replay "$tmp/rep" --json >"$tmp/rep.json"
check "as JSON" grep -q '"contradiction":	false' "$tmp/rep.json"
reproducer "$(printf %064d 0)" 16 >"$tmp/other"
refuse "of another model" "about another model" attack --replay "$tmp/other"
reproducer "$sha" 15 >"$tmp/short"
refuse "of another size" "inputs of 15 numbers, the model reads 16" attack --replay "$tmp/short"
head -c 300 "$tmp/rep" >"$tmp/cut"
refuse "cut short" "cut" attack --replay "$tmp/cut"
finish "attack_images two classes, damaged files, no gradients, replay"
