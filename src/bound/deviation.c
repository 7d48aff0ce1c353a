/* The bound on the deviation, query by query in tiles (docs/deviation.md).  With D_j = |q| r_j s, m_j =
 * min(|q|^2 s^2 lam_j, D_j^2), ph(t) = (e^t - 1 - t)/t^2, dist_j = |vbar_j - y_q|, over clusters that hold a key:
 *     E_j     = min(cosh D_j, 1 + ph(D_j) m_j)
 *     within  = min( max R_j, sum min( min(1, w_j E_j) R_j, w_j (|q| s ||C_j|| + ph(D_j) m_j R_j) ) )
 *     between = min( sum w_j ph(D_j) m_j dist_j, 2 tanh(max ln E_j / 4) max|vbar_j - mean| )
 *     B1      = 2 tanh(|q| s max r_j / 2) max|v - c|
 *     B6      = min( within + between, max(dist_j + R_j), B1 )
 *     B5      = |F| + B2,  F = s sum w_j C_j^T q,  B2 = sum w_j ph(D_j) s^2 q^T Cov_j q (dist_j + R_j)     (audit)
 *     B7      = min( max(B2, (1 - 1/Z)|F| + B2/Z), |F| + min(B5, B6), max(|vbar_j - y_1| + R_j) ),  Z = sum w_j E_j
 * Rounding: logits are wrong by EL = gamma |q| max|k| s, so weights by expm1(2 EL), relatively; every sum here is of
 * numbers >= 0 and is raised by 1e-9, far above its own roundings.  D_j > 600 makes ph +inf, however small the
 * weight.  Whatever is not finite makes e = +inf. */
#include "bound/deviation.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clones.h"
#include "bound/arithmetic.h"
#include "bound/blas.h"
#include "bound/deviation_stats.h"
#include "bound/exp.h"

enum { TILE = 128 };
#define FAR 600.0  /* e^600 is the most we multiply with */
#define LOW -708.0 /* and e^-708 of the largest the least that a weight is taken for, where the normal numbers end */

typedef struct {
    const taut_deviation *c;
    const taut_deviation_stats *s;
    double *q, *w, *first, *quad, *part;   /* (T, dk), (T, M), (T, dv), (T, M), (T, max) */
    double *y;                             /* (T, dv + M): y_q, and y_q.vbar_j behind it */
    double *means, *square;                /* (M, dv + M): vbar, and vbar vbar^T beside it; its diagonal */
    double *dist, *second, *grown, *other; /* of one query: dist_j, ph(D_j) m_j, E_j, and y */
    int64_t rows, wide;                    /* wide: dv + M */
} tile;

/* c (m, n) = alpha a op(b), inner products of length k; rows of a, b and c begin `la`, `lb` and `lc` apart */
static void product(double *c, int64_t lc, const double *a, int64_t la, const double *b, int64_t lb, int64_t m,
                    int64_t n, int64_t k, bool trans, double alpha)
{
    cblas_dgemm(CblasRowMajor, CblasNoTrans, trans ? CblasTrans : CblasNoTrans, (int)m, (int)n, (int)k, alpha, a,
                (int)la, b, (int)lb, 0, c, (int)lc);
}

/* the same without gaps */
static void times(double *c, const double *a, const double *b, int64_t m, int64_t n, int64_t k, bool trans,
                  double alpha)
{
    product(c, n, a, k, b, trans ? k : n, m, n, k, trans, alpha);
}

/* As fmin and fmax where neither is NaN, and one instruction in vectors; a NaN in b is left out. */
#ifdef __aarch64__
static inline double lower(double a, double b) { return fmin(a, b); }
static inline double higher(double a, double b) { return fmax(a, b); }
#else
static inline double lower(double a, double b) { return b < a ? b : a; }
static inline double higher(double a, double b) { return b > a ? b : a; }
#endif

/* count_j e^(w_j - max), normalised */
TAUT_CLONES static void weigh(double *restrict w, const double *restrict count, int64_t m)
{
    double max = -INFINITY, sum = 0;
#ifndef __clang__ /* which cannot, and says so */
#pragma omp simd reduction(max : max)
#endif
    for (int64_t j = 0; j < m; j++) {
        w[j] = count[j] > 0 ? w[j] : -INFINITY;
        max = higher(max, w[j]);
    }
#pragma omp simd reduction(+ : sum)
    for (int64_t j = 0; j < m; j++) sum += w[j] = count[j] * taut_exp(higher(w[j] - max, LOW));
    const double share = 1 / sum;
    for (int64_t j = 0; j < m; j++) w[j] *= share;
}

/* Weights and y_q of the queries from `at`, and y_q.vbar_j for the distances: from the products of the means where
 * these are fewer numbers. */
static void look(tile *t, int64_t at)
{
    const taut_deviation *c = t->c;
    const int64_t m = c->groups;
    t->rows = c->nq - at < TILE ? c->nq - at : TILE;
    for (int64_t r = 0; r < t->rows; r++) {
        deviation_fetch(&c->q, at + r + DEVIATION_AHEAD, c->nq, c->dk);
        taut_table_row(t->q + r * c->dk, &c->q, at + r, c->dk);
    }
    times(t->w, t->q, t->s->kbar, t->rows, m, c->dk, true, c->scale);
    for (int64_t r = 0; r < t->rows; r++) weigh(t->w + r * m, t->s->count, m);
    const bool fewer = m < c->dv;
    product(t->y, t->wide, t->w, m, t->means, t->wide, t->rows, fewer ? t->wide : c->dv, m, false, 1);
    if (!fewer) product(t->y + c->dv, t->wide, t->y, t->wide, t->s->vbar, c->dv, t->rows, m, c->dv, true, 1);
}

/* Audit: F, and q^T Cov_j q. */
static void look_closer(tile *t)
{
    const taut_deviation *c = t->c;
    const int64_t m = c->groups;
    memset(t->first, 0, (size_t)(t->rows * c->dv) * sizeof *t->first);
    for (int64_t j = 0; j < m; j++) {
        times(t->part, t->q, t->s->cross + j * c->dk * c->dv, t->rows, c->dv, c->dk, false, c->scale);
        for (int64_t r = 0; r < t->rows; r++)
            for (int64_t d = 0; d < c->dv; d++) t->first[r * c->dv + d] += t->w[r * m + j] * t->part[r * c->dv + d];
        times(t->part, t->q, t->s->cov + j * c->dk * c->dk, t->rows, c->dk, c->dk, false, c->scale * c->scale);
        for (int64_t r = 0; r < t->rows; r++) {
            double sum = 0;
            for (int64_t d = 0; d < c->dk; d++) sum += t->part[r * c->dk + d] * t->q[r * c->dk + d];
            t->quad[r * m + j] = sum;
        }
    }
}

static double ph(double t) { return t < 1e-4 ? 0.5 + t / 6 + t * t / 20 : (expm1(t) - t) / (t * t); }

/* a b with +inf winning over 0 */
static double strong(double a, double b) { return b == INFINITY ? INFINITY : a * b; }

typedef struct {
    double b6, b2, z;    /* z: at least sum w_j E_j */
    double cross, wrong; /* sums over j of w_j |q| s ||C_j|| and of w_j |q| s |C_j - computed| */
} sums;

typedef struct {
    double within, between, hull, most_e, z, cross;
} totals;

/* dist_j of one query: what the products say, and at most the other weights times how far means are apart, which has no root of a
 * rounding error in it.  A loop of its own, as the roots take long and nothing has to wait for them. */
TAUT_CLONES static void distances(const tile *t, int64_t r, double ny, double wrong_y)
{
    const taut_deviation_stats *s = t->s;
    const int64_t m = t->c->groups;
    const double *restrict w = t->w + r * m, *restrict square = t->square;
    const double *restrict along = t->y + r * t->wide + t->c->dv;
    const double guard = 8 * deviation_gamma(t->c->dv + m + 16), own = ny * ny, apart = 2 * s->between;
    const double loose = guard * s->most_v * s->most_v, all = 1 + deviation_gamma(m + 16);
    double *restrict dist = t->dist;
#pragma omp simd
    for (int64_t j = 0; j < m; j++) {
        const double away = square[j] - 2 * along[j] + own;
        dist[j] = lower(sqrt(higher(away, 0) + guard * square[j] + loose), (all - w[j]) * apart) + wrong_y;
    }
}

/* second_j = ph(D_j) m_j and E_j of one query. */
TAUT_CLONES static void growths(const tile *t, double qs)
{
    const taut_deviation_stats *s = t->s;
    const double *restrict radius = s->r, *restrict rho = s->rho;
    double *restrict second = t->second, *restrict grown = t->grown;
#pragma omp simd
    for (int64_t j = 0; j < t->c->groups; j++) {
        const double D = qs * radius[j], e = taut_exp(lower(D, FAR));
        const double near = 0.5 + D * (1.0 / 6 + D * (1.0 / 24 + D * (1.0 / 120 + D * (1.02 / 720))));
        const double more = (D >= 0.1 ? e - 1 - D : near * (D * D)) * rho[j];
        second[j] = more;
        grown[j] = lower((e + 1 / e) / 2, 1 + more);
    }
}

/* What a cluster adds to `within`. */
static inline double inside(double w, double E, double R, double first, double second)
{
    return lower(lower(1, w * E) * R, first + w * (second * R));
}

/* The sums and maxima over the clusters of one query.  A cluster without keys has w = r = R = 0 and is left out of the hull.
 * Where some D > FAR, `between` and z are not to be used.  No number is NaN: judge() has looked. */
TAUT_CLONES static totals gather(const tile *t, int64_t r, double qs, bool far)
{
    const taut_deviation_stats *s = t->s;
    const int64_t m = t->c->groups;
    const double *restrict w = t->w + r * m, *restrict dist = t->dist, *restrict second = t->second,
                           *restrict grown = t->grown, *restrict big = s->big, *restrict cop = s->cop,
                           *restrict count = s->count;
    double within = 0, between = 0, hull = 0, most_e = 1, z = 0, cross = 0;
#ifndef __clang__ /* which cannot, and says so */
#pragma omp simd reduction(+ : within, between, z, cross) reduction(max : hull, most_e)
#endif
    for (int64_t j = 0; j < m; j++) {
        const double R = big[j], E = grown[j], first = w[j] * qs * cop[j];
        within += inside(w[j], E, R, first, second[j]);
        between += w[j] * dist[j] * second[j];
        hull = higher(hull, count[j] > 0 ? dist[j] + R : 0);
        most_e = higher(most_e, E);
        z += w[j] * E;
        cross += first;
    }
    if (far) within = 0;
    for (int64_t j = 0; far && j < m; j++)
        within += qs * s->r[j] > FAR ? big[j] : inside(w[j], grown[j], big[j], w[j] * qs * cop[j], second[j]);
    return (totals){ within, between, hull, most_e, z, cross };
}

static sums add_up(const tile *t, int64_t r, double nq, double ny, double wrong_y, double wrong_quad)
{
    const taut_deviation *c = t->c;
    const taut_deviation_stats *s = t->s;
    const double qs = nq * c->scale, *w = t->w + r * c->groups, most = qs * s->most_r;
    distances(t, r, ny, wrong_y);
    growths(t, qs);
    const bool far = !(most <= FAR);
    const totals g = gather(t, r, qs, far);
    sums a = { .z = far ? INFINITY : g.z, .cross = g.cross };
    for (int64_t j = 0; j < c->groups && c->mode == TAUT_DEVIATION_AUDIT; j++) {
        const double D = qs * s->r[j], quad = fmax(t->quad[r * c->groups + j], 0) + wrong_quad * s->r[j] * s->r[j];
        const double least = fmin(quad + qs * qs * DEVIATION_TINY, fmin(qs * qs * s->lam[j], D * D));
        a.wrong += w[j] * qs * s->wrong[j];
        if (least > 0) a.b2 += strong(w[j] * (t->dist[j] + s->big[j]), (D <= FAR ? ph(D) : INFINITY) * least);
    }
    const double log_e = fmax(log(g.most_e), far ? most : 0), b1 = 2 * tanh(most / 2) * s->spread;
    const double within = fmin(g.within, s->most_big);
    const double between = fmin(far ? INFINITY : g.between, 2 * tanh(log_e / 4) * s->between);
    a.b6 = fmin(fmin(within + between, g.hull), b1);
    return a;
}

/* The root of a computed sum of d squares of differences, rounded up. */
static double apart_root(double sum, int64_t d)
{
    return sqrt(sum) * (1 + deviation_gamma(d + 8)) + 1e-150 * (double)d;
}

static double distance(const double *x, const double *y, int64_t d)
{
    double sum = 0;
#pragma omp simd reduction(+ : sum)
    for (int64_t i = 0; i < d; i++) sum += (x[i] - y[i]) * (x[i] - y[i]);
    return apart_root(sum, d);
}

/* B7, when y_1 = y_q + F was to be compared with */
static double first_order(const tile *t, int64_t r, const sums *a, double f, double least)
{
    const taut_deviation *c = t->c;
    const double z = a->z * (1 + 1e-9), over = isfinite(z) ? 1 / z : 0;
    const double mixed = (1 - over) * f + (over > 0 ? a->b2 * over : 0);
    double hull = 0;
    for (int64_t j = 0; j < c->groups; j++)
        if (t->s->count[j] > 0)
            hull = fmax(hull, distance(t->s->vbar + j * c->dv, t->y + r * t->wide, c->dv) + t->s->big[j]);
    return fmin(fmin(isfinite(a->b2) && isfinite(z) ? fmax(a->b2, mixed) : INFINITY, f + least), hull);
}

typedef struct {
    double e, b, distance, hull;
} verdict;

/* The squares of |x|, |y| and |x - y|: three sums side by side hide each other's latency. */
typedef struct {
    double x, y, apart;
} squares;

TAUT_CLONES static squares compare(const double *restrict x, const double *restrict y, int64_t d)
{
    double own = 0, other = 0, apart = 0;
#pragma omp simd reduction(+ : own, other, apart)
    for (int64_t i = 0; i < d; i++) own += x[i] * x[i], other += y[i] * y[i], apart += (x[i] - y[i]) * (x[i] - y[i]);
    return (squares){ own, other, apart };
}

static verdict judge(const tile *t, int64_t r, int64_t at)
{
    double *y = t->other, *yq = t->y + r * t->wide;
    const taut_deviation *c = t->c;
    const taut_deviation_stats *s = t->s;
    const verdict none = { INFINITY, INFINITY, INFINITY, INFINITY };
    deviation_fetch(&c->y, at + r + DEVIATION_AHEAD, c->nq, c->dv);
    taut_table_row(y, &c->y, at + r, c->dv);
    squares sum = compare(yq, y, c->dv);
    const double nq = deviation_norm(t->q + r * c->dk, c->dk), ny = deviation_root(sum.x, c->dv);
    const double el = deviation_gamma(c->dk + s->keys + 8) * nq * s->most_k * c->scale, off = expm1(2 * el);
    const double ev = off + deviation_gamma(c->groups + c->dv + s->keys + 32);
    if (!s->finite || !isfinite(nq) || !isfinite(ny) || !isfinite(off)) return none;
    const double qs = nq * c->scale;
    const sums a = add_up(t, r, nq, ny, 2 * ev * s->most_v, 2 * deviation_gamma(c->dk + s->keys + 16) * qs * qs);
    double b = a.b6, fp = 4 * ev * s->most_v + 1e-290;
    if (c->mode == TAUT_DEVIATION_AUDIT) {
        double f = 0;
        for (int64_t d = 0; d < c->dv; d++) f += t->first[r * c->dv + d] * t->first[r * c->dv + d];
        f = sqrt(f) * (1 + deviation_gamma(c->dv + 8)) + a.wrong + ev * a.cross + 1e-150 * (double)c->dv;
        b = fmin(b, f + a.b2);
        if (c->first) {
            for (int64_t d = 0; d < c->dv; d++) yq[d] += t->first[r * c->dv + d];
            b = first_order(t, r, &a, f, b);
            fp += 2 * a.wrong + 4 * (off + deviation_gamma(c->groups + c->dk + s->keys + 16)) * a.cross;
            sum = compare(yq, y, c->dv);
        }
    }
    b *= (1 + 1e-9) * (1 + 2 * off);
    const double far = apart_root(sum.apart, c->dv) * (1 + deviation_gamma(c->dv + 4));
    const double e = b + far + fp, trivial = (s->most_v + deviation_root(sum.y, c->dv)) * (1 + 1e-12);
    return isfinite(e) ? (verdict){ fmin(e, trivial), b, far, trivial } : none;
}

static bool tile_room(tile *t)
{
    const taut_deviation *c = t->c;
    const int64_t m = c->groups, most = c->dk > c->dv ? c->dk : c->dv;
    t->wide = c->dv + m;
    const int64_t each = c->dk + 2 * m + c->dv + most + t->wide;
    double *p = taut_malloc((size_t)(TILE * each + m * t->wide + 4 * m + c->dv) * sizeof *p);
    if (!p) return false;
    t->q = p, t->w = t->q + TILE * c->dk, t->y = t->w + TILE * m, t->first = t->y + TILE * t->wide;
    t->quad = t->first + TILE * c->dv, t->part = t->quad + TILE * m;
    t->square = t->part + TILE * most, t->dist = t->square + m, t->second = t->dist + m, t->grown = t->second + m;
    t->other = t->grown + m, t->means = t->other + c->dv;
    for (int64_t j = 0; j < m; j++) memcpy(t->means + j * t->wide, t->s->vbar + j * c->dv, (size_t)c->dv * sizeof *p);
    product(t->means + c->dv, t->wide, t->s->vbar, c->dv, t->s->vbar, c->dv, m, m, c->dv, true, 1);
    for (int64_t j = 0; j < m; j++) t->square[j] = t->means[j * t->wide + c->dv + j];
    return true;
}

static double root(double sum, int64_t n) { return sqrt(sum) * (1 + deviation_gamma(n + 8)); }

taut_status up_deviation(const taut_deviation *c, double *e, double *b, taut_deviation_sum *sum)
{
    taut_deviation_stats s;
    taut_status status = taut_arithmetic_test();
    if (!status) status = taut_deviation_stats_make(&s, c);
    if (status) return status;
    tile t = { .c = c, .s = &s };
    double all = 0, part = 0, far = 0, hull = 0;
    if (!tile_room(&t)) status = taut_no_memory("the deviation's tile");
    for (int64_t at = 0; !status && at < c->nq; at += TILE) {
        look(&t, at);
        if (c->mode == TAUT_DEVIATION_AUDIT) look_closer(&t);
        for (int64_t r = 0; r < t.rows; r++) {
            const verdict v = judge(&t, r, at);
            all += v.e * v.e, part += v.b * v.b, far += v.distance * v.distance, hull += v.hull * v.hull;
            if (e) e[at + r] = v.e;
            if (b) b[at + r] = v.b;
        }
    }
    *sum = (taut_deviation_sum){ up_wrap(root(all, c->nq)), up_wrap(root(part, c->nq)), up_wrap(root(far, c->nq)),
                                 up_wrap(root(hull, c->nq)) };
    free(t.q);
    taut_deviation_stats_free(&s);
    return status;
}
