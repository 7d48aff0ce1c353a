#!/bin/sh
# Many workers on one sweep: each run is trained to its end once, whoever dies; claims of other machines; locks that do not lock.
. tests/cli/lib.sh
cp recipes/tiny-free.ini "$tmp/r.ini"
fixed="--set model.width=16 --set model.depth=1 --set model.heads=2 --set model.context=16 --set train.batch=2
 --set train.checkpoint_every=20 --set data.length=2000 --threads 1"
worker() { # FOLDER WORD...
    folder=$1; shift
    # shellcheck disable=SC2086 # many words
    exec "$TAUT" sweep "$tmp/r.ini" --out "$folder" $fixed "$@"
}
seeds=1,2,3,4,5,6,7,8
points=8 workers=20 deaths=10 steps=400

# what one worker gives, and how long a run takes
begin=$(date +%s%N)
(worker "$tmp/solo" --set train.steps=$steps --grid train.seed=$seeds >"$tmp/o" 2>"$tmp/e")
rc=$?
check "one worker: $(cat "$tmp/e")" [ $rc = 0 ]
took=$((($(date +%s%N) - begin) / points)) # nanoseconds

# every summary of a finished run, each time it is written
watch() {
    while [ ! -e "$tmp/stop" ]; do
        for f in "$tmp"/many/*/summary.json; do
            grep -q '"stopped":[^a-z]*false' "$f" 2>/dev/null && stat -c '%n %i %z' "$f"
        done
        sleep 0.05
    done >"$tmp/written" 2>/dev/null
}
watch &
watcher=$!
i=0 all=
while [ $i -lt $workers ]; do
    i=$((i + 1))
    worker "$tmp/many" --set train.steps=$steps --grid train.seed=$seeds >"$tmp/o$i" 2>"$tmp/e$i" &
    all="$all $!"
done
# Half of them die while they work, in the time that a run takes: one after the other, whoever has a claim then.
for _ in $(seq 200); do ls "$tmp"/many/*/claim.* >/dev/null 2>&1 && break; sleep 0.05; done
dead=0
for pause in 12 7 14 3 11 4 13 9 2 8; do # hundredths of a run
    sleep "$(awk -v t=$took -v p=$pause 'BEGIN { print t * p / 1e11 }')"
    pid=
    for f in "$tmp"/many/*/claim.*; do
        p=$(awk '$1 == "held" { print $5 }' "$f" 2>/dev/null)
        case " $all " in *" $p "*) [ -n "$p" ] && kill -0 "$p" 2>/dev/null && pid=$p ;; esac
    done
    for p in $all; do [ -n "$pid" ] || { kill -0 "$p" 2>/dev/null && pid=$p; }; done
    [ -n "$pid" ] && kill -9 "$pid" 2>/dev/null && dead=$((dead + 1))
    all=$(for p in $all; do [ "$p" = "$pid" ] || printf ' %s' "$p"; done)
done
well=0 ill=
for p in $all; do
    if wait "$p"; then well=$((well + 1)); else ill="$ill $p:$?"; fi
done
sleep 0.2
: >"$tmp/stop"
wait $watcher
check "died while they worked: $deaths, not $dead" [ $dead = $deaths ]
check "the others ended well: $((workers - deaths)), not $well ($ill); $(cat "$tmp"/e[0-9]* | head -n 3)" [ $well = $((workers - deaths)) ]
check "nobody says that a run failed: $(cat "$tmp"/e[0-9]* | head -n 3)" [ "$(cat "$tmp"/e[0-9]* | wc -l)" = 0 ]
check "every run is finished" [ "$(find "$tmp/many" -name certificate.json | wc -l)" = $points ]
check "each once: $(sort -u "$tmp/written" | wc -l)" [ "$(sort -u "$tmp/written" | wc -l)" = $points ]
for n in $(seq $points); do
    check "run $n: the bits of one worker" cmp "$tmp/solo/train.seed=$n/model.safetensors" "$tmp/many/train.seed=$n/model.safetensors"
    check "run $n: its certificate" cmp "$tmp/solo/train.seed=$n/certificate.json" "$tmp/many/train.seed=$n/certificate.json"
    without_seconds "$tmp/solo/train.seed=$n/log.jsonl" >"$tmp/log1"
    without_seconds "$tmp/many/train.seed=$n/log.jsonl" >"$tmp/log2"
    check "run $n: the lines of its log" cmp "$tmp/log1" "$tmp/log2"
done
check "no claims are left" [ "$(find "$tmp/many" -name 'claim.*' | wc -l)" = 0 ]
printf 'free   %010d another-boot another-host 1\n' 1 >"$tmp/many/train.seed=3/claim.1" # as if one had died when all was done
(worker "$tmp/many" --set train.steps=$steps --grid train.seed=$seeds >"$tmp/again" 2>"$tmp/e")
check "one that is left over goes: $(cat "$tmp/e")" [ ! -e "$tmp/many/train.seed=3/claim.1" ]
check "and nothing else changes" cmp "$tmp/solo/train.seed=3/certificate.json" "$tmp/many/train.seed=3/certificate.json"
last=
for n in $(seq $workers); do [ -s "$tmp/o$n" ] && last=$tmp/o$n; done
sed "s|$tmp/many|$tmp/solo|" "$last" >"$tmp/o-many"
check "the same table" cmp "$tmp/o" "$tmp/o-many"
check "and the same frontier" cmp "$tmp/solo/frontier.html" "$tmp/many/frontier.html"

# a claim of another machine, whose locks cannot be seen here: watched until it has been silent for long enough
steps="--set train.steps=4"
foreign() { mkdir -p "$1"; printf 'held   %010d another-boot another-host 1\n' "$2" >"$1/claim.1"; }
foreign "$tmp/far/train.seed=1" 1
begin=$(date +%s%N)
# shellcheck disable=SC2086
(worker "$tmp/far" $steps --grid train.seed=1,2 --stale 2 >"$tmp/o" 2>"$tmp/e")
rc=$?
check "a silent worker elsewhere: $(cat "$tmp/e")" [ $rc = 0 ]
check "its run is taken" [ -s "$tmp/far/train.seed=1/certificate.json" ]
check "not before two seconds" [ $((($(date +%s%N) - begin) / 1000000)) -ge 2000 ]
foreign "$tmp/beat/train.seed=1" 1
(for n in $(seq 2 31); do foreign "$tmp/beat/train.seed=1" "$n"; sleep 0.1; done
    rm "$tmp/beat/train.seed=1/claim.1") &
beater=$!
# shellcheck disable=SC2086
(worker "$tmp/beat" $steps --grid train.seed=1,2 --stale 1 --leave >"$tmp/o" 2>"$tmp/e")
rc=$?
check "a live worker elsewhere: $(cat "$tmp/e")" [ $rc = 0 ]
check "its run is left to it" [ ! -e "$tmp/beat/train.seed=1/log.jsonl" ]
check "in a line" grep -q "^1 of 2 runs are with other workers: the last one writes $tmp/beat/frontier.html" "$tmp/o"
check "the other is done" [ -s "$tmp/beat/train.seed=2/certificate.json" ]
check "the frontier not yet" [ ! -e "$tmp/beat/frontier.html" ]
# shellcheck disable=SC2086
(worker "$tmp/beat" $steps --grid train.seed=1,2 --stale 1 >"$tmp/o" 2>"$tmp/e")
rc=$?
kill -0 $beater 2>/dev/null && early=1 || early=0
wait $beater
check "who does not leave waits, and takes what is given back: $(cat "$tmp/e")" [ $rc = 0 ]
check "not before" [ "$early" = 0 ]
check "and writes the frontier" [ -s "$tmp/beat/frontier.html" ]

# a worker whose run was taken stops at once
worker "$tmp/lost" --set train.steps=100000000 --grid train.seed=1 --stale 1 >"$tmp/o" 2>"$tmp/e" &
child=$!
for _ in $(seq 100); do [ -s "$tmp/lost/train.seed=1/recipe.ini" ] && break; sleep 0.05; done
printf 'held   %010d another-boot another-host 1\n' 1 >"$tmp/lost/train.seed=1/claim.2"
for _ in $(seq 100); do grep -q 'another has taken the run' "$tmp/e" && break; sleep 0.05; done
check "a worker whose run was taken says so: $(cat "$tmp/e")" grep -q 'silent for too long' "$tmp/e"
kill -9 $child
wait $child 2>/dev/null
child=

# a run that fails is tried once, not by every worker
for n in 1 2 3; do
    worker "$tmp/die" --set train.optimiser=sgd --set train.clip=0 --set train.steps=40 --grid train.lr=0.01,100000 \
        >"$tmp/o$n" 2>"$tmp/e$n" &
    eval "p$n=$!"
done
for n in 1 2 3; do
    eval "wait \$p$n"
    rc=$?
    check "a run that fails, worker $n: 1, not $rc" [ $rc = 1 ]
    check "worker $n names it" grep -q 'train.lr=100000 failed' "$tmp/e$n"
done
check "one has tried it" [ "$(cat "$tmp"/e[123] | grep -c 'failed: see')" = 1 ]
check "its claim says so" grep -q '^failed ' "$tmp/die/train.lr=100000/claim.1"
(worker "$tmp/die" --set train.optimiser=sgd --set train.clip=0 --set train.steps=40 --grid train.lr=0.01,100000 >"$tmp/o" 2>"$tmp/e")
check "asked again, it is tried again" grep -q 'failed: see' "$tmp/e"

# locks that do not lock
compile() { ${CC:-cc} "$@"; } # CC may be words: ccache gcc
if [ "$(uname -s)" = Linux ] && compile --version >/dev/null 2>&1; then
    ASAN_OPTIONS=$ASAN_OPTIONS:verify_asan_link_order=0
    lie() { # WHAT PATTERN BODY
        printf '#include <errno.h>\nint flock(int f, int how) { (void)f, (void)how; %s }\n' "$3" >"$tmp/lie.c"
        check "$1: compiles" compile -shared -fPIC -o "$tmp/lie.so" "$tmp/lie.c"
        # shellcheck disable=SC2086
        refuse "$1" "$2" env LD_PRELOAD="$tmp/lie.so" "$TAUT" sweep "$tmp/r.ini" --out "$tmp/nolock" $fixed $steps --grid train.seed=1
        check "$1: nothing is left there" [ "$(find "$tmp/nolock" -mindepth 1 | wc -l)" = 0 ]
    }
    lie "no locks" 'nolock: files cannot be locked there (No locks available)' 'errno = ENOLCK; return -1;'
    lie "locks that everybody gets" 'a lock keeps nobody out' 'return 0;'
fi
finish "workers of a sweep"
