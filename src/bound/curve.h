/* Activation functions through their secants:  lo <= (f(x) - f(y)) / (x - y) <= hi  for all x != y.
 *
 * Every f here also has f(0) = 0 and |f(x)| <= |x|; f(x)/x lies in [0, 1], of |x| in [-1, 1].  The doubles are
 * rounded outward, and the test proves each with Arb over the whole line.  For joint bounds split the slope into a middle, which
 * multiplies like a number, and a half width, which multiplies like a norm:
 *     ||keep I + mix W_out D W_in|| <= ||keep I + mix mid W_out W_in|| + |mix| half ||W_out|| ||W_in||
 * for every diagonal D with entries in [lo, hi]. */
#ifndef TAUT_BOUND_CURVE_H
#define TAUT_BOUND_CURVE_H
#include "bound/up.h"

typedef struct {
    double lo, hi;
} taut_slopes;

taut_slopes slopes_gelu(void);      /* x (1 + erf(x / sqrt 2)) / 2 */
taut_slopes slopes_gelu_tanh(void); /* x (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))) / 2 */
taut_slopes slopes_relu(void);
taut_slopes slopes_silu(void); /* x / (1 + exp(-x)), and QuickGELU, which is x / (1 + exp(-1.702 x)) */
taut_slopes slopes_tanh(void);
taut_slopes slopes_abs(void); /* |x|: the one curve that falls */

taut_up up_slopes_lip(taut_slopes);  /* max(|lo|, |hi|) */
double slopes_mid(taut_slopes);      /* a double near (lo + hi) / 2; any number would be sound */
taut_up up_slopes_half(taut_slopes); /* [lo, hi] lies within this of slopes_mid */
#endif
