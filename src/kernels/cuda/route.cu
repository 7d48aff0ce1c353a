/* Soft routing to prototypes (formulas: ref/route.c): products of all heads of an example or of all examples at once, and
 * rows of weights between them; the t x m weights of every head live in the workspace.
 *
 * NaN: in a key, all of its head.  Aliasing: none.
 * Error     with u = 2^-24 (cuda64: 2^-53) and E = (dh + 4) u scale max|k|.|p| the worst error of a logit, f = 6 E + (m
 *           + dh + 400) u times the sum of the sizes of what is added up, and t u of that where keys are summed. */
#include "kernels/cuda/group.h"

/* Row by row: a becomes its softmax. */
static __global__ void __launch_bounds__(THREADS) softmax_rows(real *a, int64_t rows, int64_t m)
{
    const int64_t row = team_row<WARP>();
    const int lane = team_lane<WARP>();
    if (row >= rows) return;
    real *x = a + row * m;
    const real top = warp_largest(x, m, lane);
    real sum = 0;
    for (int64_t j = lane; j < m; j += WARP) {
        const real e = exp(x[j] - top);
        x[j] = e;
        sum += e;
    }
    sum = 1 / warp_sum(sum);
    for (int64_t j = lane; j < m; j += WARP) x[j] *= sum;
}

/* s becomes factor a (s - sum a s). */
static __global__ void __launch_bounds__(THREADS)
    slope_rows(real *s, const real *a, real factor, int64_t rows, int64_t m)
{
    const int64_t row = team_row<WARP>();
    const int lane = team_lane<WARP>();
    if (row >= rows) return;
    real mean = 0;
    for (int64_t j = lane; j < m; j += WARP) mean += a[row * m + j] * s[row * m + j];
    mean = warp_sum(mean);
    for (int64_t j = lane; j < m; j += WARP) s[row * m + j] = factor * a[row * m + j] * (s[row * m + j] - mean);
}

/* Weights of all examples, and `more` arrays of their size; NULL when there is nothing to do or no memory. */
static real *weights(const taut_group *g, const taut_real *k, const taut_real *p, int more)
{
    const int64_t rows = g->n * g->heads * g->t, len = rows * g->m;
    real *a = len > 0 ? (real *)cuda_work((size_t)(len * (1 + more)) * sizeof *a) : NULL;
    if (a)
        multiply_each(g, weights_of(g, a, g->t), tokens_of(g, at(k), g->t), prototypes_of(g, at(p)), g->t, g->m, g->dh,
                      false, true, g->scale, 0);
    if (a) CUDA_LAUNCH(softmax_rows, blocks_for(rows, THREADS / WARP), THREADS, 0, a, rows, g->m);
    return a;
}

static void slopes(const taut_group *g, real *s, const real *a, double factor)
{
    const int64_t rows = g->n * g->heads * g->t;
    CUDA_LAUNCH(slope_rows, blocks_for(rows, THREADS / WARP), THREADS, 0, s, a, (real)factor, rows, g->m);
}

/* y_j = or += sum_i a_ij x_i for every head */
static void gather(const taut_group *g, taut_real *y, const real *a, const taut_real *x, bool add)
{
    multiply_each(g, tokens_of(g, at(y), g->m), weights_of(g, a, g->t), tokens_of(g, at(x), g->t), g->m, g->dh, g->t,
                  true, false, 1, add);
}

static void clear(taut_real *x, int64_t len)
{
    if (len > 0) cuda_note(cudaMemsetAsync(x, 0, (size_t)len * sizeof(real), cuda_stream()), "route");
}

void CUDA(route)(taut_real *kt, taut_real *vt, const taut_real *k, const taut_real *v, const taut_real *p,
                 const taut_group *g)
{
    const real *a = weights(g, k, p, 0);
    if (!a) clear(kt, g->n * g->m * g->heads * g->dh), clear(vt, g->n * g->m * g->heads * g->dh);
    if (a) gather(g, kt, a, k, false), gather(g, vt, a, v, false);
}

void CUDA(route_jvp)(taut_real *tkt, taut_real *tvt, const taut_real *tk, const taut_real *tv, const taut_real *k,
                     const taut_real *v, const taut_real *p, const taut_group *g)
{
    const real *a = weights(g, k, p, 1);
    if (!a) {
        clear(tkt, g->n * g->m * g->heads * g->dh), clear(tvt, g->n * g->m * g->heads * g->dh);
        return;
    }
    real *ta = (real *)a + g->n * g->heads * g->t * g->m;
    multiply_each(g, weights_of(g, ta, g->t), tokens_of(g, at(tk), g->t), prototypes_of(g, at(p)), g->t, g->m, g->dh,
                  false, true, g->scale, 0);
    slopes(g, ta, a, 1);
    gather(g, tkt, a, tk, false), gather(g, tkt, ta, k, true);
    gather(g, tvt, a, tv, false), gather(g, tvt, ta, v, true);
}

/* y_i = or += sum_j a_ij x_j for every head */
static void scatter(const taut_group *g, taut_real *y, const real *a, factor_of x, bool add)
{
    multiply_each(g, tokens_of(g, at(y), g->t), weights_of(g, a, g->t), x, g->t, g->dh, g->m, false, false, 1, add);
}

void CUDA(route_vjp)(taut_real *gk, taut_real *gv, taut_real *gp, const taut_real *gkt, const taut_real *gvt,
                     const taut_real *k, const taut_real *v, const taut_real *p, const taut_group *g)
{
    const real *a = weights(g, k, p, 1);
    if (!a) return; /* no keys: gk and gv are empty; there are always groups */
    real *gs = (real *)a + g->n * g->heads * g->t * g->m;
    const factor_of out = weights_of(g, gs, g->t), to_k = tokens_of(g, at(gkt), g->m),
                    to_v = tokens_of(g, at(gvt), g->m);
    multiply_each(g, out, tokens_of(g, at(k), g->t), to_k, g->t, g->m, g->dh, false, true, 1, 0);
    multiply_each(g, out, tokens_of(g, at(v), g->t), to_v, g->t, g->m, g->dh, false, true, 1, 1);
    slopes(g, gs, a, g->scale);
    scatter(g, gk, a, to_k, false), scatter(g, gk, gs, prototypes_of(g, at(p)), true);
    scatter(g, gv, a, to_v, false);
    if (gp)
        multiply_each(g, prototypes_of(g, at(gp)), out, tokens_of(g, at(k), g->t), g->m, g->dh, g->t, true, false, 1,
                      1);
}
