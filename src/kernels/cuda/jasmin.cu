/* The JaSMin penalty of attention (formulas: ref/jasmin.c; the row: jasmin_row.h), in double.
 *
 * A warp makes the weights of a row, its penalty and the derivative by its logits, and says of a head which rows count; gradients
 * are summed entry by entry, queries in order.  A head whose rows fit into a block's shared memory is that block's from beginning
 * to end; of larger ones as many as fit into ROOM go through the backend's memory, a launch for every part.  NaN spreads.
 * Error     of the sum (tk + dh + 64) 2^-50 of the penalties' sizes; of gq and gk one rounding and as much of the sizes
 *           that are added. */
#include "kernels/cuda/jasmin_row.h"

#define ROOM ((int64_t)1 << 28) /* bytes, unless one head takes more */

struct group {
    taut_attn a;
    taut_jasmin p;
    int64_t first, heads; /* of example * heads + head */
    int64_t wide;         /* from a row of x to the next */
    double *x; /* (heads, tq, wide): weights, and then in their place the penalty's derivatives by the logits */
    double *value, *factor; /* (heads, tq): a row's penalty; the factor of its derivatives, 0 where it does not count */
    double *total;          /* (heads) */
};

/* The tokens of a head. */
template <class T> struct tokens {
    const T *x;
    int64_t stride;
};

static __device__ inline int64_t visible(const taut_attn &a, int64_t i)
{
    const int64_t end = i + a.tk - a.tq + 1;
    return a.causal && end < a.tk ? (end > 0 ? end : 0) : a.tk;
}
static __device__ inline int64_t token(const group &g, int64_t t, int64_t head, int64_t i)
{
    const int64_t of = g.first + head;
    return ((of / g.a.heads * t + i) * g.a.heads + of % g.a.heads) * g.a.dh;
}
static __device__ inline tokens<real> tokens_of(const real *x, const group &g, int64_t t, int64_t head)
{
    return { x + token(g, t, head, 0), g.a.heads * g.a.dh };
}

/* The products q_i.k_j become the softmax of the logits; a lane has every WARP-th. */
static __device__ inline void softmax(const group &g, int64_t head, int64_t i)
{
    const taut_attn &a = g.a;
    const int keys = (int)visible(a, i), lane = threadIdx.x % WARP;
    const double slope = a.alibi ? exp2(-8.0 * (double)((g.first + head) % a.heads + 1) / (double)a.heads) : 0;
    double *x = g.x + (head * a.tq + i) * g.wide, max = -INFINITY, sum = 0;
    for (int j = lane; j < keys; j += WARP) {
        x[j] = a.scale * x[j];
        if (a.alibi) x[j] -= slope * fabs((double)(i + a.tk - a.tq - j));
        max = fmax(max, x[j]);
    }
    for (int far = WARP / 2; far > 0; far /= 2) max = fmax(max, __shfl_xor_sync(~0u, max, far));
    if (max == -INFINITY) max = 0;
    for (int j = lane; j < keys; j += WARP) sum += x[j] = exp(x[j] - max);
    sum = warp_sum(sum);
    for (int j = lane; j < keys; j += WARP) x[j] /= sum;
}

/* The penalty of a row, and its derivatives. */
static __device__ inline void penalty(const group &g, int64_t row)
{
    const int keys = (int)visible(g.a, row % g.a.tq);
    const bool counts = jasmin_counts(&g.p, keys);
    const double value = counts ? row_penalty(g.x + row * g.wide, keys, g.p) : 0;
    if (threadIdx.x % WARP == 0) g.factor[row] = 0, g.value[row] = value;
}

/* The penalty of a head, and which rows count how much. */
static __device__ inline void weigh(const group &g, int64_t head)
{
    const int tq = (int)g.a.tq, lane = threadIdx.x % WARP;
    const double *value = g.value + head * tq;
    const auto counts = [&](int i) { return jasmin_counts(&g.p, visible(g.a, i)); };
    const double count = over_row(tq, [&](int i) { return counts(i) ? 1.0 : 0; });
    const double sum = over_row(tq, [&](int i) { return counts(i) ? value[i] : 0; });
    double most = -INFINITY;
    int worst = tq;
    for (int i = lane; i < tq; i += WARP)
        if (counts(i)) most = fmax(most, value[i]);
    for (int far = WARP / 2; far > 0; far /= 2) most = fmax(most, __shfl_xor_sync(~0u, most, far));
    for (int i = lane; i < tq; i += WARP)
        if (counts(i) && (isnan(sum) ? isnan(value[i]) : value[i] == most)) worst = min(worst, i);
    worst = (int)__reduce_min_sync(~0u, (unsigned)worst);
    for (int i = lane; i < tq; i += WARP)
        if (counts(i) && (g.p.mean || i == worst))
            g.factor[head * tq + i] = g.p.weight * g.a.scale / (g.p.mean ? count : 1);
    if (lane == 0) g.total[head] = count == 0 ? 0 : g.p.mean || isnan(sum) ? sum / count : most;
}

enum { RUN = 4 }; /* rows of a thread: what they share is read once */

/* Entry c of the gradients by the queries i, i + step, ..., RUN of them, and by such keys j. */
template <class T>
static __device__ inline void add_query(real *gq, const group &g, tokens<T> k, int64_t head, int64_t i, int64_t step,
                                        int64_t c)
{
    const double *gz[RUN];
    double sum[RUN] = { 0 }, factor[RUN];
    int seen[RUN], most = 0;
#pragma unroll
    for (int r = 0; r < RUN; r++) {
        const int64_t row = head * g.a.tq + i + r * step;
        factor[r] = i + r * step < g.a.tq ? g.factor[row] : 0;
        gz[r] = g.x + row * g.wide, seen[r] = factor[r] == 0 ? 0 : (int)visible(g.a, i + r * step);
        most = max(most, seen[r]);
    }
    for (int j = 0; j < most; j++) {
        const double x = (double)k.x[j * k.stride + c];
#pragma unroll
        for (int r = 0; r < RUN; r++)
            if (j < seen[r]) sum[r] += gz[r][j] * x;
    }
#pragma unroll
    for (int r = 0; r < RUN; r++) {
        if (factor[r] == 0) continue;
        real &to = gq[token(g, g.a.tq, head, i + r * step) + c];
        to = (real)((double)to + factor[r] * sum[r]);
    }
}
template <class T>
static __device__ inline void add_key(real *gk, const group &g, tokens<T> q, int64_t head, int64_t j, int64_t step,
                                      int64_t c)
{
    double sum[RUN] = { 0 };
    const double *gz = g.x + head * g.a.tq * g.wide + j, *factor = g.factor + head * g.a.tq;
    for (int i = 0; i < (int)g.a.tq; i++, gz += g.wide) {
        if (factor[i] == 0) continue;
        const int seen = (int)(visible(g.a, i) - j);
        const double x = factor[i] * (double)q.x[i * q.stride + c];
#pragma unroll
        for (int r = 0; r < RUN; r++)
            if (r * (int)step < seen) sum[r] += gz[r * (int)step] * x;
    }
    for (int r = 0; r < RUN && j + r * step < g.a.tk; r++) {
        real &to = gk[token(g, g.a.tk, head, j + r * step) + c];
        to = (real)((double)to + sum[r]);
    }
}

/* A block has a head; its queries, keys and weights stand in shared memory, rows an odd number of places apart: threads meet
 * different banks.  All are doubles there: what is read so often should not be converted every time. */
struct layout {
    int64_t wide, side; /* from row to row of weights, of tokens */
    size_t bytes;
};
static __host__ __device__ inline layout layout_of(const taut_attn &a)
{
    const int64_t wide = a.tk | 1, side = a.dh | 1;
    return { wide, side, (size_t)(a.tq * (wide + 2) + (a.tq + a.tk) * side) * sizeof(double) };
}

/* Weights, penalties and slopes of the rows i .. i + RUN - 1; a lane has two keys at a time. */
static __device__ inline void near_weights(const group &g, tokens<double> q, tokens<double> k, int i)
{
    const int tq = (int)g.a.tq, tk = (int)g.a.tk, dh = (int)g.a.dh;
    for (int j = threadIdx.x % WARP; j < tk; j += 2 * WARP) {
        double dot[RUN][2] = { 0 };
        const int other = min(j + WARP, tk - 1);
        for (int c = 0; c < dh; c++) {
            const double one = k.x[j * k.stride + c], two = k.x[other * k.stride + c];
#pragma unroll
            for (int r = 0; r < RUN; r++) {
                const double x = q.x[min(i + r, tq - 1) * q.stride + c];
                dot[r][0] += x * one, dot[r][1] += x * two;
            }
        }
#pragma unroll
        for (int r = 0; r < RUN; r++) {
            if (i + r < tq) g.x[(i + r) * g.wide + j] = dot[r][0];
            if (i + r < tq && j + WARP < tk) g.x[(i + r) * g.wide + j + WARP] = dot[r][1];
        }
    }
    for (int r = 0; r < RUN && i + r < tq; r++) softmax(g, 0, i + r), penalty(g, i + r);
}

static __global__ void __launch_bounds__(THREADS)
    whole_head(real *gq, real *gk, const real *q, const real *k, const group all)
{
    extern __shared__ double room[];
    const taut_attn &a = all.a;
    const layout l = layout_of(a);
    const int tq = (int)a.tq, tk = (int)a.tk, dh = (int)a.dh;
    double *value = room + tq * l.wide, *mine = value + 2 * tq, *keys = mine + tq * l.side;
    const group g = { a, all.p, blockIdx.x, 1, l.wide, room, value, value + tq, all.total + blockIdx.x };
    const tokens<double> near_q = { mine, l.side }, near_k = { keys, l.side };
    for (int e = threadIdx.x; e < tq * dh; e += THREADS)
        mine[e / dh * l.side + e % dh] = (double)q[token(g, tq, 0, e / dh) + e % dh];
    for (int e = threadIdx.x; e < tk * dh; e += THREADS)
        keys[e / dh * l.side + e % dh] = (double)k[token(g, tk, 0, e / dh) + e % dh];
    __syncthreads();
    for (int i = threadIdx.x / WARP * RUN; i < tq; i += THREADS / WARP * RUN) near_weights(g, near_q, near_k, i);
    __syncthreads();
    if (threadIdx.x < WARP) weigh(g, 0);
    __syncthreads();
    const int across = min(dh, THREADS), step = THREADS / across, first = threadIdx.x / across;
    for (int c = threadIdx.x % across; c < dh && first < step; c += across) {
        for (int i = first; i < tq; i += RUN * step) add_query(gq, g, near_k, 0, i, step, c);
        for (int j = first; j < tk; j += RUN * step) add_key(gk, g, near_q, 0, j, step, c);
    }
}

static const int SIDE = 64, TEAMS = THREADS / WARP; /* numbers of a key that stand in shared memory; rows of a block */

/* dot += q_i.k_j over entries c .. c + SIDE - 1, for the WARP keys from j = first on, one a lane.  All threads of a block come
 * here: its rows are of one head. */
static __device__ inline void add_dots(double &dot, const group &g, const real *mine, tokens<real> k, int64_t first,
                                       int64_t c)
{
    __shared__ real keys[WARP][SIDE + 1];
    const int side = (int)(g.a.dh - c < SIDE ? g.a.dh - c : SIDE), lane = threadIdx.x % WARP;
    __syncthreads(); /* whoever read `keys` before is done */
    for (int e = threadIdx.x; e < WARP * side; e += THREADS) {
        const int64_t j = first + e / side;
        if (j < g.a.tk) keys[e / side][e % side] = k.x[j * k.stride + c + e % side];
    }
    __syncthreads();
    if (!mine || first + lane >= g.a.tk) return;
    for (int e = 0; e < side; e++) dot += (double)mine[c + e] * (double)keys[lane][e];
}

static __global__ void __launch_bounds__(THREADS) weights(const group g, const real *q, const real *k)
{
    const taut_attn &a = g.a;
    const int64_t blocks = (a.tq + TEAMS - 1) / TEAMS, head = blockIdx.x / blocks, lane = threadIdx.x % WARP;
    const int64_t i = blockIdx.x % blocks * TEAMS + threadIdx.x / WARP;
    const real *mine = i < a.tq ? q + token(g, a.tq, head, i) : NULL;
    double *x = g.x + (head * a.tq + i) * g.wide;
    for (int64_t first = 0; first < a.tk; first += WARP) {
        double dot = 0;
        for (int64_t c = 0; c < a.dh; c += SIDE) add_dots(dot, g, mine, tokens_of(k, g, a.tk, head), first, c);
        if (mine && first + lane < a.tk) x[first + lane] = dot;
    }
    if (mine) softmax(g, head, i), penalty(g, head * a.tq + i);
}

static __global__ void __launch_bounds__(THREADS) weigh_heads(const group g)
{
    const int64_t head = (int64_t)blockIdx.x * TEAMS + threadIdx.x / WARP;
    if (head < g.heads) weigh(g, head);
}

static __global__ void __launch_bounds__(THREADS) add_queries(real *gq, const real *k, const group g)
{
    const int64_t entry = (int64_t)blockIdx.x * THREADS + threadIdx.x, step = (g.a.tq + RUN - 1) / RUN;
    const int64_t of = entry / g.a.dh, head = of / step;
    if (head < g.heads) add_query(gq, g, tokens_of(k, g, g.a.tk, head), head, of % step, step, entry % g.a.dh);
}

static __global__ void __launch_bounds__(THREADS) add_keys(real *gk, const real *q, const group g)
{
    const int64_t entry = (int64_t)blockIdx.x * THREADS + threadIdx.x, step = (g.a.tk + RUN - 1) / RUN;
    const int64_t of = entry / g.a.dh, head = of / step;
    if (head < g.heads) add_key(gk, g, tokens_of(q, g, g.a.tq, head), head, of % step, step, entry % g.a.dh);
}

static __global__ void __launch_bounds__(THREADS) add_total(double *sum, const group g)
{
    double all = 0;
    for (int64_t head = threadIdx.x; head < g.heads; head += THREADS) all += g.total[head];
    all = block_sum(all);
    if (threadIdx.x == 0) *sum += g.p.weight * all;
}

/* Every head a block's. */
static void by_blocks(double *sum, real *gq, real *gk, const real *q, const real *k, group g)
{
    const size_t bytes = layout_of(g.a).bytes;
    g.total = (double *)cuda_work((size_t)g.heads * sizeof(double));
    if (!g.total) return;
    cuda_note(cudaFuncSetAttribute(whole_head, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)bytes), "jasmin");
    CUDA_LAUNCH(whole_head, g.heads, THREADS, bytes, gq, gk, q, k, g);
    CUDA_LAUNCH(add_total, 1, THREADS, 0, sum, g);
}

/* A few heads at a time, through memory. */
static void by_parts(double *sum, real *gq, real *gk, const real *q, const real *k, group g)
{
    const taut_attn &a = g.a;
    const int64_t all = g.heads, each = a.tq * (a.tk + 2) + 1, most = ROOM / (each * (int64_t)sizeof(double));
    const int64_t many = most < 1 ? 1 : all < most ? all : most;
    g.x = (double *)cuda_work((size_t)(many * each) * sizeof(double));
    g.wide = a.tk;
    for (g.first = 0; g.first < all && g.x; g.first += many) {
        g.heads = all - g.first < many ? all - g.first : many;
        const int64_t rows = g.heads * a.tq;
        g.value = g.x + rows * a.tk, g.factor = g.value + rows, g.total = g.factor + rows;
        CUDA_LAUNCH(weights, g.heads * blocks_for(a.tq, TEAMS), THREADS, 0, g, q, k);
        CUDA_LAUNCH(weigh_heads, blocks_for(g.heads, TEAMS), THREADS, 0, g);
        CUDA_LAUNCH(add_queries, blocks_for(g.heads * blocks_for(a.tq, RUN) * a.dh, THREADS), THREADS, 0, gq, k, g);
        CUDA_LAUNCH(add_keys, blocks_for(g.heads * blocks_for(a.tk, RUN) * a.dh, THREADS), THREADS, 0, gk, q, g);
        CUDA_LAUNCH(add_total, 1, THREADS, 0, sum, g);
    }
}

void CUDA(attention_jasmin)(taut_sum *sum, taut_real *gq, taut_real *gk, const taut_real *q, const taut_real *k,
                            const taut_attn *a, const taut_jasmin *p)
{
    const group g = { *a, *p, 0, a->n * a->heads };
    if (g.heads * a->tq == 0) return;
    (layout_of(*a).bytes <= SHARED_MOST ? by_blocks : by_parts)(at(sum), at(gq), at(gk), at(q), at(k), g);
}
