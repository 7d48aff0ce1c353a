/* The concave bound.  Row i of the Jacobian is at most sqrt(sum_j K_ij |e_j|^2) + tau_i |f_i|, so
 *     |J e|^2 <= sum_i ( sqrt(a_i) + tau_i |f_i| )^2,   a = K y,  y_j = |e_j|^2,
 * and 2 tau_i sqrt(a_i) |f_i| <= t_i a_i + tau_i^2 |f_i|^2 / t_i for ANY t_i > 0.  Hence in self-attention, f = e,
 *     ||J||^2 <= max_j [ sum_i K_ij (1 + t_i) + tau_j^2 (1 + 1/t_j) ],
 * and with queries of their own  ||J||^2 <= max( max_j sum_i K_ij (1 + t_i), max_i tau_i^2 (1 + 1/t_i) ).
 * t_i = 0 drops the last term where tau_i = 0.  The best t belongs to the maximum over the simplex of the concave
 * function sum_i (sqrt(a_i) + tau_i sqrt(y_i))^2: a multiplicative ascent in plain double finds it nearly, each iterate
 * gives a t, and what is answered is the one expression above: tq + 16 roundings of terms >= 0 at most, and products that
 * underflow, 2^-1074 times t <= 1e9 each. */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "bound/blas.h"
#include "bound/local_impl.h"

enum { STEPS = 60 };

typedef struct {
    const double *k, *tau;
    int64_t tq, tk;
    bool self;
    double *y, *f; /* weights of keys and of queries (self: the same) */
    double *a, *t, *col, *one;
} search;

/* max over tokens of the gradient for this t, computed; also leaves the columns' sums in col. */
static double value(const search *s, double *query)
{
    double most = 0;
    for (int64_t i = 0; i < s->tq; i++) s->one[i] = 1 + s->t[i];
    cblas_dgemv(CblasRowMajor, CblasTrans, (blasint)s->tq, (blasint)s->tk, 1, s->k, (blasint)s->tk, s->one, 1, 0,
                s->col, 1);
    for (int64_t i = 0; i < s->tq; i++) {
        const double own = s->tau[i] > 0 ? s->tau[i] * s->tau[i] * (1 + 1 / s->t[i]) : 0;
        if (s->self)
            s->col[i] += own;
        else
            query[i] = own, most = fmax(most, own);
    }
    for (int64_t j = 0; j < s->tk; j++) most = fmax(most, s->col[j]);
    return most;
}

/* t from the weights: t_i = tau_i sqrt(f_i / a_i). */
static void choose(const search *s)
{
    cblas_dgemv(CblasRowMajor, CblasNoTrans, (blasint)s->tq, (blasint)s->tk, 1, s->k, (blasint)s->tk, s->y, 1, 0, s->a,
                1);
    for (int64_t i = 0; i < s->tq; i++) {
        const double t = s->tau[i] * sqrt(s->f[i] / fmax(s->a[i], 1e-300));
        s->t[i] = s->tau[i] > 0 ? fmin(fmax(t, 1e-9), 1e9) : 0;
    }
}

static void ascend(double *y, const double *gradient, double top, int64_t n)
{
    for (int64_t j = 0; j < n; j++) y[j] = fmax(y[j] * (gradient[j] / top) * (gradient[j] / top), 1e-30);
}

static double best_value(const search *s, double *query)
{
    double best = INFINITY;
    for (int step = 0; step < STEPS; step++) {
        choose(s);
        const double now = value(s, query);
        best = fmin(best, now);
        if (!(now > 0)) return best;
        ascend(s->y, s->col, now, s->tk);
        if (!s->self) ascend(s->f, query, now, s->tq);
    }
    return best;
}

taut_up up_concave(const double *k, const double *tau, int64_t tq, int64_t tk, bool self)
{
    if (tq > INT_MAX || tk > INT_MAX) return UP_NONE;
    if (tq == 0 || tk == 0) return UP_ZERO;
    for (int64_t i = 0; i < tq * tk; i++)
        if (!(k[i] < INFINITY)) return UP_NONE;
    for (int64_t i = 0; i < tq; i++)
        if (!(tau[i] < INFINITY)) return UP_NONE;
    double *m = taut_malloc((size_t)(5 * tq + 3 * tk) * sizeof *m);
    if (!m) return UP_NONE;
    search s = { k, tau, tq, tk, self, m, self ? m : m + tk, m + tk + tq, m + tk + 2 * tq, m + tk + 3 * tq, NULL };
    s.one = s.col + tk;
    double *query = s.one + tq;
    for (int64_t j = 0; j < tk; j++) s.y[j] = 1.0 / (double)tk;
    for (int64_t i = 0; i < tq; i++) s.f[i] = 1.0 / (double)(self ? tk : tq);
    const taut_up best = up_wrap(best_value(&s, query)), rounding = up_add((taut_up){ 1 }, up_gamma(tq + 16));
    free(m);
    return up_sqrt(up_add(up_mul(best, rounding), (taut_up){ 0x1p-900 }));
}
