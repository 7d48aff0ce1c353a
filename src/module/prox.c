/* The problem itself: coordinates, evaluation, second derivative, conjugate gradients (module/prox.h). */
#include "module/prox.h"

#include <math.h>

static const taut_factor ONE = { 1, NULL };

int64_t prox_kept(taut_shape x, int64_t heads, int64_t dh)
{
    const int64_t inner = heads * dh;
    return inner * (x.d + inner) + x.n * x.t * heads * (2 * dh + 3);
}

int64_t prox_used(taut_shape x, int64_t heads, int64_t dh)
{
    const int64_t inner = heads * dh;
    return x.n * x.t * ((inner > x.d ? inner : x.d) + (x.n > 1 ? 2 * inner : 0) + heads) + taut_sums_len(3 * x.n);
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
    p->side = taut_take(scratch, p->shape.n > 1 ? 2 * rows * inner : 0);
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

void prox_dots(const prox *p, double *sum, const taut_real *x, const taut_real *y, int64_t first, int64_t count)
{
    dots(p, p->sums, x, y, first, count);
    (void)p->k->read(sum, p->sums, count); /* NaN where the table has failed */
}

double prox_dot(const prox *p, const taut_real *x, const taut_real *y, int64_t lane)
{
    double sum;
    prox_dots(p, &sum, x, y, lane, 1);
    return sum;
}

void prox_add(const prox *p, taut_real *y, double a, const taut_real *x, double b, int64_t lane)
{
    p->k->axpby(prox_at(p, y, lane), a, prox_at(p, x, lane), b, prox_lane(p));
}

taut_factor prox_factor(const prox *p, taut_sum *room, const double *each, int64_t count)
{
    if (count == 1) return (taut_factor){ *each, NULL };
    p->k->put_sum(room, each, count);
    return (taut_factor){ 1, room };
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

/* The A parts of some lanes, one behind the other. */
static const taut_real *gathered(const prox *p, const taut_real *x, int64_t first, int64_t count)
{
    const int64_t len = prox_inner(p);
    const taut_real *from = prox_at(p, x, first);
    if (count > 1) p->k->copy_rows(p->side, len, from, 2 * len, count, len);
    return count > 1 ? p->side : from;
}

void prox_image(const prox *p, taut_real *x, int64_t first, int64_t count)
{
    const int64_t inner = p->heads * p->dh, len = prox_inner(p);
    const taut_real *a = gathered(p, x, first, count);
    taut_real *image = taut_at(p->k, prox_at(p, x, first), len),
              *out = count > 1 ? taut_at(p->k, p->side, count * len) : image;
    p->k->gemm(out, a, p->gram, count * p->shape.t, inner, inner, false, false, 1, 0);
    if (count > 1) p->k->copy_rows(image, 2 * len, out, len, count, len);
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
        const taut_term both[] = { { ONE, inner_at(p, p->centre, first), len },
                                   { ONE, taut_at(k, prox_at(p, point, first), len), 2 * len } };
        k->blend(v, len, both, 2, count, len);
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
    if (phi) (void)p->k->read(phi, f, count);
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
        const taut_term both[] = { { { 1 / p->eta, NULL }, prox_at(p, dir, first), 0 },
                                   { { -1, NULL }, base ? prox_at(p, base, first) : NULL, 0 } };
        k->blend(to, 0, both, base ? 2 : 1, 1, rows * d);
        k->gemm(to, h, p->weight, rows, d, inner, false, false, 1, 1);
        return;
    }
    const taut_factor shift = { -p->shift, NULL };
    const taut_real *from = prox_at(p, dir, first);
    const taut_term all[] = { { ONE, from, 2 * len },
                              { ONE, h, len },
                              { shift, taut_at(k, from, len), 2 * len },
                              { shift, base ? inner_at(p, base, first) : NULL, len } };
    k->blend(prox_at(p, out, first), 2 * len, all, base ? 4 : 3, count, len);
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
    else
        k->copy_rows(e, len, taut_at(k, prox_at(p, dir, first), len), 2 * len, count, len);
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
    bool open, tried;   /* tried: was open when the last step began */
} cg_lane;

int64_t prox_cg_host(int64_t count) { return taut_host_len(count, sizeof(cg_lane)) + 3 * count; }

typedef struct {
    prox *p;
    taut_real *x, *r, *dir, *moved; /* of the first lane */
    int64_t count;
    cg_lane *lane;
    double *now, *a, *b; /* a number for every lane each */
} cg;

/* x += step dir, r -= step moved, dir = r + |r|^2/|r before|^2 dir; a lane that cannot step is closed, and one that is closed
 * stays as it is. */
static void cg_step(cg *c)
{
    const taut_kernels *k = c->p->k;
    const int64_t len = prox_lane(c->p), n = c->count;
    taut_sum *room = taut_sum_at(c->p->sums, n);
    prox_dots(c->p, c->now, c->dir, c->moved, 0, n);
    for (int64_t i = 0; i < n; i++) {
        cg_lane *l = &c->lane[i];
        const double step = l->size / c->now[i];
        l->tried = l->open;
        l->open = l->open && c->now[i] > 0 && isfinite(step);
        c->a[i] = l->open ? step : 0;
    }
    const taut_factor step = prox_factor(c->p, room, c->a, n), back = { -step.value, step.by }, one = { 1, NULL };
    k->axpby_by(c->x, len, step, c->dir, len, one, n, len);
    k->axpby_by(c->r, len, back, c->moved, len, one, n, len);
    prox_dots(c->p, c->now, c->r, c->r, 0, n);
    for (int64_t i = 0; i < n; i++) {
        cg_lane *l = &c->lane[i];
        c->a[i] = l->open ? 1 : 0;
        c->b[i] = l->open ? c->now[i] / l->size : 1;
        if (l->open) l->size = c->now[i];
    }
    const taut_factor add = prox_factor(c->p, room, c->a, n), keep = prox_factor(c->p, taut_sum_at(room, n), c->b, n);
    k->axpby_by(c->dir, len, add, c->r, len, keep, n, len);
}

int64_t prox_cg(prox *p, taut_real *out, taut_real *rhs, const double *tol, int most, int64_t first, int64_t count,
                taut_span scratch)
{
    const taut_kernels *k = p->k;
    const int64_t len = prox_lane(p), inner = prox_inner(p);
    cg c = { .p = p, .x = prox_at(p, out, first), .r = prox_at(p, rhs, first), .count = count };
    c.dir = taut_take(&scratch, count * len);
    c.moved = taut_take(&scratch, count * len);
    taut_real *e = taut_take(&scratch, count * inner), *h = taut_take(&scratch, count * inner);
    const taut_span mark = p->host;
    c.lane = taut_take_host(&p->host, count, sizeof *c.lane);
    c.now = taut_take_host(&p->host, count, sizeof *c.now);
    c.a = taut_take_host(&p->host, count, sizeof *c.a);
    c.b = taut_take_host(&p->host, count, sizeof *c.b);
    int64_t open = 0, good = 0;
    k->axpby(c.dir, 1, c.r, 0, count * len);
    k->axpby(c.x, 0, NULL, 0, count * len);
    prox_dots(p, c.now, c.r, c.r, 0, count);
    for (int64_t i = 0; i < count; i++) {
        c.lane[i] = (cg_lane){ .size = c.now[i], .start = c.now[i], .open = c.now[i] > 0 };
        open += c.lane[i].open;
        good += c.now[i] == 0;
    }
    for (int step = 0; open > 0 && step < most; step++) {
        prox_hessian(p, taut_at(k, c.moved, -first * len), taut_at(k, c.dir, -first * len), e, h, first, count);
        cg_step(&c);
        open = 0;
        for (int64_t i = 0; i < count; i++) {
            cg_lane *l = &c.lane[i];
            const bool there = l->tried && l->size <= tol[i] * tol[i] * l->start;
            good += there;
            if (there) l->open = false;
            open += l->open;
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
    k->axpby_by(all, len, ONE, a, 2 * len, ONE, p->shape.n, len);
    k->axpby(y, 1, x, 0, rows * d);
    k->gemm(y, all, p->back, rows, d, inner, false, false, 1, 1);
}

void prox_norms(const prox *p, double *norm, const taut_real *grad, int64_t first, int64_t count, taut_span scratch)
{
    const int64_t t = p->shape.t, d = p->shape.d, lane = t * d;
    taut_real *g = taut_take(&scratch, count * lane);
    p->k->gemm(g, gathered(p, grad, first, count), p->weight, count * t, d, p->heads * p->dh, false, false, 1, 0);
    p->k->dot(p->sums, g, lane, g, lane, count, lane);
    (void)p->k->read(norm, p->sums, count);
    for (int64_t i = 0; i < count; i++) norm[i] = sqrt(norm[i]);
}
