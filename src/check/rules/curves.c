/* Slopes of activations, and a number of models that several rules need. */
#include <fenv.h>

#include "base/float32.h"
#include "check/rules/rules.h"

ck_range ck_slopes(double curve)
{
    static const double hi[] = { 1.1289041451851548, 1.1289930686587718, 1, 1.0998393201288670, 1, 1, 1 };
    const double h = hi[(int)curve], up = h == 1 ? 1 : nextafter(h, 2);      /* the true maxima to 17 digits */
    return curve == CK_ABS ? (ck_range){ -1, 1 } : (ck_range){ 1 - up, up }; /* f'(-z) = 1 - f'(z); exact */
}

ck_range ck_ratio(double curve) { return curve == CK_ABS ? (ck_range){ -1, 1 } : (ck_range){ 0, 1 }; }

/* As the models are built, that is to nearest. */
double ck_root(double n)
{
    fesetround(FE_TONEAREST);
    const volatile double root = sqrt(n), one = 1 / root;
    const volatile double rounded = taut_float32(one);
    fesetround(FE_UPWARD);
    return rounded;
}
