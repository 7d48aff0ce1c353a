/* Soft routing to prototypes (formulas: ref/route.c): products of all heads and examples at once (heads.h), and rows of weights
 * between them; the t x m weights of every head live in the workspace.
 *
 * NaN: in a key, all of its head.  Aliasing: none.
 * Error     with u = 2^-24 (cuda64: 2^-53; where products are told to be tf32 or bf16, 2^-9 or 2^-6) and E = (dh + 16) u scale
 *           max|k|.|p| the worst error of a logit, f = 6 E + (m + dh + 400) u times the sum of the sizes of what is added
 *           up, and t u of that where keys are summed. */
#include "kernels/cuda/group.h"
#include "kernels/cuda/heads.h"

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

/* Tokens, (n, tokens, heads*dh). */
static matrices tokens_of(const taut_group *g, const taut_real *x, int64_t tokens)
{
    return { at(x), g->heads * g->dh, g->dh, tokens * g->heads * g->dh };
}

/* Prototypes, (m, heads*dh): all examples have the same. */
static matrices prototypes_of(const taut_group *g, const taut_real *p) { return { at(p), g->heads * g->dh, g->dh, 0 }; }

/* What a call works with: the weights (n, heads, t, m), what moves them, if anything does, and room for sums in slices. */
struct routed {
    matrices a, s;
    real *parts;
};

/* C = alpha op(A) op(B) for all heads, added to C where `more`.  Only sums over keys, those with `ta`, are cut in slices. */
static void times(const taut_group *g, const routed &r, matrices c, matrices a, matrices b, int64_t rows,
                  int64_t columns, int64_t k, bool ta, bool tb, double alpha, bool more)
{
    const heads_product p = { c,          a, b, (int)rows, (int)columns,       (int)k, (int)g->heads, (real)alpha,
                              (real)more, 0, 0, 0,         ta ? r.parts : NULL };
    heads_multiply(p, g->n, ta, tb);
}

static void logits(const taut_group *g, const routed &r, matrices to, const taut_real *k, const taut_real *p)
{
    times(g, r, to, tokens_of(g, k, g->t), prototypes_of(g, p), g->t, g->m, g->dh, false, true, g->scale, false);
}

/* The weights of all examples; false: there is nothing to do or no memory. */
static bool weigh(routed *r, const taut_group *g, const taut_real *k, const taut_real *p, bool moved)
{
    const int64_t rows = g->n * g->heads * g->t, len = rows * g->m, one = g->m * g->heads * g->dh;
    const int64_t each = heads_slices(g->t, 1) * g->n * one, all = moved ? heads_slices(g->t, g->n) * one : 0;
    const size_t room = (size_t)(len * (1 + moved) + (each > all ? each : all));
    real *a = len > 0 ? (real *)cuda_work(room * sizeof *a) : NULL;
    if (!a) return false;
    *r = { { a, g->m, g->t * g->m, g->heads * g->t * g->m },
           { a + len, g->m, g->t * g->m, g->heads * g->t * g->m },
           a + len * (1 + moved) };
    logits(g, *r, r->a, k, p);
    CUDA_LAUNCH(softmax_rows, blocks_for(rows, THREADS / WARP), THREADS, 0, a, rows, g->m);
    return true;
}

static void slopes(const taut_group *g, const routed &r, double factor)
{
    const int64_t rows = g->n * g->heads * g->t;
    CUDA_LAUNCH(slope_rows, blocks_for(rows, THREADS / WARP), THREADS, 0, (real *)r.s.x, r.a.x, (real)factor, rows,
                g->m);
}

/* y_j = or += sum_i a_ij x_i for every head */
static void gather(const taut_group *g, const routed &r, taut_real *y, matrices a, const taut_real *x, bool more)
{
    times(g, r, tokens_of(g, y, g->m), a, tokens_of(g, x, g->t), g->m, g->dh, g->t, true, false, 1, more);
}

/* y_i = or += sum_j a_ij x_j for every head */
static void scatter(const taut_group *g, const routed &r, taut_real *y, matrices a, matrices x, bool more)
{
    times(g, r, tokens_of(g, y, g->t), a, x, g->t, g->dh, g->m, false, false, 1, more);
}

static void clear(const taut_group *g, taut_real *x, taut_real *y)
{
    const size_t bytes = (size_t)(g->n * g->m * g->heads * g->dh) * sizeof(real);
    if (bytes > 0) cuda_note(cudaMemsetAsync(x, 0, bytes, cuda_stream()), "route");
    if (bytes > 0) cuda_note(cudaMemsetAsync(y, 0, bytes, cuda_stream()), "route");
}

void CUDA(route)(taut_real *kt, taut_real *vt, const taut_real *k, const taut_real *v, const taut_real *p,
                 const taut_group *g)
{
    routed r;
    if (!weigh(&r, g, k, p, false)) return clear(g, kt, vt);
    gather(g, r, kt, r.a, k, false), gather(g, r, vt, r.a, v, false);
}

void CUDA(route_jvp)(taut_real *tkt, taut_real *tvt, const taut_real *tk, const taut_real *tv, const taut_real *k,
                     const taut_real *v, const taut_real *p, const taut_group *g)
{
    routed r;
    if (!weigh(&r, g, k, p, true)) return clear(g, tkt, tvt);
    logits(g, r, r.s, tk, p);
    slopes(g, r, 1);
    gather(g, r, tkt, r.a, tk, false), gather(g, r, tkt, r.s, k, true);
    gather(g, r, tvt, r.a, tv, false), gather(g, r, tvt, r.s, v, true);
}

void CUDA(route_vjp)(taut_real *gk, taut_real *gv, taut_real *gp, const taut_real *gkt, const taut_real *gvt,
                     const taut_real *k, const taut_real *v, const taut_real *p, const taut_group *g)
{
    routed r;
    if (!weigh(&r, g, k, p, true)) return; /* no keys: gk and gv are empty; there are always groups */
    const matrices to_k = tokens_of(g, gkt, g->m), to_v = tokens_of(g, gvt, g->m);
    times(g, r, r.s, tokens_of(g, k, g->t), to_k, g->t, g->m, g->dh, false, true, 1, false);
    times(g, r, r.s, tokens_of(g, v, g->t), to_v, g->t, g->m, g->dh, false, true, 1, true);
    slopes(g, r, g->scale);
    scatter(g, r, gk, r.a, to_k, false), scatter(g, r, gk, r.s, prototypes_of(g, p), true);
    scatter(g, r, gv, r.a, to_v, false);
    if (gp) times(g, r, prototypes_of(g, gp), r.s, tokens_of(g, k, g->t), g->m, g->dh, g->t, true, false, 1, true);
}
