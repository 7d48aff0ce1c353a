/* ProbSparse attention (formulas: ref/sparse.c): a block for every row that looks, its weights in the backend's memory;
 * one thread for every column of a head where all others take one sum of values.  Sums are double.
 * NaN: as in ref.  Aliasing: none.
 * Error     which queries look is as in ref but for scores closer than (dh + samples) 2^-50 sum |q.k|.  For a given c
 *           every result is off by one rounding of the element and, with E = (dh + 8) 2^-52 scale |q|.|k|, by
 *           6 E + (tk + tq + 2 dh + 400) 2^-52 times the sum of the sizes of what is added; gv, where sums over those
 *           that look and those that do not meet, by one rounding more. */
#include "base/rng.h"
#include "kernels/cuda/reduce.h"

struct head {
    taut_sparse s;
    int64_t e, h;
    __device__ head(const taut_sparse &s, int64_t index) : s(s), e(index / s.heads), h(index % s.heads) {}
    /* where row i of the head begins in an array of t tokens */
    __device__ int64_t at(int64_t t, int64_t i) const { return ((e * t + i) * s.heads + h) * s.dh; }
    __device__ int64_t seen(int64_t i) const { return s.causal ? i + 1 : s.tk; }
};

/* By a whole warp. */
static __device__ inline double dot(const real *x, const real *y, int64_t n)
{
    double sum = 0;
    for (int64_t c = threadIdx.x % WARP; c < n; c += WARP) sum += (double)x[c] * (double)y[c];
    return warp_sum(sum);
}

/* One warp per query. */
static __global__ void __launch_bounds__(THREADS) uneven(double *m, const real *q, const real *k, const taut_sparse s)
{
    const int64_t row = team_row<WARP>(), i = row % s.tq;
    if (row >= s.n * s.heads * s.tq) return;
    const head g(s, row / s.tq);
    double max = -INFINITY, sum = 0;
    for (int64_t r = 0; r < s.samples; r++) {
        const int64_t j = (int64_t)taut_rng_below(s.key, (uint64_t)(i * s.samples + r), (uint64_t)s.tk);
        const double score = dot(q + g.at(s.tq, i), k + g.at(s.tk, j), s.dh);
        max = score > max ? score : max;
        sum += score;
    }
    const double gap = max - sum / (double)s.tk;
    if (threadIdx.x % WARP == 0) m[row] = isnan(gap) ? -INFINITY : gap;
}

/* A query is among the first `top` if fewer than that are before it; one thread per query, then one per head. */
static __global__ void __launch_bounds__(THREADS) before(char *among, const double *m, const taut_sparse s)
{
    const int64_t row = (int64_t)blockIdx.x * THREADS + threadIdx.x, i = row % s.tq;
    if (row >= s.n * s.heads * s.tq) return;
    const double *mine = m + (row - i);
    int64_t rank = 0;
    for (int64_t j = 0; j < s.tq; j++) rank += mine[j] > mine[i] || (j < i && mine[j] == mine[i]);
    among[row] = rank < s.top;
}
static __global__ void __launch_bounds__(THREADS) names(real *c, const char *among, const taut_sparse s)
{
    const int64_t index = (int64_t)blockIdx.x * THREADS + threadIdx.x;
    if (index >= s.n * s.heads) return;
    for (int64_t i = 0, n = 0; i < s.tq; i++)
        if (among[index * s.tq + i]) c[index * s.top + n++] = (real)i;
}

void CUDA(sparse_pick)(taut_real *c, const taut_real *q, const taut_real *k, const taut_sparse *s)
{
    const int64_t rows = s->n * s->heads * s->tq;
    double *m = (double *)cuda_work((size_t)rows * (sizeof(double) + 1));
    if (!m) return;
    char *among = (char *)(m + rows);
    CUDA_LAUNCH(uneven, blocks_for(rows, THREADS / WARP), THREADS, 0, m, at(q), at(k), *s);
    CUDA_LAUNCH(before, blocks_for(rows, THREADS), THREADS, 0, among, m, *s);
    CUDA_LAUNCH(names, blocks_for(s->n * s->heads, THREADS), THREADS, 0, at(c), among, *s);
}

/* o_i of all queries, as if none looked; also of tangents.  One thread per column. */
static __global__ void __launch_bounds__(THREADS) spread(real *o, const real *v, const taut_sparse s)
{
    const int64_t column = (int64_t)blockIdx.x * THREADS + threadIdx.x;
    if (column >= s.n * s.heads * s.dh) return;
    const head g(s, column / s.dh);
    const int64_t c = column % s.dh;
    double sum = 0;
    for (int64_t j = 0; j < s.tk; j++) {
        sum += (double)v[g.at(s.tk, j) + c];
        if (s.causal) o[g.at(s.tq, j) + c] = (real)sum;
    }
    for (int64_t i = 0; i < s.tq && !s.causal; i++) o[g.at(s.tq, i) + c] = (real)(sum / (double)s.tk);
}

/* p = the weights of query i, by a block; returns how many keys it sees */
static __device__ int64_t look(double *p, const head &g, int64_t i, const real *q, const real *k)
{
    const int64_t seen = g.seen(i);
    double max = -INFINITY, sum = 0;
    for (int64_t j = threadIdx.x / WARP; j < seen; j += THREADS / WARP) {
        const double logit = g.s.scale * dot(q + g.at(g.s.tq, i), k + g.at(g.s.tk, j), g.s.dh);
        if (threadIdx.x % WARP == 0) p[j] = logit;
    }
    __syncthreads();
    for (int64_t j = 0; j < seen; j++) max = fmax(max, p[j]);
    __syncthreads();
    for (int64_t j = threadIdx.x; j < seen; j += THREADS) sum += p[j] = exp(p[j] - max);
    sum = block_sum(sum);
    for (int64_t j = threadIdx.x; j < seen; j += THREADS) p[j] /= sum;
    __syncthreads();
    return seen;
}

/* t_j = P_j (t_j - sum P t), by a block */
static __device__ void softmax_slope(double *t, const double *p, int64_t seen)
{
    double mean = 0;
    __syncthreads();
    for (int64_t j = threadIdx.x; j < seen; j += THREADS) mean += p[j] * t[j];
    mean = block_sum(mean);
    for (int64_t j = threadIdx.x; j < seen; j += THREADS) t[j] = p[j] * (t[j] - mean);
    __syncthreads();
}

struct call {
    real *o, *gq;
    const real *tq, *tk, *tv, *go, *c, *q, *k, *v; /* tangents are NULL where there are none */
    double *rows;                                  /* of every row that looks p, then t */
};

/* A row's place in memory, and its query. */
static __device__ inline double *row_of(int64_t &i, const call &x, const taut_sparse &s)
{
    i = (int64_t)x.c[blockIdx.x];
    return x.rows + 2 * (int64_t)blockIdx.x * s.tk;
}

/* The row's output, or its tangent. */
static __global__ void __launch_bounds__(THREADS) looks(const call x, const taut_sparse s)
{
    const head g(s, blockIdx.x / s.top);
    int64_t i;
    double *p = row_of(i, x, s), *t = p + s.tk;
    const int64_t seen = look(p, g, i, x.q, x.k);
    if (x.tq) {
        for (int64_t j = threadIdx.x / WARP; j < seen; j += THREADS / WARP) {
            const double slope = dot(x.tq + g.at(s.tq, i), x.k + g.at(s.tk, j), s.dh) +
                                 dot(x.q + g.at(s.tq, i), x.tk + g.at(s.tk, j), s.dh);
            if (threadIdx.x % WARP == 0) t[j] = s.scale * slope;
        }
        softmax_slope(t, p, seen);
    }
    for (int64_t c = threadIdx.x; c < s.dh; c += THREADS) {
        double sum = 0;
        for (int64_t j = 0; j < seen; j++) {
            const int64_t at = g.at(s.tk, j) + c;
            sum += x.tq ? p[j] * (double)x.tv[at] + t[j] * (double)x.v[at] : p[j] * (double)x.v[at];
        }
        x.o[g.at(s.tq, i) + c] = (real)sum;
    }
}

static double *rows_for(const taut_sparse *s)
{
    return (double *)cuda_work((size_t)(2 * s->n * s->heads * s->top * s->tk + 1) * sizeof(double));
}

static void output(const call &x, const real *all, const taut_sparse *s)
{
    if (!x.rows) return;
    CUDA_LAUNCH(spread, blocks_for(s->n * s->heads * s->dh, THREADS), THREADS, 0, x.o, all, *s);
    CUDA_LAUNCH(looks, s->n * s->heads * s->top, THREADS, 0, x, *s);
}

void CUDA(sparse)(taut_real *o, const taut_real *c, const taut_real *q, const taut_real *k, const taut_real *v,
                  const taut_sparse *s)
{
    output({ at(o), NULL, NULL, NULL, NULL, NULL, at(c), at(q), at(k), at(v), rows_for(s) }, at(v), s);
}

void CUDA(sparse_jvp)(taut_real *to, const taut_real *tq, const taut_real *tk, const taut_real *tv, const taut_real *c,
                      const taut_real *q, const taut_real *k, const taut_real *v, const taut_sparse *s)
{
    output({ at(to), NULL, at(tq), at(tk), at(tv), NULL, at(c), at(q), at(k), at(v), rows_for(s) }, at(tv), s);
}

/* gq of the row, and its p and t for the keys. */
static __global__ void __launch_bounds__(THREADS) looks_back(const call x, const taut_sparse s)
{
    const head g(s, blockIdx.x / s.top);
    int64_t i;
    double *p = row_of(i, x, s), *t = p + s.tk;
    const int64_t seen = look(p, g, i, x.q, x.k);
    for (int64_t j = threadIdx.x / WARP; j < seen; j += THREADS / WARP) {
        const double slope = dot(x.go + g.at(s.tq, i), x.v + g.at(s.tk, j), s.dh);
        if (threadIdx.x % WARP == 0) t[j] = slope;
    }
    softmax_slope(t, p, seen);
    for (int64_t c = threadIdx.x; c < s.dh; c += THREADS) {
        double sum = 0;
        for (int64_t j = 0; j < seen; j++) sum += t[j] * (double)x.k[g.at(s.tk, j) + c];
        x.gq[g.at(s.tq, i) + c] = (real)(s.scale * sum);
    }
}

/* gv = what the queries that do not look send back: from the last on, for causal ones.  One thread per column. */
static __global__ void __launch_bounds__(THREADS)
    spread_back(real *gv, const real *go, const real *c_, const taut_sparse s)
{
    const int64_t column = (int64_t)blockIdx.x * THREADS + threadIdx.x, c = column % s.dh;
    if (column >= s.n * s.heads * s.dh) return;
    const head g(s, column / s.dh);
    const real *mine = c_ + column / s.dh * s.top;
    double sum = 0;
    for (int64_t i = s.tq - 1, r = s.top - 1; i >= 0; i--) {
        if (r >= 0 && (int64_t)mine[r] == i)
            r--;
        else
            sum += (double)go[g.at(s.tq, i) + c];
        if (s.causal) gv[g.at(s.tk, i) + c] = (real)sum;
    }
    for (int64_t j = 0; j < s.tk && !s.causal; j++) gv[g.at(s.tk, j) + c] = (real)(sum / (double)s.tk);
}

/* gv += and gk = what the rows that look send back.  One thread per entry. */
static __global__ void __launch_bounds__(THREADS) keys_back(real *gk, real *gv, const call x, const taut_sparse s)
{
    const int64_t entry = (int64_t)blockIdx.x * THREADS + threadIdx.x, c = entry % s.dh, j = entry / s.dh % s.tk;
    if (entry >= s.n * s.heads * s.dh * s.tk) return;
    const int64_t index = entry / s.dh / s.tk;
    const head g(s, index);
    double value = 0, key = 0;
    for (int64_t r = 0; r < s.top; r++) {
        const int64_t i = (int64_t)x.c[index * s.top + r];
        if (j >= g.seen(i)) continue;
        const double *p = x.rows + 2 * (index * s.top + r) * s.tk;
        value += p[j] * (double)x.go[g.at(s.tq, i) + c];
        key += p[s.tk + j] * (double)x.q[g.at(s.tq, i) + c];
    }
    gk[g.at(s.tk, j) + c] = (real)(s.scale * key);
    gv[g.at(s.tk, j) + c] = (real)((double)gv[g.at(s.tk, j) + c] + value);
}

void CUDA(sparse_vjp)(taut_real *gq, taut_real *gk, taut_real *gv, const taut_real *go, const taut_real *c,
                      const taut_real *q, const taut_real *k, const taut_real *v, const taut_sparse *s)
{
    const call x = { NULL, at(gq), NULL, NULL, NULL, at(go), at(c), at(q), at(k), at(v), rows_for(s) };
    const int64_t heads = s->n * s->heads, width = heads * s->dh;
    if (!x.rows || width == 0) return;
    cuda_note(cudaMemsetAsync(gq, 0, (size_t)(width * s->tq) * sizeof(real), cuda_stream()), "sparse");
    CUDA_LAUNCH(spread_back, blocks_for(width, THREADS), THREADS, 0, at(gv), x.go, x.c, *s);
    CUDA_LAUNCH(looks_back, heads * s->top, THREADS, 0, x, *s);
    CUDA_LAUNCH(keys_back, blocks_for(width * s->tk, THREADS), THREADS, 0, at(gk), at(gv), x, *s);
}
