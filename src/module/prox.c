/* The problem itself: coordinates, evaluation, second derivative, conjugate gradients (module/prox.h). */
#include "module/prox.h"

#include <math.h>
#include <stdlib.h>

#include "base/alloc.h"

int64_t prox_kept(taut_shape x, int64_t heads, int64_t dh)
{
    const int64_t inner = heads * dh;
    return inner * (x.d + inner) + x.n * x.t * heads * (2 * dh + 3);
}

int64_t prox_used(taut_shape x, int64_t heads, int64_t dh)
{
    const int64_t inner = heads * dh;
    return x.n * x.t * ((inner > x.d ? inner : x.d) + heads) + taut_sums_len(3 * x.n);
}

void prox_lay_out(prox *p, taut_span *kept, taut_span *scratch)
{
    const int64_t d = p->shape.d, inner = p->heads * p->dh, rows = taut_rows(p->shape);
    p->back = taut_take(kept, inner * d);
    p->gram = taut_take(kept, inner * inner);
    p->v = taut_take(kept, rows * inner);
    p->g = taut_take(kept, rows * inner);
    p->max = taut_take(kept, rows * p->heads);
    p->sum = taut_take(kept, rows * p->heads);
    p->col = taut_take(kept, rows * p->heads);
    p->centre = taut_take(scratch, rows * (inner > d ? inner : d));
    p->mean = taut_take(scratch, rows * p->heads);
    p->sums = taut_take_sums(scratch, 3 * p->shape.n);
}

int64_t prox_ready_used(const prox *p) { return p->shape.d * (2 * p->shape.d + p->heads * p->dh); }

void prox_precondition(prox *p, taut_span scratch)
{
    const int64_t d = p->shape.d, inner = p->heads * p->dh;
    taut_real *m = taut_take(&scratch, d * d), *inverse = taut_take(&scratch, d * d); /* M = L L^T; L^-1 */
    taut_real *half = taut_take(&scratch, inner * d);                                 /* W L^-T */
    p->k->gemm(m, p->weight, p->weight, d, d, inner, true, false, p->shift, 0);
    p->k->cholesky_inverse(inverse, m, 1 / p->eta, d);
    p->k->gemm(half, p->weight, inverse, inner, d, d, false, true, 1, 0);
    p->k->gemm(p->back, half, inverse, inner, d, d, false, false, 1, 0);
    p->k->gemm(p->gram, half, half, inner, inner, d, false, true, 1, 0);
}

/* The products of `count` lanes, where the kernels are. */
static void dots(const prox *p, taut_sum *out, const taut_real *x, const taut_real *y, int64_t first, int64_t count)
{
    const int64_t inner = prox_inner(p), lane = prox_lane(p);
    const taut_real *left = prox_at(p, x, first), *right = prox_at(p, y, first);
    p->k->dot(out, left, lane, p->plain ? right : taut_at(p->k, right, inner), lane, count, p->plain ? lane : inner);
}

double prox_dot(const prox *p, const taut_real *x, const taut_real *y, int64_t lane)
{
    double sum;
    dots(p, p->sums, x, y, lane, 1);
    return p->k->read(&sum, p->sums, 1) ? NAN : sum;
}

void prox_add(const prox *p, taut_real *y, double a, const taut_real *x, double b, int64_t lane)
{
    p->k->axpby(prox_at(p, y, lane), a, prox_at(p, x, lane), b, prox_lane(p));
}

taut_attn prox_attn(const prox *p, int64_t count)
{
    return (taut_attn){ .n = count,
                        .heads = p->heads,
                        .tq = p->shape.t,
                        .tk = p->shape.t,
                        .dh = p->dh,
                        .scale = p->scale,
                        .near = p->near };
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

void prox_image(const prox *p, taut_real *x, int64_t first, int64_t count)
{
    const int64_t inner = p->heads * p->dh;
    for (int64_t e = first; e < first + count; e++) {
        taut_real *a = prox_at(p, x, e);
        p->k->gemm(taut_at(p->k, a, prox_inner(p)), a, p->gram, p->shape.t, inner, inner, false, false, 1, 0);
    }
}

void prox_begin(const prox *p, taut_real *v0, const taut_real *x)
{
    const int64_t inner = p->heads * p->dh, rows = taut_rows(p->shape);
    p->k->axpby(v0, 1, x, 0, rows * inner);
    p->k->gemm(v0, x, p->gram, rows, inner, inner, false, false, -p->shift, 1);
}

/* V of the lanes' points, turned */
static void inner_point(prox *p, const taut_real *point, int64_t first, int64_t count)
{
    const taut_kernels *k = p->k;
    const int64_t inner = p->heads * p->dh, len = prox_inner(p);
    taut_real *v = inner_at(p, p->v, first);
    if (p->plain) {
        k->gemm(v, prox_at(p, point, first), p->weight, count * p->shape.t, inner, p->shape.d, false, true, 1, 0);
    } else {
        for (int64_t e = first; e < first + count; e++) {
            const taut_term both[] = { { 1, inner_at(p, p->centre, e) }, { 1, taut_at(k, prox_at(p, point, e), len) } };
            k->blend(inner_at(p, p->v, e), both, 2, len);
        }
    }
    prox_turn(p, v, count, 1);
}

void prox_value(prox *p, double *phi, const taut_real *point, int64_t first, int64_t count)
{
    const taut_attn a = prox_attn(p, count);
    const taut_real *v = inner_at(p, p->v, first);
    taut_sum *f = p->sums, *own = taut_sum_at(f, count), *pull = taut_sum_at(own, count);
    inner_point(p, point, first, count);
    p->k->attlip(f, row_at(p, p->max, first), row_at(p, p->sum, first), v, &a);
    dots(p, own, point, point, first, count);
    if (p->plain)
        dots(p, pull, point, p->centre, first, count);
    else
        p->k->dot(pull, v, prox_inner(p), v, prox_inner(p), count, prox_inner(p));
    p->k->sum_op(own, TAUT_SUM_MUL, p->plain ? 0.5 / p->eta : 0.5, own, NULL, count);
    p->k->sum_op(pull, TAUT_SUM_MUL, p->plain ? -1 : -0.5 * p->shift, pull, NULL, count);
    p->k->sum_op(own, TAUT_SUM_ADD, 1, own, pull, count);
    p->k->sum_op(f, TAUT_SUM_ADD, 1, f, own, count);
    if (p->k->read(phi, f, count))
        for (int64_t i = 0; i < count; i++) phi[i] = NAN;
    p->log->values += count;
}

/* out = h - c (dir K + base) + dir with its image; plain: h W + dir/eta - base.  No base: 0 */
static void outer(const prox *p, taut_real *out, const taut_real *h, const taut_real *dir, const taut_real *base,
                  int64_t first, int64_t count)
{
    const taut_kernels *k = p->k;
    const int64_t inner = p->heads * p->dh, d = p->shape.d, rows = count * p->shape.t, len = prox_inner(p);
    if (p->plain) {
        taut_real *to = prox_at(p, out, first);
        const taut_term both[] = { { 1 / p->eta, prox_at(p, dir, first) },
                                   { -1, base ? prox_at(p, base, first) : NULL } };
        k->blend(to, both, base ? 2 : 1, rows * d);
        k->gemm(to, h, p->weight, rows, d, inner, false, false, 1, 1);
        return;
    }
    for (int64_t i = 0; i < count; i++) {
        const taut_real *from = prox_at(p, dir, first + i);
        const taut_term all[] = { { 1, from },
                                  { 1, taut_at(k, h, i * len) },
                                  { -p->shift, taut_at(k, from, len) },
                                  { -p->shift, base ? inner_at(p, base, first + i) : NULL } };
        k->blend(prox_at(p, out, first + i), all, base ? 4 : 3, len);
    }
    prox_image(p, out, first, count);
}

void prox_gradient(prox *p, taut_real *grad, double *phi, const taut_real *point, int64_t first, int64_t count)
{
    const taut_kernels *k = p->k;
    const taut_attn a = prox_attn(p, count);
    taut_real *v = inner_at(p, p->v, first), *g = inner_at(p, p->g, first);
    prox_value(p, phi, point, first, count);
    k->attlip_grad(g, row_at(p, p->col, first), v, row_at(p, p->max, first), row_at(p, p->sum, first), &a);
    prox_turn(p, g, count, -1);
    outer(p, grad, g, point, p->centre, first, count);
    if (p->log) {
        p->log->values -= count;
        p->log->gradients += count;
    }
}

void prox_hessian(prox *p, taut_real *out, const taut_real *dir, taut_real *e, taut_real *h, int64_t first,
                  int64_t count)
{
    const taut_kernels *k = p->k;
    const int64_t inner = p->heads * p->dh, len = prox_inner(p);
    const taut_attn a = prox_attn(p, count);
    if (p->plain)
        k->gemm(e, prox_at(p, dir, first), p->weight, count * p->shape.t, inner, p->shape.d, false, true, 1, 0);
    for (int64_t i = 0; !p->plain && i < count; i++)
        k->axpby(taut_at(k, e, i * len), 1, taut_at(k, prox_at(p, dir, first + i), len), 0, len);
    prox_turn(p, e, count, 1);
    k->attlip_hvp(h, row_at(p, p->mean, first), e, inner_at(p, p->v, first), row_at(p, p->max, first),
                  row_at(p, p->sum, first), row_at(p, p->col, first), &a);
    prox_turn(p, h, count, -1);
    outer(p, out, h, dir, NULL, first, count);
    p->log->products += count;
}

int64_t prox_cg_used(const prox *p, int64_t count) { return count * 2 * (prox_lane(p) + prox_inner(p)); }

typedef struct {
    double size, start; /* |r|^2 now and at the start */
    bool open;
} cg_lane;

int64_t prox_cg_host(int64_t count) { return taut_host_len(count, sizeof(cg_lane)); }

/* x, r, dir and moved are the lane's own */
static bool cg_step(prox *p, cg_lane *c, taut_real *x, taut_real *r, taut_real *dir, const taut_real *moved)
{
    const taut_kernels *k = p->k;
    const int64_t len = prox_lane(p);
    const double bend = prox_dot(p, dir, moved, 0), step = c->size / bend;
    if (!(bend > 0) || !isfinite(step)) return false;
    k->axpby(x, step, dir, 1, len);
    k->axpby(r, -step, moved, 1, len);
    const double size = prox_dot(p, r, r, 0);
    k->axpby(dir, 1, r, size / c->size, len);
    c->size = size;
    return true;
}

int64_t prox_cg(prox *p, taut_real *out, taut_real *rhs, const double *tol, int most, int64_t first, int64_t count,
                taut_span scratch)
{
    const taut_kernels *k = p->k;
    const int64_t len = prox_lane(p), inner = prox_inner(p);
    taut_real *r = prox_at(p, rhs, first), *dir = taut_take(&scratch, count * len);
    taut_real *moved = taut_take(&scratch, count * len);
    taut_real *e = taut_take(&scratch, count * inner), *h = taut_take(&scratch, count * inner);
    const taut_span mark = p->host;
    cg_lane *c = taut_take_host(&p->host, count, sizeof *c);
    int64_t open = 0, good = 0;
    k->axpby(dir, 1, r, 0, count * len);
    k->axpby(prox_at(p, out, first), 0, NULL, 0, count * len);
    for (int64_t i = 0; i < count; i++) {
        c[i].size = c[i].start = prox_dot(p, r, r, i);
        c[i].open = c[i].start > 0;
        open += c[i].open;
        good += c[i].start == 0;
    }
    for (int step = 0; open > 0 && step < most; step++) {
        prox_hessian(p, taut_at(k, moved, -first * len), taut_at(k, dir, -first * len), e, h, first, count);
        for (int64_t i = 0; i < count; i++) {
            if (!c[i].open) continue;
            c[i].open = cg_step(p, &c[i], prox_at(p, out, first + i), prox_at(p, r, i), prox_at(p, dir, i),
                                prox_at(p, moved, i));
            const bool there = c[i].size <= tol[i] * tol[i] * c[i].start;
            good += there;
            if (there) c[i].open = false;
            open -= !c[i].open;
        }
    }
    p->host = mark;
    return good;
}

void prox_return(const prox *p, taut_real *y, const taut_real *a, const taut_real *x, taut_span scratch)
{
    const taut_kernels *k = p->k;
    const int64_t d = p->shape.d, inner = p->heads * p->dh, rows = taut_rows(p->shape), len = prox_inner(p);
    taut_real *all = taut_take(&scratch, rows * inner);
    k->gemm(all, x, p->weight, rows, inner, d, false, true, -p->shift, 0);
    for (int64_t e = 0; e < p->shape.n; e++) k->axpby(inner_at(p, all, e), 1, prox_at(p, a, e), 1, len);
    k->axpby(y, 1, x, 0, rows * d);
    k->gemm(y, all, p->back, rows, d, inner, false, false, 1, 1);
}

double prox_norm(const prox *p, const taut_real *grad, int64_t lane, taut_span scratch)
{
    const int64_t t = p->shape.t, d = p->shape.d;
    taut_real *g = taut_take(&scratch, t * d);
    p->k->gemm(g, prox_at(p, grad, lane), p->weight, t, d, p->heads * p->dh, false, false, 1, 0);
    return sqrt(taut_dot(p->k, p->sums, g, g, t * d));
}
