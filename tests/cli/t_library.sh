#!/bin/sh
# A library that was copied in part, cut off anywhere: a line and exit code 1, and not the death of the program, which the loader
# lets run into pages that are not there.
. tests/cli/lib.sh
compile() { ${CC:-cc} "$@"; } # CC may be words: ccache gcc
if ! compile --version >/dev/null; then
    echo "skipped: no compiler"
    exit 77
fi
mkdir "$tmp/bin" "$tmp/whole" "$tmp/path"
check "compiles" compile -std=c11 -fPIC -shared -Isrc -Iinclude tests/cli/refusing.c -o "$tmp/whole/libtaut_cuda.so"
size=$(wc -c <"$tmp/whole/libtaut_cuda.so")
check "many pages: $size" [ "$size" -gt 400000 ]
cp "$TAUT" "$tmp/bin/taut"

tries() { # WHERE COMMAND...: the library lies in the folder WHERE, whole and cut
    where=$1; shift
    cp "$tmp/whole/libtaut_cuda.so" "$where"
    refuse "whole in $where" "the library was asked" "$@"
    for left in 0 1 63 64 65 200 1000 4096 8192 $((size / 4)) $((size / 2)) $((size - 8192)) $((size - 4096)) $((size - 1)); do
        head -c "$left" "$tmp/whole/libtaut_cuda.so" >"$where/libtaut_cuda.so"
        refuse "$left of $size bytes in $where" "^taut info: kernels cuda: .*libtaut_cuda.so" "$@"
        [ "$left" -lt 64 ] || check "cut off: $(cat "$tmp/err")" grep -q "$where/libtaut_cuda.so is cut off" "$tmp/err"
    done
    rm "$where/libtaut_cuda.so"
}
# A build with ASan opens libraries by its own dlopen, for which the program's folder is no place to look.
nm "$BUILD/libtaut.a" 2>/dev/null | grep -q __asan_init || tries "$tmp/bin" "$tmp/bin/taut" info --kernels cuda
tries "$tmp/path" env LD_LIBRARY_PATH="$tmp/none:$tmp/path" "$TAUT" info --kernels cuda

# The loader opens the first that there is: another one behind it does not matter.
cp "$tmp/whole/libtaut_cuda.so" "$tmp/path"
head -c 100000 "$tmp/whole/libtaut_cuda.so" >"$tmp/bin/libtaut_cuda.so"
refuse "a whole one before it" "the library was asked" env LD_LIBRARY_PATH="$tmp/path" "$tmp/bin/taut" info --kernels cuda
finish "library      cut off at 14 places, beside the program and where LD_LIBRARY_PATH says"
