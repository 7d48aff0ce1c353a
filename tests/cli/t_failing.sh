#!/bin/sh
# A device that fails on the way, at its first product, in the middle or at the very last: eval, sample, embed, measure, attack
# and certify end with its line, whatever they found before; nothing reads as a small slope, as robust, as proved or as an answer,
# and nothing is written.  predict and forecast, whose numbers are the host's, are not held up by it.  And one that fails
# while numbers are fetched: the files of a run stay what they were, and the run goes on from them.
. tests/cli/lib.sh
long
compile() { ${CC:-cc} "$@"; } # CC may be words: ccache gcc
if ! compile --version >/dev/null || nm "$BUILD/libtaut.a" 2>/dev/null | grep -q -e __asan_init -e __gcov_init; then
    echo "skipped: no compiler, or a build that counts or watches"
    exit 77
fi
mkdir "$tmp/device"
# shellcheck disable=SC2046 # words
check "compiles" compile -std=c11 -D_GNU_SOURCE -fPIC -shared -O1 -Isrc -Iinclude $(pkg-config --cflags openblas) tests/cli/failing.c \
    $(find "$BUILD/src" -name '*.o') -Wl,-Bsymbolic -o "$tmp/device/libtaut_cuda.so" $(sed -n 's/^Libs.private: //p' "$BUILD/taut.pc")
LD_LIBRARY_PATH=$tmp/device${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
export LD_LIBRARY_PATH

written=$tmp/written
fails() { # COMMAND...
    check "$1 $2 without a fault" "$TAUT" "$@"
    count=$("$TAUT" "$@" 2>&1 >/dev/null | sed -n 's/^products //p')
    check "$1 $2 multiplies: $count" [ "${count:-0}" -gt 2 ]
    for after in 0 $((count / 2)) $((count - 1)); do
        rm -f "$written"
        refuse "$* after $after of $count products" "the device failed on purpose" env FAIL_AFTER="$after" "$TAUT" "$@"
        check "$* after $after of $count products: no file" [ ! -e "$written" ]
    done
}
check "a text" "$TAUT" train recipes/tiny-free.ini --set train.steps=3 --out "$tmp/text"
check "images" "$TAUT" train recipes/vit-shapes-small.ini --set train.steps=3 --set data.length=600 --out "$tmp/images"
check "a series" "$TAUT" train recipes/forecast-waves.ini --set train.steps=3 --set data.length=1500 --out "$tmp/series"
check "PLASH" "$TAUT" train recipes/vit-shapes-plash-small.ini --set train.steps=3 --set data.length=600 --out "$tmp/plash"
check "an encoder" "$TAUT" train recipes/tiny-free.ini --set train.steps=3 --set model.arch=encoder --out "$tmp/encoder"
check "a classifier" "$TAUT" train recipes/classifier-animals.ini --set data.length=300 --set train.steps=3 --out "$tmp/classes"
check "large norms" "$TAUT" train recipes/vit-shapes-small.ini --set train.steps=1 --set data.length=600 --set model.width=384 \
    --set model.heads=4 --set model.mlp=512 --set model.depth=1 --out "$tmp/wide"
printf '(())\n(<>)\n' >"$tmp/lines"
printf 'the cat and the dog\na cow; a horse\n' >"$tmp/animals"
for k in cuda cuda64; do
    fails eval "$tmp/text" --kernels $k
    fails sample "$tmp/text" --length 12 --kernels $k
    fails measure "$tmp/text" --layer 0 --tokens 8 --kernels $k
    fails embed "$tmp/encoder" "$tmp/lines" --out "$written" --kernels $k
done
fails measure "$tmp/text" --layer 0 --tokens 8 --ball 30 --map residual --kernels cuda64
fails measure "$tmp/text" --tokens 8 --maps --kernels cuda64
fails measure "$tmp/plash" --deviation --kernels cuda64
fails eval "$tmp/series" --json --kernels cuda
fails eval "$tmp/series" --noise 0.01 --plot "$written" --kernels cuda64
fails certify "$tmp/images" --n-ex 4 --out "$written" --kernels cuda64
fails certify "$tmp/text" --n-ex 4 --swaps 1 --tries 4 --for cuda64 --out "$written" --json --kernels cuda64
fails certify "$tmp/wide" --out "$written" --kernels cuda64
fails certify "$tmp/wide" --n-ex 1 --local --radius 0.001 --out "$written" --kernels cuda64
fails attack "$tmp/images" --attack pgd --norm L2 --eps 0.1 --steps 3 --n-ex 4 --out "$tmp" --kernels cuda
fetches() { # COMMAND...
    gets=$("$TAUT" "$@" 2>&1 >/dev/null | sed -n 's/^gets //p')
    check "$1 $2 $3 fetches: $gets" [ "${gets:-0}" -gt 0 ]
    for after in 0 $((gets / 2)) $((gets - 1)); do
        refuse "$* after $after of $gets fetched" "the device failed on purpose" env FAIL_GETS="$after" "$TAUT" "$@"
    done
}
fetches certify "$tmp/images" --n-ex 4 --kernels cuda64
fetches eval "$tmp/series" --noise 0.01 --json --kernels cuda64
fetches embed "$tmp/encoder" "$tmp/lines" --kernels cuda64
fetches measure "$tmp/text" --layer 0 --tokens 8 --kernels cuda64
fetches measure "$tmp/text" --adversarial --lengths 2:4:1 --layer 0 --steps 3 --kernels cuda
fetches measure "$tmp/text" --adversarial --castin --lengths 2:4:1 --layer 0 --steps 3 --kernels cuda
fetches measure "$tmp/plash" --deviation --kernels cuda64

same() { # COMMAND...: on the host, and where the device would fail at once
    check "$* here" "$TAUT" "$@"
    cp "$tmp/check.log" "$tmp/here"
    check "$* with a device that fails" env FAIL_AFTER=0 FAIL_GETS=0 "$TAUT" "$@" --kernels cuda64
    cp "$tmp/check.log" "$tmp/there"
    check "$*: the same" cmp "$tmp/here" "$tmp/there"
}
same predict "$tmp/classes" "$tmp/animals" --json
same forecast "$tmp/series" waves --json
same forecast "$tmp/series" waves --noise 0.01 --json

for recipe in tiny tiny-free; do
    run() { # FOLDER STEPS...
        folder=$1 steps=$2
        shift 2
        "$TAUT" train recipes/$recipe.ini --set model.width=16 --set model.heads=2 --set model.depth=1 --set model.context=8 --set train.batch=2 \
            --set train.checkpoint_every=2 --set train.eval_every=0 --set train.steps="$steps" --kernels cuda --out "$folder" "$@"
    }
    check "$recipe, two steps" run "$tmp/$recipe" 2
    cp -r "$tmp/$recipe" "$tmp/go"
    gets=$(run "$tmp/go" 4 --resume 2>&1 >/dev/null | sed -n 's/^gets //p')
    check "$recipe fetches: $gets" [ "${gets:-0}" -gt 8 ]
    for eighth in 0 1 2 3 4 5 6 7; do
        after=$((eighth * gets / 8))
        rm -rf "$tmp/go"
        cp -r "$tmp/$recipe" "$tmp/go"
        export FAIL_GETS="$after"
        refuse "$recipe after $after of $gets fetched" "the device failed on purpose" run "$tmp/go" 4 --resume
        unset FAIL_GETS
        check "$recipe goes on, after $after of $gets" run "$tmp/go" 4 --resume
    done
    rm -rf "$tmp/go"
done
finish "failing      a device that fails while it evaluates, samples, embeds, measures, attacks, certifies, trains"
