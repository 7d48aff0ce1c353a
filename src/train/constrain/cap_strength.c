/* With t = alpha s^2:  p(s) = s h(t),  h(t) = 1 - 3t^2 + 3t^3 - t^4,  falling on [0, 1].  p rises up to s_c =
 * 1/sqrt(3 alpha), where it is (62/81) s_c, and falls behind; so |p| <= cap on [0, k] wants
 *
 *     k <= cap               alpha = 0
 *     k <= (81/62) cap       p(k) = cap with k <= s_c:  h(alpha k^2) = cap/k, alpha k^2 <= 1/3
 *     k <= (81/31) cap       the peak at cap:  alpha = (62/81)^2 / (3 cap^2), as k <= 2 s_c keeps p(k) >= -cap
 *     beyond                 no alpha: the peak must stay below cap, and then p(k) < -cap
 *
 * The published strength is the root of the second line for every k, which lets p(s_c) exceed cap as soon as k >
 * (81/62) cap, by 19 % at k = 2 cap.  alpha is a design value: p(k) may exceed cap by a rounding. */
#include <math.h>

#include "train/constrain/hold.h"

/* The root t in [sqrt(d/3), 1/3] of 3t^2 - 3t^3 + t^4 = d, rounded up: Newton, kept inside by bisection. */
static double root(double d)
{
    double lo = sqrt(d / 3), hi = 1.0 / 3, t = lo;
    for (int i = 0; i < 100; i++) {
        const double excess = t * t * (3 - 3 * t + t * t) - d, slope = t * (6 - 9 * t + 4 * t * t);
        if (excess < 0)
            lo = t;
        else
            hi = t;
        double next = t - excess / slope;
        if (!(lo < next && next < hi)) next = lo + 0.5 * (hi - lo);
        if (next == lo || next == hi) break;
        t = next;
    }
    return hi;
}

bool taut_cap_strength(double *alpha, double cap, double k)
{
    *alpha = 0;
    if (!(cap > 0) || !(k <= 81.0 / 31 * cap)) return false;
    if (k > 81.0 / 62 * cap)
        *alpha = (62.0 / 81) * (62.0 / 81) / (3 * cap * cap);
    else if (k > cap)
        *alpha = root(1 - cap / k) / (k * k);
    return true;
}
