#!/bin/sh
# The run every newcomer starts from: recipes/tiny.ini learns, and leaves files that can be read.
# Measured over seeds 1 to 5: validation loss 1.0371, 1.0372, 1.0367, 1.0329, 1.0344 (mean 1.0356, deviation 0.0019); it starts
# at ln 40 = 3.69; knowing how often each character occurs gives 3.40, how often each pair does 1.96.  The limit
# is ten deviations above the mean: other processors round differently, a broken optimiser is far outside.
. tests/cli/lib.sh
long
limit=1.055
run=$tmp/run

"$TAUT" train recipes/tiny.ini --out "$run" --json >"$tmp/out.json" 2>"$tmp/err"
check "exit code" [ $? = 0 ]
check "nothing on stderr when it is no terminal" [ ! -s "$tmp/err" ]

check "stdout is one JSON object" json "$tmp/out.json"
check "summary.json is one JSON object" json "$run/summary.json"
for key in steps tokens train_loss val_loss val_acc tokens_per_s seconds; do
    check "summary.json has $key" less "$(json_get "$run/summary.json" $key)" 1e9
    check "stdout says the same $key" [ "$(json_get "$run/summary.json" $key)" = "$(json_get "$tmp/out.json" $key)" ]
done
loss=$(json_get "$run/summary.json" val_loss)
check "validation loss $loss below $limit" less "$loss" $limit
check "training loss" less "$(json_get "$run/summary.json" train_loss)" $limit
check "accuracy above 0.5" less 0.5 "$(json_get "$run/summary.json" val_acc)"
check "400 steps" [ "$(json_get "$run/summary.json" steps)" = 400 ]
check "400 * 16 * 64 tokens" [ "$(json_get "$run/summary.json" tokens)" = 409600 ]

# the log: every line an object; a step every 10, an evaluation every 100, the loss falls
while read -r line; do echo "$line" | json >/dev/null || echo "$line"; done <"$run/log.jsonl" >"$tmp/bad"
check "every line of the log is a JSON object" [ ! -s "$tmp/bad" ]
check "steps 10, 20, ... 400 in the log" \
    [ "$(sed -n 's/^{"step":\([0-9]*\),"loss".*/\1/p' "$run/log.jsonl" | tr '\n' ' ')" = "$(seq -s ' ' 10 10 400) " ]
check "evaluations at 100 ... 400 in the log" \
    [ "$(sed -n 's/^{"step":\([0-9]*\),"val_loss".*/\1/p' "$run/log.jsonl" | tr '\n' ' ')" = "100 200 300 400 " ]
first=$(sed -n 's/.*"val_loss":\([^,]*\),.*/\1/p' "$run/log.jsonl" | head -n 1)
last=$(sed -n 's/.*"val_loss":\([^,]*\),.*/\1/p' "$run/log.jsonl" | tail -n 1)
check "the loss falls from $first to $last" less "$last" "$first"

# the model is what the summary says, and the resolved recipe is a recipe
check "info" "$TAUT" info "$run"
"$TAUT" eval "$run" --json >"$tmp/eval.json" 2>&1
check "eval finds the same loss" near "$(json_get "$tmp/eval.json" loss)" "$loss" 1e-6
check "on the whole split: 40000 tokens, but the first" [ "$(json_get "$tmp/eval.json" targets)" = 39999 ]
check "the resolved recipe is one" "$TAUT" train "$run/recipe.ini" --out "$tmp/again" --set train.steps=1 \
    --set data.length=2000
check "it is resolved: defaults are written out" grep -q '^polynomial = you6$' "$run/recipe.ini"
check "under its target of 10: $(json_get "$run/summary.json" bound)" less "$(json_get "$run/summary.json" bound)" 10.0000001
"$TAUT" certify "$run" --json >"$tmp/cert.json"
check "and certified so" less "$(json_get "$tmp/cert.json" lip_rms)" 10.0000001

# a finished run is finished
cp "$run/model.safetensors" "$tmp/model"
check "--resume of a finished run" "$TAUT" train recipes/tiny.ini --out "$run" --resume
check "leaves its model as it is" cmp "$run/model.safetensors" "$tmp/model"
check "five files and no other" [ "$(find "$run" -type f | wc -l)" = 5 ]

finish "train        validation loss $loss (limit $limit)"
