/* One head at the given tokens: q, k, v with what rounding may have done to them, and the norms its rows need.
 *
 * W x + b is wrong by at most g_{width+2} (||W||_F |x| + |b|) (an inner product of length width, one addition).  Turning
 * by a position's angle adds 2^-48 (tokens + 1) of the size, as in rounding.c. */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "bound/blas.h"
#include "bound/joint.h"
#include "bound/local_impl.h"
#include "bound/norm.h"
#include "bound/range.h"

/* y (t, dh) = x W^T + b and its errors. */
static void project(const local_head *f, double *y, double *e, const double *x, int64_t t, const double *weight,
                    const double *bias)
{
    const int64_t d = f->w->width, dh = f->dh;
    const double *w = weight + f->index * dh * d, *b = bias ? bias + f->index * dh : NULL;
    const taut_up fw = up_norm_frobenius(w, dh * d), fb = b ? up_norm_frobenius(b, dh) : UP_ZERO;
    blas_gemm(y, x, false, w, true, t, dh, d);
    for (int64_t i = 0; i < t; i++) {
        for (int64_t c = 0; b && c < dh; c++) y[i * dh + c] += b[c];
        e[i] = up_rounded(d + 2, up_add(up_mul(fw, up_norm_frobenius(x + i * d, d)), fb)).v;
    }
}

/* RoPE.  A base of at least 1 gives angles of at most i, each within i 2^-50 of the true one whatever the base: what rounding
 * the exponent changes is at most 2^-53 x exp(-x) of i with x = -log(base^exponent).  No other base is answered. */
static void turn(const local_head *f, double *y, double *e, int64_t t)
{
    const int64_t half = f->dh / 2;
    const taut_up away = f->w->rope_base >= 1 ? up_mul((taut_up){ 0x1p-48 }, up_int(t + 1)) : UP_NONE;
    for (int64_t i = 0; i < t; i++) {
        double *x = y + i * f->dh;
        e[i] = up_add((taut_up){ e[i] }, up_mul(away, up_norm_frobenius(x, f->dh))).v;
        for (int64_t c = 0; c < half; c++) {
            const double angle = (double)i * pow(f->w->rope_base, -2.0 * (double)c / (double)f->dh);
            const double a = x[c], b = x[c + half];
            x[c] = cos(angle) * a - sin(angle) * b;
            x[c + half] = sin(angle) * a + cos(angle) * b;
        }
    }
}

static double root_norm(const taut_ball *r) { return r->v ? up_norm_frobenius(r->v, r->rows * r->cols).v : INFINITY; }

static bool read_norms(local_head *f)
{
    const taut_attention_weights *w = f->w;
    const int64_t d = w->width, dh = f->dh, from = f->index * dh * d;
    const taut_up nq = up_norm(w->wq + from, dh, d), nk = up_norm(w->wk + from, dh, d);
    f->nq = nq.v, f->nk = nk.v, f->nv = up_norm(w->wv + from, dh, d).v;
    f->na = up_mul(nk, nq).v;
    if (!w->rope) {
        taut_ball q = ball_of(w->wq + from, dh, d), k = ball_of(w->wk + from, dh, d), v = ball_of(w->wv + from, dh, d);
        taut_ball qq = ball_mul(&q, false, &q, true), kk = ball_mul(&k, false, &k, true);
        taut_up lost_q, lost_k;
        f->rq = ball_root(&qq, &lost_q), f->rk = ball_root(&kk, &lost_k);
        f->lost_q = lost_q.v, f->lost_k = lost_k.v;
        f->frob_q = root_norm(&f->rq), f->frob_k = root_norm(&f->rk);
        f->vv = ball_mul(&v, false, &v, true), f->vk = ball_mul(&v, false, &k, true);
        /* ||W_K^T W_Q|| = ||rk' W_Q|| up to what the root lost */
        taut_ball thin = ball_mul(&f->rk, false, &q, false);
        const taut_up a = up_ball_norm(&thin), rest = up_mul(lost_k, up_mul(nq, nq));
        f->na = fmin(f->na, up_sqrt(up_add(up_mul(a, a), rest)).v);
        ball_free(&q), ball_free(&k), ball_free(&v), ball_free(&qq), ball_free(&kk), ball_free(&thin);
        if (!f->rq.v || !f->rk.v || !f->vv.v || !f->vk.v) return false;
    }
    return f->nq < LOCAL_MOST && f->nk < LOCAL_MOST && f->nv < LOCAL_MOST;
}

static bool any_radius(const double *d, int64_t n, bool *bad)
{
    bool any = false;
    for (int64_t i = 0; d && i < n; i++) {
        *bad |= !(d[i] >= 0 && d[i] < LOCAL_MOST);
        any |= d[i] != 0;
    }
    return any;
}

static bool allocate(local_head *f)
{
    const size_t tq = (size_t)f->tq, tk = (size_t)f->tk, dh = (size_t)f->dh;
    f->q = taut_calloc((tq + 2 * tk) * dh + 6 * tq + 2 * tk + 3 * tq * tk + 1, sizeof *f->q);
    if (!f->q) return false;
    f->k = f->q + tq * dh, f->v = f->k + tk * dh;
    f->eq = f->v + tk * dh, f->ek = f->eq + tq, f->ev = f->ek + tk;
    f->beta = f->ev + tk, f->tau = f->beta + tq, f->u = f->tau + tq, f->vm = f->u + tq;
    f->p = f->vm + tq, f->dev = f->p + tq * tk, f->block = f->dev + tq * tk;
    return true;
}

bool local_head_begin(local_head *f, const taut_attention_weights *w, const taut_local_at *at, int64_t index)
{
    *f = (local_head){ .w = w, .at = at, .tq = w->tq, .tk = w->tk, .dh = w->dh, .index = index, .s = fabs(w->scale) };
    bool bad = false;
    const double *xq = w->cross ? at->xq : at->xk;
    f->moved = any_radius(at->dk, f->tk, &bad);
    if (w->cross) f->moved |= any_radius(at->dq, f->tq, &bad);
    if (bad || !(f->s < LOCAL_MOST) || !(range_max(at->xk, f->tk * w->width) < LOCAL_MOST) ||
        !(range_max(xq, f->tq * w->width) < LOCAL_MOST))
        return false;
    f->slope = w->alibi ? exp2(-8.0 * (double)(index + 1) / (double)w->heads) : 0;
    if (!read_norms(f) || !allocate(f)) return false;
    project(f, f->q, f->eq, xq, f->tq, w->wq, w->bq);
    project(f, f->k, f->ek, at->xk, f->tk, w->wk, w->bk);
    project(f, f->v, f->ev, at->xk, f->tk, w->wv, w->bv);
    if (w->rope) turn(f, f->q, f->eq, f->tq), turn(f, f->k, f->ek, f->tk);
    return range_max(f->q, (f->tq + 2 * f->tk) * f->dh) < LOCAL_MOST; /* q, k and v lie one behind the other */
}

void local_head_end(local_head *f)
{
    free(f->q), free(f->own);
    ball_free(&f->rq), ball_free(&f->rk), ball_free(&f->vv), ball_free(&f->vk);
}
