/* Least squares of ln y on ln n.  The interval is b +- t se(b) with Student's t for points - 2 degrees of freedom; its
 * 97.5 % quantile is a table for few of them and the usual expansion around the normal one, right to 1e-3, for more. */
#include "measure/fit.h"

#include <math.h>

static double student(int64_t freedom)
{
    static const double small[] = { 0, 12.706, 4.303, 3.182, 2.776, 2.571 };
    const double z = 1.959963984540054, z3 = z * z * z, z5 = z3 * z * z, f = (double)freedom;
    if (freedom < 6) return small[freedom];
    return z + (z3 + z) / (4 * f) + (5 * z5 + 16 * z3 + 3 * z) / (96 * f * f);
}

taut_growth taut_growth_fit(const double *n, const double *y, int64_t count)
{
    taut_growth g = { NAN, NAN, NAN, NAN, 0 };
    double sx = 0, sy = 0, xx = 0, xy = 0, rest = 0;
    for (int pass = 0; pass < 3; pass++)
        for (int64_t i = 0; i < count; i++) {
            if (!(n[i] > 0 && y[i] > 0 && y[i] < INFINITY)) continue;
            const double x = log(n[i]), v = log(y[i]), p = (double)g.points;
            if (pass == 0) {
                sx += x, sy += v, g.points++;
            } else if (pass == 1) {
                xx += (x - sx / p) * (x - sx / p), xy += (x - sx / p) * (v - sy / p);
            } else {
                const double off = v - sy / p - xy / xx * (x - sx / p);
                rest += off * off;
            }
        }
    if (g.points < 2 || !(xx > 0)) return g;
    g.exponent = xy / xx;
    g.factor = exp((sy - g.exponent * sx) / (double)g.points);
    if (g.points < 3) return g;
    const double half = student(g.points - 2) * sqrt(rest / (double)(g.points - 2) / xx);
    g.low = g.exponent - half, g.high = g.exponent + half;
    return g;
}
