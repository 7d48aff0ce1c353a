#!/bin/sh
# The program with one fault planted: no proof is made and none is checked; exit 1, one line.  Faults of libraries are loaded
# before the real ones (fault.c); faults of compilers are put in by compiling the file that looks for them as such a compiler
# would, and linking the program anew.
. tests/cli/lib.sh
compile() { ${CC:-cc} "$@"; } # CC may be words: ccache gcc
if ! compile --version >/dev/null || [ "$(uname -s)" != Linux ]; then
    echo "skipped: no compiler, or no LD_PRELOAD"
    exit 77
fi
libs=$(sed -n 's/^Libs.private: //p' "$BUILD/taut.pc")
san=
nm "$BUILD/libtaut.a" 2>/dev/null | grep -q __asan_init && san=-fsanitize=address,undefined
nm "$BUILD/libtaut.a" 2>/dev/null | grep -q __gcov_init && san=--coverage
ASAN_OPTIONS=$ASAN_OPTIONS:verify_asan_link_order=0
objects=$(for f in cli/*.c papers/*.c papers/*/*.c bench/*.c; do echo "$BUILD/${f%.c}.o"; done)
run=$tmp/run
# shellcheck disable=SC2086 # words
check "a run" "$TAUT" train $small --out "$run"
check "without a fault: a proof" "$TAUT" certify "$run" --n-ex 2 --out "$tmp/c.json"
check "without a fault: it checks" "$TAUT" check "$tmp/c.json" "$run"

# FAULT PATTERN COMMAND...: of a library; threads are there even on one processor
lie() {
    fault=$1 pattern=$2; shift 2
    # shellcheck disable=SC2046,SC2086
    check "$fault: compiles" compile -std=c11 -D_GNU_SOURCE -fPIC -shared -O1 $san -Isrc $(pkg-config --cflags openblas) \
        "-DFAULT_$fault" tests/cli/fault.c -o "$tmp/fault.so" -ldl -lm
    refuse "$fault" "$pattern" env OMP_NUM_THREADS=2 LD_PRELOAD="$tmp/fault.so" "$@"
}
for fault in gemm float beta; do lie $fault "dgemm" "$TAUT" certify "$run"; done
lie syrk dsyrk "$TAUT" certify "$run"
lie gemv dgemv "$TAUT" certify "$run"
lie dot ddot "$TAUT" certify "$run"
for f in exp expm1 log erf erfc tanh cosh sin cos; do lie "libm=$f" "libm's $f is" "$TAUT" certify "$run"; done
lie pow "libm's pow" "$TAUT" certify "$run"
lie nextafter nextafter "$TAUT" certify "$run"
lie ftz subnormal "$TAUT" certify "$run"
lie daz subnormal "$TAUT" certify "$run"
lie upward "to nearest" "$TAUT" certify "$run"
lie stuck "round upward" "$TAUT" certify "$run"
gnu=; ldd "$TAUT" | grep -q libgomp && gnu=1 # LLVM's threads set their arithmetic themselves, so the fault does no harm
[ -z "$gnu" ] || lie thread "a thread" "$TAUT" certify "$run" --threads 2

# every command that proves
lie gemm dgemm "$TAUT" info "$run" --bound
lie gemm dgemm "$TAUT" measure "$run" --layer 0
lie gemm dgemm "$TAUT" plan --target 10 --depth 1 --width 16 --heads 2
lie gemm dgemm "$TAUT" attack "$run" --n-ex 1 --eps 0.1
# shellcheck disable=SC2086
lie gemm dgemm "$TAUT" train $small --set constrain.method=normalise --set constrain.target_lipschitz=100 --out "$tmp/no"

for f in exp log erf tanh sin cos; do lie "libm=$f" "libm's $f is" "$TAUT" check "$tmp/c.json" "$run"; done
lie pow "libm's pow" "$TAUT" check "$tmp/c.json" "$run"
lie nextafter "upward" "$TAUT" check "$tmp/c.json" "$run"
lie ftz subnormal "$TAUT" check "$tmp/c.json" "$run"
lie daz subnormal "$TAUT" check "$tmp/c.json" "$run"
lie upward "to nearest" "$TAUT" check "$tmp/c.json" "$run"
lie stuck "round upward" "$TAUT" check "$tmp/c.json" "$run"
[ -z "$gnu" ] || lie thread "a thread" "$TAUT" check "$tmp/c.json" "$run" --threads 2

# FILE PATTERN FLAGS...: the program with one file compiled otherwise; the file's own command is asked.  That file is not
# instrumented: under the sanitizers the compiler would not make the very fault that is to be seen.
build_wrong() {
    file=$1; shift
    # shellcheck disable=SC2046,SC2086
    check "$file $*: compiles" compile -std=c11 -D_GNU_SOURCE -fopenmp -fno-math-errno -fno-trapping-math -ffp-contract=off -O3 \
        -Iinclude -Isrc $(pkg-config --cflags openblas) "$@" -c "src/$file/arithmetic.c" -o "$tmp/wrong.o"
    # shellcheck disable=SC2086
    check "$file $*: links" compile -fopenmp $san -o "$tmp/wrong" $objects "$tmp/wrong.o" "$BUILD/inside.a" $libs
}
wrong() {
    pattern=$1; shift
    if makes "$@"; then
        build_wrong bound "$@"
        refuse "certify with $*" "$pattern" "$tmp/wrong" certify "$run"
    fi
    makes -frounding-math "$@" || return 0
    build_wrong check/machine -frounding-math "$@"
    refuse "check with $*" "$pattern" "$tmp/wrong" check "$tmp/c.json" "$run"
}
# FLAGS...: whether this compiler makes a fault with them.  gcc is known to; clang makes some of them only, and none of
# those that would not matter with -frounding-math.
cat >"$tmp/made.c" <<'C'
#include <math.h>
enum { MANY = 64 };
static double given(double x) { volatile double v = x; return v; }
int main(void)
{
    double x[MANY], y[MANY], sum = given(0x1p53), dots = given(-1);
    for (int i = 0; i < MANY; i++) x[i] = given(1);
    for (int i = 0; i < MANY; i++) sum += x[i];
    const double lost = (given(0x1p53) + given(1)) - 0x1p53, fused = given(1 + 0x1p-30) * given(1 - 0x1p-30) + given(-1);
    for (int i = 0; i < MANY; i++) x[i] = given(1 + 0x1p-30), y[i] = given(1 - 0x1p-30);
    for (int i = 0; i < MANY; i++) dots += x[i] * y[i];
    const double by = given(49), none = given(NAN);
    for (int i = 0; i < MANY; i++) x[i] = given(1) * 49;
    for (int i = 0; i < MANY; i++) x[i] /= by;
    int good = sum == 0x1p53 && lost == 0 && fused == 0 && dots == MANY - 1 && isnan(none) && none != none && !(none <= by);
    for (int i = 0; i < MANY; i++) good = good && x[i] == 1;
    return !good;
}
C
makes() {
    compile --version | grep -q -i 'free software foundation' && return 0
    case "$*" in *-include*) return 0 ;; esac
    compile -std=c11 -fno-math-errno -fno-trapping-math -ffp-contract=off -O3 "$@" "$tmp/made.c" -o "$tmp/made" -lm 2>/dev/null &&
        ! "$tmp/made"
}
build_wrong bound -O2
check "compiled as it should be: a proof" "$tmp/wrong" certify "$run"
build_wrong check/machine -frounding-math
check "compiled as it should be: it checks" "$tmp/wrong" check "$tmp/c.json" "$run"

# a cast that is dropped, everywhere and in pairs only: the second is gcc 12's own, where the compiler has it
printf '#define TAUT_BASE_FLOAT32_H\nstatic inline double taut_float32(double x) { return x; }\n' >"$tmp/none.h"
wrong "float32" -include "$tmp/none.h"
printf '#define TAUT_BASE_FLOAT32_H\nstatic inline double taut_float32(double x) { return (double)(float)x; }\n' >"$tmp/cast.h"
cat >"$tmp/pair.c" <<'C'
typedef struct { double a, b; } two;
__attribute__((noinline)) two both(double a, double b) { return (two){ (double)(float)a, (double)(float)b }; }
int main(void)
{
    volatile double x = 0.1;
    const two t = both(x, x);
    return t.a == x && t.b == x; /* 1: not rounded */
}
C
compile -O3 "$tmp/pair.c" -o "$tmp/pair" && "$tmp/pair" || wrong "float32" -include "$tmp/cast.h"

fma=
[ "$(uname -m)" = x86_64 ] && fma=-mfma
if [ -z "$fma" ] || grep -qw fma /proc/cpuinfo; then
    # shellcheck disable=SC2086
    wrong "fused" -ffp-contract=fast $fma
fi
if compile --version | grep -q -i 'free software foundation' && [ "$(uname -m)" = x86_64 ]; then
    wrong "double precision" -mfpmath=387
fi
wrong "another way than written" -fassociative-math -fno-signed-zeros
wrong "another way than written" -freciprocal-math
wrong "NaN" -ffinite-math-only
build_wrong bound -ffast-math # of the checker it does not even compile
refuse "certify with -ffast-math" "no proof" "$tmp/wrong" certify "$run"
finish "arithmetic: $checks checks"
