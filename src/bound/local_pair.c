/* The pair bound of one head at an input: what moves the logits, from both sides at once.
 *
 * Row i of the Jacobian moves by  W_V ebar_i + S_i + C_i e_i,  ebar_i = sum_j P_ij e_j,  S_i = sum_j P_ij (v_j - o_i) (u_i.e_j)
 * and C_i = s Cov_i(v, k) W_Q.  By Cauchy-Schwarz with weights P_ij, lam_i the largest eigenvalue of Cov_i(v),
 *     |S_i|^2 <= lam_i sum_j P_ij (u_i.e_j)^2,
 * and |S_i + C_i e_i|^2 <= (1 + t) |S_i|^2 + (1 + 1/t) |C_i e_i|^2 for ANY t > 0, so that the squares of all rows sum up to
 *     sum_j e_j^T G_j e_j,    G_j = (1 + t) sum_i lam_i P_ij u_i u_i^T + (1 + 1/t) C_j^T C_j:
 *     ||S + C||^2 <= max_j ||G_j||,    which knows in which directions the two are steep.     The values add ||W_V|| ||P||.
 * Where rows of P sum to 1, all e_j = ebar/sqrt(n) move row i by (W_V + C_i) ebar/sqrt(n) alone, and changes that sum to 0 are
 * changed by P no more than by P - 1/n.  A change is the sum of two such, at right angles; so
 *     ||J||^2 <= ||[W_V + C_i]||^2 / n + ( ||W_V|| ||P - 1/n|| + ||S + C|| )^2.
 * Errors.  u_i and C_i are computed, the real ones within du_i and off_i: by the triangle inequality over all rows they add
 * sqrt(max_j sum_i lam_i P_ij du_i^2) and max_j off_j.  An entry of G_j is a sum of tq + dh products, each rounded a few times.
 * Where token j comes out of a map of constant l_j, G_j becomes l_j^2 G_j, and of the rest the largest l_j counts. */
#include <stdlib.h>

#include "base/alloc.h"
#include "bound/blas.h"
#include "bound/local_impl.h"
#include "bound/norm.h"
#include "bound/positive.h"

enum { MOST_TERMS = 1 << 11, MOST_ENTRIES = 1 << 22, CHOICES = 9, STEPS = 12 };

void local_pair_begin(local_head *f)
{
    const int64_t d = f->w->width, each = d * (f->dh + 2 * d + 1);
    if (f->w->rope || f->w->cross || f->moved || f->tk + f->dh >= MOST_TERMS || each > MOST_ENTRIES / f->tq) return;
    f->own = taut_calloc((size_t)(f->tq * (each + 2)), sizeof *f->own);
    if (!f->own) return;
    f->lam = f->own + f->tq * f->dh * d, f->off = f->lam + f->tq;
}

/* C_i, computed. */
LOCAL_NEAR static void form_own(const local_head *f, local_row *r)
{
    const int64_t dh = f->dh, d = f->w->width;
    local_rounds_near();
    for (int64_t j = 0; j < r->m; j++)
        for (int64_t c = 0; c < dh; c++) r->tmp[j * dh + c] = r->hat[j] * r->zv[j * dh + c];
    cblas_dgemm(CblasRowMajor, CblasTrans, CblasNoTrans, (blasint)dh, (blasint)dh, (blasint)r->m, f->w->scale, r->tmp,
                (blasint)dh, r->zk, (blasint)dh, 0, r->h, (blasint)dh);
    blas_gemm(f->own + r->i * dh * d, r->h, false, f->w->wq + f->index * dh * d, false, dh, d, dh);
    local_rounds_up();
}

/* Forming an entry of C_i takes m + dh + 4 roundings: 2^-39 of its terms' sizes covers them. */
void local_pair_row(const local_head *f, local_row *r, double lam)
{
    const int64_t len = f->dh * f->w->width;
    double size = 0;
    form_own(f, r);
    for (int64_t j = 0; j < r->m; j++) size += r->hat[j] * r->a[j] * r->z[j];
    f->lam[r->i] = lam;
    f->off[r->i] = f->s * (local_moved(f, r) + 0x1p-39 * size * local_size(f->w->wq + f->index * len, len)) +
                   LOCAL_LOST;
}

typedef struct {
    const local_head *f;
    const taut_up *slope;
    int64_t d;
    double *u, *keys,
        *own; /* u_i (tq, d); sum_i lam_i P_ij u_i u_i^T and C_j^T C_j (tk, d, d), upper triangles: computed */
} pair;

/* The largest eigenvalue of (1 + t) A + (1 + 1/t) B, nearly: x and y are room for vectors. */
static double near_top(const double *a, const double *b, int64_t d, double t, double *x, double *y)
{
    double size = 0;
    for (int64_t c = 0; c < d; c++) x[c] = 1 + (double)(c % 3);
    for (int step = 0; step < STEPS; step++) {
        const double length = cblas_dnrm2((blasint)d, x, 1);
        if (!(length > 0)) return 0;
        cblas_dsymv(CblasRowMajor, CblasUpper, (blasint)d, (1 + t) / length, a, (blasint)d, x, 1, 0, y, 1);
        cblas_dsymv(CblasRowMajor, CblasUpper, (blasint)d, (1 + 1 / t) / length, b, (blasint)d, x, 1, 1, y, 1);
        size = cblas_dnrm2((blasint)d, y, 1);
        for (int64_t c = 0; c < d; c++) x[c] = y[c];
    }
    return size;
}

/* Both matrices of every column, and for each choice of t what is nearly the largest norm of all G_j. */
static bool form_columns(const pair *p, const double *choice, double *most)
{
    const local_head *f = p->f;
    const int64_t d = p->d, dh = f->dh;
    bool good = true;
#pragma omp parallel reduction(&& : good)
    {
        double *x = taut_malloc((size_t)((f->tq + 2) * d) * sizeof *x);
        good = x != NULL;
#pragma omp for schedule(dynamic)
        for (int64_t j = 0; j < f->tk; j++) {
            if (!x) continue;
            double *a = p->keys + j * d * d, *b = p->own + j * d * d, *room = x + f->tq * d;
            for (int64_t i = 0; i < f->tq; i++) {
                const double by = sqrt(f->lam[i] * f->p[i * f->tk + j]);
                for (int64_t c = 0; c < d; c++) x[i * d + c] = by * p->u[i * d + c];
            }
            cblas_dsyrk(CblasRowMajor, CblasUpper, CblasTrans, (blasint)d, (blasint)f->tq, 1, x, (blasint)d, 0, a,
                        (blasint)d);
            cblas_dsyrk(CblasRowMajor, CblasUpper, CblasTrans, (blasint)d, (blasint)dh, 1, f->own + j * dh * d,
                        (blasint)d, 0, b, (blasint)d);
            for (int k = 0; k < CHOICES; k++) {
                const double top = near_top(a, b, d, choice[k], room, room + d) * p->slope[j].v * p->slope[j].v;
#pragma omp critical(local_pair)
                most[k] = fmax(most[k], top);
            }
        }
        free(x);
    }
    return good;
}

/* l_j^2 ||G_j||; g is room for a matrix. */
static taut_up up_column(const pair *p, int64_t j, double t, double *g)
{
    const local_head *f = p->f;
    const int64_t d = p->d;
    const taut_up one = { 1 }, first = up_add(one, up_exact(t)), second = up_add(one, up_div(one, lo_exact(t)));
    const taut_up own = up_norm_frobenius(f->own + j * f->dh * d, f->dh * d);
    taut_up trace = UP_ZERO;
    for (int64_t i = 0; i < f->tq; i++) {
        const taut_up u = up_norm_frobenius(p->u + i * d, d);
        trace = up_add(trace, up_mul(up_mul(up_wrap(f->lam[i]), up_wrap(f->p[i * f->tk + j])), up_mul(u, u)));
    }
    trace = up_add(up_mul(first, trace), up_mul(second, up_mul(own, own)));
    for (int64_t c = 0; c < d * d; c++) g[c] = first.v * p->keys[j * d * d + c] + second.v * p->own[j * d * d + c];
    const bool moderate = trace.v > 0x1p-300 && trace.v < 0x1p300;
    const taut_up top = moderate ? up_min(trace, up_top_symmetric(g, d)) : trace;
    const taut_up whole = up_add(top, up_mul(up_gamma(f->tq + f->dh + 32), trace));
    return up_mul(up_mul(p->slope[j], p->slope[j]), whole);
}

/* What errors of u and of C add. */
static taut_up up_loose(const pair *p)
{
    const local_head *f = p->f;
    const int64_t len = f->dh * p->d;
    const taut_up s = { f->s }, wk = up_norm_frobenius(f->w->wk + f->index * len, len), g = up_gamma(f->dh + 4);
    taut_up keys = UP_ZERO, own = UP_ZERO;
    for (int64_t j = 0; j < f->tk; j++) {
        taut_up sum = UP_ZERO;
        for (int64_t i = 0; i < f->tq; i++) {
            const taut_up formed = up_mul(g, up_mul(wk, up_norm_frobenius(f->q + i * f->dh, f->dh)));
            const taut_up du = up_mul(s, up_add(formed, up_mul(up_wrap(f->nk), up_wrap(f->eq[i]))));
            const taut_up weight = up_mul(up_wrap(f->lam[i]), up_wrap(f->p[i * f->tk + j]));
            sum = up_add(sum, up_mul(weight, up_mul(du, du)));
        }
        keys = up_max(keys, up_mul(p->slope[j], up_sqrt(sum)));
        own = up_max(own, up_mul(p->slope[j], up_wrap(f->off[j])));
    }
    return up_add(keys, own);
}

/* ||S + C||. */
static taut_up up_logits(const pair *p)
{
    static const double choice[CHOICES] = { 0.125, 0.25, 0.375, 0.5, 0.75, 1, 1.5, 2.5, 5 };
    const local_head *f = p->f;
    double most[CHOICES] = { 0 }, all = 0;
    int best = 0;
    if (!form_columns(p, choice, most)) return UP_NONE;
    for (int k = 1; k < CHOICES; k++)
        if (most[k] < most[best]) best = k;
#pragma omp parallel reduction(max : all)
    {
        double *g = taut_malloc((size_t)(p->d * p->d) * sizeof *g);
#pragma omp for schedule(dynamic)
        for (int64_t j = 0; j < f->tk; j++) all = fmax(all, g ? up_column(p, j, choice[best], g).v : INFINITY);
        free(g);
    }
    return up_add(up_sqrt(up_wrap(all)), up_loose(p));
}

/* ||P - 1/n||, P within 2 dev of p. */
static taut_up up_away(const local_head *f)
{
    const int64_t n = f->tk, len = f->tq * n;
    double *diff = taut_malloc((size_t)len * sizeof *diff);
    taut_up sum = UP_ZERO;
    if (!diff) return UP_NONE;
    for (int64_t i = 0; i < len; i++) {
        const taut_up both = up_add(up_wrap(f->p[i]), (taut_up){ 1 }), e = up_ldexp(up_wrap(f->dev[i]), 1);
        const taut_up off = up_add(e, up_mul(up_gamma(4), both));
        diff[i] = f->p[i] - 1 / (double)n;
        sum = up_add(sum, up_mul(off, off));
    }
    const taut_up norm = up_add(up_norm(diff, f->tq, n), up_sqrt(sum));
    free(diff);
    return norm;
}

/* ||[W_V + C_i]|| / sqrt(n); C_i is gone after this. */
static taut_up up_together(const pair *p)
{
    const local_head *f = p->f;
    const int64_t len = f->dh * p->d, all = f->tq * len;
    const double *wv = f->w->wv + f->index * len;
    taut_up off = UP_ZERO;
    for (int64_t i = 0; i < all; i++) f->own[i] += wv[i % len];
    for (int64_t i = 0; i < f->tq; i++) off = up_hypot(off, up_wrap(f->off[i]));
    const taut_up rounding = up_mul(up_gamma(2), up_norm_frobenius(f->own, all));
    const taut_up norm = up_add(up_norm(f->own, f->tq * f->dh, p->d), up_add(rounding, off));
    return up_div(norm, lo_sqrt(lo_exact((double)f->tk)));
}

taut_up up_pair(const local_head *f, const taut_up *slope)
{
    const int64_t d = f->w->width, len = f->dh * d;
    if (!f->own) return UP_NONE;
    pair p = { .f = f, .slope = slope, .d = d, .u = f->off + f->tq };
    p.keys = p.u + f->tq * d, p.own = p.keys + f->tk * d * d;
    blas_gemm(p.u, f->q, false, f->w->wk + f->index * len, false, f->tq, d, f->dh);
    for (int64_t i = 0; i < f->tq * d; i++) p.u[i] *= f->w->scale;
    taut_up most = UP_ZERO;
    bool plain = f->at->keys >= f->tk; /* every row of P sums to 1, and tokens are inputs */
    for (int64_t j = 0; j < f->tk; j++) most = up_max(most, slope[j]), plain = plain && slope[j].v == 1;
    const taut_up logits = up_add(up_logits(&p), up_mul(most, (taut_up){ LOCAL_LOST })), nv = up_wrap(f->nv);
    const taut_up whole = up_add(up_mul(up_mul(most, nv), up_norm_positive(f->p, f->tq, f->tk)), logits);
    if (!plain) return whole;
    return up_min(whole, up_hypot(up_together(&p), up_add(up_mul(nv, up_away(f)), logits)));
}
