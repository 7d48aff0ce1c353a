/* One row x of attention (n numbers >= 0 that sum to 1) and how steep its softmax is: by one thread, as ref and cpu do it; cuda
 * has jasmin_row.h.
 *
 * The softmax Jacobian diag(x) - x x^T has singular values s_1 >= s_2 >= ..., and with x_(1) >= x_(2) >= ...
 *     x_(m+1) <= s_m <= g_m = x_(m) (1 - x_(m) + x_(m+1)).
 * JaSMin of the row: ln(g_1 + eps) - ln(g_k + eps), the second term for k > 1 only; or s_1 itself in the place of g_1.
 * 1 - x_(m) is taken as the sum of the others, which loses nothing where x_(m) is near 1; eps keeps a one-hot row finite.
 *
 * s_1 is the root of S(l) = sum_i c_i / (l - y_i) = 1 on (x_(2), x_(1)], y the others and c_i = y_i (x_(1) - y_i).  1/S is
 * concave there, so Newton's iteration climbs to it from below.  Its eigenvector is w_i = x_i / (x_i - s_1), and
 *     ds_1/dx_i = (w_i^2 - 2 w_i) / |w|^2;   where the two largest are equal, s_1 is that number and w = (1, -1).
 * The derivative by the logits is x (G - x.G), G the derivative by x.  Ties are broken by the first index. */
#ifndef TAUT_KERNELS_JASMIN_H
#define TAUT_KERNELS_JASMIN_H
#include <math.h>

#include "base/inline.h"
#include "kernels/kernels.h"

/* The indices of the `count` largest, in order. */
TAUT_INLINE void jasmin_largest(int64_t *top, int64_t count, const double *x, int64_t n)
{
    int64_t have = 0;
    for (int64_t j = 0; j < n; j++) {
        int64_t place = have < count ? have : count;
        while (place > 0 && x[j] > x[top[place - 1]]) place--;
        if (place == count) continue;
        if (have < count) have++;
        for (int64_t i = have - 1; i > place; i--) top[i] = top[i - 1];
        top[place] = j;
    }
}

/* sign ln(g + eps) of the entry m, whose follower is `next`; adds its derivative to G. */
TAUT_INLINE double jasmin_bound(double *G, double sign, const double *x, int64_t n, int64_t m, int64_t next, double eps)
{
    double rest = 0;
    for (int64_t j = 0; j < n; j++) rest += j == m ? 0 : x[j];
    const double g = x[m] * (rest + x[next]), f = sign / (g + eps);
    for (int64_t j = 0; j < n; j++) G[j] += f * x[m];
    G[m] += f * (rest + x[next] - x[m]);
    G[next] += f * x[m];
    return sign * log(g + eps);
}

/* S(l) and sum c_i / (l - y_i)^2. */
TAUT_INLINE double jasmin_secular(double *square, const double *x, int64_t n, int64_t first, double l)
{
    double sum = 0;
    *square = 0;
    for (int64_t j = 0; j < n; j++) {
        if (j == first || !(x[j] > 0)) continue;
        const double c = x[j] * (x[first] - x[j]), gap = l - x[j];
        sum += c / gap;
        *square += c / (gap * gap);
    }
    return sum;
}

TAUT_INLINE double jasmin_root(const double *x, int64_t n, int64_t first, int64_t second)
{
    double c = 0, cy = 0, beside = 0, square;
    for (int64_t j = 0; j < n; j++) {
        const double each = j == first ? 0 : x[j] * (x[first] - x[j]);
        c += each, cy += each * x[j];
        if (x[j] == x[second]) beside += each; /* Newton's step from x_(2) itself */
    }
    double l = fmax(x[second] + beside, c > 0 ? c + cy / c : 0);
    for (int i = 0; i < 60; i++) {
        const double sum = jasmin_secular(&square, x, n, first, l), step = sum * (sum - 1) / square;
        if (!(step > 1e-16 * l)) break;
        l = fmin(l + step, x[first]);
    }
    return l;
}

/* ln(s_1 + eps); adds its derivative to G. */
TAUT_INLINE double jasmin_exact(double *G, const double *x, int64_t n, int64_t first, int64_t second, double eps)
{
    if (!(x[first] - x[second] > 1e-12 * x[first])) {
        const double f = 0.5 / (x[first] + eps);
        G[first] += f, G[second] += f;
        return log(x[first] + eps);
    }
    if (x[second] == 0) return log(eps); /* one-hot: nothing moves it */
    const double s = jasmin_root(x, n, first, second);
    double size = 0;
    for (int64_t j = 0; j < n; j++) size += pow(x[j] / (x[j] - s), 2);
    for (int64_t j = 0; j < n; j++) {
        const double w = x[j] / (x[j] - s);
        G[j] += (w * w - 2 * w) / size / (s + eps);
    }
    return log(s + eps);
}

TAUT_INLINE bool jasmin_counts(const taut_jasmin *p, int64_t n) { return n > (p->k > 1 ? p->k : 1); }

/* The row's JaSMin, and gz = its derivative by the logits. */
TAUT_INLINE double jasmin_row(double *gz, const double *x, int64_t n, const taut_jasmin *p)
{
    int64_t top[TAUT_JASMIN_LARGEST + 1] = { 0 };
    double along = 0;
    jasmin_largest(top, p->k > 1 ? p->k + 1 : 2, x, n);
    for (int64_t j = 0; j < n; j++) gz[j] = 0;
    double value = p->exact ? jasmin_exact(gz, x, n, top[0], top[1], p->eps)
                            : jasmin_bound(gz, 1, x, n, top[0], top[1], p->eps);
    if (p->k > 1) value += jasmin_bound(gz, -1, x, n, top[p->k - 1], top[p->k], p->eps);
    for (int64_t j = 0; j < n; j++) along += x[j] * gz[j];
    for (int64_t j = 0; j < n; j++) gz[j] = x[j] * (gz[j] - along);
    return value;
}
#endif
