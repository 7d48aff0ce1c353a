#!/bin/sh
# The recipes of NanoGPT's size, made small: each trains on the pieces of a tokenizer, has the constant that it claims in its certificate,
# and the checker confirms it.
. tests/cli/lib.sh
small="--set data.source=brackets --set data.length=20000 --set data.tokenizer=tests/golden/tokens/bpe --set data.rows=1024
 --set data.val_fraction=0.1 --set model.width=24 --set model.depth=3 --set model.heads=2 --set model.context=16 --set model.attention_blocks=2
 --set train.steps=6 --set train.batch=2 --set train.accumulate=2 --set train.warmup=1 --set train.checkpoint_every=3"
for name in free modula lipsformer caps lip10; do
    run=$tmp/$name
    # shellcheck disable=SC2086 # many words
    check "$name trains" "$TAUT" train recipes/nanogpt-$name.ini $small --out "$run"
    check "$name has a loss and an accuracy" [ -n "$(json_get "$run/summary.json" val_acc)" ]
    check "$name certifies" "$TAUT" certify "$run" --norm tokens --out "$run/c.json"
    check "$name checks" "$TAUT" check "$run/c.json" "$run"
    "$TAUT" info "$run" --bound --json >"$run/info.json"
done
bound() { awk -v l2="$(json_get "$tmp/$1/info.json" bound_tokens)" 'BEGIN { print l2 * sqrt(24 / 1024) }'; } # RMS units
check "lip10: $(bound lip10) is at most 10" less "$(bound lip10)" 10.0000001
# shellcheck disable=SC2086 # many words
check "under another target" "$TAUT" train recipes/nanogpt-lip10.ini $small --set constrain.target_lipschitz=0.5 --out "$tmp/half"
"$TAUT" info "$tmp/half" --bound --json >"$tmp/half/info.json"
check "half: $(bound half) is at most that" less "$(bound half)" 0.5000001
check "and not far below" less 0.4 "$(bound half)"
for name in free modula lipsformer; do check "$name: $(bound $name) is far above" less 1000 "$(bound $name)"; done
check "caps: all norms are at most 1, so it is below 8 e" less "$(bound caps)" 22
"$TAUT" eval "$tmp/lip10" --json >"$tmp/eval.json"
check "eval has the accuracy too" [ -n "$(json_get "$tmp/eval.json" accuracy)" ]
finish "nanogpt      five recipes made small: proved $(bound lip10) and checked"
