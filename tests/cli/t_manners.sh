#!/bin/sh
# What people are told: images are images, the same number of examples is the same examples, the smaller of two proofs that say the
# same, names that are understood, and lines that name a thing once.
. tests/cli/lib.sh
mlp=$tmp/mlp vit=$tmp/vit
check "an mlp" "$TAUT" train recipes/mlp-shapes-small.ini --out "$mlp" --set train.steps=30 --set data.length=300
cp "$tmp/check.log" "$tmp/train.txt"
check "images are counted, not tokens: $(head -n 1 "$tmp/train.txt")" grep -q 'steps, [0-9]* images, .* images/s)' "$tmp/train.txt"
"$TAUT" eval "$mlp" >"$tmp/eval.txt"
check "eval of images: $(cat "$tmp/eval.txt")" grep -q 'loss [0-9.]*  accuracy [0-9.]* %   ([0-9]* images)' "$tmp/eval.txt"
"$TAUT" info "$mlp" >"$tmp/info.txt"
check "info of images: $(head -n 1 "$tmp/info.txt")" grep -q 'mlp, width 128, depth 2, images of [0-9]* x [0-9]* x [0-9]* in [0-9]* classes, [0-9]* weights' "$tmp/info.txt"

# certify and attack: the same examples, so one certified curve
"$TAUT" certify "$mlp" --norm flat --n-ex 7 --radius 0.5 --out "$tmp/c.json" --json >"$tmp/certify.json"
"$TAUT" attack "$mlp" --attack fgsm --norm l2 --eps 0.125,0.5 --n-ex 7 --json --out "$tmp" >"$tmp/attack.json"
rc=$?
check "--norm l2 is understood: $rc" [ $rc = 0 ]
cat >"$tmp/same.py" <<'END'
import json, sys
certify, attack = (json.load(open(f)) for f in sys.argv[1:])
clean = sum(e["target"] == e["predicted"] for e in certify["examples"]) / 7
sure = [sum(e["target"] == e["predicted"] and e["radius"] > eps for e in certify["examples"]) / 7 for eps in (0.125, 0.5)]
print(clean, attack["clean_acc"], sure, [r["certified_acc"] for r in attack["radii"]], certify["examples"])
sys.exit(not (clean == attack["clean_acc"] and all(abs(a - r["certified_acc"]) < 1e-9 for a, r in zip(sure, attack["radii"]))))
END
command -v python3 >/dev/null && check "one certified curve" python3 "$tmp/same.py" "$tmp/certify.json" "$tmp/attack.json"
"$TAUT" attack "$mlp" --attack autoattack --norm l2 --eps 0.1 --n-ex 2 --steps 2 --queries 5 --targets 1 --out "$tmp" >"$tmp/o"
check "autoattack is aa-standard" grep -q '^  aa-standard' "$tmp/o"
refuse "an attack that is none" "no attack is called foo: there are fgsm, pgd, .*aa-standard.*ta-10" "$TAUT" attack "$mlp" --attack foo
refuse "a norm that is none" "Linf, L2 or L1, not foo" "$TAUT" attack "$mlp" --norm foo
refuse "certify's norms" "tokens (the largest token) or flat (l2 over everything), not l2" "$TAUT" certify "$mlp" --norm l2

# one token in and one out: both norms say the same, and the smaller proof is given
check "a vit under a target by tokens" "$TAUT" train recipes/vit-shapes-small.ini --out "$vit" --set train.steps=2 --set data.length=200 \
    --set constrain.target_lipschitz=20 --set constrain.norm=tokens
for norm in tokens flat; do
    "$TAUT" certify "$vit" --norm $norm --json >"$tmp/$norm.json"
    "$TAUT" certify "$vit" --json >"$tmp/own.json"
    check "not above the proof by $norm" less "$(json_get "$tmp/own.json" lip)" "$(json_get "$tmp/$norm.json" lip | awk '{ printf "%.17g", $1 * (1 + 1e-12) }')"
done
check "the two differ here" [ "$(json_get "$tmp/tokens.json" lip)" != "$(json_get "$tmp/flat.json" lip)" ]
"$TAUT" certify "$vit" --out "$tmp/own.cert" >/dev/null
check "and it checks" "$TAUT" check "$tmp/own.cert" "$vit"

# lines that name a thing, and name it once
sed 's/"lip":.*/"lip": 0.001,/' "$tmp/c.json" | awk '/"lip"/ && !n++ { print; next } { print }' >"$tmp/low.json"
"$TAUT" check "$tmp/low.json" "$mlp" >"$tmp/o" 2>"$tmp/e"
check "the whole network has a name in check's line: $(cat "$tmp/e")" grep -q 'does not check: [a-z]' "$tmp/e"
printf 'PK\003\004 and no more' >"$tmp/bad.npz"
"$TAUT" train recipes/mlp-shapes-small.ini --out "$tmp/x" --set "data.source=$tmp/bad.npz" >"$tmp/o" 2>"$tmp/e"
check "a path once: $(cat "$tmp/e")" [ "$(grep -o 'bad.npz' "$tmp/e" | wc -l)" = 1 ]
finish "manners      images, examples, norms, names"
