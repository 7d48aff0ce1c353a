/* Nearest centres, and means over clusters (formulas: ref/cluster.c).
 *
 * The keys of every cluster are listed first, in order; a cluster's sums are then one block's, in double and in order.
 * Error     with u = 2^-24 (cuda64: 2^-53): nearest: a distance is off by 4 (dh + 4) u |k - centre|^2; means, cross and
 *           their derivatives: 2 u of themselves and (t + 8) 2^-52 of the sizes of their terms.  NaN as in ref.
 *           Aliasing: none. */
#include "kernels/cuda/each.h"
#include "kernels/cuda/group.h"

/* Token i of head h in example e: the head is e * heads + h. */
__device__ static inline int64_t token(const taut_group &g, int64_t tokens, int64_t head, int64_t i)
{
    return ((head / g.heads * tokens + i) * g.heads + head % g.heads) * g.dh;
}

static __global__ void __launch_bounds__(THREADS) nearest_keys(real *c, const real *k, const real *centre, taut_group g)
{
    const int64_t row = team_row<WARP>(), head = row / g.t;
    const int lane = team_lane<WARP>();
    if (row >= g.n * g.heads * g.t) return;
    const real *key = k + token(g, g.t, head, row % g.t);
    real best = (real)INFINITY;
    int64_t found = 0;
    for (int64_t j = 0; j < g.m; j++) {
        const real *other = centre + token(g, g.m, head, j);
        real far = 0;
        for (int64_t d = lane; d < g.dh; d += WARP) far += (key[d] - other[d]) * (key[d] - other[d]);
        far = warp_sum(far);
        if (far < best) best = far, found = j;
    }
    if (lane == 0) c[row] = (real)found;
}

void CUDA(nearest)(taut_real *c, const taut_real *k, const taut_real *centre, const taut_group *g)
{
    CUDA_LAUNCH(nearest_keys, blocks_for(g->n * g->heads * g->t, THREADS / WARP), THREADS, 0, at(c), at(k), at(centre),
                *g);
}

/* The keys of a head by cluster, (n, heads, t), and where each cluster begins, (n, heads, m + 1); means of k and of v,
 * not rounded to elements, since differences are taken from them. */
struct clusters {
    taut_group g;
    int *order, *start;
    double *kbar, *vbar;
};

struct key_place {
    int *order;
    const real *c;
    int64_t t;
    __device__ int64_t read(int64_t row) const
    {
        const int64_t first = row / t * t;
        const real own = c[row];
        int64_t before = first;
        for (int64_t i = first; i < first + t; i++) before += c[i] < own || (c[i] == own && i < row);
        return before;
    }
    __device__ void write(int64_t row, int64_t place) const { order[place] = (int)(row % t); }
};

struct cluster_start {
    int *start;
    const real *c;
    int64_t t, m;
    __device__ int read(int64_t at) const
    {
        const int64_t head = at / (m + 1), j = at % (m + 1);
        int before = 0;
        for (int64_t i = 0; i < t; i++) before += c[head * t + i] < (real)j;
        return before;
    }
    __device__ void write(int64_t at, int v) const { start[at] = v; }
};

/* Lists, and room for the means of k and v if they are wanted; g.m is 0 when there is no memory. */
static clusters list(const taut_real *c, const taut_group *g, bool means)
{
    const int64_t rows = g->n * g->heads * g->t, heads = g->n * g->heads,
                  len = means ? g->n * g->m * g->heads * g->dh : 0;
    double *room = (double *)cuda_work((size_t)(2 * len) * sizeof *room +
                                       (size_t)(rows + heads * (g->m + 1)) * sizeof(int));
    clusters s = { *g, (int *)(room + 2 * len), (int *)(room + 2 * len) + rows, room, room + len };
    if (!room) {
        s.g.m = 0;
        return s;
    }
    each(key_place{ s.order, at(c), g->t }, rows);
    each(cluster_start{ s.start, at(c), g->t, g->m }, heads * (g->m + 1));
    return s;
}

/* Block: cluster j of a head; a thread: columns. */
template <class T> static __global__ void __launch_bounds__(THREADS) mean_blocks(T *mean, const real *x, clusters s)
{
    const int64_t head = blockIdx.x / s.g.m, j = blockIdx.x % s.g.m;
    const int *start = s.start + head * (s.g.m + 1) + j, *order = s.order + head * s.g.t;
    for (int64_t d = threadIdx.x; d < s.g.dh; d += THREADS) {
        double sum = 0;
#pragma unroll 4
        for (int p = start[0]; p < start[1]; p++) sum += (double)x[token(s.g, s.g.t, head, order[p]) + d];
        mean[token(s.g, s.g.m, head, j) + d] = start[0] < start[1] ? (T)(sum / (start[1] - start[0])) : 0;
    }
}

template <class T> static void means(T *mean, const taut_real *x, const clusters &s)
{
    CUDA_LAUNCH(mean_blocks<T>, s.g.n * s.g.heads * s.g.m, THREADS, 0, mean, at(x), s);
}

/* Arrays whose products make up a cross matrix: the mean of (x_a - xbar_a)(y - ybar). */
template <class X, class Y> struct crossed {
    const real *x;
    const X *xbar;
    const real *y;
    const Y *ybar;
    __device__ double at(int64_t key, int64_t own, int64_t a, int64_t b) const
    {
        return ((double)x[key + a] - (double)xbar[own + a]) * ((double)y[key + b] - (double)ybar[own + b]);
    }
};

/* Of one pair of arrays or the sum of two, rounded once.  Block: row a of a cluster's matrix. */
template <class... PAIRS>
static __global__ void __launch_bounds__(THREADS) cross_blocks(real *cross, clusters s, PAIRS... pairs)
{
    const int64_t dh = s.g.dh, a = blockIdx.x % dh, j = blockIdx.x / dh % s.g.m, head = blockIdx.x / dh / s.g.m;
    const int *start = s.start + head * (s.g.m + 1) + j, *order = s.order + head * s.g.t;
    const int64_t own = token(s.g, s.g.m, head, j);
    for (int64_t b = threadIdx.x; b < dh; b += THREADS) {
        double sum = 0;
        for (int p = start[0]; p < start[1]; p++) {
            const int64_t key = token(s.g, s.g.t, head, order[p]);
            sum += (pairs.at(key, own, a, b) + ...);
        }
        cross[blockIdx.x * dh + b] = start[0] < start[1] ? (real)(sum / (start[1] - start[0])) : 0;
    }
}

template <class... PAIRS> static void cross_of(taut_real *cross, const clusters &s, PAIRS... pairs)
{
    const auto kernel = cross_blocks<PAIRS...>;
    CUDA_LAUNCH(kernel, s.g.n * s.g.heads * s.g.m * s.g.dh, THREADS, 0, at(cross), s, pairs...);
}

/* Where a head has no key at all, cluster 0 is taken to hold one zero. */
struct counted {
    real *logn;
    const int *start;
    int64_t t, m;
    __device__ real read(int64_t at) const
    {
        const int64_t head = at / m, j = at % m;
        const int count = start[head * (m + 1) + j + 1] - start[head * (m + 1) + j];
        return t == 0 && j == 0 ? 0 : (real)log((double)count);
    }
    __device__ void write(int64_t at, real v) const { logn[at] = v; }
};

void CUDA(cluster_means)(taut_real *kbar, taut_real *vbar, taut_real *logn, taut_real *cross, const taut_real *c,
                         const taut_real *k, const taut_real *v, const taut_group *g)
{
    const clusters s = list(c, g, false);
    means(at(kbar), k, s);
    means(at(vbar), v, s);
    each(counted{ at(logn), s.start, g->t, s.g.m }, g->n * g->heads * s.g.m);
    if (cross) cross_of(cross, s, crossed<real, real>{ at(k), at(kbar), at(v), at(vbar) });
}

void CUDA(cluster_means_jvp)(taut_real *tkbar, taut_real *tvbar, taut_real *tcross, const taut_real *tk,
                             const taut_real *tv, const taut_real *c, const taut_real *k, const taut_real *v,
                             const taut_group *g)
{
    const clusters s = list(c, g, true);
    means(at(tkbar), tk, s);
    means(at(tvbar), tv, s);
    if (!tcross) return;
    means(s.kbar, k, s);
    means(s.vbar, v, s);
    cross_of(tcross, s, crossed<real, double>{ at(tk), at(tkbar), at(v), s.vbar },
             crossed<double, real>{ at(k), s.kbar, at(tv), at(tvbar) });
}

/* gx_i[a] = (gbar_a + sum_b gcross(a, b) (y_i[b] - ybar[b])) / count; `across`: gcross is read as its transpose. */
struct shared_back {
    real *gx;
    const real *gbar, *gcross, *c, *y;
    const double *ybar;
    clusters s;
    bool across;
    __device__ real read(int64_t at) const
    {
        const int64_t dh = s.g.dh, a = at % dh, h = at / dh % s.g.heads, row = at / dh / s.g.heads, e = row / s.g.t;
        const int64_t head = e * s.g.heads + h, i = row % s.g.t, j = (int64_t)c[head * s.g.t + i];
        const int *start = s.start + head * (s.g.m + 1) + j;
        const int64_t own = token(s.g, s.g.m, head, j);
        double sum = (double)gbar[own + a];
        for (int64_t b = 0; gcross && b < dh; b++) {
            const real *matrix = gcross + (head * s.g.m + j) * dh * dh;
            sum += (double)(across ? matrix[b * dh + a] : matrix[a * dh + b]) *
                   ((double)y[token(s.g, s.g.t, head, i) + b] - (double)ybar[own + b]);
        }
        return (real)(sum / (start[1] - start[0]));
    }
    __device__ void write(int64_t at, real v) const { gx[at] = v; }
};

void CUDA(cluster_means_vjp)(taut_real *gk, taut_real *gv, const taut_real *gkbar, const taut_real *gvbar,
                             const taut_real *gcross, const taut_real *c, const taut_real *k, const taut_real *v,
                             const taut_group *g)
{
    const clusters s = list(c, g, true);
    const int64_t len = s.g.m > 0 ? g->n * g->t * g->heads * g->dh : 0;
    const real *cross = gcross ? at(gcross) : NULL;
    means(s.kbar, k, s);
    means(s.vbar, v, s);
    each(shared_back{ at(gk), at(gkbar), cross, at(c), at(v), s.vbar, s, false }, len);
    each(shared_back{ at(gv), at(gvbar), cross, at(c), at(k), s.kbar, s, true }, len);
}
