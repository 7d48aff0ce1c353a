#!/bin/sh
# Examples that several processes share through a folder: each ends with what one process finds, whoever dies.
. tests/cli/lib.sh
mlp=$tmp/mlp
check "an mlp" "$TAUT" train recipes/mlp-shapes-small.ini --out "$mlp" --set train.steps=60 --set model.hidden=24 --set data.length=2000

attack() { "$TAUT" attack "$mlp" --n-ex 40 --steps 8 --queries 40 --attack pgd,aa-standard --norm L2 --eps 0.1,0.5 --batch-size 4 --threads 1 --json "$@"; }
plain() { grep -v '"seconds":' "$1"; } # how long it took is no result
attack >"$tmp/alone" || check "one process" false
for i in 1 2 3; do
    attack --join "$tmp/a" >"$tmp/with$i" 2>"$tmp/e$i" &
    eval "p$i=$!"
done
# shellcheck disable=SC2154
for i in 1 2 3; do
    eval "wait \$p$i"
    rc=$?
    check "process $i: $(cat "$tmp/e$i")" [ $rc = 0 ]
    plain "$tmp/alone" >"$tmp/1"
    plain "$tmp/with$i" >"$tmp/2"
    check "process $i finds what one finds" cmp "$tmp/1" "$tmp/2"
    check "process $i, to the last byte what the others say" cmp "$tmp/with1" "$tmp/with$i"
done
check "a result for every piece" [ "$(find "$tmp/a/attacked" -name '*.result' | wc -l)" = 40 ]
attack --join "$tmp/a" >"$tmp/late"
check "who comes late has nothing to do" cmp "$tmp/with1" "$tmp/late"
refuse "another attack" "shared by other work" "$TAUT" attack "$mlp" --n-ex 40 --steps 9 --attack pgd --norm L2 --eps 0.1 --join "$tmp/a"
refuse "a state" "no state of its own" attack --join "$tmp/a" --state "$tmp/state"
refuse "a gallery" "no gallery" attack --join "$tmp/a" --gallery 3

# some die in the middle: others do their pieces again
for i in 1 2 3 4; do
    attack --join "$tmp/d" >/dev/null 2>&1 &
    eval "p$i=$!"
done
for _ in $(seq 400); do [ "$(find "$tmp/d/attacked" -name '*.taken' 2>/dev/null | wc -l)" -ge 6 ] && break; sleep 0.01; done
# shellcheck disable=SC2154
kill -9 "$p1" "$p2" "$p3" "$p4" 2>/dev/null
wait
attack --join "$tmp/d" >"$tmp/after"
plain "$tmp/after" >"$tmp/2"
check "the same after deaths" cmp "$tmp/1" "$tmp/2"
echo nonsense >"$tmp/d/attacked/7.result"
refuse "a damaged result" "attacked/7.result: a damaged result" attack --join "$tmp/d"

certify() { "$TAUT" certify "$mlp" --n-ex 70 --threads 1 --local "$@"; }
certify --out "$tmp/alone.json" >"$tmp/alone"
for i in 1 2 3; do
    certify --join "$tmp/c" --out "$tmp/cert$i.json" >"$tmp/with$i" 2>"$tmp/e$i" &
    eval "p$i=$!"
done
for i in 1 2 3; do
    eval "wait \$p$i"
    check "certificate $i: $(cat "$tmp/e$i")" cmp "$tmp/alone.json" "$tmp/cert$i.json"
    check "what is said of it" cmp "$tmp/alone" "$tmp/with$i"
done
cp -r "$tmp/c" "$tmp/swapped"
one=$(find "$tmp/swapped" -name 0.result)
mv "$one" "$tmp/zero" && mv "${one%0.result}1.result" "$one" && mv "$tmp/zero" "${one%0.result}1.result"
refuse "results that stand in for each other" "0.result: a damaged result, or one of other work" certify --join "$tmp/swapped"
refuse "another certificate" "shared by other work" "$TAUT" certify "$mlp" --n-ex 71 --join "$tmp/c"
refuse "a folder without a name" "^taut certify: --join names no folder" certify --join ""
refuse "the run's own folder" "^taut certify: --join $mlp is a run's folder" certify --join "$mlp"
refuse "an attack in the run's own folder" "^taut attack: --join $mlp is a run's folder" attack --join "$mlp"
refuse "an attack without a name" "^taut attack: --join names no folder" attack --join ""
check "nothing is written there" [ "$(find "$mlp" -name key -o -name attacked | wc -l)" = 0 ]
refuse "processes that were started together and share nothing" "3 processes were started together, .* with --join DIR" \
    env WORLD_SIZE=3 RANK=0 "$TAUT" attack "$mlp" --n-ex 40
refuse "no examples" "say how many with --n-ex" "$TAUT" certify "$mlp" --join "$tmp/c"
finish "shared examples"
