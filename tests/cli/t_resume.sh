#!/bin/sh
# Killed with SIGKILL at random moments, again and again, and resumed each time: the run ends with the same bits
# as one that was left alone, no file is ever broken, and nothing is left lying about.  Checkpoints are written
# after every step here, so most of the time the run is writing one.  (tests/train/t_crash.c dies at every single
# file operation in turn; this is the real thing with real signals.)
. tests/cli/lib.sh
recipe="recipes/tiny-free.ini --set model.width=32 --set model.depth=1 --set model.context=32 --set model.dropout=0.1
 --set train.steps=30 --set train.batch=4 --set train.accumulate=2 --set train.optimiser=muon --set train.log_every=1
 --set train.checkpoint_every=1 --set train.eval_every=10 --set train.eval_batches=1 --set data.length=5000"

# a fraction of a second, the same sequence for the same TAUT_SEED: NUMBER LONGEST
moment() { awk -v seed="${TAUT_SEED:-1}" -v n="$1" -v most="$2" 'BEGIN { srand(1000 * seed + n); print most * rand() }'; }

state_is() { # RUN WHOLE: the same state, but for the seconds
    split_state "$1/state.safetensors" "$tmp/h1" "$tmp/n1"
    split_state "$2/state.safetensors" "$tmp/h2" "$tmp/n2"
    cmp "$tmp/h1" "$tmp/h2" && cmp "$tmp/n1" "$tmp/n2"
}
log_is() {
    without_seconds "$1/log.jsonl" >"$tmp/l1"
    without_seconds "$2/log.jsonl" >"$tmp/l2"
    cmp "$tmp/l1" "$tmp/l2"
}
same_run() { # RUN WHOLE
    check "the same model" cmp "$1/model.safetensors" "$2/model.safetensors"
    check "the same state" state_is "$1" "$2"
    check "the same log" log_is "$1" "$2"
    check "the same recipe" cmp "$1/recipe.ini" "$2/recipe.ini"
    check "the same validation loss" \
        [ "$(json_get "$1/summary.json" val_loss)" = "$(json_get "$2/summary.json" val_loss)" ]
    check "five files, no temporary: $(ls "$1")" [ "$(find "$1" -type f | wc -l)" = 5 ]
}
how() { if [ -e "$1/state.safetensors" ]; then echo --resume; fi; }

start=$(date +%s%N)
# shellcheck disable=SC2086 # $recipe is words, here and below
check "a run left alone" "$TAUT" train $recipe --out "$tmp/whole"
check "its log has 30 steps" [ "$(grep -c '"loss"' "$tmp/whole/log.jsonl")" = 30 ]
whole=$(awk -v a="$start" -v b="$(date +%s%N)" 'BEGIN { print (b - a) / 1e9 }')

kills=0 early=0
for trial in 1 2 3; do
    run=$tmp/run$trial
    for n in 1 2 3 4 5; do
        # shellcheck disable=SC2046,SC2086
        "$TAUT" train $recipe --out "$run" $(how "$run") >"$tmp/out" 2>&1 &
        child=$!
        sleep "$(moment $((10 * trial + n)) "$(awk -v w="$whole" 'BEGIN { print 0.5 * w }')")"
        kill -9 "$child" 2>/dev/null
        wait "$child" 2>/dev/null
        rc=$?; child=
        if [ $rc = 0 ]; then # faster than when it was timed: killed sooner from now on
            whole=$(awk -v w="$whole" 'BEGIN { print w / 2 }')
            rm -r "$run"
            continue
        fi
        check "it died of the kill, not of something else: $(cat "$tmp/out")" [ $rc = 137 ]
        kills=$((kills + 1))
        [ -e "$run/state.safetensors" ] || early=$((early + 1))
        [ -e "$run/model.safetensors" ] && check "after a kill the model opens" "$TAUT" info "$run"
    done
    # shellcheck disable=SC2046,SC2086
    check "it goes on to the end" "$TAUT" train $recipe --out "$run" $(how "$run")
    same_run "$run" "$tmp/whole"
done
check "there were kills" [ $kills -ge 5 ]

# asked politely, it saves and says how to go on
lines() { [ -e "$1" ] && [ "$(wc -l <"$1")" -ge "$2" ]; }
begun() { # RUN: until it has made two steps, a minute at most
    for _ in $(seq 1200); do
        lines "$1/log.jsonl" 2 && break
        sleep 0.05
    done
}
# shellcheck disable=SC2086
"$TAUT" train $recipe --set train.checkpoint_every=1000 --out "$tmp/polite" --json >"$tmp/polite.json" 2>"$tmp/err" &
child=$!
begun "$tmp/polite"
kill -TERM "$child"
wait "$child"
rc=$?
child=
stopped=$(json_get "$tmp/polite.json" stopped)
check "SIGTERM ends with exit code 143 (0 if it was done): $rc, $stopped" \
    [ "$rc $stopped" = "$([ "$stopped" = true ] && echo 143 || echo 0) $stopped" ]
check "and nothing on stderr" [ ! -s "$tmp/err" ]
check "a summary that says it was stopped, or was done already" \
    grep -q '"stopped":.*\(true\|false\)' "$tmp/polite.json"
check "a stopped run does not wait for its validation split" [ "$stopped $(grep -c val_loss "$tmp/polite/summary.json")" != "true 1" ]
# shellcheck disable=SC2086
check "it goes on" "$TAUT" train $recipe --set train.checkpoint_every=1000 --out "$tmp/polite" --resume
check "to the same numbers" state_is "$tmp/polite" "$tmp/whole"
check "and the same log" log_is "$tmp/polite" "$tmp/whole"

# with a teacher, of another seed and larger, stopped in the middle
# shellcheck disable=SC2086
check "a teacher" "$TAUT" train $recipe --seed 3 --set train.steps=10 --set model.depth=2 --out "$tmp/teacher"
taught="$recipe --set train.teachers=$tmp/teacher --set train.teacher_share=0.8"
# shellcheck disable=SC2086
check "taught" "$TAUT" train $taught --out "$tmp/taught"
check "it learned something else" sh -c '! cmp -s "$1" "$2"' - "$tmp/taught/model.safetensors" "$tmp/whole/model.safetensors"
# shellcheck disable=SC2086
"$TAUT" train $taught --out "$tmp/pupil" >"$tmp/out" 2>&1 &
child=$!
begun "$tmp/pupil"
kill -9 "$child" 2>/dev/null
wait "$child" 2>/dev/null
child=
mv "$tmp/teacher" "$tmp/away"
refuse "a teacher who is gone" "train.teachers: $tmp/teacher: No such file" "$TAUT" train recipes/tiny-free.ini --out "$tmp/pupil" --resume
cp -r "$tmp/whole" "$tmp/teacher"
refuse "another in its place" "begun with train.teachers_sha256 = " "$TAUT" train recipes/tiny-free.ini --out "$tmp/pupil" --resume
rm -r "$tmp/teacher"
mv "$tmp/away" "$tmp/teacher"
# shellcheck disable=SC2086
check "it goes on" "$TAUT" train $taught --out "$tmp/pupil" --resume
same_run "$tmp/pupil" "$tmp/taught"

# a run is what it was begun as: what was overridden then holds, and what is said now may differ in its length alone
# shellcheck disable=SC2086
check "begun" "$TAUT" train $recipe --set train.steps=10 --out "$tmp/own"
check "its overrides are on record" grep -q '^# --set train.optimiser=muon$' "$tmp/own/recipe.ini"
cp "$tmp/own/recipe.ini" "$tmp/own.ini"
check "it goes on without them" "$TAUT" train recipes/tiny-free.ini --out "$tmp/own" --resume
check "and nothing has changed" cmp "$tmp/own/recipe.ini" "$tmp/own.ini"
refuse "another learning rate" "begun with train.lr = 0.003, now it is 0.1: only train.steps" \
    "$TAUT" train recipes/tiny-free.ini --out "$tmp/own" --resume --set train.lr=0.1
sed 's/^lr = 0.003/lr = 0.004/' recipes/tiny-free.ini >"$tmp/edited.ini"
refuse "an edited recipe" "train.lr = 0.003, now it is 0.004" "$TAUT" train "$tmp/edited.ini" --out "$tmp/own" --resume
sed '/^weight_decay/d' recipes/tiny-free.ini >"$tmp/edited.ini"
refuse "a recipe with a line less" "weight_decay = 0.1, now it is 0" "$TAUT" train "$tmp/edited.ini" --out "$tmp/own" --resume
check "refused, it is as it was" cmp "$tmp/own/recipe.ini" "$tmp/own.ini"
check "longer" "$TAUT" train recipes/tiny-free.ini --out "$tmp/own" --resume --set train.steps=30 --set train.log_every=5
check "to its new end" [ "$(json_get "$tmp/own/summary.json" steps)" = 30 ]
mv "$tmp/own/recipe.ini" "$tmp/gone"
refuse "a run without its record" "recipe.ini" "$TAUT" train recipes/tiny-free.ini --out "$tmp/own" --resume

# Ctrl-C: 130, saved; a second one ends it at once, and so does one while data are made
endless="recipes/tiny-free.ini --set train.steps=1000000 --set train.log_every=1 --set data.length=5000 --set train.checkpoint_every=1000000"
start_it() { # RUN WORD...: as a shell does it in the foreground, where Ctrl-C is not ignored; back when taut has begun
    run=$1; shift
    # shellcheck disable=SC2086
    python3 -c 'import os, signal, sys
signal.signal(signal.SIGINT, signal.SIG_DFL)
os.execv(sys.argv[1], sys.argv[1:])' "$TAUT" train $endless --out "$run" "$@" >"$tmp/o" 2>"$tmp/e" &
    child=$!
    while kill -0 "$child" 2>/dev/null && [ "$(cat "/proc/$child/comm")" != taut ]; do sleep 0.05; done
}
if command -v python3 >/dev/null; then
    start_it "$tmp/int"
    begun "$tmp/int"
    kill -INT "$child"
    wait "$child"
    rc=$?
    check "Ctrl-C ends with 130, not $rc" [ $rc = 130 ]
    check "saved" [ -s "$tmp/int/state.safetensors" ]
    check "and says how to go on" grep -q 'go on with --resume' "$tmp/o"
    start_it "$tmp/twice" --set model.width=256 --set model.depth=3 --set train.batch=32
    begun "$tmp/twice"
    check "a step of a second" lines "$tmp/twice/log.jsonl" 2
    kill -INT "$child"
    sleep 0.1
    kill -INT "$child"
    at=$(date +%s%N)
    wait "$child"
    rc=$?
    check "twice: 130, not $rc" [ $rc = 130 ]
    check "within a second" [ $(($(date +%s%N) - at)) -lt 1000000000 ]
    start_it "$tmp/data" --set data.length=1000000000
    sleep 0.5
    kill -INT "$child"
    at=$(date +%s%N)
    wait "$child"
    rc=$?
    check "while data are made: 130, not $rc" [ $rc = 130 ]
    check "at once" [ $(($(date +%s%N) - at)) -lt 1000000000 ]
    check "and nothing was begun" [ ! -e "$tmp/data/state.safetensors" ]
    child=
fi

# the number of threads is no part of a run
# shellcheck disable=SC2086
check "with one thread" "$TAUT" train $recipe --out "$tmp/one" --threads 1
same_run "$tmp/one" "$tmp/whole"

finish "resume       $kills kills ($early before the first checkpoint), every end the same"
