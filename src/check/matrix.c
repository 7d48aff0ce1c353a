/* Is ||X|| <= mu?  Proved by a Cholesky factorisation of (mu^2 - slack) I - X^T X in plain double loops.
 *
 * 1. Products.  multiply adds a_k b_k over k in blocks of KB: inside a block one after the other, then the block sums
 *    one after the other.  A term meets its own rounding, at most KB additions, and one for each block: q =
 *    ck_roundings(k) in all.  So the result is entrywise within gamma_q |A|^T |B| of A^T B, and || |A|^T|B| || <=
 *    |A|_F |B|_F.  For G = X^T X that is gamma_q tr(G).
 * 2. Cholesky.  S = tau I - G; R is computed, all pivots > 0.  s_ij is reduced by blocks of KB rows and then, in its
 *    panel of NB rows, one at a time.  A term r_li r_lj meets its own rounding and KB additions; s_ij met at most
 *    n/KB + NB subtractions before the term joined it (later ones are common to both); then comes a division or a
 *    root, 2.  So s_ij = sum_l r_li r_lj (1 + theta), |theta| <= gamma_q, q = KB + n/KB + NB + 5: R^T R = S + D with
 *    |D| <= gamma_q |R|^T|R|, and || |R|^T|R| || <= |R|_F^2 = sum_i (s_ii + d_ii) <= tr(S) / (1 - gamma_q).  As R^T R
 *    >= 0, lam_max(G) <= tau + gamma_q tr(S) / (1 - gamma_q); tr(S) <= n tau, as g_ii >= 0.  Rounding tau - g_ii adds
 *    u tau.  tau is mu^2 less all this; gamma is 1 % too large everywhere, for terms of second order.
 *    G of matrices below each other, by_h X_h, is the sum of by_h^2 G_h: a term meets the roundings of by_h^2, of its product
 *    with G_h and of at most count sums as well, and || sum_h by_h^2 |X_h|^T|X_h| || <= sum_h by_h^2 tr(G_h).
 * 3. If X stands for a matrix within err, mu - err is proved for X.  |X|_F <= mu is a proof too, and settles X = 0.
 * 4. Range.  Entries are float32 numbers or products of two, times weights or powers of two within 2^+-200, so squares
 *    are within 2^+-1000: no overflow.  What underflows in R is below 2^-1050 for each term, far below that 1 %.
 * NaN and infinity: the trace is then not finite, so tau is not, and no pivot test lets a NaN pass. */
#include <fenv.h>

#include "check/ck.h"

enum { KB = 64, NB = 64, MR = 4, NR = 8 };

ck_mat ck_new(ck *c, int64_t rows, int64_t cols)
{
    const int64_t ld = (cols + NR - 1) / NR * NR; /* and as many rows as tiles have */
    return (ck_mat){ ck_room(c, (rows + MR - 1) / MR * MR * ld, sizeof(double)), 0, rows, cols, ld };
}

ck_mat ck_turn(ck *c, ck_mat m)
{
    ck_mat t = ck_new(c, m.cols, m.rows);
    for (int64_t i = 0; i < m.rows; i++)
        for (int64_t j = 0; j < m.cols; j++) t.v[j * t.ld + i] = m.v[i * m.ld + j];
    t.err = m.err;
    return t;
}

ck_mat ck_rows(ck_mat m, int64_t first, int64_t rows)
{
    return (ck_mat){ m.v + first * m.ld, m.err, rows, m.cols, m.ld };
}

static double squared(double x) { return x != 0 && fabs(x) < 1e-140 ? 1e-280 : x * x; } /* underflows to no less */
double ck_length(ck_mat m)
{
    double sum = 0;
    for (int64_t i = 0; i < m.rows; i++)
        for (int64_t j = 0; j < m.cols; j++) sum += squared(m.v[i * m.ld + j]);
    return sqrt(sum) + m.err;
}

double ck_longest(ck_mat m)
{
    double most = 0;
    for (int64_t i = 0; i < m.rows; i++) {
        const double row = ck_length(ck_rows(m, i, 1));
        if (row > most || isnan(row)) most = row; /* NaN stays: nothing is above it */
    }
    return most;
}

/* NR numbers side by side, anywhere in memory: one register or several, whatever the processor has.  A lane does what a number
 * by itself would, so the bits are the same on all of them. */
typedef double lanes __attribute__((vector_size(NR * sizeof(double)), aligned(sizeof(double)), may_alias));
typedef void strip(double *c, int64_t ld, const double *at, int64_t lda, ck_mat b, int64_t from, double sign);

/* MR rows of C += sign A^T B, from column `from` on: the sums of a block stay in registers. */
#define STRIP(name, target)                                                                                            \
    target static void name(double *c, int64_t ld, const double *at, int64_t lda, ck_mat b, int64_t from, double sign) \
    {                                                                                                                  \
        for (int64_t j = from; j < b.cols; j += NR) {                                                                  \
            const double *a = at, *right = b.v + j;                                                                    \
            lanes sum[MR] = { { 0 } };                                                                                 \
            for (int64_t k = 0; k < b.rows; k++, a += lda, right += b.ld)                                              \
                for (int i = 0; i < MR; i++) sum[i] += a[i] * *(const lanes *)right;                                   \
            for (int64_t i = 0; i < MR; i++) *(lanes *)(c + i * ld + j) += sign * sum[i];                              \
        }                                                                                                              \
    }
STRIP(strip_any, )
#if defined __x86_64__
STRIP(strip_avx2, __attribute__((target("avx2"))))
STRIP(strip_avx512, __attribute__((target("avx512f"))))
#endif

static strip *widest(void)
{
#if defined __x86_64__
    if (__builtin_cpu_supports("avx512f")) return strip_avx512;
    if (__builtin_cpu_supports("avx2")) return strip_avx2;
#endif
    return strip_any;
}

/* C += sign A^T B; upper: what is below the diagonal need not be right. */
static void multiply(double *c, int64_t ld, ck_mat a, ck_mat b, double sign, bool upper)
{
    strip *const by = widest();
    for (int64_t k = 0; k < a.rows; k += KB) {
        const int64_t kb = a.rows - k < KB ? a.rows - k : KB;
#pragma omp parallel if (a.cols * b.cols * kb > 500000)
        {
            fesetround(FE_TONEAREST); /* in every thread, so that the bits do not depend on their number */
#pragma omp for schedule(dynamic, 4)
            for (int64_t i = 0; i < a.cols; i += MR)
                by(c + i * ld, ld, a.v + k * a.ld + i, a.ld, ck_rows(b, k, kb), upper ? i / NR * NR : 0, sign);
        }
        fesetround(FE_UPWARD);
    }
}

double ck_roundings(int64_t k) { return 1 + (double)(k < KB ? k : KB) + (double)((k + KB - 1) / KB); }

ck_mat ck_product(ck *c, ck_mat a, ck_mat b)
{
    ck_mat p = ck_new(c, a.cols, b.cols);
    multiply(p.v, p.ld, a, b, 1, false);
    p.err = ck_gamma(ck_roundings(a.rows)) * ck_length(a) * ck_length(b) + ck_length(a) * b.err + ck_length(b) * a.err;
    return p;
}

ck_mat ck_stack(ck *c, const ck_mat *m, const double *by, int64_t count)
{
    ck_mat all = ck_new(c, count ? count * m[0].rows : 0, count ? m[0].cols : 0);
    double *to = all.v, err = 0;
    for (int64_t k = 0; k < count; k++) {
        for (int64_t i = 0; i < m[k].rows; i++, to += all.ld)
            for (int64_t j = 0; j < m[k].cols; j++) to[j] = by[k] * m[k].v[i * m[k].ld + j];
        err = ck_hypot(err, fabs(by[k]) * m[k].err);
        if (by[k] != 0 && !(fabs(by[k]) >= 0x1p-200 && fabs(by[k]) <= 0x1p200)) err = INFINITY; /* out of range */
    }
    all.err = err + 2 * CK_U * ck_length(all);
    return all;
}

/* R with R^T R = S, both in s; false if a pivot is not positive. */
static bool cholesky(ck_mat s)
{
    const int64_t n = s.rows, ld = s.ld;
    for (int64_t j0 = 0; j0 < n; j0 += NB) {
        const int64_t end = n - j0 < NB ? n : j0 + NB;
        multiply(s.v + j0 * ld + j0, ld, (ck_mat){ s.v + j0, 0, j0, end - j0, ld },
                 (ck_mat){ s.v + j0, 0, j0, n - j0, ld }, -1, false);
        for (int64_t i = j0; i < end; i++) {
            double *row = s.v + i * ld;
            if (!(row[i] > 0)) return false;
            row[i] = sqrt(row[i]);
            for (int64_t j = i + 1; j < n; j++) row[j] /= row[i];
            for (int64_t l = i + 1; l < end; l++)
                for (int64_t j = l; j < n; j++) s.v[l * ld + j] -= row[l] * row[j];
        }
    }
    return true;
}

ck_square ck_squared(ck *c, ck_mat m)
{
    ck_square q = { ck_new(c, m.cols, m.cols), ck_length(m), ck_roundings(m.rows) };
    multiply(q.g.v, q.g.ld, m, m, 1, true);
    q.g.err = m.err;
    return q;
}

ck_square ck_square_sum(ck *c, const ck_square *q, const double *by, int64_t count)
{
    const int64_t n = count ? q[0].g.cols : 0;
    ck_square all = { ck_new(c, n, n), 0, 0 };
    for (int64_t k = 0; k < count; k++) {
        const double square = by[k] * by[k];
        if (by[k] == 0) continue;
        for (int64_t i = 0; i < n; i++)
            for (int64_t j = i; j < n; j++) all.g.v[i * all.g.ld + j] += square * q[k].g.v[i * q[k].g.ld + j];
        all.length = ck_hypot(all.length, fabs(by[k]) * q[k].length);
        all.g.err = ck_hypot(all.g.err, fabs(by[k]) * q[k].g.err);
        all.roundings = fmax(all.roundings, q[k].roundings);
        if (!(fabs(by[k]) >= 0x1p-200 && fabs(by[k]) <= 0x1p200)) all.length = all.g.err = INFINITY; /* out of range */
    }
    all.roundings += (double)(count + 2);
    return all;
}

double ck_square_norm(ck *c, ck_square q, double mu)
{
    const ck_mat g = q.g;
    const int64_t size = g.cols;
    const double n = (double)size;
    double trace = 0, tried = mu;
    if (q.length <= mu) return mu;
    const ck_mat s = ck_new(c, size, size);
    for (int64_t i = 0; i < size; i++) trace += g.v[i * g.ld + i];
    /* a larger mu is tried only for the message, but proved like the first */
    for (double more = 1e-9; tried > 0 && tried < q.length; tried = mu * (1 + more), more *= 4) {
        const double x = -(g.err - tried);
        const double slack = ck_gamma(q.roundings + 2) * trace + ck_gamma(n * (KB + NB + 6 + ceil(n / KB)) + 4) * x * x;
        const double tau = -(slack - ck_below(x * x));
        if (!(x > 0 && tau > 0) || isinf(tau)) continue;
        for (int64_t i = 0; i < size; i++)
            for (int64_t j = i; j < size; j++) s.v[i * s.ld + j] = (i == j ? tau : 0) - g.v[i * g.ld + j];
        if (cholesky(s)) return tried;
    }
    return q.length;
}

double ck_norm(ck *c, ck_mat m, double mu)
{
    if (ck_length(m) <= mu) return mu;
    return ck_square_norm(c, ck_squared(c, m.rows < m.cols ? ck_turn(c, m) : m), mu);
}
