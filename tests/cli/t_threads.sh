#!/bin/sh
# Proofs are the same bytes for any number of threads, also where matrices are large enough to be cut into pieces; threads that wait sleep.
. tests/cli/lib.sh
run=$tmp/run
# shellcheck disable=SC2086 # words
check "a run of width 512" "$TAUT" train $small --set model.width=512 --set model.heads=8 --set train.steps=1 \
    --set train.warmup=1 --out "$run"
for n in 1 2 3; do
    check "certify, $n threads" "$TAUT" certify "$run" --n-ex 1 --out "$tmp/c$n.json" --threads $n
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
# shellcheck disable=SC2154 # lib.sh counts
finish "threads: $checks checks"
