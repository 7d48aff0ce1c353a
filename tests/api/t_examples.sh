#!/bin/sh
# The programs of examples/ know taut.h alone: each is compiled against the shared library, runs, and says what it should.
. tests/cli/lib.sh
compile() { ${CC:-cc} "$@"; } # CC may be words: ccache gcc
if ! compile --version >/dev/null; then
    echo "skipped: no compiler"
    exit 77
fi
san=
nm "$BUILD/libtaut.a" 2>/dev/null | grep -q __asan_init && san=-fsanitize=address,undefined
nm "$BUILD/libtaut.a" 2>/dev/null | grep -q __gcov_init && san=--coverage
version=$(sed -n 's/^#define TAUT_VERSION *"\(.*\)"/\1/p' include/taut.h)
case $version in 0.*) soname=libtaut.so.${version%.*} ;; *) soname=libtaut.so.${version%%.*} ;; esac
mkdir "$tmp/lib"
ln -s "$(cd "$BUILD" && pwd)/libtaut.so" "$tmp/lib/$soname"
LD_LIBRARY_PATH=$tmp/lib
export LD_LIBRARY_PATH

example() { # NAME PATTERN RECIPE: exit code 0, and a line that is of the pattern
    check "$1 compiles" compile -std=c11 -Wall -Wextra -Wpedantic -Werror $san -Iinclude -o "$tmp/$1" "examples/$1.c" -L"$BUILD" -ltaut -lm
    "$tmp/$1" "$3" "$tmp/out-$1" >"$tmp/said" 2>"$tmp/err"
    rc=$?
    check "$1 ends with 0, not $rc: $(tail -n 1 "$tmp/err")" [ $rc = 0 ]
    check "$1 says $2, not $(cat "$tmp/said")" grep -Eq "$2" "$tmp/said"
    "$tmp/$1" nowhere.ini "$tmp/never" >"$tmp/said" 2>"$tmp/err"
    rc=$?
    check "$1 fails without a recipe: $rc" [ $rc = 1 ]
    check "$1 says why in one line" [ "$(wc -l <"$tmp/err")" = 1 ]
    check "$1 asks for arguments" sh -c '"$1" 2>&1 | grep -q usage' - "$tmp/$1"
}
number='[0-9.]+(e[-+][0-9]+)?'
example first "^[0-9]+ weights, loss $number, first logit -?$number, proved constant $number \(norm tokens, l2\)\$" recipes/tiny.ini
example images "^moved by up to 0.5: of [0-9]+ right answers [0-9]+ are proved to stand, [0-9]+ stood\$" recipes/mlp-shapes-small.ini
# every matrix has norm 1/2, so the constant is no larger than that of the layers between them
example weights "^proved: $number-Lipschitz, and the checker agrees\$" recipes/mlp-shapes-small.ini
check "its certificate checks" "$TAUT" check "$tmp/out-weights.json" "$tmp/out-weights.safetensors"
example forecast "no forecast moves by more than $number \(found: $number\)\$" recipes/forecast-waves.ini
example layer "^slope found $number, proved $number\$" recipes/mlp-shapes-small.ini
for f in examples/*.c; do
    name=$(basename "$f" .c)
    check "$f is run here" [ -x "$tmp/$name" ]
    check "$f sees nothing of the inside" sh -c '! grep -q "#include \"" "$1"' - "$f"
done
finish "examples     $checks checks"
