/* Secant slopes, the extreme values of f' (f is continuously differentiable, or ReLU or |x|), rounded outward.
 *
 * GELU    f' = Phi(x) + x phi(x), extreme where f'' = phi(x) (2 - x^2) = 0: at x = +-sqrt 2,
 *         hi = (1 + erf 1)/2 + exp(-1)/sqrt(pi) = 1.12890414518515478634..., and f'(-x) = 1 - f'(x), so lo = 1 - hi.
 * tanh    form: hi = 1.12899306865877176545... at x = 1.41850400879082835...; the same symmetry.
 * SiLU    hi = 1.09983932012886691739... at x = 2.39935728052326...; the same symmetry.
 * lo is 1 - hi for the printed hi, which is exact in double (1 < hi < 2), hence below the true 1 - sup f'.
 * tests/bound/t_curve.c proves all of it by interval subdivision of the whole line. */
#include "bound/curve.h"

static taut_slopes symmetric(double hi) { return (taut_slopes){ 1 - hi, hi }; }

taut_slopes slopes_gelu(void) { return symmetric(1.128904145185155); }

taut_slopes slopes_gelu_tanh(void) { return symmetric(1.128993068658772); }

taut_slopes slopes_relu(void) { return symmetric(1); }

taut_slopes slopes_silu(void) { return symmetric(1.099839320128867); }

taut_slopes slopes_tanh(void) { return symmetric(1); }

taut_slopes slopes_abs(void) { return (taut_slopes){ -1, 1 }; }

taut_up up_slopes_lip(taut_slopes s) { return up_max(up_exact(s.lo), up_exact(s.hi)); }

double slopes_mid(taut_slopes s) { return s.lo + (s.hi - s.lo) / 2; }

taut_up up_slopes_half(taut_slopes s)
{
    const double mid = slopes_mid(s);
    return up_max(up_above(s.hi - mid, false), up_above(mid - s.lo, false));
}
