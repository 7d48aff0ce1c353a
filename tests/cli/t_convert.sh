#!/bin/sh
# A Hugging Face checkpoint becomes a model like any other: described, converted, evaluated, sampled, certified, checked.
. tests/cli/lib.sh
hf=$tmp/gpt2 out=$tmp/model.safetensors
refused() { # LINE COMMAND...: exit 1 and one line with LINE in it, nothing on stdout
    line=$1; shift
    "$TAUT" "$@" >"$tmp/out" 2>"$tmp/err"; rc=$?
    [ "$rc" = 1 ] && [ ! -s "$tmp/out" ] && [ "$(wc -l <"$tmp/err")" = 1 ] && grep -q -- "$line" "$tmp/err"
}
mkdir "$hf"
cp tests/golden/hf_gpt2/* "$hf"
check "no tokenizer" refused "no tokenizer" convert "$hf" --out "$out"
check "too many tokens" refused "256 tokens for an embedding of 29" convert "$hf" --tokenizer bytes --out "$out"
check "nothing was written" [ ! -e "$out" ]

# a tokenizer of 28 tokens: 26 letters, the space, "th"
awk 'BEGIN { printf "{"; for (i = 0; i < 26; i++) printf "\"%c\":%d,", 97 + i, i; print "\"\304\240\":26,\"th\":27}" }' >"$hf/vocab.json"
printf '#version: 0.2\nt h\n' >"$hf/merges.txt"
awk 'BEGIN { for (i = 0; i < 60; i++) printf "the quick brown fox jumps over the lazy dog " }' >"$tmp/text"
printf 'Loud' >"$tmp/loud"
check "no place to go" refused "--out FILE is missing" convert "$hf"
check "the checkpoint itself" refused "is the checkpoint itself" convert "$hf" --out "$hf/model.safetensors"
check "info" "$TAUT" info "$hf"
"$TAUT" info "$hf" --json >"$tmp/json"
check "28 tensors" [ "$(json_get "$tmp/json" used)" = 28 ]
check "tied" [ "$(json_get "$tmp/json" tied)" = true ]
check "convert" "$TAUT" convert "$hf" --out "$out"
"$TAUT" convert "$hf" --out "$out" --json >"$tmp/json"
check "its vocabulary" [ "$(json_get "$tmp/json" vocabulary)" = 28 ]
check "its numbers are finite" [ "$(json_get "$tmp/json" not_finite)" = 0 ]
check "info of the model" "$TAUT" info "$out"
check "eval" "$TAUT" eval "$out" --data "$tmp/text"
"$TAUT" eval "$out" --data "$tmp/text" --json >"$tmp/json"
# "the" is two tokens, so a sentence has 42; the first of all is no target
check "targets" [ "$(json_get "$tmp/json" targets)" = $((60 * 42 - 1)) ]
check "no text of its own" refused "names no text" eval "$out"
check "bytes outside the vocabulary" refused "byte 0, 0x4c, is not in the vocabulary" eval "$out" --data "$tmp/loud"
check "sample" "$TAUT" sample "$out" --prompt "the fox" --length 5
check "certify" "$TAUT" certify "$out" --data "$tmp/text" --n-ex 2 --out "$tmp/cert.json"
check "check" "$TAUT" check "$tmp/cert.json" "$out"
check "a checkpoint is a model as it is" "$TAUT" eval "$hf" --data "$tmp/text"
check "bounds need a model" refused "first taut convert" info "$hf" --bound

cp -r "$hf" "$tmp/nan"
chmod u+w "$tmp/nan/model.safetensors"
printf '\377\377\377\177' | dd of="$tmp/nan/model.safetensors" bs=1 conv=notrunc \
    seek=$(($(wc -c <"$tmp/nan/model.safetensors") - 4)) 2>"$tmp/dd.log"
check "a NaN among the weights is said" sh -c '"$TAUT" convert "$1" --out "$2" | grep -q "1 weight is NaN or infinite, the first in "' - \
    "$tmp/nan" "$tmp/nan.safetensors"
"$TAUT" convert "$tmp/nan" --out "$tmp/nan.safetensors" --json >"$tmp/nan.json"
check "and counted" [ "$(json_get "$tmp/nan.json" not_finite)" = 1 ]

sed 's/"n_embd": 16/"n_embd": 32/' tests/golden/hf_gpt2/config.json >"$hf/config.json"
"$TAUT" convert "$hf" --out "$tmp/never" >"$tmp/out" 2>"$tmp/err"
check "a wrong shape" grep -q "wte.weight is 29 x 16, config.json asks for 29 x 32" "$tmp/err"
check "and all the others, each with what was wanted and what is there" grep -q \
    "wanted block.0.mlp.in.weight  *as transformer.h.0.mlp.c_fc.weight  *32 x 128  *found 16 x 64" "$tmp/err"
check "nothing half-written" [ ! -e "$tmp/never" ]
check "info says so too" refused "asks for 29 x 32" info "$hf"
: >"$tmp/old.pt"
check "a pickle is not run" refused "bring_my_model.md" convert "$tmp/old.pt" --out "$out"
mkdir "$tmp/empty"
check "no checkpoint" refused "config.json" convert "$tmp/empty" --out "$out"

# what no tensor tells is said, with who said it
mkdir "$tmp/bare"
cp tests/golden/hf_gpt2/model.safetensors "$tmp/bare"
"$TAUT" convert "$tmp/bare" --tokenizer "$hf" --out "$tmp/b.safetensors" >"$tmp/out" 2>"$tmp/err"
check "heads are asked for, and nothing else is complained of: $(cat "$tmp/err")" [ "$(wc -l <"$tmp/err")" = 1 ]
"$TAUT" convert "$tmp/bare" --tokenizer "$hf" --set model.heads=2 --out "$tmp/b.safetensors" >"$tmp/out" 2>"$tmp/err"
check "who said what: $(cat "$tmp/out" "$tmp/err")" grep -q 'note: no tensor tells model.heads = 2: as you said; model.norm_place = pre, model.activation = gelu_tanh, model.norm_eps = 1e-05: assumed' "$tmp/out"

# an encoder: its mask is the tokenizer's
mkdir "$tmp/bert"
cp tests/golden/hf_bert/* "$tmp/bert"
printf '[PAD]\n[UNK]\n[MASK]\nthe\nquick\nbrown\nfox\njump\n##s\nover\nlazy\ndog\n' >"$tmp/bert/vocab.txt"
check "convert an encoder" "$TAUT" convert "$tmp/bert" --out "$out"
check "eval an encoder" "$TAUT" eval "$out" --data "$tmp/text"
check "certify an encoder" "$TAUT" certify "$out" --out "$tmp/cert.json"
check "check it" "$TAUT" check "$tmp/cert.json" "$out"
finish "convert"
