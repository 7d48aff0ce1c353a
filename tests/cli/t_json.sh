#!/bin/sh
# Every command: --json prints one JSON object on stdout and nothing else; --help exits 0 with an example; into a pipe
# or a file no escape code ever goes.  (bench takes minutes: its --json only with TAUT_BENCH=1.)
. tests/cli/lib.sh
run=$tmp/run
esc=$(printf '\033')
utf8() { if command -v iconv >/dev/null; then iconv -f UTF-8 -t UTF-8 "$1" >/dev/null; fi; }

plain() { # WHAT COMMAND...: exit 0, nothing on stderr, no escape codes
    what=$1; shift
    "$@" >"$tmp/out" 2>"$tmp/err"
    rc=$?
    check "$what: exit code 0, not $rc" [ $rc = 0 ]
    check "$what: silent on stderr" [ ! -s "$tmp/err" ]
    check "$what: no escape codes" [ "$(grep -c "$esc" "$tmp/out")" = 0 ]
    check "$what: says something" [ -s "$tmp/out" ]
}
object() { # WHAT KEYS COMMAND...: as plain, and one JSON object with these members
    what=$1 keys=$2; shift 2
    plain "$what" "$@"
    check "$what: one JSON object" json "$tmp/out"
    check "$what: UTF-8" utf8 "$tmp/out"
    for key in $keys; do check "$what: has $key" grep -q "\"$key\":" "$tmp/out"; done
    if command -v python3 >/dev/null; then
        check "$what: python reads it" python3 -c 'import json, sys; assert type(json.load(sys.stdin)) is dict' <"$tmp/out"
    fi
}

# shellcheck disable=SC2086 # $small is words
object train "steps tokens train_loss val_loss val_acc tokens_per_s seconds" "$TAUT" train $small --out "$run" --json
# shellcheck disable=SC2086
object "train --resume" "steps val_loss" "$TAUT" train $small --out "$run" --resume --json
object eval "loss accuracy targets" "$TAUT" eval "$run" --json
object "eval --train" "loss" "$TAUT" eval "$run" --train --windows 3 --json
object sample "text" "$TAUT" sample "$run" --length 60 --json
object info "version kernels" "$TAUT" info --json
object "info MODEL" "arch width weights" "$TAUT" info "$run" --json
object "info --bound" "bound_tokens bound_flat" "$TAUT" info "$run" --bound --json

# what a model of bytes writes need not be text: JSON must be all the same
# shellcheck disable=SC2086
plain "train on bytes" "$TAUT" train $small --out "$tmp/bytes" --set data.tokens=bytes --set model.init_std=1
object "sample of bytes" "text" "$TAUT" sample "$tmp/bytes" --length 500 --temperature 5 --json
# a name that JSON must escape
# shellcheck disable=SC2086
object "a run with quotes in its name" "run" "$TAUT" train $small --out "$tmp/a \"quoted\" \\ run" --json

# the same commands for people
# shellcheck disable=SC2086
plain "train, in words" "$TAUT" train $small --out "$tmp/words"
plain "eval, in words" "$TAUT" eval "$run"
plain "sample, in words" "$TAUT" sample "$run" --length 60
check "sample writes a prompt and 60 characters" [ "$(wc -c <"$tmp/out")" = 62 ]
cp "$tmp/out" "$tmp/first"
plain "sample again" "$TAUT" sample "$run" --length 60
check "the same seed, the same text" cmp "$tmp/out" "$tmp/first"
plain "sample with another seed" "$TAUT" sample "$run" --length 60 --seed 2
check "another seed, another text" [ "$(cksum <"$tmp/out")" != "$(cksum <"$tmp/first")" ]
plain "info MODEL, in words" "$TAUT" info "$run" --bound
plain "info of the file itself" "$TAUT" info "$run/model.safetensors"

plain "taut --help" "$TAUT" --help
commands=$(sed -n 's/^ *taut \([a-z]*\)  *[a-z].*/\1/p' "$tmp/out")
for command in train eval sample info bench; do
    check "taut --help names $command" [ "$(echo "$commands" | grep -c "^$command\$")" = 1 ]
done
for command in $commands; do
    plain "$command --help" "$TAUT" "$command" --help
    check "$command --help has an example" grep -q "^ *taut $command" "$tmp/out"
    for option in --json --seed --threads --kernels --help; do
        check "$command --help names $option" grep -q -e "$option" "$tmp/out"
    done
done
plain "taut --version" "$TAUT" --version

# the reference kernels answer the same question
"$TAUT" eval "$run" --json >"$tmp/cpu.json" 2>&1
object "eval --kernels ref" "loss" "$TAUT" eval "$run" --kernels ref --threads 1 --json
check "cpu and ref agree" near "$(json_get "$tmp/out" loss)" "$(json_get "$tmp/cpu.json" loss)" 1e-5

"$TAUT" eval "$run" --windows 2 --json >"$tmp/few.json" 2>&1
object "eval --batch" "loss" "$TAUT" eval "$run" --windows 2 --batch 16 --json
check "two windows, in a batch of two or of sixteen" near "$(json_get "$tmp/out" loss)" "$(json_get "$tmp/few.json" loss)" 1e-12

# in a sanitizer build: no command leaks, whether it works or fails (elsewhere this only runs them once more)
for words in "train $small --out $tmp/leak" "eval $run" "sample $run --length 5" "info $run --bound" \
    "train nowhere --out $tmp/x"; do
    # shellcheck disable=SC2086
    ASAN_OPTIONS="$ASAN_OPTIONS:detect_leaks=1" "$TAUT" $words >"$tmp/out" 2>&1
    check "taut $words: no leak" [ "$(grep -c -i sanitizer "$tmp/out")" = 0 ]
done

if [ -n "${TAUT_BENCH:-}" ]; then
    object "bench train" "tokens_per_s gflops sgemm_gflops mfu" "$TAUT" bench train --json
    object "bench attention" "" "$TAUT" bench attention --json
fi
finish "json         $checks checks"
