#!/bin/sh
# Training under a target: what is printed and summed up is of the file that was saved.
. tests/cli/lib.sh
# Checkpoints and evaluations at different steps, so that what is evaluated has not just been shrunk.
bounded="$small --set train.steps=60 --set train.lr=0.02 --set constrain.target_lipschitz=0.05 --set train.checkpoint_every=25
 --set train.eval_every=7 --set constrain.method=none"

same() { # RUN WHAT: summary.json says what eval finds of model.safetensors
    "$TAUT" eval "$1" --json >"$tmp/eval.json"
    check "$2: the loss of the file" near "$(json_get "$tmp/eval.json" loss)" "$(json_get "$1/summary.json" val_loss)" 1e-6
    check "$2: its accuracy" near "$(json_get "$tmp/eval.json" accuracy)" "$(json_get "$1/summary.json" val_acc)" 1e-9
}

# shellcheck disable=SC2086 # words, here and below
check "without patience" "$TAUT" train $bounded --out "$tmp/plain"
cp "$tmp/check.log" "$tmp/told"
same "$tmp/plain" "without patience"
# the region beside the target, printed and in the summary
check "printed" grep -q "proved constant  [0-9.]*   (norm tokens, RMS units; target 0.05)" "$tmp/told"
check "with its region" grep -q "for 16 tokens, each an embedding of the model, or anything within [0-9.e-]* of the origin" \
    "$tmp/told"
check "not moved" [ "$(json_get "$tmp/plain/summary.json" room)" = 0 ]
"$TAUT" certify "$tmp/plain" --json >"$tmp/proof.json"
check "the bound is of the file" near "$(json_get "$tmp/plain/summary.json" bound)" "$(json_get "$tmp/proof.json" lip_rms)" 1e-9
check "under the target" less "$(json_get "$tmp/plain/summary.json" bound)" 0.05
"$TAUT" certify "$tmp/plain" --radius 1 >"$tmp/moved"
check "certify says that inputs are moved" grep -q "an embedding of the model moved by at most 1, or" "$tmp/moved"
for patience in 1 3; do
    run=$tmp/patient$patience
    # shellcheck disable=SC2086
    check "patience $patience" "$TAUT" train $bounded --set train.patience=$patience --out "$run"
    same "$run" "patience $patience"
    best=$(json_get "$run/summary.json" best_step)
    grep "^{\"step\":$best,\"val_loss\"" "$run/log.jsonl" >"$tmp/line.json"
    check "patience $patience: the evaluation that was best is of the file too" \
        near "$(json_get "$tmp/line.json" val_loss)" "$(json_get "$run/summary.json" val_loss)" 1e-6
    check "patience $patience: no evaluation is better" [ -z "$(sed -n 's/.*"val_loss":\([^,]*\),.*/\1/p' "$run/log.jsonl" |
        awk -v best="$(json_get "$tmp/line.json" val_loss)" '$1 < best')" ]
    "$TAUT" certify "$run" --json >"$tmp/proof.json"
    check "patience $patience: the bound beside it is what is proved of the file" \
        near "$(json_get "$tmp/line.json" bound)" "$(json_get "$tmp/proof.json" lip_rms)" 1e-6
done

finish "target       what is told of a run is of its file"
