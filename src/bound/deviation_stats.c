/* Two passes over keys and values: counts, sums and sizes first, then everything about the means.
 *
 * A computed mean is off by at most gamma_{n+2} max|x|; radii are enlarged by that.  Second moments are taken
 * about the computed mean, where they are no smaller than about the true one.  Without audit ||C|| is bounded
 * by sqrt(tr Cov K tr Cov V) (Cauchy-Schwarz), which needs no matrix. */
#include "bound/deviation_stats.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clones.h"
#include "bound/norm.h"

TAUT_CLONES static void widen(double *restrict y, const float *restrict x, int64_t d)
{
#pragma omp simd
    for (int64_t i = 0; i < d; i++) y[i] = (double)x[i];
}

void taut_table_row(double *y, const taut_table *t, int64_t r, int64_t d)
{
    if (t->elem == sizeof(double))
        memcpy(y, (const double *)t->data + r * t->stride, (size_t)d * sizeof *y);
    else
        widen(y, (const float *)t->data + r * t->stride, d);
}

/* sum of squares of row r; the row is added to sum */
TAUT_CLONES static double row_add(double *restrict sum, const taut_table *t, int64_t r, int64_t d)
{
    double square = 0;
    if (t->elem == sizeof(double)) {
        const double *restrict x = (const double *)t->data + r * t->stride;
#pragma omp simd reduction(+ : square)
        for (int64_t i = 0; i < d; i++) square += x[i] * x[i], sum[i] += x[i];
    } else {
        const float *restrict x = (const float *)t->data + r * t->stride;
#pragma omp simd reduction(+ : square)
        for (int64_t i = 0; i < d; i++) square += (double)x[i] * (double)x[i], sum[i] += (double)x[i];
    }
    return square;
}

/* |row r - centre|^2 */
TAUT_CLONES static double row_far(const taut_table *t, int64_t r, int64_t d, const double *restrict centre)
{
    double square = 0;
    if (t->elem == sizeof(double)) {
        const double *restrict x = (const double *)t->data + r * t->stride;
#pragma omp simd reduction(+ : square)
        for (int64_t i = 0; i < d; i++) square += (x[i] - centre[i]) * (x[i] - centre[i]);
    } else {
        const float *restrict x = (const float *)t->data + r * t->stride;
#pragma omp simd reduction(+ : square)
        for (int64_t i = 0; i < d; i++) square += ((double)x[i] - centre[i]) * ((double)x[i] - centre[i]);
    }
    return square;
}

TAUT_CLONES static double square(const double *x, int64_t d)
{
    double sum = 0;
#pragma omp simd reduction(+ : sum)
    for (int64_t i = 0; i < d; i++) sum += x[i] * x[i];
    return sum;
}

double deviation_norm(const double *x, int64_t d) { return deviation_root(square(x, d), d); }

static double *carve(double **from, int64_t len)
{
    double *p = *from;
    *from += len;
    return p;
}

static bool stats_room(taut_deviation_stats *s, const taut_deviation *c)
{
    const int64_t m = c->groups, square = c->mode != TAUT_DEVIATION_FAST ? m * c->dk * (c->dk + c->dv) : 0;
    s->room = taut_calloc((size_t)(m * (c->dk + c->dv + 7) + square + c->dk + 2 * c->dv), sizeof *s->room);
    double *p = s->room;
    if (!p) return false;
    s->count = carve(&p, m), s->r = carve(&p, m), s->big = carve(&p, m), s->lam = carve(&p, m);
    s->cop = carve(&p, m), s->wrong = carve(&p, m), s->rho = carve(&p, m);
    s->kbar = carve(&p, m * c->dk), s->vbar = carve(&p, m * c->dv);
    if (c->mode != TAUT_DEVIATION_FAST) s->cov = carve(&p, m * c->dk * c->dk), s->cross = carve(&p, m * c->dk * c->dv);
    return true;
}

/* room for a key, a value and the mean of all values behind what stats_room carved */
static double *row_room(const taut_deviation_stats *s, const taut_deviation *c)
{
    const int64_t m = c->groups, square = c->mode != TAUT_DEVIATION_FAST ? m * c->dk * (c->dk + c->dv) : 0;
    return s->room + m * (c->dk + c->dv + 7) + square;
}

static void add(double *restrict y, const double *restrict x, int64_t d)
{
    for (int64_t i = 0; i < d; i++) y[i] += x[i];
}

/* Sums become means; the mean of all values comes from those of the clusters. */
static double average(taut_deviation_stats *s, const taut_deviation *c, double *mean)
{
    double total = 0;
    memset(mean, 0, (size_t)c->dv * sizeof *mean);
    for (int64_t j = 0; j < c->groups; j++) {
        add(mean, s->vbar + j * c->dv, c->dv);
        for (int64_t d = 0; d < c->dk && s->count[j] > 0; d++) s->kbar[j * c->dk + d] /= s->count[j];
        for (int64_t d = 0; d < c->dv && s->count[j] > 0; d++) s->vbar[j * c->dv + d] /= s->count[j];
    }
    for (int64_t d = 0; d < c->dv && s->keys > 0; d++) mean[d] /= (double)s->keys, total += mean[d];
    for (int64_t i = 0; i < c->groups * (c->dk + c->dv); i++) total += s->kbar[i]; /* vbar lies behind it */
    return total;
}

static void first_pass(taut_deviation_stats *s, const taut_deviation *c)
{
    double most_k = 0, most_v = 0, total = 0;
    for (int64_t i = 0; i < c->nk; i++) {
        const int32_t j = c->cluster[i];
        deviation_fetch(&c->k, i + DEVIATION_AHEAD, c->nk, c->dk);
        deviation_fetch(&c->v, i + DEVIATION_AHEAD, c->nk, c->dv);
        if (j < 0) continue;
        const double k = row_add(s->kbar + j * c->dk, &c->k, i, c->dk);
        const double v = row_add(s->vbar + j * c->dv, &c->v, i, c->dv);
        most_k = fmax(most_k, k), most_v = fmax(most_v, v), total += k + v;
        s->count[j]++;
        s->keys++;
    }
    s->most_k = deviation_root(most_k, c->dk);
    s->most_v = deviation_root(most_v, c->dv);
    total += average(s, c, row_room(s, c) + c->dk + c->dv);
    /* NaN and infinity are kept by sums, if not by fmax; where squares of squares overflow nothing is promised */
    s->finite = s->keys > 0 && isfinite(total) && s->most_k < 1e75 && s->most_v < 1e75;
}

/* cov and cross of the cluster of a key at dk, dv from its means */
static void moments(taut_deviation_stats *s, const taut_deviation *c, int32_t j, const double *k, const double *v)
{
    for (int64_t a = 0; a < c->dk; a++) {
        const double x = k[a] / s->count[j];
        double *cov = s->cov + (j * c->dk + a) * c->dk, *cross = s->cross + (j * c->dk + a) * c->dv;
        for (int64_t b = 0; b < c->dk; b++) cov[b] += x * k[b];
        for (int64_t b = 0; b < c->dv; b++) cross[b] += x * v[b];
    }
}

/* lam holds sum |k - kbar|^2, cop sum |v - vbar|^2, r and big the largest of the squares, until bounds() makes them what
 * they are called */
static void second_pass(taut_deviation_stats *s, const taut_deviation *c)
{
    double *k = row_room(s, c), *v = k + c->dk, *mean = v + c->dv, total = 0, spread = 0;
    for (int64_t i = 0; i < c->nk; i++) {
        const int32_t j = c->cluster[i];
        deviation_fetch(&c->k, i + DEVIATION_AHEAD, c->nk, c->dk);
        deviation_fetch(&c->v, i + DEVIATION_AHEAD, c->nk, c->dv);
        if (j < 0) continue;
        const double *kbar = s->kbar + j * c->dk, *vbar = s->vbar + j * c->dv;
        const double from = row_far(&c->v, i, c->dv, mean);
        const double nk = row_far(&c->k, i, c->dk, kbar), nv = row_far(&c->v, i, c->dv, vbar);
        spread = fmax(spread, from);
        s->r[j] = fmax(s->r[j], nk);
        s->big[j] = fmax(s->big[j], nv);
        s->lam[j] += nk;
        s->cop[j] += nv;
        total += nk + nv + from;
        if (c->mode == TAUT_DEVIATION_FAST) continue;
        taut_table_row(k, &c->k, i, c->dk);
        taut_table_row(v, &c->v, i, c->dv);
        for (int64_t d = 0; d < c->dk; d++) k[d] -= kbar[d];
        for (int64_t d = 0; d < c->dv; d++) v[d] -= vbar[d];
        moments(s, c, j, k, v);
    }
    s->spread = deviation_root(spread, c->dv);
    s->finite = s->finite && isfinite(total);
}

/* Proved norms in the place of traces. */
static void sharpen(taut_deviation_stats *s, const taut_deviation *c, int64_t j, double ek, double ev, double more)
{
    const double g = deviation_gamma((int64_t)s->count[j] + 8);
    s->wrong[j] = ek * ev + g * s->r[j] * s->big[j] + DEVIATION_TINY;
    const double norm = up_norm(s->cross + j * c->dk * c->dv, c->dk, c->dv).v + s->wrong[j];
    const double cov = up_norm(s->cov + j * c->dk * c->dk, c->dk, c->dk).v * more + g * s->r[j] * s->r[j] +
                       DEVIATION_TINY;
    s->cop[j] = fmin(s->cop[j], norm);
    s->lam[j] = fmin(s->lam[j], cov);
}

static void bounds(taut_deviation_stats *s, const taut_deviation *c)
{
    for (int64_t j = 0; j < c->groups; j++) {
        const int64_t n = (int64_t)s->count[j];
        if (n == 0) continue;
        const double more = 1 + 4 * deviation_gamma(n + c->dk + c->dv + 8);
        const double ek = deviation_gamma(n + 2) * s->most_k, ev = deviation_gamma(n + 2) * s->most_v;
        const double trace_v = s->cop[j] / s->count[j] * more + DEVIATION_TINY;
        s->lam[j] = s->lam[j] / s->count[j] * more + DEVIATION_TINY;
        s->cop[j] = sqrt(s->lam[j]) * sqrt(trace_v) * more;
        s->r[j] = deviation_root(s->r[j], c->dk) + ek;
        s->big[j] = deviation_root(s->big[j], c->dv) + ev;
        if (c->mode != TAUT_DEVIATION_FAST) sharpen(s, c, j, ek, ev, more);
        s->rho[j] = fmin(1, s->lam[j] / (s->r[j] * s->r[j]) * (1 + 0x1p-50));
        s->most_r = fmax(s->most_r, s->r[j]);
        s->most_big = fmax(s->most_big, s->big[j]);
    }
}

/* The clusters' means of values around the mean of these means. */
static void spread_means(taut_deviation_stats *s, const taut_deviation *c)
{
    double *centre = row_room(s, c), *away = centre + c->dv, live = 0; /* dk + 2 dv >= 2 dv numbers */
    memset(centre, 0, (size_t)c->dv * sizeof *centre);
    for (int64_t j = 0; j < c->groups; j++)
        if (s->count[j] > 0) add(centre, s->vbar + j * c->dv, c->dv), live++;
    for (int64_t d = 0; d < c->dv && live > 0; d++) centre[d] /= live;
    for (int64_t j = 0; j < c->groups; j++) {
        if (!(s->count[j] > 0)) continue;
        for (int64_t d = 0; d < c->dv; d++) away[d] = s->vbar[j * c->dv + d] - centre[d];
        s->between = fmax(s->between, deviation_norm(away, c->dv));
    }
    s->between += 2 * deviation_gamma(s->keys + 8) * s->most_v;
}

taut_status taut_deviation_stats_make(taut_deviation_stats *s, const taut_deviation *c)
{
    *s = (taut_deviation_stats){ 0 };
    if (!stats_room(s, c)) return taut_no_memory("the deviation's statistics");
    first_pass(s, c);
    if (s->finite) second_pass(s, c);
    if (s->finite) bounds(s, c);
    if (s->finite) spread_means(s, c);
    return TAUT_OK;
}

void taut_deviation_stats_free(taut_deviation_stats *s) { free(s->room); }
