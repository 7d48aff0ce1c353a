#!/bin/sh
# Proofs are the same bytes for any number of threads, also where matrices are large enough to be cut into pieces; threads that wait sleep.
. tests/cli/lib.sh
run=$tmp/run
# shellcheck disable=SC2086 # words
check "a run of width 512" "$TAUT" train $small --set model.width=512 --set model.heads=8 --set train.steps=1 \
    --set train.warmup=1 --out "$run"
for n in 1 2 3; do
    check "certify, $n threads" "$TAUT" certify "$run" --n-ex 1 --out "$tmp/c$n.json" --threads $n
    check "certify 5 examples, $n threads" "$TAUT" certify "$run" --n-ex 5 --out "$tmp/e$n.json" --json --threads $n
    "$TAUT" certify "$run" --n-ex 5 --json --threads $n >"$tmp/j$n" 2>&1
    check "examples shared out over $n threads: the same bytes" cmp "$tmp/e1.json" "$tmp/e$n.json"
    check "and the same report" cmp "$tmp/j1" "$tmp/j$n"
    "$TAUT" info "$run" --bound --json --threads $n >"$tmp/i$n" 2>&1
    "$TAUT" measure "$run" --layer 0 --json --threads $n >"$tmp/m$n" 2>&1
    check "certify, 1 and $n threads: the same bytes" cmp "$tmp/c1.json" "$tmp/c$n.json"
    check "info --bound, 1 and $n threads" cmp "$tmp/i1" "$tmp/i$n"
    check "measure, 1 and $n threads" cmp "$tmp/m1" "$tmp/m$n"
done
check "a constant" less "$(json_get "$tmp/i1" bound_flat)" 1e300
check "a measure" grep -q upper "$tmp/m1"
spins() { env -u OMP_WAIT_POLICY OMP_DISPLAY_ENV=verbose "$@" "$TAUT" --version 2>&1 | sed -n "s/.*GOMP_SPINCOUNT = '\(.*\)'/\1/p" | tail -n 1; }
if [ -n "$(spins)" ]; then # gcc's OpenMP says how long its threads spin
    check "threads that wait sleep" [ "$(spins)" = 0 ]
    check "unless the user says otherwise" [ "$(spins OMP_WAIT_POLICY=active)" != 0 ]
fi
# OpenBLAS's own threads are never started: nobody would use them, and each takes 128 MiB
threads_of() { # VARIABLE=VALUE...: how many threads a run has, and what it is called
    rm -rf "$tmp/count"
    # shellcheck disable=SC2086
    env -u OMP_WAIT_POLICY -u OPENBLAS_NUM_THREADS "$@" "$TAUT" train $small --set train.steps=1000000 --threads 1 --out "$tmp/count" >"$tmp/log" 2>&1 &
    child=$!
    for _ in $(seq 100); do
        [ "$(grep -c . "$tmp/count/log.jsonl" 2>/dev/null)" -gt 1 ] 2>/dev/null && break
        sleep 0.05
    done
    find "/proc/$child/task" -mindepth 1 -maxdepth 1 2>/dev/null | wc -l
    cat "/proc/$child/comm"
    kill -9 "$child" 2>/dev/null
    wait "$child" 2>/dev/null
    child=
}
if [ -d /proc/self/task ]; then
    said=$(threads_of 2>/dev/null | tr '\n' ' ') told=$(threads_of OMP_WAIT_POLICY=passive OPENBLAS_NUM_THREADS=1 2>/dev/null | tr '\n' ' ')
    check "as many threads as with one of BLAS, under the program's own name: $said, $told" [ "$said" = "$told" ]
fi
# shellcheck disable=SC2154 # lib.sh counts
finish "threads: $checks checks"
