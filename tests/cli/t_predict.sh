#!/bin/sh
# Classes of own images and texts from the command line: a table on the screen, CSV and JSON, radii as taut certify proves them, and
# what is refused.
. tests/cli/lib.sh
run=$tmp/run
check "a model of images" "$TAUT" train recipes/mlp-shapes-small.ini --out "$run" --set data.length=500 --set train.steps=20 --set train.eval_every=20
# three images of 16 x 16 x 3 bytes: dark, light, and stripes
npy() { # SHAPE: what makes bytes follows on stdin
    head="{'descr': '|u1', 'fortran_order': False, 'shape': $1, }"
    # shellcheck disable=SC2059 # the length is a byte in octal
    printf "\\223NUMPY\\001\\000\\$(printf %03o $((${#head} + 1)))\\000"
    printf '%s\n' "$head"
    cat
}
pixels() { awk 'BEGIN { for (i = 0; i < 768; i++) printf " "; for (i = 0; i < 768; i++) printf "~"; for (i = 0; i < 768; i++) printf "%s", i % 6 < 3 ? "A" : "z" }'; }
pixels | npy "(3, 16, 16, 3)" >"$tmp/three.npy"
"$TAUT" predict "$run" "$tmp/three.npy" --json --out "$tmp/a.csv" >"$tmp/json" 2>"$tmp/err"
rc=$?
check "predicts: $(cat "$tmp/err")" [ $rc = 0 ]
check "three of them" [ "$(grep -o '"verdict":' "$tmp/json" | wc -l)" = 3 ]
check "the table's columns" [ "$(head -1 "$tmp/a.csv")" = 'file,place,class,probability,radius,"disc","square","triangle","plus","ring","stripes"' ]
check "three rows, eleven cells" [ "$(awk -F, 'NF == 11' "$tmp/a.csv" | wc -l)" = 4 ]
check "shares add up" awk -F, 'NR > 1 { s = 0; for (i = 6; i <= 11; i++) s += $i; if (s < 0.999999 || s > 1.000001 || !($5 > 0)) exit 1 }' "$tmp/a.csv"
"$TAUT" predict "$run" "$tmp/three.npy" --csv >"$tmp/b.csv"
check "the same on stdout" cmp -s "$tmp/a.csv" "$tmp/b.csv"
"$TAUT" predict "$run" "$tmp/three.npy" >"$tmp/out"
check "names and radii on the screen" grep -q "three.npy#2 .* %  [0-9]" "$tmp/out"
check "what is proved, in words" grep -q "^proved of 3 of 3: the class stays if the pixels together, from 0 to 1, move by less" "$tmp/out"
"$TAUT" predict "$run" "$tmp/three.npy" --radius 0.001 --norm tokens --csv >"$tmp/b.csv"
check "no radius above --radius" awk -F, 'NR > 1 && $5 > 0.001 { exit 1 }' "$tmp/b.csv"
cp -r "$run" "$tmp/nan" # weights that are not finite: no answer and no radius
nan_weights "$run/model.safetensors" "$tmp/nan/model.safetensors"
"$TAUT" predict "$tmp/nan" "$tmp/three.npy" --csv >"$tmp/b.csv" 2>"$tmp/err"
check "NaN weights: no class, radius 0: $(cat "$tmp/err")" [ "$(awk -F, '$3 == "" && $5 == 0' "$tmp/b.csv" | wc -l)" = 3 ]

# ---- texts
check "a classifier" "$TAUT" train recipes/classifier-animals.ini --out "$tmp/text" --set data.length=300 --set train.steps=10 --set train.eval_every=10
printf 'id;message\n1;the cat and the dog\n2;"a cow; a horse"\n' >"$tmp/in.csv"
"$TAUT" predict "$tmp/text" "$tmp/in.csv" >"$tmp/out" 2>"$tmp/err"
check "rows by their lines: $(cat "$tmp/err")" grep -q "in.csv:3 " "$tmp/out"
check "a class by name" grep -q "in.csv:2 *[a-z]* " "$tmp/out"
check "in embeddings" grep -q "embedding.* by less than the radius" "$tmp/out"

# ---- refused
refuse "no file" "nobody.png" "$TAUT" predict "$run" "$tmp/nobody.png"
refuse "no picture" "in.csv" "$TAUT" predict "$run" "$tmp/in.csv"
printf '\211PNG\r\n\032\nnothing behind' >"$tmp/cut.png"
refuse "a picture that is cut" "cut.png" "$TAUT" predict "$run" "$tmp/three.npy" "$tmp/cut.png" --out "$tmp/none.csv"
check "nothing was written" [ ! -e "$tmp/none.csv" ]
pixels | npy "(1, 32, 24, 3)" >"$tmp/large.npy"
refuse "another size" "32 x 24 pixels; the model reads 16 x 16 (--resize" "$TAUT" predict "$run" "$tmp/large.npy"
check "resized" "$TAUT" predict "$run" "$tmp/large.npy" --resize
refuse "no room" "from 1e-300" "$TAUT" predict "$run" "$tmp/three.npy" --radius 0
refuse "a norm" "tokens (the largest token) or flat" "$TAUT" predict "$run" "$tmp/three.npy" --norm l7
refuse "two forms" "one of them" "$TAUT" predict "$run" "$tmp/three.npy" --csv --json
refuse "over its input" "would take the place" "$TAUT" predict "$run" "$tmp/three.npy" --out "$tmp/three.npy"
refuse "over its model" "would take the place" "$TAUT" predict "$run" "$tmp/three.npy" --out "$run/model.safetensors"
refuse "columns of an image" "classifiers of texts" "$TAUT" predict "$run" "$tmp/three.npy" --text a
refuse "no column of text" "no such column" "$TAUT" predict "$tmp/text" "$tmp/in.csv" --text body
check "a text model" "$TAUT" train $small --out "$tmp/gpt"
refuse "a gpt" "not by a gpt" "$TAUT" predict "$tmp/gpt" "$tmp/in.csv"
finish "predict      images, texts, tables, what is refused"
