/* The linear system behind AttLip's derivatives, (I + eta H) u = g, by conjugate gradients. */
#include <math.h>

#include "module/attlip.h"

enum { ROUNDINGS = 64 }; /* of r0, relative to it: what its sums may lose */

int64_t attlip_respond_used(const prox *p)
{
    const int64_t n = p->shape.n;
    return 4 * taut_len(p->shape) + n * (5 * prox_inner(p) + 2 * prox_lane(p)) + prox_cg_used(p, n);
}

/* Inner coordinates: u = g + (A - c g W^T) B solves (I + eta H) u = g where A + (H_V - c)[E] = 0, E = u W^T = E0 + A K and
 * E0 = g W^T (I - c K).  |r| <= tol |rhs| is asked of that system where A = 0 leaves r0 = -(H_V - c)[E0]; rhs, in the same
 * product, is (|g|^2 - c eta <g W^T, E0>) / eta.  With what is left, r, h = H_V[E] is c E - A - r.  Where H is so steep that
 * rounding r0 alone exceeds the tolerance, the lane is marked stiff and left alone. */
static void respond_inner(const attlip *s, prox *p, taut_real *u, const taut_real *g, taut_real *h, bool *stiff,
                          taut_span scratch)
{
    const taut_kernels *k = p->k;
    const int64_t n = p->shape.n, rows = taut_rows(p->shape), d = p->shape.d, inner = p->heads * p->dh,
                  len = prox_inner(p), lane = p->shape.t * d;
    const taut_attn attn = prox_attn(p, n);
    taut_real *real = taut_take(&scratch, n * lane), *gw = taut_take(&scratch, n * len),
              *e0 = taut_take(&scratch, n * len), *r0 = taut_take(&scratch, n * prox_lane(p)),
              *a = taut_take(&scratch, n * prox_lane(p));
    taut_real *turned = taut_take(&scratch, n * len);
    const taut_span mark = p->host;
    double *tol = taut_take_host(&p->host, n, sizeof *tol), *sums = taut_take_host(&p->host, 3 * n, sizeof *sums);
    k->axpby(real, 1, g, 0, n * lane);
    k->gemm(gw, real, p->weight, rows, inner, d, false, true, 1, 0);
    prox_begin(p, e0, gw);
    k->axpby(turned, 1, e0, 0, n * len);
    prox_turn(p, turned, n, 1);
    k->attlip_hvp(h, p->mean, turned, p->v, p->max, p->sum, p->col, &attn);
    prox_turn(p, h, n, -1);
    p->log->products += n;
    const taut_factor shift = { p->shift, NULL }, minus = { -1, NULL };
    k->blend(r0, 2 * len, (taut_term[]){ { minus, h, len }, { shift, e0, len } }, 2, n, len);
    prox_image(p, r0, 0, n);
    k->dot(p->sums, gw, len, e0, len, n, len);
    k->dot(taut_sum_at(p->sums, n), real, lane, real, lane, n, lane);
    k->dot(taut_sum_at(p->sums, 2 * n), r0, 2 * len, taut_at(k, r0, len), 2 * len, n, len);
    (void)k->read(sums, p->sums, 3 * n);
    for (int64_t e = 0; e < n; e++) {
        const double rhs = sums[n + e] / p->eta - p->shift * sums[e], start = sums[2 * n + e];
        tol[e] = start > 0 ? s->spec.slope_tol * sqrt(rhs / start) : 0;
        stiff[e] = start > 0 && !(tol[e] > ROUNDINGS * (k->unit));
        if (stiff[e]) tol[e] = INFINITY;
    }
    prox_cg(p, a, r0, tol, ATTLIP_PRODUCTS, 0, n, scratch);
    const taut_term left[] = {
        { shift, e0, len }, { shift, taut_at(k, a, len), 2 * len }, { minus, a, 2 * len }, { minus, r0, 2 * len }
    };
    k->blend(h, len, left, 4, n, len);
    prox_return(p, u, a, real, scratch);
    p->host = mark;
}

/* Plain coordinates: the search starts at 0 and never overshoots, however steep H is. */
static void respond_plain(const attlip *s, const prox *p, taut_real *u, const taut_real *g, taut_real *h, int64_t first,
                          int64_t count, taut_span scratch)
{
    const taut_kernels *k = p->k;
    prox q = *p;
    q.plain = true;
    const int64_t inner = p->heads * p->dh, len = prox_inner(p), rows = count * p->shape.t;
    const taut_attn attn = prox_attn(p, count);
    taut_real *rhs = taut_take(&scratch, taut_len(p->shape)), *e = taut_take(&scratch, count * len);
    double *tol = taut_take_host(&q.host, count, sizeof *tol); /* of a copy: nothing to give back */
    for (int64_t i = 0; i < count; i++) tol[i] = s->spec.slope_tol;
    k->axpby(prox_at(&q, rhs, first), 1 / p->eta, prox_at(&q, g, first), 0, count * prox_lane(&q));
    prox_cg(&q, u, rhs, tol, ATTLIP_PRODUCTS, first, count, scratch);
    k->gemm(e, prox_at(&q, u, first), p->weight, rows, inner, p->shape.d, false, true, 1, 0);
    prox_turn(p, e, count, 1);
    const int64_t row = first * p->shape.t * p->heads;
    k->attlip_hvp(taut_at(k, h, first * len), taut_at(k, p->mean, row), e, taut_at(k, p->v, first * len),
                  taut_at(k, p->max, row), taut_at(k, p->sum, row), taut_at(k, p->col, row), &attn);
    prox_turn(p, taut_at(k, h, first * len), count, -1);
}

void attlip_respond(const attlip *s, prox *p, taut_real *u, const taut_real *g, taut_real *h, taut_span scratch)
{
    const int64_t n = p->shape.n;
    if (p->plain) {
        respond_plain(s, p, u, g, h, 0, n, scratch);
    } else {
        bool *stiff = taut_take_host(&p->host, n, sizeof *stiff);
        respond_inner(s, p, u, g, h, stiff, scratch);
        for (int64_t e = 0; e < n; e++)
            if (stiff[e]) respond_plain(s, p, u, g, h, e, 1, scratch);
    }
}
