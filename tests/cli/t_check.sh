#!/bin/sh
# taut check against taut certify: what was proved is confirmed, and nothing else.  Exit 0 confirmed, 2 it does not check
# (one line that names the number), 3 a layer that the checker does not know, 1 a file that cannot be read or is no certificate.
. tests/cli/lib.sh
run=$tmp/run cert=$tmp/cert.json
code() { # CODE FILE... : taut check must end with it and say one line, on stdout only when it is 0
    want=$1; shift
    "$TAUT" check "$@" >"$tmp/out" 2>"$tmp/err"; rc=$?
    [ "$rc" = "$want" ] || { echo "exit $rc, not $want: $(cat "$tmp/out" "$tmp/err")"; return 1; }
    if [ "$want" = 0 ]; then [ -s "$tmp/out" ] && [ ! -s "$tmp/err" ]
    else [ ! -s "$tmp/out" ] && [ "$(wc -l <"$tmp/err")" = 1 ]; fi
}
says() { grep -q -- "$1" "$tmp/err"; }
# shellcheck disable=SC2086
for set in "" "--set model.norm=none --set model.residual=convex --set model.attention_scale=inv_width --set model.activation=abs" \
    "--set model.positions=rope --set model.norm=rmsnorm --set model.tied=false --set model.dropout=0.1" \
    "--set model.positions=alibi --set model.norm=centernorm --set model.norm_place=post --set model.activation=silu" \
    "--set model.attention=cosine --set model.norm=centernorm --set model.residual=channel --set model.droppath=0.1" \
    "--set model.attention=cosine --set model.cosine_values=true --set model.positions=rope --set model.activation=maxmin" \
    "--set model.norm=none --set model.mlp_block=potential --set model.activation=relu" \
    "--set model.norm=none --set model.mlp_block=sll --set model.activation=relu" \
    "--set model.arch=encoder --set model.attention=l2 --set model.norm=none" \
    "--set model.arch=encoder --set model.attention=attlip --set model.norm=none --set model.attlip_learned=true --set model.attlip_turn=true" \
    "--set model.arch=encoder --set model.attention=plash --set model.plash_groups=2 --set model.plash_sizes=8" \
    "--set model.arch=encoder --set model.bias=false --set model.logit_scale=0.5 --set model.activation=tanh"; do
    rm -rf "$run"
    "$TAUT" train $small $set --out "$run" >"$tmp/log" 2>&1
    check "train $set" [ -e "$run/model.safetensors" ]
    examples="--n-ex 3"
    case $set in *encoder*) examples= ;; esac
    for norm in tokens flat; do
        check "certify $set" "$TAUT" certify "$run" --norm $norm $examples --out "$cert"
        check "confirmed: $set, $norm" code 0 "$cert" "$run"
        "$TAUT" check "$cert" "$run" --json >"$tmp/json"
        check "norm $norm" [ "$(json_get "$tmp/json" norm)" = $norm ]
        check "many numbers" less 20 "$(json_get "$tmp/json" numbers)"
    done
done
# a layer that the checker does not know: neither confirmed nor refuted
LC_ALL=C sed 's/\\"rule\\":\\"mlp\\"/\\"rule\\":\\"mlq\\"/' "$run/model.safetensors" >"$tmp/foreign.safetensors"
sed "s/\"sha256\":[^,}]*/\"sha256\":\"$(sha256sum "$tmp/foreign.safetensors" | cut -d' ' -f1)\"/" "$cert" >"$tmp/foreign.json"
check "mlq is unknown" code 3 "$tmp/foreign.json" "$tmp/foreign.safetensors"
check "it is named" says "does not know the rule mlq"
"$TAUT" check "$tmp/foreign.json" "$tmp/foreign.safetensors" --json >"$tmp/json"
check "neither" grep -q '"holds":[[:space:]]*null' "$tmp/json"
# from here on: the encoder's certificate
sed '0,/"lip":/s/"lip":[^,]*/"lip":1e-3/' "$cert" >"$tmp/low.json"
check "a lower constant" code 2 "$tmp/low.json" "$run"
check "it is named" says 'lip is stated as 0.001'
sed 's/"norm":[[:space:]]*[0-9][0-9.e+-]*/"norm":0.5e-3/' "$cert" >"$tmp/norm.json"
check "a lower norm" code 2 "$tmp/norm.json" "$run"
check "it is named" says 'norm is stated as'
sed 's/"rule":[[:space:]]*"mlp"/"rule":"linear"/' "$cert" >"$tmp/rule.json"
check "a wrong rule" code 2 "$tmp/rule.json" "$run"
check "it is named" says 'its rule must be mlp'
sed 's/"tool"/"more"/' "$cert" >"$tmp/more.json"
check "an unknown field" code 2 "$tmp/more.json" "$run"
cp "$run/model.safetensors" "$tmp/flipped"
size=$(wc -c <"$tmp/flipped")
printf 'A' | dd of="$tmp/flipped" bs=1 seek=$((size - 5)) conv=notrunc 2>/dev/null
check "a changed weight" code 2 "$cert" "$tmp/flipped"
check "it is named" says 'another file'
head -c 3000 "$cert" >"$tmp/cut.json"
check "half a certificate" code 1 "$tmp/cut.json" "$run"
check "no certificate" code 1 "$run/recipe.ini" "$run"
check "no file" code 1 "$tmp/none" "$run"
check "no model" code 1 "$cert" "$tmp/none"
check "one operand" code 1 "$cert"
"$TAUT" check "$tmp/low.json" "$run" --json >"$tmp/json"; rc=$?
check "exit 2 with --json" [ $rc = 2 ]
check "why, with --json" grep -q 'lip is stated' "$tmp/json"
finish "check        twelve architectures, two norms, $checks checks"
