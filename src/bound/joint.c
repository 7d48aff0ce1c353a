/* ||[c_1 X_1 Y_1 ... c_H X_H Y_H]||^2 = lam_max( sum_h c_h^2 X_h Y_h Y_h^T X_h^T ).
 *
 * The explicit matrix has H m columns, but only the k x k matrices Y Y^T matter.  With any R, proved
 * afterwards: Y Y^T <= R^T R + e I where e >= ||Y Y^T - R^T R||_F (computed by balls, rounding included), so
 *     ||joint||^2 <= ||[c_h X_h R_h^T]||^2 + sum_h c_h^2 e_h ||X_h||_F^2,
 * H k columns instead of H m: ten times faster for the heads of a transformer.  The last sum is rounding,
 * relative to ||X||^2 ||Y||^2; where the factors cancel so far that it matters, the explicit matrix is used as well
 * and the smaller bound counts. */
#include "bound/joint.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "bound/blas.h"
#include "bound/lanczos.h"
#include "bound/norm.h"

/* The shift keeps a singular g factorable; an R that failed is just a bad R. */
static taut_ball root_of(const taut_ball *g)
{
    taut_ball r = ball_of(g->v, g->rows, g->cols);
    bool factored = false;
    double trace = 0;
    if (!r.v) return r;
    for (int64_t i = 0; i < r.rows; i++) trace += r.v[i * r.cols + i];
    for (int64_t i = 0; i < r.rows; i++) r.v[i * r.cols + i] += 0x1p-50 * trace;
    if (trace > 0) factored = blas_cholesky(r.v, r.rows);
    for (int64_t i = 0; i < r.rows; i++)
        for (int64_t j = 0; j < r.cols; j++)
            if (j < i || !factored || !isfinite(r.v[i * r.cols + j])) r.v[i * r.cols + j] = 0;
    return r;
}

taut_ball ball_root(const taut_ball *g, taut_up *rest)
{
    *rest = UP_NONE;
    if (!g->v) return *g;
    taut_ball r = root_of(g), square = ball_mul(&r, true, &r, false), minus = ball_scale(&square, -1);
    taut_ball lost = ball_add(g, &minus);
    *rest = up_ball_frobenius(&lost);
    ball_free(&square), ball_free(&minus), ball_free(&lost);
    return r;
}

taut_pair pair_of(const double *x, const double *y, int64_t n, int64_t k, int64_t m)
{
    taut_pair p = { ball_of(x, n, k), ball_of(y, k, m), { NULL, n, k, UP_NONE }, UP_NONE };
    taut_ball g = ball_mul(&p.y, false, &p.y, true);
    if (!g.v) return p;
    taut_up lost;
    taut_ball r = ball_root(&g, &lost);
    const taut_up fx = up_ball_frobenius(&p.x);
    p.thin = ball_mul(&p.x, false, &r, true);
    p.rest = fx.v == 0 ? UP_ZERO : up_mul(lost, up_mul(fx, fx));
    ball_free(&g), ball_free(&r);
    return p;
}

void pair_free(taut_pair *p)
{
    ball_free(&p->x), ball_free(&p->y), ball_free(&p->thin);
    p->rest = UP_NONE;
}

bool pair_is_zero(const taut_pair *p) { return ball_is_zero(&p->thin) && p->rest.v == 0; }

double est_pair(const taut_pair *p)
{
    const double r = p->thin.v ? est_norm(p->thin.v, p->thin.rows, p->thin.cols) : 0;
    return r > 0 && r < INFINITY ? r : 0;
}

/* The norm of the blocks that `block` makes, side by side. */
static taut_up up_blocks(const taut_pair *pairs, const double *c, int64_t count,
                         taut_ball (*block)(const taut_pair *, double c))
{
    taut_ball *parts = taut_calloc((size_t)count, sizeof *parts);
    if (!parts) return UP_NONE;
    int64_t used = 0;
    for (int64_t h = 0; h < count; h++)
        if (c[h] != 0) parts[used++] = block(&pairs[h], c[h]);
    taut_up norm = UP_ZERO;
    if (used) {
        taut_ball all = ball_hcat(parts, used);
        for (int64_t p = 0; p < used; p++) ball_free(&parts[p]);
        norm = up_ball_norm(&all);
        ball_free(&all);
    }
    free(parts);
    return norm;
}

static taut_ball thin_block(const taut_pair *p, double c) { return ball_scale(&p->thin, c); }

static taut_ball full_block(const taut_pair *p, double c)
{
    taut_ball x = ball_scale(&p->x, c), r = ball_mul(&x, false, &p->y, false);
    ball_free(&x);
    return r;
}

taut_up up_joint_norm(const taut_pair *pairs, const double *c, int64_t count)
{
    const taut_up thin = up_blocks(pairs, c, count, thin_block);
    taut_up rest = UP_ZERO;
    for (int64_t h = 0; h < count; h++)
        if (c[h] != 0) rest = up_add(rest, up_mul(up_mul(up_exact(c[h]), up_exact(c[h])), pairs[h].rest));
    const taut_up norm = rest.v == 0 ? thin : up_sqrt(up_add(up_mul(thin, thin), rest));
    if (norm.v < INFINITY && norm.v <= thin.v * (1 + 1e-7)) return norm;
    return up_min(norm, up_blocks(pairs, c, count, full_block));
}
