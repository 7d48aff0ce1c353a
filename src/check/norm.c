/* Is ||X|| <= mu?  Proved by a Cholesky factorisation of (mu^2 - slack) I - X^T X in plain double loops.
 *
 * 1. Products.  multiply adds a_k b_k over k in blocks of KB: inside a block one after the other, then the block sums
 *    one after the other.  A term meets its own rounding, at most KB additions, and one for each block: q =
 *    roundings(k) in all.  So the result is entrywise within gamma_q |A|^T |B| of A^T B, and || |A|^T|B| || <=
 *    |A|_F |B|_F.
 * 2. Gram matrices.  G = sum_h w_h^2 X_h^T X_h is within gamma_k tr(G) in norm, since there |A|_F |B|_F is the trace.
 *    w_h^2 is rounded up, which only makes G larger: every X^T X is positive.
 * 3. Cholesky.  S = tau I - G; R is computed, all pivots > 0.  s_ij is reduced by blocks of KB rows and then, in its
 *    panel of NB rows, one at a time.  A term r_li r_lj meets its own rounding and KB additions; s_ij met at most
 *    n/KB + NB subtractions before the term joined it (later ones are common to both); then comes a division or a
 *    root, 2.  So s_ij = sum_l r_li r_lj (1 + theta), |theta| <= gamma_q, q = KB + n/KB + NB + 5: R^T R = S + D with
 *    |D| <= gamma_q |R|^T|R|, and || |R|^T|R| || <= |R|_F^2 = sum_i (s_ii + d_ii) <= tr(S) / (1 - gamma_q).  As R^T R
 *    >= 0, lam_max(G) <= tau + gamma_q tr(S) / (1 - gamma_q); tr(S) <= n tau, as g_ii >= 0.  Rounding tau - g_ii adds
 *    u tau.
 * 4. tau is mu^2 less all this; gamma is 1 % too large everywhere, for terms of second order.  If X is itself computed,
 *    within err of the true matrix, mu - err is proved for it.  |X|_F <= mu is a proof too, and settles X = 0.
 * 5. Range.  Entries are float32 numbers or products of two, times weights or powers of two within 2^+-200, so squares
 *    are within 2^+-1000: no overflow.  What underflows in R is below 2^-1050 for each term, far below that 1 %.
 * NaN and infinity: the trace is then not finite, so tau is not, and no pivot test lets a NaN pass. */
#include <string.h>

#include "check/ck.h"

enum { KB = 64, NB = 64, MR = 4, NR = 8 };

double ck_at(const ck_view *v, int64_t i, int64_t j)
{
    const int64_t at = i * v->down + j * v->right;
    return v->f ? (double)v->f[at] : v->d[at];
}

ck_view ck_turn(ck_view v) { return (ck_view){ v.f, v.d, v.cols, v.rows, v.right, v.down }; }
ck_view ck_of(const double *d, int64_t rows, int64_t cols) { return (ck_view){ NULL, d, rows, cols, cols, 1 }; }
ck_view ck_rows(ck_view v, int64_t first, int64_t rows)
{
    const int64_t at = first * v.down;
    return (ck_view){ v.f ? v.f + at : NULL, v.d ? v.d + at : NULL, rows, v.cols, v.down, v.right };
}

static double squared(double x) { return x != 0 && fabs(x) < 1e-140 ? 1e-280 : x * x; } /* underflows to no less */
double ck_length(ck_view v)
{
    double sum = 0;
    for (int64_t i = 0; i < v.rows; i++) {
        double row = 0;
        for (int64_t j = 0; j < v.cols; j++) row += squared(ck_at(&v, i, j));
        sum += row;
    }
    return ck_sqrt(ck_mul(sum, 1 + 2 * ck_gamma((double)(v.rows + v.cols + 2))));
}

double ck_longest(ck_view w)
{
    double most = 0;
    for (int64_t i = 0; i < w.rows; i++) most = fmax(most, ck_length(ck_rows(w, i, 1)));
    return most;
}

/* Rows k0 .. k0+kb-1 of v in panels of `width` columns, each panel contiguous, the last one filled up with zeros. */
static void pack(double *to, const ck_view *v, int64_t k0, int64_t kb, int64_t width)
{
    for (int64_t j0 = 0; j0 < v->cols; j0 += width, to += kb * width)
        for (int64_t j = 0; j < width; j++)
            for (int64_t k = 0; k < kb; k++) to[k * width + j] = j0 + j < v->cols ? ck_at(v, k0 + k, j0 + j) : 0;
}

/* One tile of MR by NR entries: the sums of a block stay in registers. */
static void tile(double *c, int64_t ld, const double *a, const double *b, int64_t kb, int64_t rows, int64_t cols,
                 double sign)
{
    double sum[MR][NR] = { { 0 } };
    for (int64_t k = 0; k < kb; k++, a += MR, b += NR)
        for (int i = 0; i < MR; i++)
            for (int j = 0; j < NR; j++) sum[i][j] += a[i] * b[j];
    for (int64_t i = 0; i < rows && i < MR; i++)
        for (int64_t j = 0; j < cols && j < NR; j++) c[i * ld + j] += sign * sum[i][j];
}

/* C += sign A^T B; upper: what is below the diagonal need not be right. */
static void multiply(ck *ck, double *c, int64_t ld, ck_view a, ck_view b, double sign, bool upper)
{
    const struct ck_block *mark = ck->blocks;
    const int64_t m = (a.cols + MR - 1) / MR, n = (b.cols + NR - 1) / NR;
    double *pa = ck_room(ck, m * MR * KB, sizeof *pa), *pb = ck_room(ck, n * NR * KB, sizeof *pb);
    for (int64_t k0 = 0; k0 < a.rows; k0 += KB) {
        const int64_t kb = a.rows - k0 < KB ? a.rows - k0 : KB;
        pack(pa, &a, k0, kb, MR);
        pack(pb, &b, k0, kb, NR);
#pragma omp parallel for schedule(dynamic, 4) if (m * n * kb > 20000)
        for (int64_t i = 0; i < m; i++)
            for (int64_t j = upper ? i * MR / NR : 0; j < n; j++)
                tile(c + i * MR * ld + j * NR, ld, pa + i * MR * kb, pb + j * NR * kb, kb, a.cols - i * MR,
                     b.cols - j * NR, sign);
    }
    ck_give_back(ck, mark);
}

static double roundings(int64_t k) { return 1 + KB + (double)((k + KB - 1) / KB); }

double ck_product(ck *c, double *p, ck_view a, ck_view b)
{
    memset(p, 0, (size_t)(a.cols * b.cols) * sizeof *p);
    multiply(c, p, b.cols, a, b, 1, false);
    return ck_gamma(roundings(a.rows));
}

ck_gram *ck_gram_new(ck *c, int64_t n)
{
    ck_gram *g = ck_room(c, 1, sizeof *g);
    *g = (ck_gram){ .g = ck_room(c, n * n, sizeof(double)), .n = n };
    return g;
}

void ck_gram_add(ck *c, ck_gram **to, const double *w, int count, ck_view x, double err)
{
    const int64_t n = x.cols;
    double *square = ck_room(c, n * n, sizeof *square);
    multiply(c, square, n, x, x, 1, true);
    for (int k = 0; k < count; k++) {
        ck_gram *g = to[k];
        const double w2 = ck_mul(w[k], w[k]);
        for (int64_t i = 0; i < n && w2 > 0; i++)
            for (int64_t j = i; j < n; j++) g->g[i * n + j] += w2 * square[i * n + j];
        g->k = fmax(g->k, roundings(x.rows)) + 2;
        g->err = ck_hypot(g->err, ck_mul(w[k], err));
        if (w[k] != 0 && !(w[k] >= 0x1p-200 && w[k] <= 0x1p200)) g->err = INFINITY; /* out of range */
    }
}

/* R with R^T R = S, both in s; false if a pivot is not positive. */
static bool cholesky(ck *c, double *s, int64_t n)
{
    for (int64_t j0 = 0; j0 < n; j0 += NB) {
        const int64_t end = n - j0 < NB ? n : j0 + NB;
        multiply(c, s + j0 * n + j0, n, (ck_view){ NULL, s + j0, j0, end - j0, n, 1 },
                 (ck_view){ NULL, s + j0, j0, n - j0, n, 1 }, -1, false);
        for (int64_t i = j0; i < end; i++) {
            if (!(s[i * n + i] > 0)) return false;
            s[i * n + i] = sqrt(s[i * n + i]);
            for (int64_t j = i + 1; j < n; j++) s[i * n + j] /= s[i * n + i];
            for (int64_t l = i + 1; l < end; l++)
                for (int64_t j = l; j < n; j++) s[l * n + j] -= s[i * n + l] * s[i * n + j];
        }
    }
    return true;
}

/* Steps 3 and 4 for one mu; s is room for n by n. */
static bool factors(ck *c, const ck_gram *g, double *s, double trace, double mu)
{
    const double n = (double)g->n, m = ck_sub_down(mu, g->err);
    const double slack = ck_add(ck_mul(ck_gamma(g->k), trace),
                                ck_mul(ck_gamma(n * (KB + NB + 6 + ceil(n / KB)) + 4), ck_mul(m, m)));
    const double tau = ck_sub_down(ck_below(m * m), slack);
    if (!(m > 0 && tau > 0) || isinf(tau)) return false;
    for (int64_t i = 0; i < g->n; i++)
        for (int64_t j = i; j < g->n; j++) s[i * g->n + j] = (i == j ? tau : 0) - g->g[i * g->n + j];
    return cholesky(c, s, g->n);
}

double ck_gram_norm(ck *c, const ck_gram *g, double mu)
{
    double trace = 0, tried = mu;
    for (int64_t i = 0; i < g->n; i++) trace += g->g[i * g->n + i];
    const double whole = ck_add(ck_sqrt(ck_mul(trace, 1 + 2 * ck_gamma(g->k + (double)g->n))), g->err);
    if (whole <= mu) return mu;
    double *s = ck_room(c, g->n * g->n, sizeof *s);
    /* a larger mu is tried only for the message, but proved like the first */
    for (double more = 1e-9; tried < whole && !factors(c, g, s, trace, tried); more *= 4) tried = mu * (1 + more);
    return fmin(tried, whole);
}
