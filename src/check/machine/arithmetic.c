/* Is the arithmetic of this very program what the checker rests on?  Asked at the start of every check; docs/arithmetic.md.
 *
 * The operands come out of volatile variables, so that the processor computes, in the mode in force, and not the compiler.
 * What is expected follows from IEEE 754, or stands on the list of known values. */
#include <fenv.h>
#include <float.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/float32.h"
#include "check/machine/arithmetic.h"
#include "check/machine/known.h"
#include "check/up.h"

enum { MANY = 9 };

static double in(double x)
{
    volatile double v = x;
    return v;
}

/* +, -, *, / and sqrt where a result lies between two doubles: the nearer one is the lower in size, upward is the other. */
static bool rounds(int mode)
{
    const double small = in(0x1p-70), more = in(1 + 0x1p-52);
    const double got[] = { in(1) + small,  in(-1) - small, small - in(1), in(1) / in(3),
                           in(-1) / in(3), more * more,    sqrt(in(3)) };
    const double nearest[] = {
        1, -1, -1, 0x1.5555555555555p-2, -0x1.5555555555555p-2, 1 + 0x1p-51, 0x1.bb67ae8584caap+0
    };
    const double upward[] = {
        1 + 0x1p-52, -1, -1 + 0x1p-53, 0x1.5555555555556p-2, -0x1.5555555555555p-2, 1 + 0x1.8p-51, 0x1.bb67ae8584cabp+0
    };
    bool good = fegetround() == mode;
    for (size_t i = 0; i < sizeof got / sizeof *got; i++)
        good = good && got[i] == (mode == FE_UPWARD ? upward[i] : nearest[i]);
    return good;
}

static bool keeps_subnormals(void)
{
    const double below = in(DBL_MIN)*in(0.5);
    return below > 0 && below + below == in(DBL_MIN) && in(DBL_TRUE_MIN)*0x1p52 == DBL_MIN;
}

/* In all threads: the loops over matrices run in them, to nearest, and each is sent there first. */
static bool threads_keep(void)
{
    bool same = true;
#pragma omp parallel reduction(&& : same)
    same = rounds(FE_TONEAREST) && keeps_subnormals();
    return same;
}

static bool upward_works(void)
{
    const bool good = fesetround(FE_UPWARD) == 0 && rounds(FE_UPWARD) && keeps_subnormals() &&
                      nextafter(in(1), -INFINITY) == 1 - 0x1p-53 && nextafter(in(0), -INFINITY) == -DBL_TRUE_MIN;
    return fesetround(FE_TONEAREST) == 0 && good && rounds(FE_TONEAREST);
}

/* A wider register keeps all of the sum, or rounds it twice. */
static bool is_double(void) { return in(1) + in(0x1p-53 + 0x1p-78) == 1 + 0x1p-52; }

/* (1 + 2^-30)(1 - 2^-30) = 1 - 2^-60 is 1 as a double.  A product that is used twice would not be fused. */
static bool is_separate(void)
{
    const double above = 1 + 0x1p-30, below = 1 - 0x1p-30, alone = in(above)*in(below) + in(-1);
    double a[MANY], b[MANY], c[MANY], sum = in(-1);
    bool good = true;
    for (int i = 0; i < MANY; i++) a[i] = in(above), b[i] = in(below);
    for (int i = 0; i < MANY; i++) sum += a[i] * b[i];
    for (int i = 0; i < MANY; i++) a[i] = in(above), b[i] = in(below), c[i] = in(-1);
    for (int i = 0; i < MANY; i++) c[i] += a[i] * b[i];
    for (int i = 0; i < MANY; i++) good = good && c[i] == 0;
    return good && alone == 0 && sum == MANY - 1;
}

/* Sums in their order, quotients that are no products with a reciprocal. */
static bool keeps_order(void)
{
    double x[MANY], sum = in(0x1p53);
    bool good = (in(0x1p53) + in(1)) - 0x1p53 == 0;
    for (int i = 0; i < MANY; i++) x[i] = in(1);
    for (int i = 0; i < MANY; i++) sum += x[i];
    const double by = in(49);
    for (int i = 0; i < MANY; i++) x[i] = x[i] * 49 / by;
    for (int i = 0; i < MANY; i++) good = good && x[i] == 1;
    return good && sum == 0x1p53;
}

static bool compares(void)
{
    const double none = in(NAN), inf = in(INFINITY);
    /* cppcheck-suppress incorrectLogicOperator ; false for every number, and none is a NaN */
    return isnan(none) && !(none >= 1) && !(none <= 1) && !(none > 0) && !(none < 0) && none != none && isinf(inf) &&
           !isfinite(none) && inf > DBL_MAX && isnan(inf * in(0)) && isnan(inf - inf) && fmin(none, in(1)) == 1;
}

typedef struct {
    double first, second;
} two;
static __attribute__((noinline)) two both(double a, double b) { return (two){ taut_float32(a), taut_float32(b) }; }

/* Alone, side by side and in a row. */
static bool makes_floats(void)
{
    const double tenth = 0x1.99999ap-4;
    double x[MANY];
    bool good = taut_float32(in(1 + 0x1p-24)) == 1 && taut_float32(in(0x1p-149)) == 0x1p-149;
    good = good && isinf(taut_float32(in(0x1p128)));
    const two pair = both(in(0.1), in(-0.1));
    for (int i = 0; i < MANY; i++) x[i] = in(0.1);
    for (int i = 0; i < MANY; i++) x[i] = taut_float32(x[i]);
    for (int i = 0; i < MANY; i++) good = good && x[i] == tenth;
    return good && pair.first == tenth && pair.second == -tenth;
}

/* Within 4 units of the truth, so of the double nearest to it. */
static bool is_near(double got, double known)
{
    const double size = fabs(known);
    return fabs(got - known) <= 4 * (nextafter(size, INFINITY) - size);
}

/* libm in the mode in force; the name of a function that is wrong, or NULL. */
static const char *wrong_function(void)
{
    for (size_t i = 0; i < sizeof ck_known_values / sizeof *ck_known_values; i++) {
        const ck_known *k = &ck_known_values[i];
        if (!is_near(k->f(in(k->x)), k->y)) return k->name;
    }
    for (size_t i = 0; i < sizeof ck_known_powers / sizeof *ck_known_powers; i++) {
        const ck_known_power *k = &ck_known_powers[i];
        if (!is_near(pow(in(k->base), in(k->power)), k->y)) return "pow";
    }
    return NULL;
}

static taut_status refuse(const char *fault, const char *cure)
{
    return taut_fail(TAUT_DEVICE, "nothing can be checked here: %s (%s)", fault, cure);
}

taut_status ck_arithmetic(void)
{
    static const char modes[] = "nothing that is loaded may set a rounding mode or flush-to-zero",
                      flags[] = "build with make's own flags: no -ffast-math or part of it, -ffp-contract=off";
    if (!is_double())
        return refuse("numbers are kept in more than double precision", "build for 64 bits, or with -mfpmath=sse");
    if (!rounds(FE_TONEAREST)) return refuse("numbers are not rounded to nearest", modes);
    if (!keeps_subnormals()) return refuse("subnormal numbers become zero", modes);
    if (!threads_keep()) return refuse("a thread rounds otherwise, or flushes subnormal numbers to zero", modes);
    if (!upward_works()) return refuse("this machine does not round upward when told to", "use another");
    if (!keeps_order()) return refuse("sums or quotients are computed in another way than written", flags);
    if (!is_separate()) return refuse("a product and a sum are fused into one operation", flags);
    if (!compares()) return refuse("NaN or infinity is compared as if it were a number", flags);
    if (!makes_floats())
        return refuse("numbers are not rounded to float32",
                      "use another compiler, or make CFLAGS='-O2 -fno-tree-slp-vectorize'");
    const char *name = wrong_function();
    if (!name && fesetround(FE_UPWARD) == 0) name = wrong_function();
    fesetround(FE_TONEAREST);
    return name ? taut_fail(TAUT_DEVICE, "nothing can be checked here: libm's %s is wrong (use another libm)", name)
                : TAUT_OK;
}
