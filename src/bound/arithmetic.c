/* The parts of the test that need no library, and the list of all of them.
 *
 * Every operand comes out of a volatile variable, so that the processor computes and not the compiler; what is done with it is
 * plain code, compiled as the rest of the library is.  The expected numbers are exact: each follows from IEEE 754 alone. */
#include "bound/arithmetic.h"

#include <fenv.h>
#include <float.h>
#include <math.h>
#include <pthread.h>
#include <stddef.h>

#include "base/float32.h"

enum { MANY = 9 };

static double given(double x)
{
    volatile double v = x;
    return v;
}

static void given_all(double *x, double value)
{
    for (int i = 0; i < MANY; i++) x[i] = given(value);
}

static bool all_are(const double *x, double value)
{
    for (int i = 0; i < MANY; i++)
        if (!(x[i] == value)) return false;
    return true;
}

/* A wider register would keep DBL_MAX * 2, or round twice and lose the 2^-78. */
static const char *excess(void)
{
    const double most = given(DBL_MAX), twice = most * 2, sum = given(1) + given(0x1p-53 + 0x1p-78);
    return twice > DBL_MAX && twice / 2 > DBL_MAX && sum == 1 + 0x1p-52
               ? NULL
               : "numbers are kept in more than double precision";
}

/* +, -, *, / and sqrt at points where every other rounding mode gives another number. */
static const char *nearest(void)
{
    const double one = given(1), u = given(0x1p-53), three = given(3);
    const bool even = one + u == 1 && given(1 + 0x1p-52) + u == 1 + 0x1p-51 && one - given(0x1p-54) == 1;
    const bool rest = one / three == 0x1.5555555555555p-2 && -one / three == -0x1.5555555555555p-2 &&
                      given(0.1) * three == 0x1.3333333333334p-2 && sqrt(given(2)) == 0x1.6a09e667f3bcdp+0;
    return fegetround() == FE_TONEAREST && even && rest ? NULL : "numbers are not rounded to nearest";
}

/* Bounds near an input are made so (bound/local_impl.h): each result differs from the one to nearest. */
static const char *upward(void)
{
    volatile double got[6] = { 0 };
    static const double right[] = { 1 + 0x1p-52,           0x1.5555555555556p-2, -0x1.5555555555555p-2,
                                    1 + 0x1p-51 + 0x1p-52, 0x1.bb67ae8584cabp+0, DBL_TRUE_MIN };
    bool good = fesetround(FE_UPWARD) == 0;
    got[0] = given(1) + given(0x1p-60);
    got[1] = given(1) / given(3);
    got[2] = given(-1) / given(3);
    got[3] = given(1 + 0x1p-52) * given(1 + 0x1p-52);
    got[4] = sqrt(given(3));
    got[5] = given(DBL_TRUE_MIN) * given(0.25);
    good = fesetround(FE_TONEAREST) == 0 && good;
    for (int i = 0; i < 6; i++) good = good && got[i] == right[i];
    return good ? nearest() : "this machine does not round upward when told to";
}

static const char *subnormals(void)
{
    const double half = given(0.5), tiny = given(DBL_MIN), below = tiny * half, least = given(DBL_TRUE_MIN);
    const bool made = below > 0 && below + below == tiny, read = least * 0x1p52 == given(0x1p-1022);
    return made && read ? NULL : "subnormal numbers become zero";
}

/* (1 + 2^-30)(1 - 2^-30) = 1 - 2^-60 rounds to 1; a fused a b + c does not.  Each product is used once: clang does not
 * fuse one that serves two sums. */
static const char *contraction(void)
{
    const double above = 1 + 0x1p-30, below = 1 - 0x1p-30;
    double a[MANY], b[MANY], c[MANY], sum = given(-1);
    const double alone = given(above) * given(below) + given(-1), minus = given(-1) + given(above) * given(below),
                 difference = given(above) * given(below) - given(1);
    given_all(a, above), given_all(b, below);
    for (int i = 0; i < MANY; i++) sum += a[i] * b[i];
    given_all(a, above), given_all(b, below), given_all(c, -1);
    for (int i = 0; i < MANY; i++) c[i] += a[i] * b[i];
    const bool split = alone == 0 && minus == 0 && difference == 0 && sum == MANY - 1 && all_are(c, 0);
    return split ? NULL : "a product and a sum are fused into one operation";
}

/* Sums in the order in which they are written, and quotients that are quotients: 49 (1/49) is not 1. */
static const char *order(void)
{
    double x[MANY], sum = given(0x1p53);
    given_all(x, 1);
    const double lost = (given(0x1p53) + x[0]) - 0x1p53;
    for (int i = 0; i < MANY; i++) sum += x[i];
    const double by = given(49);
    given_all(x, 49);
    for (int i = 0; i < MANY; i++) x[i] /= by;
    return lost == 0 && sum == 0x1p53 && all_are(x, 1) ? NULL
                                                       : "sums or quotients are computed in another way than written";
}

static const char *comparisons(void)
{
    const double none = given(NAN), inf = given(INFINITY), one = given(1);
    const bool nan = isnan(none) && !(none <= one) && !(none >= one) && !(none < one) && !(none > one) &&
                     !(none == none) && none != none && !isfinite(none) && isnan(inf - inf) && isnan(inf * given(0)) &&
                     isnan(none + one);
    const bool large = isinf(inf) && !isfinite(inf) && inf > DBL_MAX && one / inf == 0 && inf + one == inf;
    const bool chosen = fmax(none, one) == 1 && fmin(one, none) == 1 && fmax(inf, one) == inf && fabs(-inf) == inf;
    return nan && large && chosen ? NULL : "NaN or infinity is compared as if it were a number";
}

static const char *neighbours(void)
{
    int e = 0;
    const double half = frexp(given(0x1.8p-1060), &e);
    const bool next = nextafter(given(1), INFINITY) == 1 + 0x1p-52 && nextafter(given(1), 0) == 1 - 0x1p-53 &&
                      nextafter(given(0), INFINITY) == DBL_TRUE_MIN && isinf(nextafter(given(DBL_MAX), INFINITY)) &&
                      nextafter(given(DBL_MIN), 0) == DBL_MIN - DBL_TRUE_MIN;
    const bool powers = ldexp(given(0x1.8p0), -1074) == 0x1p-1073 && isinf(ldexp(given(1), 1024)) && half == 0.75 &&
                        e == -1059;
    return next && powers ? NULL : "nextafter, ldexp or frexp is wrong";
}

typedef struct {
    double first, second;
} two;

/* gcc 12 makes one vector operation of the two casts, and it rounds nothing. */
static __attribute__((noinline)) two both(double a, double b) { return (two){ taut_float32(a), taut_float32(b) }; }

static const char *float32(void)
{
    const double tenth = 0x1.99999ap-4; /* of 0.1 */
    const bool singly = taut_float32(given(0.1)) == tenth && taut_float32(given(-0.1)) == -tenth;
    const bool ties = taut_float32(given(0x1.8p-149)) == 0x1p-148 && taut_float32(given(1 + 0x1p-24)) == 1 &&
                      taut_float32(given(1 + 0x1.8p-23)) == 1 + 0x1p-22 && isinf(taut_float32(given(0x1.ffffffp127))) &&
                      taut_float32(given(0x1.fffffefp127)) == 0x1.fffffep127;
    if (!singly || !ties) return "a number is not rounded to float32";
    const two pair = both(given(0.1), given(1.0 / 3));
    if (pair.first != tenth || pair.second != 0x1.555556p-2) return "pairs of numbers are not rounded to float32";
    double x[MANY], y[MANY];
    given_all(x, 0.1), given_all(y, -0.1);
    for (int i = 0; i < MANY; i++) x[i] = taut_float32(x[i]);
    y[0] = taut_float32(y[0]), y[1] = taut_float32(y[1]), y[2] = taut_float32(y[2]), y[3] = taut_float32(y[3]);
    for (int i = 4; i < MANY; i++) y[i] = taut_float32(y[i]);
    return all_are(x, tenth) && all_are(y, -tenth) ? NULL : "arrays of numbers are not rounded to float32";
}

/* Threads are born with their parent's modes, unless somebody says otherwise. */
static const char *threads(void)
{
    bool same = true;
#pragma omp parallel reduction(&& : same)
    same = !nearest() && !subnormals() && !upward();
    return same ? NULL : "a thread rounds otherwise, or flushes subnormal numbers to zero";
}

typedef struct {
    const char *(*fault)(void);
    const char *cure;
} part;

#define PLAIN "build with make's own flags: no -ffast-math or part of it, -ffp-contract=off"
#define MODES \
    "nothing that is loaded may change the rounding mode, or set flush-to-zero (linking with -ffast-math does)"

static const part modes[] = { { excess, "build for 64 bits, or with -msse2 -mfpmath=sse" },
                              { nearest, MODES },
                              { subnormals, MODES } };

static const part parts[] = {
    { contraction, PLAIN },
    { order, PLAIN },
    { comparisons, PLAIN },
    { neighbours, "use another libm" },
    { float32, "build with another compiler, or make CFLAGS='-O2 -fno-tree-slp-vectorize'" },
    { upward, "use another machine" },
    { threads, MODES },
    { taut_arithmetic_libm, "use another libm" },
};

static taut_status refuse(const char *fault, const char *cure)
{
    return taut_fail(TAUT_DEVICE, "no proof can be trusted here: %s (%s)", fault, cure);
}

static taut_status try_all(const part *list, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const char *fault = list[i].fault();
        if (fault) return refuse(fault, list[i].cure);
    }
    return TAUT_OK;
}

static taut_status try_once(void)
{
    bool memory = true;
    const taut_status s = try_all(parts, sizeof parts / sizeof *parts);
    if (s) return s;
    const char *fault = taut_arithmetic_blas(&memory);
    if (fault) return refuse(fault, "install OpenBLAS, and run without any other in LD_PRELOAD or LD_LIBRARY_PATH");
    return memory ? TAUT_OK : taut_no_memory("a test of the BLAS");
}

taut_status taut_arithmetic_test(void)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    static bool passed;
    taut_status s = try_all(modes, sizeof modes / sizeof *modes);
    if (s) return s;
    pthread_mutex_lock(&lock);
    if (!passed) s = try_once();
    passed = !s;
    pthread_mutex_unlock(&lock);
    return s;
}
