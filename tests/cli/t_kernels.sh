#!/bin/sh
# The program on another table than cpu: the one that TAUT_KERNELS names, a device's too, else wide.  It trains as ref does, stops
# and goes on with the same bits, evaluates, measures and attacks, and its certificates are confirmed.
. tests/cli/lib.sh
table=${TAUT_KERNELS:-wide}
case $table in *64 | ref) tol=1e-9 ;; *) tol=2e-3 ;; esac
# shellcheck disable=SC2086 # $small and $few are words
{
    "$TAUT" train $small --kernels "$table" --out "$tmp/try" >"$tmp/o" 2>"$tmp/e"
    if grep -q '^taut train: kernels cuda' "$tmp/e"; then echo "skipped: $(cat "$tmp/e")"; exit 77; fi
    check "trains: $(cat "$tmp/e")" "$TAUT" train $small --kernels ref --out "$tmp/ref"
}
losses() { sed -n 's/.*"loss":\([-+.e0-9]*\).*/\1/p' "$1/log.jsonl"; }
losses "$tmp/ref" >"$tmp/l1"
losses "$tmp/try" >"$tmp/l2"
# shellcheck disable=SC2016 # awk
check "six losses, near those of ref: $(paste -s -d ' ' "$tmp/l2")" \
    awk -v tol=$tol 'NR == FNR { ref[NR] = $1; next } { d = $1 - ref[FNR]; if (!(d <= tol && -d <= tol)) exit 1; n++ } END { exit n != 6 }' \
    "$tmp/l1" "$tmp/l2"

few="$small --set train.steps=400 --set train.checkpoint_every=1 --set train.eval_every=0 --set train.log_every=50"
# shellcheck disable=SC2086
{
    check "a run left alone" "$TAUT" train $few --kernels "$table" --out "$tmp/whole"
    for signal in TERM KILL; do
        rm -rf "$tmp/parts"
        "$TAUT" train $few --kernels "$table" --out "$tmp/parts" >"$tmp/o" 2>&1 &
        child=$!
        for _ in $(seq 600); do [ -s "$tmp/parts/state.safetensors" ] && break; sleep 0.05; done
        kill -$signal $child
        wait $child
        rc=$?
        child=
        check "SIG$signal stops it on its way: $rc" [ $rc = "$([ $signal = TERM ] && echo 143 || echo 137)" ]
        check "goes on" "$TAUT" train $few --kernels "$table" --out "$tmp/parts" --resume
        check "stopped and resumed: the same bits" cmp "$tmp/whole/model.safetensors" "$tmp/parts/model.safetensors"
    done
}

first() { sed -n "s/.*\"$1\":[[:space:]]*\([-+.e0-9]*\).*/\1/p" "$2" | head -n 1; } # KEY FILE
both() { # WHAT KEY TOLERANCE COMMAND...: the first number of that name is that of ref
    what=$1 key=$2 within=$3; shift 3
    for k in ref "$table"; do
        "$@" --json --kernels "$k" >"$tmp/j-$k" 2>"$tmp/e" || check "$what on $k: $(cat "$tmp/e")" false
    done
    got=$(first "$key" "$tmp/j-$table") want=$(first "$key" "$tmp/j-ref")
    check "$what: $got as on ref: $want" near "$got" "$want" "$within"
}
both "eval" loss $tol "$TAUT" eval "$tmp/whole"
both "measure" found $tol "$TAUT" measure "$tmp/whole" --tokens 8 --tolerance 1e-6

check "a ViT" "$TAUT" train recipes/vit-shapes-small.ini --kernels "$table" --set train.steps=60 --set data.length=600 --out "$tmp/vit"
proof=ref
[ "$table" = cuda64 ] && proof=cuda64
"$TAUT" certify "$tmp/vit" --norm flat --n-ex 20 --kernels $proof --out "$tmp/c.json" >"$tmp/o" 2>"$tmp/e"
check "certifies what was trained: $(cat "$tmp/e")" [ -s "$tmp/c.json" ]
check "the checker confirms it" "$TAUT" check "$tmp/c.json" "$tmp/vit"
both "attack" robust_acc 0.1 "$TAUT" attack "$tmp/vit" --attack pgd --norm L2 --eps 0.1 --steps 5 --n-ex 20 --out "$tmp"
finish "kernels      $table: train, resume, eval, measure, certify, attack"
