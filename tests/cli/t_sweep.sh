#!/bin/sh
# taut sweep: every combination once, again without work, a stopped one resumed, a failed one named, and a Slurm script.
. tests/cli/lib.sh
cp recipes/tiny.ini "$tmp/r.ini"
fixed="--grid model.width=16 --grid model.depth=1 --grid model.heads=2 --grid model.context=16 --grid train.steps=4
 --grid train.batch=2 --grid data.length=2000"
sweep() { # shellcheck disable=SC2086 # $fixed is many words
    "$TAUT" sweep "$tmp/r.ini" --out "$tmp/s" $fixed --grid train.lr=0.001,0.002 "$@" --threads 1 >"$tmp/o" 2>"$tmp/e"
}
sweep --jobs 2 --json
rc=$?
check "runs: $(cat "$tmp/e")" [ $rc = 0 ]
check "two of them" [ "$(find "$tmp/s" -name summary.json | wc -l)" = 2 ]
check "each certified" [ "$(find "$tmp/s" -name certificate.json | wc -l)" = 2 ]
check "the keys are set" grep -q '^lr = 0.002' "$tmp"/s/001*/recipe.ini
check "a frontier" grep -q 'id="frontier-val_loss"' "$tmp/s/frontier.html"
check "one object" [ "$(tr -d ' \t\n' <"$tmp/o" | grep -o '"val_loss":[0-9]' | wc -l)" = 2 ]
find "$tmp/s" -name model.safetensors -exec ls -l --time-style=full-iso {} + >"$tmp/before"
sweep
find "$tmp/s" -name model.safetensors -exec ls -l --time-style=full-iso {} + >"$tmp/after"
check "what is finished is not done again" cmp "$tmp/before" "$tmp/after"
one=$(find "$tmp/s" -name '000*' -type d)
rm "$one/summary.json" "$one/certificate.json"
sweep
check "what was begun is resumed" [ -s "$one/summary.json" ]
check "and certified" [ -s "$one/certificate.json" ]
"$TAUT" train "$one/recipe.ini" --out "$one" --resume --set train.steps=6 >/dev/null 2>&1
"$TAUT" check "$one/certificate.json" "$one" >/dev/null 2>&1
check "trained on by hand: the old certificate is of another file" [ $? = 2 ]
sweep
check "what was trained on is certified again" "$TAUT" check "$one/certificate.json" "$one"
sweep --grid train.optimiser=adamw,nonsense
rc=$?
check "a run that cannot be is named" [ $rc = 1 ]
check "by its folder" grep -q 'optimiser=nonsense failed' "$tmp/e"
check "with the reason in its log" grep -q nonsense "$(find "$tmp/s" -path '*nonsense/sweep.log' | head -n 1)"
printf 'a series of letters, again and again. %.0s' $(seq 99) >"$tmp/text"
sweep --grid train.seed=1,2 --grid "data.source=$tmp/text" --mean train.seed --json
rc=$?
check "a key that is no choice: $(cat "$tmp/e")" [ $rc = 0 ]
check "a value may be a path" [ "$(find "$tmp/s" -path '*-text_*' -o -path '*-text/summary.json' | wc -l)" = 4 ]
cat >"$tmp/judge.py" <<'END'
import json, sys
o = json.load(open(sys.argv[1]))
loss = [r["val_loss"] for r in o["runs"]]  # the rate is the faster axis, the seed the slower
want = {"train.lr=0.001": (loss[0] + loss[2]) / 2, "train.lr=0.002": (loss[1] + loss[3]) / 2}
got = [(s["setting"], s["val_loss"]) for s in o["settings"]]
ok = all(abs(want[k] - v) <= 1e-12 * abs(v) for k, v in got) and len(got) == 2 and got[0][1] <= got[1][1]
sys.exit(not (ok and loss[0] != loss[2]))
END
command -v python3 >/dev/null && check "settings by their mean over seeds, best first" python3 "$tmp/judge.py" "$tmp/o"
for key in a b; do set -- "$@" --grid "train.$key$(printf '%050d' 0)=$(printf '%060d' 1)"; done
sweep "$@"
rc=$?
check "a name that no folder can have" [ $rc = 1 ]
check "is said to be too long" grep -q 'too long a name' "$tmp/e"
for bad in "--grid lr" "--grid =1" "--grid train.lr=" "--grid train.lr=1,,2" "--jobs 0" "--mean train.seed"; do
    # shellcheck disable=SC2086 # $bad is two words
    sweep $bad
    rc=$?
    check "refused: $bad" [ $rc = 1 ]
    check "in one line: $bad" [ "$(wc -l <"$tmp/e")" = 1 ]
done
sweep --slurm "$tmp/job.sh"
check "a script for Slurm" sh -n "$tmp/job.sh"
check "with both runs" grep -q -- '--array=0-1' "$tmp/job.sh"
finish "taut sweep"
