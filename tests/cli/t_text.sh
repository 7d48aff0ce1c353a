#!/bin/sh
# A text from outside, found by name under $TAUT_DATA: tiny Shakespeare by characters, trained for a few steps.
. tests/cli/lib.sh
if [ -z "${TAUT_DATA:-}" ] || [ ! -e "${TAUT_DATA:-}/tinyshakespeare/input.txt" ]; then
    echo "skipped: no tinyshakespeare/input.txt under \$TAUT_DATA"
    exit 77
fi
run=$tmp/run
"$TAUT" train recipes/tiny-free.ini --out "$run" --json --set data.source=tinyshakespeare/input.txt --set model.width=32 \
    --set model.depth=1 --set model.context=32 --set train.steps=120 --set train.lr=0.006 --set train.eval_every=60 \
    >"$tmp/train.json" 2>"$tmp/err"
rc=$?
check "it trains: $(cat "$tmp/err")" [ $rc = 0 ]
loss=$(json_get "$tmp/train.json" val_loss)
# ln 65 = 4.17 at the start; the characters' frequencies alone give 3.3; measured 2.70, 3.08, 2.86 for seeds 1 to 3
check "validation loss $loss below 3.2" less "$loss" 3.2
"$TAUT" info "$run" --json >"$tmp/info.json"
check "65 characters" [ "$(json_get "$tmp/info.json" tokens)" = 65 ]
"$TAUT" eval "$run" --json >"$tmp/eval.json"
check "eval finds the same loss" near "$(json_get "$tmp/eval.json" loss)" "$loss" 1e-6
# 1115394 characters: the first int(0.9 * n) train, every other but the first of the rest is a target
check "the whole validation split" [ "$(json_get "$tmp/eval.json" targets)" = 111539 ]
"$TAUT" eval "$run" --json --windows 7 --train >"$tmp/some.json"
check "seven windows of the training split" [ "$(json_get "$tmp/some.json" targets)" = 224 ]
check "the paper's protocol: overlapping windows" "$TAUT" eval "$run" --slide 5
check "and only of a text" sh -c "! \"$TAUT\" eval \"$run\" --slide x"
check "a path does as well" "$TAUT" eval "$run" --data "$TAUT_DATA/tinyshakespeare/input.txt" --windows 3
"$TAUT" sample "$run" --prompt "ROMEO:" --length 100 --temperature 0.8 >"$tmp/sample"
check "it goes on from the prompt" grep -q '^ROMEO:' "$tmp/sample"
check "106 characters and a newline" [ "$(wc -m <"$tmp/sample")" = 107 ]
finish "text         tiny Shakespeare, validation loss $loss after 120 steps"
