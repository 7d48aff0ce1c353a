/* s_1 of M = diag(p) - p p^T by a secular equation.
 *
 * Let x_1 be the largest entry, y the others, T = x_1 + sum y (1 for exact probabilities; the row meant is p / T).  An
 * eigenvalue l of M T has sum_i p_i / (p_i - l) = 0.  Multiplied by x_1 - l this is, on (x_2, x_1],
 *     S(l) = sum_i c_i / (l - y_i) = T,     c_i = y_i (x_1 - y_i),
 * with all c_i >= 0, so S falls, and s_1 = l / T at its root.  No 1 - x_1 anywhere: it would lose everything in a
 * peaked row.
 * 1/S is increasing and concave there (a harmonic mean), so Newton on 1/S from below converges without overshooting,
 * and stops by itself within ten steps or so.
 * Proof.  What Newton gives is only a candidate: l is an upper bound once S(l), rounded up, is at most T rounded down,
 * and a lower bound once S(l), rounded down, is at least T rounded up; every term of S has 5 roundings and the sum n
 * more.  Candidates that fail move outward by doubling steps.  Always x_2 <= l <= min(x_1, g_1 T): x_1 is an eigenvalue
 * of diag(p) and interlaces; x_1 = x_2 makes it exact.
 * g_k.  x_(k) (1 - x_(k)) + x_(k) x_(k+1), the k-th row of the sorted matrix; 1 - x_(k) as the sum of the others. */
#include "bound/softmax_jacobian.h"

#include <float.h>
#include <string.h>

typedef struct {
    const double *p;
    int64_t n, first; /* the largest entry is p[first] */
    double second;    /* the largest of the others */
    double rest;      /* their sum */
} row;

static bool read_row(row *r, const double *p, int64_t n)
{
    *r = (row){ .p = p, .n = n };
    for (int64_t i = 0; i < n; i++) {
        if (!(p[i] >= 0 && p[i] <= DBL_MAX)) return false;
        if (p[i] > p[r->first]) r->first = i;
    }
    for (int64_t i = 0; i < n; i++) {
        if (i == r->first) continue;
        r->second = fmax(r->second, p[i]);
        r->rest += p[i];
    }
    return true;
}

/* S(l) and -S'(l). */
static double secular(const row *r, double l, double *fall)
{
    const double x = r->p[r->first];
    double sum = 0, slope = 0;
    for (int64_t i = 0; i < r->n; i++) {
        const double y = r->p[i];
        if (i == r->first || y == 0) continue;
        const double term = y * (x - y) / (l - y);
        sum += term;
        slope += term / (l - y);
    }
    *fall = slope;
    return sum;
}

static double candidate(const row *r, double total)
{
    const double x = r->p[r->first];
    double c = 0, cy = 0;
    for (int64_t i = 0; i < r->n; i++) {
        const double y = r->p[i];
        if (i == r->first) continue;
        c += y * (x - y);
        cy += y * (x - y) * y;
    }
    double l = fmax(r->second, c > 0 ? c / total + cy / c : 0);
    if (l == r->second) l = nextafter(l, INFINITY);
    for (int step = 0; step < 64; step++) {
        double fall;
        const double s = secular(r, l, &fall), next = l + s * (s - total) / (total * fall);
        if (!(next > l && next <= x)) break;
        l = next;
    }
    return l < x ? l : x;
}

static taut_up up_total(const row *r)
{
    return up_mul(up_add((taut_up){ r->p[r->first] }, (taut_up){ r->rest }), up_add((taut_up){ 1 }, up_gamma(r->n)));
}

static taut_lo lo_total(const row *r)
{
    return lo_mul(lo_add((taut_lo){ r->p[r->first] }, (taut_lo){ r->rest }), lo_sub((taut_lo){ 1 }, up_gamma(r->n)));
}

/* Is the root at or below l?  Terms are rounded by 5 operations, the sum by n; what underflows is at most 2^-1000 in
 * all. */
static bool below(const row *r, double l)
{
    double fall;
    const taut_up s = { secular(r, l, &fall) };
    const taut_up high = up_add(up_mul(s, up_add((taut_up){ 1 }, up_gamma(r->n + 8))), (taut_up){ 0x1p-1000 });
    return l > r->second && high.v <= lo_total(r).v;
}

static bool above(const row *r, double l)
{
    double fall;
    const taut_lo s = { secular(r, l, &fall) };
    return l > r->second && lo_mul(s, lo_sub((taut_lo){ 1 }, up_gamma(r->n + 8))).v >= up_total(r).v;
}

taut_softmax_slope softmax_slope(const double *p, int64_t n)
{
    row r;
    if (!read_row(&r, p, n)) return (taut_softmax_slope){ { 0 }, UP_NONE };
    if (n < 2 || r.second == 0) return (taut_softmax_slope){ { 0 }, UP_ZERO };
    const double x = p[r.first], total = x + r.rest;
    const double l = x == r.second ? x : candidate(&r, total);
    double hi = l, lo = l;
    for (double step = 0x1p-51; hi < x && !below(&r, hi); step *= 2) hi = fmin(x, l * (1 + step));
    for (double step = 0x1p-51; lo > r.second && lo < x && !above(&r, lo); step *= 2)
        lo = fmax(r.second, l * (1 - step));
    if (lo == x && x != r.second) lo = r.second;
    taut_up up = up_div((taut_up){ hi }, lo_total(&r));
    const taut_up g = up_softmax_g(p, n, 1);
    return (taut_softmax_slope){ lo_div((taut_lo){ lo }, up_total(&r)), up_min(up, g) };
}

/* Where the k-th largest entry is, k from 1: k - 1 come before it, and among equals the earlier one does. */
static int64_t order_at(const double *p, int64_t n, int64_t k)
{
    for (int64_t i = 0; i < n; i++) {
        int64_t before = 0;
        for (int64_t j = 0; j < n && before < k; j++) before += p[j] > p[i] || (j < i && p[j] == p[i]);
        if (before == k - 1) return i;
    }
    return -1;
}

taut_up up_softmax_g(const double *p, int64_t n, int64_t k)
{
    row r;
    if (!read_row(&r, p, n)) return UP_NONE;
    const int64_t here = order_at(p, n, k), next = order_at(p, n, k + 1);
    if (here < 0 || p[here] == 0) return UP_ZERO;
    double others = 0;
    for (int64_t i = 0; i < n; i++)
        if (i != here) others += p[i];
    const taut_lo total = lo_total(&r);
    const taut_up sum = up_mul((taut_up){ others }, up_add((taut_up){ 1 }, up_gamma(n)));
    const taut_up row_sum = up_add(sum, (taut_up){ next < 0 ? 0 : p[next] });
    return up_min((taut_up){ 0.5 }, up_div(up_mul(up_div((taut_up){ p[here] }, total), row_sum), total));
}
