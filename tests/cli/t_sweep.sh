#!/bin/sh
# taut sweep: every combination once, again without work, a stopped one resumed, a failed one named, and a Slurm script.
. tests/cli/lib.sh
cp recipes/tiny-free.ini "$tmp/r.ini"
fixed="--set model.width=16 --set model.depth=1 --set model.heads=2 --set model.context=16 --set train.steps=4
 --set train.batch=2 --set data.length=2000"
sweep() { # shellcheck disable=SC2086 # $fixed is many words
    "$TAUT" sweep "$tmp/r.ini" --out "$tmp/s" $fixed --grid "train.lr=${rates:-0.001,0.002}" "$@" --threads 1 >"$tmp/o" 2>"$tmp/e"
}
sweep --jobs 2 --json
rc=$?
check "runs: $(cat "$tmp/e")" [ $rc = 0 ]
check "two of them" [ "$(find "$tmp/s" -name summary.json | wc -l)" = 2 ]
check "each certified" [ "$(find "$tmp/s" -name certificate.json | wc -l)" = 2 ]
check "the keys are set" grep -q '^lr = 0.002' "$tmp/s/train.lr=0.002/recipe.ini"
check "and what is the same for all" grep -q '^width = 16' "$tmp/s/train.lr=0.002/recipe.ini"
check "a constant says its norm and units" grep -q '"measure":.*"norm tokens, l2"' "$tmp/o"
check "a frontier" grep -q 'id="frontier-val_loss"' "$tmp/s/frontier.html"
check "one object" [ "$(tr -d ' \t\n' <"$tmp/o" | grep -o '"val_loss":[0-9]' | wc -l)" = 2 ]
find "$tmp/s" -name model.safetensors -exec ls -l --time-style=full-iso {} + >"$tmp/before"
sweep
find "$tmp/s" -name model.safetensors -exec ls -l --time-style=full-iso {} + >"$tmp/after"
check "what is finished is not done again" cmp "$tmp/before" "$tmp/after"
one=$tmp/s/train.lr=0.001
rates=0.0005,0.001,0.002 sweep
find "$tmp/s/train.lr=0.001" "$tmp/s/train.lr=0.002" -name model.safetensors -exec ls -l --time-style=full-iso {} + | sort >"$tmp/after"
sort -o "$tmp/before" "$tmp/before"
check "a longer grid keeps what is finished" cmp "$tmp/before" "$tmp/after"
check "and runs what is new" [ -s "$tmp/s/train.lr=0.0005/summary.json" ]
rm -r "$tmp/s/train.lr=0.0005"
"$TAUT" report "$tmp/s" --out "$tmp/s.html" >/dev/null 2>&1
check "a report of the sweep has its runs" [ "$(grep -c '<h2>train.lr=' "$tmp/s.html")" = 2 ]
check "and its frontier, with norm and units" grep -q 'proved Lipschitz constant (norm tokens, l2)' "$tmp/s.html"
rm "$one/summary.json" "$one/certificate.json"
sweep
check "what was begun is resumed" [ -s "$one/summary.json" ]
check "and certified" [ -s "$one/certificate.json" ]
"$TAUT" train "$one/recipe.ini" --out "$one" --resume --set train.steps=6 >/dev/null 2>&1
"$TAUT" check "$one/certificate.json" "$one" >/dev/null 2>&1
check "trained on by hand: the old certificate is of another file" [ $? = 2 ]
sweep
rc=$?
check "a longer run does not pass for the one that was asked for: 1, not $rc" [ $rc = 1 ]
check "and is named: $(cat "$tmp/e")" grep -q 'train.lr=0.001: its run has train.steps = 6, now 4 is asked for' "$tmp/e"
sweep --set train.steps=12
rc=$?
check "nor does a shorter one: 1, not $rc" [ $rc = 1 ]
check "which is left as it is" [ "$(json_get "$one/summary.json" steps)" = 6 ]
"$TAUT" train "$tmp/s/train.lr=0.002/recipe.ini" --out "$tmp/s/train.lr=0.002" --resume --set train.steps=6 >/dev/null 2>&1
sweep --set train.steps=6
check "all trained on by hand: $(cat "$tmp/e")" "$TAUT" check "$one/certificate.json" "$one"
check "steps are shown" [ "$(grep -c ' 6 steps ' "$tmp/o")" = 2 ]
sweep --set train.steps=6 --json
check "also in JSON" [ "$(tr -d ' \t\n' <"$tmp/o" | grep -o '"steps":6' | wc -l)" = 2 ]
rm -r "$tmp/s"
sweep --seed 7
sweep --seed 7
rc=$?
check "a seed is asked for again: $(cat "$tmp/e")" [ $rc = 0 ]
sweep
check "and another is another recipe" grep -q 'begun with train.seed = 7, now it is 1' "$tmp/e"
rm -r "$tmp/s"
sweep

# what cannot be run stops before the first run
stops() { # WHAT PATTERN WORD...
    what=$1 pattern=$2; shift 2
    rm -rf "$tmp/none"
    # shellcheck disable=SC2086
    "$TAUT" sweep "$tmp/r.ini" --out "$tmp/none" $fixed "$@" >"$tmp/o" 2>"$tmp/e"
    rc=$?
    check "$what: 1, not $rc" [ $rc = 1 ]
    check "$what: one line that says '$pattern', not '$(cat "$tmp/e")'" grep -q -e "$pattern" "$tmp/e"
    check "$what: one line" [ "$(wc -l <"$tmp/e")" = 1 ]
    check "$what: before the first run" [ ! -e "$tmp/none" ]
}
stops "a misspelt key" "sweep: --grid train.lrr: unknown key (did you mean train.lr?)" --grid train.lrr=1,2
stops "a value that is none" "sweep: --grid train.optimiser = .nonsense. is not one of" --grid train.optimiser=adamw,nonsense
stops "a misspelt --set" "sweep: --set train.stepz: unknown key" --grid train.lr=1,2 --set train.stepz=1
stops "a key twice" "train.lr is given twice" --grid train.lr=1,2 --grid train.lr=3
stops "a key of the grid set" "train.lr is in --grid and in --set" --grid train.lr=1,2 --set train.lr=3
stops "two runs of one name" "two runs would both be" --grid data.source=a/b,a-b
sweep --set train.clip=0.5
check "another recipe in the same folders" grep -q 'begun with train.clip = 1, now it is 0.5' "$tmp/e"
echo '[bad' >"$tmp/s/train.lr=0.002/recipe.ini"
sweep
check "a damaged record is named: $(cat "$tmp/e")" grep -q 'train.lr=0.002/recipe.ini' "$tmp/e"
rm -r "$tmp/s/train.lr=0.002"

# a run that dies is named, and the others go on
# shellcheck disable=SC2086
"$TAUT" sweep "$tmp/r.ini" --out "$tmp/die" $fixed --set train.optimiser=sgd --set train.clip=0 --set train.steps=40 \
    --grid train.lr=0.01,100000 >"$tmp/o" 2>"$tmp/e"
rc=$?
check "a run that fails: 1, not $rc" [ $rc = 1 ]
check "by its folder" grep -q 'train.lr=100000 failed' "$tmp/e"
check "in the table too, without numbers: $(grep 100000 "$tmp/o")" grep -q 'train.lr=100000  *failed$' "$tmp/o"
check "with the reason in its log" grep -q 'not finite' "$tmp/die/train.lr=100000/sweep.log"
check "the other is done" [ -s "$tmp/die/train.lr=0.01/certificate.json" ]

# under a target: its norm, its units
# shellcheck disable=SC2086
"$TAUT" sweep "$tmp/r.ini" --out "$tmp/t" $fixed --set constrain.target_lipschitz=10 --grid train.seed=1,2 >"$tmp/o" 2>"$tmp/e"
check "under a target: $(cat "$tmp/e")" [ "$(grep -c 'bound [0-9.]* (norm tokens, RMS units; target 10)' "$tmp/o")" = 2 ]
bounds=$(sed -n 's/.*bound \([0-9.]*\) (norm tokens, RMS.*/\1/p' "$tmp/o")
for b in $bounds; do check "$b is under it" less "$b" 10.0001; done
"$TAUT" report "$tmp/t" --out "$tmp/t.html" >/dev/null 2>&1
check "also in a report" [ "$(grep -o 'proved Lipschitz constant (norm tokens, RMS units; target 10)' "$tmp/t.html" | wc -l)" = 2 ]
check "and on the frontier's axis" grep -q 'proved Lipschitz constant (norm tokens, RMS units)<' "$tmp/t.html"

# Ctrl-C: the children save, the sweep ends with 130; killed, it takes them with it.  --jobs divides the threads.
endless() { # as a shell does it in the foreground, where Ctrl-C is not ignored
    # shellcheck disable=SC2086
    OMP_NUM_THREADS=5 python3 -c 'import os, signal, sys
signal.signal(signal.SIGINT, signal.SIG_DFL)
os.execv(sys.argv[1], sys.argv[1:])' "$TAUT" sweep "$tmp/r.ini" --out "$1" $fixed --set train.steps=100000000 \
        --set train.log_every=1 --grid train.seed=1,2,3 --jobs 2 >"$tmp/o" 2>"$tmp/e" &
    child=$!
    for _ in $(seq 200); do
        [ -s "$1/train.seed=1/log.jsonl" ] && [ -s "$1/train.seed=2/log.jsonl" ] && break
        sleep 0.05
    done
    sleep 0.2
    children=$(pgrep -P "$child" | tr '\n' ' ')
}
gone() { # PID...: within five seconds
    for _ in $(seq 100); do
        alive=0
        for p in "$@"; do [ -d "/proc/$p" ] && ! grep -q '^State:.Z' "/proc/$p/status" 2>/dev/null && alive=1; done
        [ $alive = 0 ] && return 0
        sleep 0.05
    done
    return 1
}
if command -v python3 >/dev/null && command -v pgrep >/dev/null; then
    endless "$tmp/int"
    check "two at a time: $children" [ "$(echo "$children" | wc -w)" = 2 ]
    for p in $children; do check "half the threads each" grep -q -z -e '^2$' "/proc/$p/cmdline"; done
    kill -INT "$child"
    wait "$child"
    rc=$?
    check "Ctrl-C ends with 130, not $rc" [ $rc = 130 ]
    # shellcheck disable=SC2086
    check "its children are gone" gone $children
    check "and have saved: $(ls "$tmp/int/train.seed=1")" [ -s "$tmp/int/train.seed=1/state.safetensors" ]
    check "no third was begun" [ ! -e "$tmp/int/train.seed=3" ]
    check "one line says how to go on" grep -q 'the same command goes on' "$tmp/e"
    endless "$tmp/kill"
    kill -9 "$child"
    wait "$child" 2>/dev/null
    # shellcheck disable=SC2086
    check "killed, it takes its children with it" gone $children
    child=
fi
printf 'a series of letters, again and again. %.0s' $(seq 99) >"$tmp/text"
sweep --grid train.seed=1,2 --grid "data.source=$tmp/text" --mean train.seed --json
rc=$?
check "a key that is no choice: $(cat "$tmp/e")" [ $rc = 0 ]
check "a value may be a path" [ "$(find "$tmp/s" -path '*-text_*/summary.json' | wc -l)" = 4 ]
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
rm -rf "$tmp/s"
for bad in "--grid lr" "--grid =1" "--grid train.lr=" "--grid train.lr=1,,2" "--jobs 0" "--mean train.seed"; do
    # shellcheck disable=SC2086 # $bad is two words
    sweep $bad
    rc=$?
    check "refused: $bad" [ $rc = 1 ]
    check "in one line: $bad" [ "$(wc -l <"$tmp/e")" = 1 ]
done

refuse "options of a job without one" "^taut sweep: --sbatch is about the job that --slurm FILE writes" \
    "$TAUT" sweep recipes/tiny-free.ini --grid train.seed=1 --sbatch '-p gpu' --out "$tmp/no"
refuse "workers of a job without one" "^taut sweep: --workers is about the job" \
    "$TAUT" sweep recipes/tiny-free.ini --grid train.seed=1 --workers 3 --out "$tmp/no"
refuse "a folder that cannot be made" "/sub: cannot make the folder: Not a directory" \
    "$TAUT" sweep recipes/tiny-free.ini --grid train.seed=1 --out "$tmp/out/sub"
check "nothing written" [ ! -e "$tmp/no" ]
# an array job: submitted with sbatch, here one that keeps what it is given
mkdir "$tmp/bin"
cat >"$tmp/bin/sbatch" <<'END'
#!/bin/sh
[ "$1" = --parsable ] && cp "$2" "$SUBMITTED" && echo "4711;cluster"
END
chmod +x "$tmp/bin/sbatch"
PATH=$tmp/bin:$PATH SUBMITTED=$tmp/submitted
export SUBMITTED
sweep --slurm "$tmp/job.sh" --sbatch '-p gpu -t 60'
rc=$?
check "submitted: $(cat "$tmp/e")" [ $rc = 0 ]
check "the job that was written" cmp "$tmp/job.sh" "$tmp/submitted"
check "a script for Slurm" sh -n "$tmp/job.sh"
check "with a worker for each run" grep -q -- '--array=0-1$' "$tmp/job.sh"
check "and sbatch's options" grep -q '^#SBATCH -p gpu -t 60$' "$tmp/job.sh"
check "the number to watch" grep -q 'squeue -j 4711;' "$tmp/o"
check "nothing is run" [ "$(find "$tmp/s" -name summary.json | wc -l)" = 0 ]
sh "$tmp/job.sh" >"$tmp/o" 2>"$tmp/e"
rc=$?
check "a task runs what is there to run: $(cat "$tmp/e")" [ $rc = 0 ]
check "all of it, and the frontier" [ -s "$tmp/s/frontier.html" ]
printf '#!/bin/sh\necho no such partition >&2\nexit 1\n' >"$tmp/bin/sbatch"
sweep --slurm "$tmp/job.sh"
rc=$?
check "refused by sbatch: 1, not $rc" [ $rc = 1 ]
check "in a line" grep -q 'is written, but sbatch did not take it' "$tmp/e"
rm "$tmp/bin/sbatch"
if ! command -v sbatch >/dev/null; then
    sweep --slurm "$tmp/job.sh"
    rc=$?
    check "no sbatch: 1, not $rc" [ $rc = 1 ]
    check "in one line" grep -q 'there is no sbatch here' "$tmp/e"
fi
finish "taut sweep"
