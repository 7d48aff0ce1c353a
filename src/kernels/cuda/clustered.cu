/* Softmax attention to clusters (formulas: ref/clustered.c).
 *
 * A query is one block's: its weights in shared memory, and y_j made one cluster at a time.  What a cluster gets back
 * from all queries is one block's too, which takes the queries in order.
 * NaN in a query stays in its row, and reaches what is summed over queries.  Aliasing: none.
 * Error     with u = 2^-24 (cuda64: 2^-53): sums are double; f = (E + 20 u) times the sum of the sizes of what is added
 *           up, E = 4 u (scale |q|.|kbar| + |logn|) the worst error of a logit. */
#include "kernels/cuda/each.h"
#include "kernels/cuda/group.h"

struct attention_to {
    const real *q, *kbar, *vbar, *logn, *cross; /* cross may be NULL */
    taut_group g;
    double *w, *o, *a; /* (n, heads, tq, m or dh): weights, outputs, and room for the vjp's a_j, of the workspace */
    __device__ int64_t at(int64_t tokens, int64_t head, int64_t i) const
    {
        return ((head / g.heads * tokens + i) * g.heads + head % g.heads) * g.dh;
    }
    __device__ const real *matrix(const real *cross, int64_t head, int64_t j) const
    {
        return cross + (head * g.m + j) * g.dh * g.dh;
    }
    /* y_j[c] at the query x: vbar + scale cross^T x; what = NULL: no such array */
    __device__ double value(const real *what, const real *cross, const real *x, int64_t head, int64_t j,
                            int64_t c) const
    {
        double sum = 0;
        for (int64_t r = 0; cross && r < g.dh; r++) sum += (double)matrix(cross, head, j)[r * g.dh + c] * (double)x[r];
        return (what ? (double)what[at(g.m, head, j) + c] : 0) + g.scale * sum;
    }
};

/* w and o of every query.  Block: a query. */
static __global__ void __launch_bounds__(THREADS) look(attention_to s)
{
    const int64_t head = blockIdx.x / s.g.tq, m = s.g.m, dh = s.g.dh;
    const real *q = s.q + s.at(s.g.tq, head, blockIdx.x % s.g.tq);
    double *w = s.w + blockIdx.x * m, *o = s.o + blockIdx.x * dh, top = -INFINITY, sum = 0;
    for (int64_t j = threadIdx.x / WARP; j < m; j += THREADS / WARP) {
        double dot = 0;
        for (int64_t d = threadIdx.x % WARP; d < dh; d += WARP)
            dot += (double)q[d] * (double)s.kbar[s.at(m, head, j) + d];
        dot = warp_sum(dot);
        if (threadIdx.x % WARP == 0) w[j] = s.g.scale * dot + (double)s.logn[head * m + j];
    }
    __syncthreads();
    for (int64_t j = 0; j < m; j++) top = w[j] > top ? w[j] : top;
    for (int64_t j = 0; j < m; j++) sum += exp(w[j] - top);
    __syncthreads();
    for (int64_t j = threadIdx.x; j < m; j += THREADS) w[j] = exp(w[j] - top) / sum;
    __syncthreads();
    for (int64_t c = threadIdx.x; c < dh; c += THREADS) {
        double all = 0;
        for (int64_t j = 0; j < m; j++) all += w[j] * s.value(s.vbar, s.cross, q, head, j, c);
        o[c] = all;
    }
}

/* Weights and outputs; false when there is nothing to do or no memory. */
static bool prepare(attention_to *s, const taut_real *q, const taut_real *kbar, const taut_real *vbar,
                    const taut_real *logn, const taut_real *cross, const taut_group *g)
{
    const int64_t rows = g->n * g->heads * g->tq;
    double *work = rows > 0 ? (double *)cuda_work((size_t)(rows * (2 * g->m + g->dh)) * sizeof *work) : NULL;
    *s = { at(q),
           at(kbar),
           at(vbar),
           at(logn),
           cross ? at(cross) : NULL,
           *g,
           work,
           work + rows * 2 * g->m,
           work + rows * g->m };
    if (work) CUDA_LAUNCH(look, rows, THREADS, 0, *s);
    return work != NULL;
}

/* Where entry i of an (n, tq, heads*dh) array is: its head, row among the queries of all heads, and column. */
struct spot {
    int64_t head, row, c;
};

__device__ static inline spot spot_of(const taut_group &g, int64_t i)
{
    const int64_t c = i % g.dh, h = i / g.dh % g.heads, token = i / g.dh / g.heads, head = token / g.tq * g.heads + h;
    return { head, head * g.tq + token % g.tq, c };
}

struct outputs {
    real *o;
    attention_to s;
    __device__ real read(int64_t i) const
    {
        const spot p = spot_of(s.g, i);
        return (real)s.o[p.row * s.g.dh + p.c];
    }
    __device__ void write(int64_t i, real v) const { o[i] = v; }
};

void CUDA(clustered)(taut_real *o, const taut_real *q, const taut_real *kbar, const taut_real *vbar,
                     const taut_real *logn, const taut_real *cross, const taut_group *g)
{
    attention_to s;
    if (prepare(&s, q, kbar, vbar, logn, cross, g)) each(outputs{ at(o), s }, g->n * g->tq * g->heads * g->dh);
}

struct moved {
    real *to;
    const real *tq, *tkbar, *tvbar, *tcross;
    attention_to s;
    __device__ real read(int64_t i) const
    {
        const spot p = spot_of(s.g, i);
        const int64_t dh = s.g.dh, here = i - p.c;
        double sum = 0;
        for (int64_t j = 0; j < s.g.m; j++) {
            const real *k = s.kbar + s.at(s.g.m, p.head, j), *tk = tkbar + s.at(s.g.m, p.head, j);
            double tl = 0;
            for (int64_t d = 0; d < dh; d++)
                tl += (double)tq[here + d] * (double)k[d] + (double)s.q[here + d] * (double)tk[d];
            const double ty = s.value(tvbar, tcross, s.q + here, p.head, j, p.c) +
                              s.value(NULL, s.cross, tq + here, p.head, j, p.c);
            const double y = s.value(s.vbar, s.cross, s.q + here, p.head, j, p.c);
            sum += s.w[p.row * s.g.m + j] * (ty + s.g.scale * tl * (y - s.o[p.row * dh + p.c]));
        }
        return (real)sum;
    }
    __device__ void write(int64_t i, real v) const { to[i] = v; }
};

void CUDA(clustered_jvp)(taut_real *to, const taut_real *tq, const taut_real *tkbar, const taut_real *tvbar,
                         const taut_real *tcross, const taut_real *q, const taut_real *kbar, const taut_real *vbar,
                         const taut_real *logn, const taut_real *cross, const taut_group *g)
{
    attention_to s;
    if (prepare(&s, q, kbar, vbar, logn, cross, g))
        each(moved{ at(to), at(tq), at(tkbar), at(tvbar), cross ? at(tcross) : NULL, s },
             g->n * g->tq * g->heads * g->dh);
}

/* a_j = scale w_j go.(y_j - o).  Block: a query; a warp: clusters. */
static __global__ void __launch_bounds__(THREADS) answer(attention_to s, const real *go_)
{
    const int64_t head = blockIdx.x / s.g.tq, m = s.g.m, dh = s.g.dh, here = s.at(s.g.tq, head, blockIdx.x % s.g.tq);
    const real *q = s.q + here, *go = go_ + here;
    for (int64_t j = threadIdx.x / WARP; j < m; j += THREADS / WARP) {
        double sum = 0;
        for (int64_t c = threadIdx.x % WARP; c < dh; c += WARP)
            sum += (double)go[c] * (s.value(s.vbar, s.cross, q, head, j, c) - s.o[blockIdx.x * dh + c]);
        sum = warp_sum(sum);
        if (threadIdx.x % WARP == 0) s.a[blockIdx.x * m + j] = s.g.scale * s.w[blockIdx.x * m + j] * sum;
    }
}

struct query_back {
    real *gq;
    const real *go;
    attention_to s;
    __device__ real read(int64_t i) const
    {
        const spot p = spot_of(s.g, i);
        const int64_t dh = s.g.dh, here = i - p.c;
        double sum = 0;
        for (int64_t j = 0; j < s.g.m; j++) {
            double row = 0;
            for (int64_t c = 0; s.cross && c < dh; c++)
                row += (double)s.matrix(s.cross, p.head, j)[p.c * dh + c] * (double)go[here + c];
            sum += s.a[p.row * s.g.m + j] * (double)s.kbar[s.at(s.g.m, p.head, j) + p.c] +
                   s.g.scale * s.w[p.row * s.g.m + j] * row;
        }
        return (real)sum;
    }
    __device__ void write(int64_t i, real v) const { gq[i] = v; }
};

/* sum over the queries of a head of weight_j x[d], and where `y` is there of weight_j x[r] y[c]: block (head, j, r). */
static __global__ void __launch_bounds__(THREADS)
    over_queries(real *out, const double *weight, const real *x, const real *y, double scale, attention_to s)
{
    const int64_t dh = s.g.dh, m = s.g.m, rows = y ? dh : 1, r = blockIdx.x % rows;
    const int64_t j = blockIdx.x / rows % m, head = blockIdx.x / rows / m;
    for (int64_t c = threadIdx.x; c < dh; c += THREADS) {
        double sum = 0;
        for (int64_t i = 0; i < s.g.tq; i++) {
            const int64_t here = s.at(s.g.tq, head, i);
            const double w = weight[(head * s.g.tq + i) * m + j];
            sum += y ? w * (double)x[here + r] * (double)y[here + c] : w * (double)x[here + c];
        }
        out[(y ? (head * m + j) * dh * dh + r * dh : s.at(m, head, j)) + c] = (real)(scale * sum);
    }
}

void CUDA(clustered_vjp)(taut_real *gq, taut_real *gkbar, taut_real *gvbar, taut_real *gcross, const taut_real *go,
                         const taut_real *q, const taut_real *kbar, const taut_real *vbar, const taut_real *logn,
                         const taut_real *cross, const taut_group *g)
{
    attention_to s;
    const int64_t groups = g->n * g->heads * g->m;
    const bool some = prepare(&s, q, kbar, vbar, logn, cross, g);
    if (some) CUDA_LAUNCH(answer, g->n * g->heads * g->tq, THREADS, 0, s, at(go));
    if (some) each(query_back{ at(gq), at(go), s }, g->n * g->tq * g->heads * g->dh);
    CUDA_LAUNCH(over_queries, groups, THREADS, 0, at(gkbar), s.a, at(q), (const real *)NULL, 1.0, s);
    CUDA_LAUNCH(over_queries, groups, THREADS, 0, at(gvbar), s.w, at(go), (const real *)NULL, 1.0, s);
    if (cross) CUDA_LAUNCH(over_queries, groups * g->dh, THREADS, 0, at(gcross), s.w, at(q), at(go), g->scale, s);
}
