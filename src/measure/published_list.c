/* Everything the formulas of published.c ask for, at one head and one input, and ours for all inputs of this size. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "bound/attention.h"
#include "bound/blas.h"
#include "bound/norm.h"
#include "bound/softmax_jacobian.h"
#include "measure/adversarial.h"
#include "measure/published.h"

typedef struct {
    const taut_published_at *at;
    double *q, *k;   /* (n, dh) */
    double *u, *t;   /* (n, width): rows A x_i (with b_Q) and A^T x_j */
    double *p, *tmp; /* (n, n), (n, width) */
    double r, frobenius, nx, nv, nq, nk, a, np, nm, xm, rho, diameter, diameter_t, xat, bq;
} numbers;

static void multiply(double *c, const double *a, const double *b, int64_t m, int64_t n, int64_t k, bool tb,
                     double alpha)
{
    cblas_dgemm(CblasRowMajor, CblasNoTrans, tb ? CblasTrans : CblasNoTrans, (blasint)m, (blasint)n, (blasint)k, alpha,
                a, (blasint)k, b, (blasint)(tb ? k : n), 0, c, (blasint)n);
}

static double distance(const double *a, const double *b, int64_t d)
{
    double sum = 0;
    for (int64_t c = 0; c < d; c++) sum += (a[c] - b[c]) * (a[c] - b[c]);
    return sqrt(sum);
}

static double diameter(const double *x, int64_t n, int64_t d)
{
    double most = 0;
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < i; j++) most = fmax(most, distance(x + i * d, x + j * d, d));
    return most;
}

static double longest(const double *x, int64_t n, int64_t d)
{
    double most = 0;
    for (int64_t i = 0; i < n; i++) most = fmax(most, cblas_dnrm2((blasint)d, x + i * d, 1));
    return most;
}

static void probabilities(numbers *s)
{
    const taut_published_at *at = s->at;
    const int64_t n = at->n;
    multiply(s->p, s->q, s->k, n, n, at->dh, true, at->scale);
    for (int64_t i = 0; i < n; i++) {
        const int64_t seen = at->causal ? i + 1 : n;
        double *p = s->p + i * n, top = -INFINITY, sum = 0;
        for (int64_t j = 0; j < seen; j++) top = fmax(top, p[j]);
        for (int64_t j = 0; j < n; j++) sum += p[j] = j < seen ? exp(p[j] - top) : 0;
        for (int64_t j = 0; j < n; j++) p[j] /= sum;
        s->nm = fmax(s->nm, softmax_slope(p, n).up.v);
    }
}

/* max_i ||(X - P_i X)^T diag(P_i)|| */
static double weighted_spread(numbers *s)
{
    const int64_t n = s->at->n, d = s->at->width;
    double most = 0;
    for (int64_t i = 0; i < n; i++) {
        const double *p = s->p + i * n;
        double *mean = s->u; /* A x_1 is no longer needed */
        for (int64_t c = 0; c < d; c++) mean[c] = 0;
        for (int64_t j = 0; j < n; j++)
            for (int64_t c = 0; p[j] > 0 && c < d; c++) mean[c] += p[j] * s->at->x[j * d + c];
        for (int64_t j = 0; j < n; j++)
            for (int64_t c = 0; c < d; c++) s->tmp[j * d + c] = p[j] * (s->at->x[j * d + c] - mean[c]);
        most = fmax(most, est_norm(s->tmp, n, d));
    }
    return most;
}

static bool allocate(numbers *s)
{
    const int64_t n = s->at->n, d = s->at->width, dh = s->at->dh;
    s->q = taut_calloc((size_t)(2 * n * dh + 3 * n * d + n * n + 1), sizeof *s->q);
    if (!s->q) return false;
    s->k = s->q + n * dh, s->u = s->k + n * dh, s->t = s->u + n * d, s->tmp = s->t + n * d, s->p = s->tmp + n * d;
    return true;
}

static double logit_norm(const taut_published_at *at)
{
    const int64_t d = at->width;
    double *a = taut_malloc((size_t)(d * d + 1) * sizeof *a);
    if (!a) return NAN;
    cblas_dgemm(CblasRowMajor, CblasTrans, CblasNoTrans, (blasint)d, (blasint)d, (blasint)at->dh, fabs(at->scale),
                at->wk, (blasint)d, at->wq, (blasint)d, 0, a, (blasint)d);
    const double norm = est_norm(a, d, d);
    free(a);
    return norm;
}

static void read_numbers(numbers *s)
{
    const taut_published_at *at = s->at;
    const int64_t n = at->n, d = at->width, dh = at->dh;
    multiply(s->q, at->x, at->wq, n, dh, d, true, 1);
    multiply(s->k, at->x, at->wk, n, dh, d, true, 1);
    multiply(s->t, s->k, at->wq, n, d, dh, false, at->scale); /* rows A^T x_j */
    multiply(s->u, s->q, at->wk, n, d, dh, false, at->scale); /* rows A x_i */
    s->rho = longest(s->u, n, d);
    s->xat = est_norm(s->u, n, d);
    for (int64_t i = 0; at->bq && i < n * dh; i++) s->q[i] += at->bq[i % dh];
    s->bq = at->bq ? cblas_dnrm2((blasint)dh, at->bq, 1) : 0;
    s->r = longest(at->x, n, d), s->frobenius = cblas_dnrm2((blasint)(n * d), at->x, 1), s->nx = est_norm(at->x, n, d);
    s->nv = est_norm(at->wv, dh, d), s->nq = est_norm(at->wq, dh, d), s->nk = est_norm(at->wk, dh, d);
    s->a = logit_norm(at);
    s->diameter = diameter(at->x, n, d), s->diameter_t = diameter(s->t, n, d);
    probabilities(s);
    s->np = est_norm(s->p, n, n);
    s->xm = weighted_spread(s);
}

/* Ours for every input of this size: W_O = I on the head's coordinates. */
static taut_attention_bound up_global(const numbers *s)
{
    const taut_published_at *at = s->at;
    const taut_attention_bound none = { UP_NONE, UP_NONE, UP_NONE };
    double *wo = taut_calloc((size_t)(at->width * at->dh), sizeof *wo);
    if (!wo || at->dh > at->width) {
        free(wo);
        return none;
    }
    for (int64_t i = 0; i < at->dh; i++) wo[i * at->dh + i] = 1;
    const taut_attention_weights w = { .width = at->width,
                                       .heads = 1,
                                       .dh = at->dh,
                                       .wq = at->wq,
                                       .wk = at->wk,
                                       .wv = at->wv,
                                       .wo = wo,
                                       .bq = at->bq,
                                       .scale = at->scale,
                                       .out = 1,
                                       .causal = at->causal,
                                       .tq = at->n,
                                       .tk = at->n,
                                       .keys_min = at->n };
    const taut_attention_bound b = up_attention(&w, up_wrap(s->r * (1 + 1e-12)), up_wrap(s->r * (1 + 1e-12)), NULL);
    free(wo);
    return b;
}

/* ||W_V (I + rest (x_1 - x_2) (A x_2)^T)|| at the clusters of radius r; rest = 1 - P_21. */
static double cluster_factor(const numbers *s, const taut_clusters *c, double rest)
{
    const taut_published_at *at = s->at;
    const int64_t d = at->width, dh = at->dh;
    double *m = taut_malloc((size_t)(dh * d + 2 * d + 2 * dh) * sizeof *m);
    if (!m) return NAN;
    double *apart = m + dh * d, *ax = apart + d, *q = ax + d, *v = q + dh;
    for (int64_t i = 0; i < d; i++) apart[i] = s->r * (c->alone[i] - c->rest[i]);
    multiply(q, at->wq, c->rest, dh, 1, d, false, s->r);
    multiply(ax, q, at->wk, 1, d, dh, false, at->scale);
    multiply(v, at->wv, apart, dh, 1, d, false, rest);
    for (int64_t i = 0; i < dh * d; i++) m[i] = at->wv[i] + v[i / d] * ax[i % d];
    const double norm = est_norm(m, dh, d);
    free(m);
    return norm;
}

/* Proposition 3.4 at this radius, for the published construction, with the W_V that it leaves out; NaN where it has none,
 * with a mask (query k sees k keys) and with a bias. */
static double lower_3_4(const numbers *s)
{
    taut_clusters c;
    const taut_published_at *at = s->at;
    if (at->causal || at->lifted || at->bq) return NAN;
    if (taut_clusters_castin(&c, &(taut_logits){ at->wq, at->wk, at->dh, at->width, at->scale })) return NAN;
    const double gap = c.gap * s->r * s->r, others = (double)(at->n - 1) * exp(-gap);
    const double nm = gap > 0 ? cluster_factor(s, &c, others / (1 + others)) : NAN;
    taut_clusters_free(&c);
    return castin_3_4_lower((double)at->n, gap, nm);
}

taut_status taut_published_list(taut_published out[TAUT_PUBLISHED], const taut_published_at *at)
{
    numbers s = { .at = at };
    const long failures = taut_alloc_failures();
    if (!allocate(&s)) return taut_no_memory("published bounds");
    read_numbers(&s);
    const taut_attention_bound ours = up_global(&s);
    const double n = (double)at->n, a = s.a * s.r * s.r, root = sqrt(fabs(at->scale));
    const bool m = at->causal, b = at->bq != NULL;
    const taut_published list[TAUT_PUBLISHED] = {
        { "kim_dot_product", TAUT_ABOVE, false,
          INFINITY }, /* not Lipschitz on the whole space: that is their theorem */
        { "kim_l2", TAUT_OTHER_LAYER, false, kim_l2(n, (double)at->dh, s.nq, s.nv) },
        { "printed_specformer_1", TAUT_ABOVE, true,
          printed_specformer_1(n, s.frobenius, s.nv, fabs(at->scale) * s.nq * s.nk) },
        { "printed_castin_3_3", TAUT_ABOVE, false, b ? NAN : printed_castin_3_3(n, a, s.nv) },
        { "castin_3_3", TAUT_ABOVE, false, m || b ? NAN : castin_3_3(n, a, s.nv) },
        { "castin_4_3", TAUT_ABOVE, false, m && !b ? castin_3_3(n, a, s.nv) : NAN },
        { "castin_3_5", TAUT_ABOVE, false, m || b ? NAN : castin_3_5(a, s.nv) },
        { "castin_3_4_lower", TAUT_BELOW, false, lower_3_4(&s) },
        { "printed_castin_4_4", TAUT_ABOVE, false, m && !b ? printed_castin_4_4(a, s.nv) : NAN },
        { "castin_4_4", TAUT_ABOVE, false, m && !b ? castin_4_4(n, a, s.nv) : NAN },
        { "printed_castin_c_3", TAUT_ABOVE, true, b ? NAN : printed_castin_c_3(n, s.rho, s.diameter, s.nv) },
        { "castin_c_3", TAUT_ABOVE, true, b ? NAN : castin_c_3(n, s.rho, s.diameter, s.diameter_t, s.nv) },
        { "printed_castin_e_3", TAUT_ABOVE, false,
          b && !m ? printed_castin_e_3(n, s.r, s.a, root * s.nk, root * s.nq, root * s.bq, s.nv) : NAN },
        { "castin_e_3", TAUT_ABOVE, false,
          b && !m ? castin_e_3(n, s.r, s.a, root * s.nk, root * s.nq, root * s.bq, s.nv) : NAN },
        { "jasmin_3", TAUT_ABOVE, true, b ? NAN : jasmin_3(s.nv, s.np, s.nx, s.a, s.nm) },
        { "jasmin_c", TAUT_ABOVE, true, b ? NAN : jasmin_c(s.nv, s.np, s.xm, s.xat, s.nx, s.a) },
        { "taut_global_flat", TAUT_ABOVE, false, ours.flat.v },
        { "taut_global_tokens", TAUT_ABOVE, false, ours.tokens.v },
    };
    memcpy(out, list, sizeof list);
    free(s.q);
    return taut_alloc_lasted(failures, "published bounds");
}
