#!/bin/sh
# One training on several processes: the same bits for any number of them, after a death and a resume too; what is refused.
. tests/cli/lib.sh
if ! command -v mpirun >/dev/null || [ ! -e "$BUILD/libtaut_mpi.so" ]; then
    echo "skipped: no mpirun, or not built with MPI=1"
    exit 77
fi
program=$(cd "$(dirname "$TAUT")" && pwd)/$(basename "$TAUT")
OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1 OMP_NUM_THREADS=1
OMPI_MCA_hwloc_base_binding_policy=none
export OMPI_ALLOW_RUN_AS_ROOT OMPI_ALLOW_RUN_AS_ROOT_CONFIRM OMPI_MCA_rmaps_base_oversubscribe OMP_NUM_THREADS
export OMPI_MCA_hwloc_base_binding_policy
MPIEXEC_TIMEOUT=300 # seconds that any mpirun may take
export MPIEXEC_TIMEOUT
case $BUILD in # ASan's dlopen does not look where the program's own rpath says
    *san*) LD_LIBRARY_PATH=$(dirname "$program"); export LD_LIBRARY_PATH ;;
esac

long_run="recipes/tiny.ini --set train.steps=60 --set train.accumulate=4 --set train.batch=2 --set train.checkpoint_every=10 --set train.log_every=1"
# shellcheck disable=SC2086
"$TAUT" train $long_run --out "$tmp/whole" >"$tmp/o" 2>&1
check "the whole run" [ -s "$tmp/whole/model.safetensors" ]

# A rank hangs: the others find out, say which, and end; in the middle of a training, before it begins, as it begins (in the
# call in which all meet first), and in a proof.  As it is, that takes most of a minute, and so it does once; the other ways have
# less patience.  All of them begin here, beside what follows, and are heard at the end.
before=
hang() { # NAME RANK READY COMMAND...: the rank is stopped when READY holds
    name=$1 victim=$2 ready=$3; shift 3
    mpirun -n 3 ${before:+-x "LD_PRELOAD=$before" -x "ASAN_OPTIONS=$ASAN_OPTIONS:verify_asan_link_order=0"} "$program" "$@" \
        >"$tmp/o-$name" 2>"$tmp/e-$name" &
    launcher=$!
    for _ in $(seq 600); do [ "$(pgrep -P $launcher | wc -l)" = 3 ] && eval "$ready" && break; sleep 0.05; done
    stopped=$(pgrep -P $launcher | sed -n "$((victim + 1))p")
    [ -z "$stopped" ] || kill -STOP "$stopped"
    begin=$(date +%s)
    for _ in $(seq 80); do # until no other rank runs; what the launcher then does with the stopped one is not ours
        # shellcheck disable=SC2009 # pgrep does not tell which have ended
        ps -o stat=,pid= --ppid $launcher | grep -v '^Z' | grep -qv " $stopped\$" || break
        sleep 1
    done
    echo $(($(date +%s) - begin)) >"$tmp/took-$name"
    for _ in $(seq 10); do kill -0 $launcher 2>/dev/null || break; sleep 1; done
    if kill -0 $launcher 2>/dev/null; then
        echo "the launcher of $name still waits for: $(ps -o pid=,stat=,wchan=,args= --ppid $launcher)"
        # shellcheck disable=SC2046 # words
        kill -9 $(pgrep -P $launcher) $launcher
    fi
    [ -z "$stopped" ] || kill -9 "$stopped" 2>/dev/null
    wait $launcher
    echo $? >"$tmp/rc-$name"
}
cat >"$tmp/late.c" <<'END'
#include <mpi.h>
#include <signal.h>
int MPI_Comm_dup(MPI_Comm of, MPI_Comm *to)
{
    int rank;
    MPI_Comm_rank(of, &rank);
    if (rank == 2) raise(SIGSTOP);
    return PMPI_Comm_dup(of, to);
}
END
check "a rank that stops as it begins: compiles" mpicc -shared -fPIC -o "$tmp/late.so" "$tmp/late.c"
# shellcheck disable=SC2016,SC2086
{
    hang start 0 true train $long_run --set train.steps=100000 --out "$tmp/unbegun" &
    hanging=$!
    TAUT_SILENCE=12; export TAUT_SILENCE
    hang middle 2 '[ -s "$tmp/hangs/state.safetensors" ]' train $long_run --set train.steps=100000 --out "$tmp/hangs" &
    hanging="$hanging $!"
    hang proof 1 'sleep 1' certify "$tmp/whole" --n-ex 100000 --threads 1 &
    hanging="$hanging $!"
    before=$tmp/late.so
    hang late 2 'ps -o stat= --ppid $launcher | grep -q ^T' train $long_run --set train.steps=100000 --out "$tmp/unmet" &
    hanging="$hanging $!"
    before=
    unset TAUT_SILENCE
}

counts="1 2 3 4 8"
awk -v e="${TAUT_EFFORT:-1}" 'BEGIN { exit !(e < 1) }' && counts=3
body() { tail -c "+$(($(od -An -tu8 -N8 "$1") + 9))" "$1"; } # the numbers of a safetensors file, without the seconds in its header
same() { # WHAT RECIPE WORD...: 1 to 8 ranks, and a resume with other ranks, end with the bits of one process
    what=$1 recipe=$2; shift 2
    rm -rf "$tmp/alone" "$tmp/r"[0-9]*
    "$TAUT" train "$recipe" --out "$tmp/alone" --set train.steps=6 --set train.checkpoint_every=4 "$@" >"$tmp/o" 2>"$tmp/e"
    rc=$?
    check "$what, alone: $(cat "$tmp/e")" [ $rc = 0 ]
    for n in $counts; do
        mpirun -n "$n" "$program" train "$recipe" --out "$tmp/r$n" --set train.steps=6 --set train.checkpoint_every=4 "$@" \
            >"$tmp/o" 2>"$tmp/e"
        rc=$?
        check "$what, $n ranks: $(head -n 3 "$tmp/e")" [ $rc = 0 ]
        check "$what, $n ranks: the bits of one" cmp "$tmp/alone/model.safetensors" "$tmp/r$n/model.safetensors"
        body "$tmp/alone/state.safetensors" >"$tmp/state1"
        body "$tmp/r$n/state.safetensors" >"$tmp/state2"
        check "$what, $n ranks: the state of one" cmp "$tmp/state1" "$tmp/state2"
        without_seconds "$tmp/alone/log.jsonl" >"$tmp/log1"
        without_seconds "$tmp/r$n/log.jsonl" >"$tmp/log2"
        check "$what, $n ranks: its log" cmp "$tmp/log1" "$tmp/log2"
        check "$what, $n ranks: one speaks" [ "$(grep -c '^done after' "$tmp/o")" = 1 ]
    done
}
few="--set train.accumulate=4 --set train.log_every=1"
# shellcheck disable=SC2086 # words
{
    same "tiny.ini (Muon, a target, fill)" recipes/tiny.ini $few --set train.accumulate=8 --set train.batch=3 --set train.eval_every=3
    counts=$(echo "$counts" | sed 's/^1 //; s/ 8$//') # one rank alone was compared, and so were eight
    same "AdamW, dropout, five micro-batches" recipes/tiny-free.ini $few --set train.accumulate=5 --set model.dropout=0.1 \
        --set train.batch=3 --set train.eval_every=3
    same "a ViT" recipes/vit-shapes-small.ini $few --set data.length=600 --set train.batch=4
    same "a head that steps on centred features" recipes/vit-cifar10-lip-small.ini $few --set data.source=shapes \
        --set data.length=600 --set data.flip=false --set data.crop=0 --set train.batch=4 --set train.warmup=2
    same "masked tokens, which differ in number" recipes/mlm-softmax-small.ini $few --set data.source=brackets \
        --set data.length=3000 --set train.batch=1 --set model.width=32 --set model.heads=2 --set model.context=32
    same "a penalty inside attention" recipes/tiny-free.ini $few --set train.batch=2 --set train.penalty=jasmin
    if [ -e "${TAUT_DATA:-/nowhere}/tinyshakespeare/input.txt" ]; then
        same "shakespeare-lip10-small" recipes/shakespeare-lip10-small.ini $few --set train.batch=2 --set model.width=64 --set model.context=64
    fi
}

# a rank dies: the others stop, and any number of ranks goes on to where the uninterrupted run ends
# shellcheck disable=SC2086
mpirun -n 3 "$program" train $long_run --set train.steps=5000 --out "$tmp/dies" >"$tmp/o" 2>"$tmp/e" &
child=$!
for _ in $(seq 600); do [ -s "$tmp/dies/state.safetensors" ] && break; sleep 0.05; done
ranks=$(pgrep -P "$child")
check "three ranks: $ranks" [ "$(echo "$ranks" | wc -w)" = 3 ]
begin=$(date +%s)
kill -9 "$(echo "$ranks" | tail -n 1)"
wait "$child"
rc=$?
child=
check "a dead rank ends the job: not $rc" [ $rc != 0 ]
check "within a minute" [ $(($(date +%s) - begin)) -lt 60 ]
check "and is named: $(cat "$tmp/e")" grep -q 'rank 2.* signal 9' "$tmp/e"
for p in $ranks; do
    for _ in $(seq 100); do kill -0 "$p" 2>/dev/null || break; sleep 0.1; done
    check "rank $p is gone" sh -c "! kill -0 $p 2>/dev/null"
done
# the same with the steps of the whole run, begun by three, gone on by two, ended by one
# shellcheck disable=SC2086
mpirun -n 3 "$program" train $long_run --out "$tmp/parts" >"$tmp/o" 2>"$tmp/e" &
child=$!
for _ in $(seq 600); do [ -s "$tmp/parts/state.safetensors" ] && break; sleep 0.02; done
kill -9 "$(pgrep -P "$child" | head -n 1)" 2>/dev/null
wait "$child"
child=
check "no summary: it died before its end" [ ! -e "$tmp/parts/summary.json" ]
# shellcheck disable=SC2086
mpirun -n 2 "$program" train $long_run --out "$tmp/parts" --resume >"$tmp/o" 2>"$tmp/e" &
child=$!
sleep 0.7
rank=$(pgrep -P "$child" | tail -n 1)
[ -z "$rank" ] || kill -TERM "$rank" # one is told to stop: all save and stop, if it had begun
wait "$child"
child=
# shellcheck disable=SC2086
if ! grep -q '"stopped":[^a-z]*false' "$tmp/parts/summary.json" 2>/dev/null; then
    "$TAUT" train $long_run --out "$tmp/parts" --resume >"$tmp/o" 2>"$tmp/e"
fi
check "resumed with other ranks: $(cat "$tmp/e")" cmp "$tmp/whole/model.safetensors" "$tmp/parts/model.safetensors"

# What is refused: one line of ours, from rank 0, and nothing written.  The launcher waits for seconds where a rank has failed, and what
# goes wrong before MPI is there one rank alone says itself, with its number, seconds later: so they run side by side.
asked='' count=0
told() { # WHAT PATTERN COMMAND...: begins; NONE stands for a folder of its own that must not come to be
    count=$((count + 1))
    printf '%s\n' "$1" >"$tmp/what-$count"
    printf '%s\n' "$2" >"$tmp/pattern-$count"
    shift 2
    for word; do
        shift
        [ "$word" = NONE ] && word=$tmp/none-$count
        set -- "$@" "$word"
    done
    { "$@" >/dev/null 2>"$tmp/e-$count"; echo $? >"$tmp/rc-$count"; } &
    asked="$asked $!"
}
hear() { # what those have said that were begun
    # shellcheck disable=SC2086
    wait $asked
    for i in $(seq $count); do
        IFS= read -r what <"$tmp/what-$i"
        IFS= read -r pattern <"$tmp/pattern-$i"
        read -r rc <"$tmp/rc-$i"
        e=$tmp/e-$i
        check "$what: 1, not $rc" [ "$rc" = 1 ]
        check "$what: says '$pattern', not '$(head -n 3 "$e")'" grep -q -e "$pattern" "$e"
        check "$what: one line" [ "$(grep -c '^taut' "$e")" = 1 ]
        check "$what: nothing written" [ ! -e "$tmp/none-$i" ]
    done
    asked='' count=0
}
# shellcheck disable=SC2086
{
    told "more ranks than micro-batches" "3 ranks, and a step has train.accumulate = 2 micro-batches" \
        mpirun -n 3 "$program" train $small --set train.accumulate=2 --out NONE
    told "another recipe" "rank 1 has not the recipe of rank 0" \
        mpirun -n 1 "$program" train $small --set train.accumulate=2 --out NONE : \
        -n 1 "$program" train $small --set train.accumulate=2 --set train.lr=0.5 --out NONE
    told "a recipe that one rank cannot read" "rank 1: .*unknown key" \
        mpirun -n 1 "$program" train $small --set train.accumulate=2 --out NONE : \
        -n 1 "$program" train $small --set train.accumulate=2 --set train.nonsense=1 --out NONE
}
root=$(pwd)
for n in 0 1; do
    mkdir "$tmp/d$n" "$tmp/place$n"
    printf "a text of its own, and number $n of two. %.0s" $(seq 99) >"$tmp/d$n/text"
done
printf 'a line of a text, of which there are many\n%.0s' $(seq 999) >"$tmp/place0/text"
sed '701s/many/nyma/' "$tmp/place0/text" >"$tmp/place1/text"
# shellcheck disable=SC2086
set -- train "$root"/$small --set train.accumulate=2 --set data.source=text --out NONE
told "other data" "rank 1 has not the data of rank 0" \
    mpirun -n 1 -wdir "$tmp/d0" "$program" "$@" : -n 1 -wdir "$tmp/d1" "$program" "$@"
told "data that differ in one place" "rank 1 has not the data of rank 0" \
    mpirun -n 1 -wdir "$tmp/place0" "$program" "$@" : -n 1 -wdir "$tmp/place1" "$program" "$@"
hear
mkdir "$tmp/bare"
cp "$TAUT" "$tmp/bare/taut"
# shellcheck disable=SC2086
{
    told "a build without MPI" "2 processes were started together: libtaut_mpi.so: .*make MPI=1 builds it" \
        env -u LD_LIBRARY_PATH mpirun -n 2 "$tmp/bare/taut" train $small --set train.accumulate=2 --out NONE
    told "MPI missing on one rank" "rank 1: 2 processes were started together: libtaut_mpi.so: " \
        env -u LD_LIBRARY_PATH mpirun -n 1 -x LD_LIBRARY_PATH="$(dirname "$program")" "$program" train $small --set train.accumulate=2 \
        --out NONE : -n 1 "$tmp/bare/taut" train $small --set train.accumulate=2 --out NONE
    told "the recipe missing on two ranks" "rank 1: $tmp/nowhere.ini: No such file" \
        mpirun -n 1 "$program" train $small --set train.accumulate=3 --out NONE : -n 2 "$program" train "$tmp/nowhere.ini" --out NONE
    told "a slip of one rank" "rank 1: --set novalue: wants section.key=value" \
        mpirun -n 1 "$program" train $small --set train.accumulate=2 --out NONE : -n 1 "$program" train $small --set novalue --out NONE
}
told "a slip of all" "^taut train: unknown option --nonsense" mpirun -n 4 "$program" train --nonsense --out NONE
# shellcheck disable=SC2086
told "a silence that is none" "^taut train: TAUT_SILENCE = 2 is no number of seconds from 5 to 3600" \
    env TAUT_SILENCE=2 mpirun -n 2 "$program" train $small --set train.accumulate=2 --out NONE
told "no such command" "^taut: no command is called trian" mpirun -n 3 "$program" trian
told "a number that is none" "^taut certify: --threads x is not" mpirun -n 3 "$program" certify "$tmp/whole" --threads x
hear

# shellcheck disable=SC2086
{
    told "other kernels" "rank 1 has not the program, kernels or processor of rank 0" \
        mpirun -n 1 "$program" train $small --set train.accumulate=2 --kernels cpu-base --out NONE : \
        -n 1 "$program" train $small --set train.accumulate=2 --kernels ref --out NONE
    if "$program" train $small --kernels cpu-v3 --out "$tmp/v3" >"$tmp/o" 2>&1; then
        told "another build of the kernels" "rank 1 has not the program, kernels or processor of rank 0" \
            mpirun -n 1 "$program" train $small --set train.accumulate=2 --kernels cpu-base --out NONE : \
            -n 1 "$program" train $small --set train.accumulate=2 --kernels cpu-v3 --out NONE
    fi
    mkdir "$tmp/other"
    cp "$program" "$(dirname "$program")/libtaut_mpi.so" "$tmp/other"
    printf ' ' >>"$tmp/other/taut"
    told "another program" "rank 1 has not the program, kernels or processor of rank 0" \
        mpirun -n 1 "$program" train $small --set train.accumulate=2 --out NONE : \
        -n 1 "$tmp/other/taut" train $small --set train.accumulate=2 --out NONE
    told "a proof by another program" "rank 1 has not the program of rank 0" \
        mpirun -n 1 "$program" certify "$tmp/whole" --out NONE : -n 1 "$tmp/other/taut" certify "$tmp/whole" --out NONE
    told "a rank that there is not" "WORLD_SIZE = 2 and RANK = 5 are no number of processes" \
        env WORLD_SIZE=2 RANK=5 "$program" train $small --out NONE
    told "a rank that is no number" "WORLD_SIZE = xyz and RANK = 0 are no number of processes" \
        env WORLD_SIZE=xyz RANK=0 "$program" train $small --out NONE
    told "torchrun's variables, and no MPI" "4 processes were started together (WORLD_SIZE = 4), and MPI sees 1 of them: start them by mpirun" \
        env WORLD_SIZE=4 RANK=0 LOCAL_RANK=0 MASTER_ADDR=localhost "$program" train $small --set train.accumulate=4 --out NONE
    told "Slurm's, and no MPI" "4 processes were started together (SLURM_STEP_NUM_TASKS = 4), and MPI sees 1 of them: start them by mpirun" \
        env SLURM_STEP_NUM_TASKS=4 SLURM_PROCID=0 "$program" train $small --set train.accumulate=4 --out NONE
    check "one of mpirun's is one, whoever else tells of more" env WORLD_SIZE=4 RANK=0 mpirun -n 1 "$program" train $small \
        --out "$tmp/single"
    check "one process of torchrun's is a process" env WORLD_SIZE=1 RANK=0 "$program" train $small --out "$tmp/one"
}
# a folder of one name that is two: below each working folder
# shellcheck disable=SC2086
set -- train "$root"/$small --set train.accumulate=2 --out own/none
told "a folder that is not shared" "rank 1 has not the folder (--out must be one that all ranks share) of rank 0" \
    mpirun -n 1 -wdir "$tmp/d0" "$program" "$@" : -n 1 -wdir "$tmp/d1" "$program" "$@"
told "another model" "rank 1 has not the model of rank 0" mpirun -n 1 "$program" certify "$tmp/whole" --out NONE : \
    -n 1 "$program" certify "$tmp/one" --out NONE
hear
check "nothing is left of it" [ ! -e "$tmp/d0/own/none" ] && check "nowhere" [ ! -e "$tmp/d1/own/none" ]

# a proof by several ranks: the same certificate, by rank 0 alone
"$TAUT" certify "$tmp/whole" --n-ex 3 --out "$tmp/cert.json" >"$tmp/o"
for n in 2 3; do
    mpirun -n $n "$program" certify "$tmp/whole" --n-ex 3 --out "$tmp/cert$n.json" >"$tmp/o$n" 2>"$tmp/e"
    rc=$?
    check "certify by $n ranks: $(head -n 3 "$tmp/e")" [ $rc = 0 ]
    check "$n ranks: the same certificate" cmp "$tmp/cert.json" "$tmp/cert$n.json"
    check "$n ranks: said once" cmp "$tmp/o" "$tmp/o$n"
done
mpirun -n 2 "$program" certify "$tmp/whole" --n-ex 3 --join "$tmp/shared" --json >"$tmp/o" 2>"$tmp/e"
check "of those that share examples one speaks: $(head -n 3 "$tmp/e")" [ "$(json_get "$tmp/o" n_ex)" = 3 ]

# the ranks that hang
# shellcheck disable=SC2086
wait $hanging
for name in middle start proof late; do
    read -r took <"$tmp/took-$name"
    read -r rc <"$tmp/rc-$name"
    most=36
    case $name in
        middle) says='rank 2 (.*, process .*) has given no sign of life' ;;
        start) most=60 says='rank [12] has waited .* for the others to begin\|rank 0 (.*) has given no sign of life' ;;
        late) says='rank [01] has waited .* for the others to begin' ;;
        proof) says='rank 0 has waited .* for the others to begin\|rank 1 (.*) has given no sign of life' ;;
    esac
    check "a rank that hangs ($name) is named: $(cat "$tmp/e-$name")" grep -q "$says" "$tmp/e-$name"
    check "a rank that hangs ($name), in one line" [ "$(grep -c '^taut' "$tmp/e-$name")" = 1 ]
    check "a rank that hangs ($name): the others end within $most s, not after $took" [ "$took" -lt $most ]
    check "a rank that hangs ($name): not $rc" [ "$rc" != 0 ]
done
# shellcheck disable=SC2086
timeout --preserve-status -s TERM 3 "$TAUT" train $long_run --set train.steps=100000 --out "$tmp/hangs" --resume >"$tmp/o" 2>"$tmp/e"
rc=$?
check "the checkpoint is whole: one process goes on until it is told to stop, not $rc: $(cat "$tmp/e")" [ $rc = 143 ]

# workers of a sweep that were started together are no ranks
# shellcheck disable=SC2086
mpirun -n 2 "$program" sweep recipes/tiny-free.ini ${small#recipes/tiny-free.ini} --grid train.seed=1,2 --out "$tmp/sweep" >"$tmp/o" 2>"$tmp/e"
rc=$?
check "workers under mpirun: $(head -n 3 "$tmp/e")" [ $rc = 0 ]
check "do all the runs" [ "$(find "$tmp/sweep" -name certificate.json | wc -l)" = 2 ]
finish "several ranks"
