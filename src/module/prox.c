/* The problem itself: coordinates, evaluation, second derivative, conjugate gradients (module/prox.h). */
#include "module/prox.h"

#include <math.h>
#include <stdlib.h>

#include "base/alloc.h"

int64_t prox_kept(taut_shape x, int64_t heads, int64_t dh)
{
    return x.d * x.d + heads * dh * x.d + x.n * x.t * heads * (dh + 3);
}

int64_t prox_used(taut_shape x, int64_t heads, int64_t dh) { return taut_len(x) + x.n * x.t * heads * (dh + 1); }

void prox_lay_out(prox *p, taut_span *kept, taut_span *scratch)
{
    const int64_t d = p->shape.d, inner = p->heads * p->dh, rows = taut_rows(p->shape);
    p->inverse = taut_take(kept, d * d);
    p->map = taut_take(kept, inner * d);
    p->v = taut_take(kept, rows * inner);
    p->max = taut_take(kept, rows * p->heads);
    p->sum = taut_take(kept, rows * p->heads);
    p->col = taut_take(kept, rows * p->heads);
    p->centre = taut_take(scratch, rows * d);
    p->g = taut_take(scratch, rows * inner);
    p->mean = taut_take(scratch, rows * p->heads);
}

void prox_precondition(prox *p, taut_span scratch)
{
    const int64_t d = p->shape.d, inner = p->heads * p->dh;
    taut_real *gram = taut_take(&scratch, d * d);
    p->shift = 3 * p->scale;
    p->own = 1;
    p->k->gemm(gram, p->weight, p->weight, d, d, inner, true, false, p->shift, 0);
    p->k->cholesky_inverse(p->inverse, gram, 1 / p->eta, d);
    p->k->gemm(p->map, p->weight, p->inverse, inner, d, d, false, true, 1, 0);
}

void prox_plain(prox *p)
{
    p->shift = 0;
    p->own = 1 / p->eta;
    p->k->axpby(p->map, 1, p->weight, 0, p->heads * p->dh * p->shape.d);
}

double prox_dot(const prox *p, const taut_real *x, const taut_real *y, int64_t lane)
{
    return p->k->dot(prox_at(p, x, lane), prox_at(p, y, lane), prox_lane(p));
}

void prox_add(const prox *p, taut_real *y, double a, const taut_real *x, double b, int64_t lane)
{
    p->k->axpby(prox_at(p, y, lane), a, prox_at(p, x, lane), b, prox_lane(p));
}

taut_attn prox_attn(const prox *p, int64_t first, int64_t count)
{
    return (taut_attn){ .n = count,
                        .heads = p->heads,
                        .tq = p->shape.t,
                        .tk = p->shape.t,
                        .dh = p->dh,
                        .scale = p->scale,
                        .near = p->near,
                        .lengths = p->lengths ? p->lengths + first : NULL };
}

void prox_turn(const prox *p, taut_real *v, int64_t count, double sign)
{
    const int64_t t = p->shape.t;
    if (p->rope_base > 0) p->k->rope(v, v, count * t, t, p->heads, p->dh, p->rope_base, sign);
}

static taut_real *inner_at(const prox *p, const taut_real *v, int64_t lane)
{
    return taut_at(p->k, v, lane * p->shape.t * p->heads * p->dh);
}

static taut_real *row_at(const prox *p, const taut_real *row, int64_t lane)
{
    return taut_at(p->k, row, lane * p->shape.t * p->heads);
}

/* Tokens past a lane's length: their part of y becomes that of x, or 0 without x. */
static void padding(const prox *p, taut_real *y, const taut_real *x, int64_t first, int64_t count)
{
    for (int64_t e = first; p->lengths && e < first + count; e++) {
        const int64_t from = p->lengths[e] > 0 ? p->lengths[e] : 0, d = p->shape.d;
        if (from >= p->shape.t) continue;
        const int64_t at = (e * p->shape.t + from) * d;
        p->k->axpby(taut_at(p->k, y, at), x ? 1 : 0, x ? taut_at(p->k, x, at) : NULL, 0, (p->shape.t - from) * d);
    }
}

void prox_padding(const prox *p, taut_real *y, const taut_real *x) { padding(p, y, x, 0, p->shape.n); }

/* |V|^2 over real tokens: what padded tokens hold is no part of the problem. */
static double inner_square(const prox *p, int64_t lane)
{
    const int64_t length = p->lengths && p->lengths[lane] < p->shape.t ? p->lengths[lane] : p->shape.t;
    const taut_real *v = inner_at(p, p->v, lane);
    return length > 0 ? p->k->dot(v, v, length * p->heads * p->dh) : 0;
}

void prox_value(prox *p, double *phi, const taut_real *point, int64_t first, int64_t count)
{
    const taut_kernels *k = p->k;
    const int64_t inner = p->heads * p->dh, d = p->shape.d, rows = count * p->shape.t;
    const taut_attn a = prox_attn(p, first, count);
    taut_real *v = inner_at(p, p->v, first);
    k->gemm(v, prox_at(p, point, first), p->map, rows, inner, d, false, true, 1, 0);
    prox_turn(p, v, count, 1);
    k->attlip(phi, row_at(p, p->max, first), row_at(p, p->sum, first), v, &a);
    for (int64_t e = 0; e < count; e++) {
        const double own = prox_dot(p, point, point, first + e), pull = prox_dot(p, point, p->centre, first + e);
        phi[e] += 0.5 * p->own * own - pull - (p->shift > 0 ? 0.5 * p->shift * inner_square(p, first + e) : 0);
    }
    if (p->log) p->log->values += count;
}

void prox_gradient(prox *p, taut_real *grad, double *phi, const taut_real *point, int64_t first, int64_t count)
{
    const taut_kernels *k = p->k;
    const int64_t inner = p->heads * p->dh, d = p->shape.d, rows = count * p->shape.t;
    const taut_attn a = prox_attn(p, first, count);
    taut_real *v = inner_at(p, p->v, first), *g = inner_at(p, p->g, first), *out = prox_at(p, grad, first);
    prox_value(p, phi, point, first, count);
    k->attlip_grad(g, row_at(p, p->col, first), v, row_at(p, p->max, first), row_at(p, p->sum, first), &a);
    if (p->shift > 0) k->axpby(g, -p->shift, v, 1, rows * inner);
    prox_turn(p, g, count, -1);
    k->axpby(out, p->own, prox_at(p, point, first), 0, rows * d);
    k->axpby(out, -1, prox_at(p, p->centre, first), 1, rows * d);
    k->gemm(out, g, p->map, rows, d, inner, false, false, 1, 1);
    padding(p, grad, NULL, first, count);
    if (p->log) {
        p->log->values -= count;
        p->log->gradients += count;
    }
}

void prox_hessian(prox *p, taut_real *out, const taut_real *dir, taut_real *e, taut_real *h, int64_t first,
                  int64_t count)
{
    const taut_kernels *k = p->k;
    const int64_t inner = p->heads * p->dh, d = p->shape.d, rows = count * p->shape.t;
    const taut_attn a = prox_attn(p, first, count);
    taut_real *to = prox_at(p, out, first);
    const taut_real *from = prox_at(p, dir, first);
    k->gemm(e, from, p->map, rows, inner, d, false, true, 1, 0);
    prox_turn(p, e, count, 1);
    k->attlip_hvp(h, row_at(p, p->mean, first), e, inner_at(p, p->v, first), row_at(p, p->max, first),
                  row_at(p, p->sum, first), row_at(p, p->col, first), &a);
    if (p->shift > 0) k->axpby(h, -p->shift, e, 1, rows * inner);
    prox_turn(p, h, count, -1);
    k->axpby(to, p->own, from, 0, rows * d);
    k->gemm(to, h, p->map, rows, d, inner, false, false, 1, 1);
    padding(p, out, NULL, first, count);
    if (p->log) p->log->products += count;
}

int64_t prox_cg_used(const prox *p, int64_t count)
{
    return count * p->shape.t * (3 * p->shape.d + 2 * p->heads * p->dh);
}

typedef struct {
    double size, start; /* |r|^2 now and at the start */
    bool open;
} cg_lane;

static bool cg_step(prox *p, cg_lane *c, taut_real *out, taut_real *r, taut_real *dir, const taut_real *moved,
                    int64_t lane, int64_t first)
{
    const taut_kernels *k = p->k;
    const int64_t len = prox_lane(p), at = (lane - first) * len;
    taut_real *x = prox_at(p, out, lane);
    r = taut_at(k, r, at), dir = taut_at(k, dir, at);
    const double bend = k->dot(dir, taut_at(k, moved, at), len), step = c->size / bend;
    if (!(bend > 0) || !isfinite(step)) return false;
    k->axpby(x, step, dir, 1, len);
    k->axpby(r, -step, taut_at(k, moved, at), 1, len);
    const double size = k->dot(r, r, len);
    k->axpby(dir, 1, r, size / c->size, len);
    c->size = size;
    return true;
}

int64_t prox_cg(prox *p, taut_real *out, const taut_real *rhs, const double *tol, int most, int64_t first,
                int64_t count, taut_span scratch)
{
    const taut_kernels *k = p->k;
    const int64_t len = prox_lane(p), inner = p->shape.t * p->heads * p->dh;
    taut_real *r = taut_take(&scratch, count * len), *dir = taut_take(&scratch, count * len);
    taut_real *moved = taut_take(&scratch, count * len);
    taut_real *e = taut_take(&scratch, count * inner), *h = taut_take(&scratch, count * inner);
    cg_lane *c = taut_calloc((size_t)count, sizeof *c);
    TAUT_CHECK(c, "prox: no memory for a few numbers a lane");
    int64_t open = 0, good = 0;
    k->axpby(r, 1, prox_at(p, rhs, first), 0, count * len);
    padding(p, taut_at(k, r, -first * len), NULL, first, count);
    k->axpby(dir, 1, r, 0, count * len);
    k->axpby(prox_at(p, out, first), 0, NULL, 0, count * len);
    for (int64_t i = 0; i < count; i++) {
        c[i].size = c[i].start = k->dot(taut_at(k, r, i * len), taut_at(k, r, i * len), len);
        c[i].open = c[i].start > 0;
        open += c[i].open;
        good += c[i].start == 0;
    }
    for (int step = 0; open > 0 && step < most; step++) {
        prox_hessian(p, taut_at(k, moved, -first * len), taut_at(k, dir, -first * len), e, h, first, count);
        for (int64_t i = 0; i < count; i++) {
            if (!c[i].open) continue;
            c[i].open = cg_step(p, &c[i], out, r, dir, moved, first + i, first);
            const bool there = c[i].size <= tol[i] * tol[i] * c[i].start;
            good += there;
            if (there) c[i].open = false;
            open -= !c[i].open;
        }
    }
    free(c);
    return good;
}

void prox_return(const prox *p, taut_real *y, const taut_real *z)
{
    const int64_t d = p->shape.d;
    p->k->gemm(y, z, p->inverse, taut_rows(p->shape), d, d, false, false, 1, 0);
    padding(p, y, p->x, 0, p->shape.n);
}

double prox_norm(const prox *p, const taut_real *z, int64_t lane, taut_span scratch)
{
    const taut_kernels *k = p->k;
    const int64_t t = p->shape.t, d = p->shape.d, inner = p->heads * p->dh;
    taut_real *g = taut_take(&scratch, t * d), *full = taut_take(&scratch, t * inner);
    k->gemm(g, prox_at(p, z, lane), p->inverse, t, d, d, false, false, 1 / p->eta, 0);
    k->axpby(g, -1 / p->eta, prox_at(p, p->x, lane), 1, t * d);
    k->axpby(full, p->shift, inner_at(p, p->v, lane), 0, t * inner);
    prox_turn(p, full, 1, -1);
    k->axpby(full, 1, inner_at(p, p->g, lane), 1, t * inner);
    k->gemm(g, full, p->weight, t, d, inner, false, false, 1, 1);
    padding(p, taut_at(k, g, -lane * t * d), NULL, lane, 1);
    return sqrt(k->dot(g, g, t * d));
}
