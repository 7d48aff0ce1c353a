#!/bin/sh
# A trained ViT from elsewhere: loaded whole, as accurate as its author says, measured layer by layer.  Its file and CIFAR-10
# are looked for among the data; without them this test is skipped.  All 10,000 images give 73.72 % (taut eval without
# --windows); here 200 of them, of which PyTorch in float64 has 143 right, one more or less where a float rounds.
. tests/cli/lib.sh
long
data=${TAUT_DATA:-}
vit=$data/pretrained/vit_cifar10/vit_cifar10.safetensors
if [ ! -e "$vit" ] || [ ! -e "$data/cifar10" ]; then
    echo "skipped: no pretrained/vit_cifar10 or no cifar10 among the data"
    exit 77
fi
out=$tmp/vit.safetensors
check "convert" "$TAUT" convert "$vit" --recipe recipes/vit-cifar10-torch.ini --out "$out"
"$TAUT" info "$vit" --recipe recipes/vit-cifar10-torch.ini --json >"$tmp/json"
check "every tensor is used" [ "$(json_get "$tmp/json" used)" = 80 ]
"$TAUT" eval "$out" --windows 200 --batch 50 --json >"$tmp/json"
check "as accurate as stated" near "$(json_get "$tmp/json" accuracy)" 0.715 0.0051
"$TAUT" measure "$out" --map attention --csv "$tmp/layers.csv" >"$tmp/log" 2>&1
check "measured" [ -s "$tmp/layers.csv" ]
check "six layers" [ "$(grep -c "^[0-5],,65," "$tmp/layers.csv")" = 6 ]

# two of VNN-COMP 2023, with BatchNorm: on all images, as their authors state
for model in pgd_2_3_16:0.5978 ibp_3_3_8:0.6221; do
    name=${model%:*}
    onnx=$data/pretrained/vit_vnncomp2023/$name.onnx
    [ -e "$onnx" ] || continue
    check "convert $name" "$TAUT" convert "$onnx" --recipe "recipes/vit-vnncomp-$(echo "$name" | tr _ -).ini" --out "$out"
    "$TAUT" eval "$out" --batch 64 --json >"$tmp/json"
    check "$name, as accurate as stated" near "$(json_get "$tmp/json" accuracy)" "${model#*:}" 0.0002
done

# ibp_3_3_8 attacked: the very images that AutoAttack's definitions, rendered in PyTorch with other random numbers, break
if [ "${name:-}" = ibp_3_3_8 ] && [ -e "$onnx" ]; then
    mkdir "$tmp/first" # the first 20 of the test images
    for file in data_batch_1 data_batch_2 data_batch_3 data_batch_4 data_batch_5 test_batch; do
        gzip -dc "$data/cifar10/$file.bin.gz" 2>/dev/null | head -c $((20 * 3073)) >"$tmp/first/$file.bin"
    done
    "$TAUT" attack "$out" --attack apgd-ce,apgd-dlr,fab-t --norm Linf --eps 1/255 --n-ex 20 --no-certify --state "$tmp/state" \
        --data "$tmp/first" >"$tmp/log"
    broken() { # PROFILE: the images it broke
        sed 's/.*"by":\[//; s/\].*//' "$tmp/state" | tr , '\n' |
            awk -v p="$1" 'NR > 20 * p && NR <= 20 * (p + 1) && $1 >= 0 { printf "%d ", NR - 20 * p - 1 }'
    }
    check "16 of 20 are right" grep -q "20 examples, clean accuracy 80.00 %" "$tmp/log"
    check "APGD-CE: $(broken 0)" [ "$(broken 0)" = "4 8 15 16 " ]
    check "APGD-DLR: $(broken 1)" [ "$(broken 1)" = "2 4 8 15 16 " ]
    check "FAB-T: $(broken 2)" [ "$(broken 2)" = "2 4 8 15 16 " ]
fi
finish "pretrained"
