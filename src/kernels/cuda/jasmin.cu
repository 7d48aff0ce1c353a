/* The JaSMin penalty of attention (formulas: ref/jasmin.c; the row: kernels/jasmin.h), in double.
 *
 * Heads go through the backend's memory in groups that fit into ROOM: a warp makes the weights of a row, a thread its
 * penalty and the derivative by its logits, a thread per head says which rows count, and gradients are summed entry by
 * entry, queries in order.  NaN spreads.
 * Error     of the sum (tk + dh + 64) 2^-50 of the penalties' sizes; of gq and gk one rounding and as much of the sizes
 *           that are added. */
#include "kernels/jasmin.h"

#include "kernels/cuda/reduce.h"

#define ROOM ((int64_t)1 << 28) /* bytes, unless one head takes more */
#define NEAR ((int64_t)1 << 25) /* the same where rows are short: what is written stays in the chip until it is read */

struct group {
    taut_attn a;
    taut_jasmin p;
    int64_t first, heads; /* of example * heads + head */
    double *x, *gz, *value,
        *factor;   /* (heads, tq, tk) twice, (heads, tq) twice; factor: of gz, 0 where it does not count */
    double *total; /* (heads) */
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

static const int SIDE = 64, TEAMS = THREADS / WARP; /* numbers of a key that stand in shared memory; rows of a block */

/* dot += q_i.k_j over entries c .. c + SIDE - 1, for the WARP keys from j = first on, one a lane.  All threads of a block come
 * here: its rows are of one head. */
static __device__ inline void add_dots(double &dot, const group &g, const real *mine, const real *k, int64_t head,
                                       int64_t first, int64_t c)
{
    __shared__ real keys[WARP][SIDE + 1];
    const int side = (int)(g.a.dh - c < SIDE ? g.a.dh - c : SIDE), lane = threadIdx.x % WARP;
    __syncthreads(); /* whoever read `keys` before is done */
    for (int e = threadIdx.x; e < WARP * side; e += THREADS) {
        const int64_t j = first + e / side;
        if (j < g.a.tk) keys[e / side][e % side] = k[token(g, g.a.tk, head, j) + c + e % side];
    }
    __syncthreads();
    if (!mine || first + lane >= g.a.tk) return;
    for (int e = 0; e < side; e++) dot += (double)mine[c + e] * (double)keys[lane][e];
}

/* One warp per row: x = softmax of the logits. */
static __global__ void __launch_bounds__(THREADS) weights(const group g, const real *q, const real *k)
{
    const taut_attn &a = g.a;
    const int64_t blocks = (a.tq + TEAMS - 1) / TEAMS, head = blockIdx.x / blocks, lane = threadIdx.x % WARP;
    const int64_t i = blockIdx.x % blocks * TEAMS + threadIdx.x / WARP, keys = i < a.tq ? visible(a, i) : 0;
    const real *mine = i < a.tq ? q + token(g, a.tq, head, i) : NULL;
    const double slope = a.alibi ? exp2(-8.0 * (double)((g.first + head) % a.heads + 1) / (double)a.heads) : 0;
    double *x = g.x + (head * a.tq + i) * a.tk, max = -INFINITY, sum = 0;
    for (int64_t first = 0; first < a.tk; first += WARP) {
        const int64_t j = first + lane;
        double dot = 0;
        for (int64_t c = 0; c < a.dh; c += SIDE) add_dots(dot, g, mine, k, head, first, c);
        if (j >= keys) continue;
        x[j] = a.scale * dot - slope * fabs((double)(i + a.tk - a.tq - j));
        max = fmax(max, x[j]);
    }
    for (int far = WARP / 2; far > 0; far /= 2) max = fmax(max, __shfl_xor_sync(~0u, max, far));
    if (max == -INFINITY) max = 0;
    for (int64_t j = lane; j < keys; j += WARP) sum += x[j] = exp(x[j] - max);
    sum = warp_sum(sum);
    for (int64_t j = lane; j < keys; j += WARP) x[j] /= sum;
}

/* One thread per row: its penalty, and gz.  A row is passed over ten times: where `wide` is not 0 the rows of a block stand in
 * shared memory meanwhile, so far apart. */
static __global__ void __launch_bounds__(WARP) penalties(const group g, int wide)
{
    extern __shared__ double rows[];
    const int64_t first = (int64_t)blockIdx.x * WARP, row = first + threadIdx.x, all = g.heads * g.a.tq;
    const int there = (int)(all - first < WARP ? all - first : WARP), tk = (int)g.a.tk;
    const double *x = wide ? rows + threadIdx.x * wide : g.x + row * tk;
    double *gz = wide ? rows + (WARP + threadIdx.x) * wide : g.gz + row * tk;
    for (int r = 0; wide && r < there; r++)
        for (int j = threadIdx.x; j < tk; j += WARP) rows[r * wide + j] = g.x[(first + r) * tk + j];
    __syncwarp();
    if (row < all) {
        const int64_t keys = visible(g.a, row % g.a.tq);
        g.factor[row] = 0;
        if (jasmin_counts(&g.p, keys)) g.value[row] = jasmin_row(gz, x, keys, &g.p);
    }
    __syncwarp();
    for (int r = 0; wide && r < there; r++)
        for (int j = threadIdx.x; j < tk; j += WARP) g.gz[(first + r) * tk + j] = rows[(WARP + r) * wide + j];
}

/* One thread per head: its penalty, and which rows count how much. */
static __global__ void __launch_bounds__(WARP) heads(const group g)
{
    const int64_t head = (int64_t)blockIdx.x * WARP + threadIdx.x, at = head * g.a.tq;
    if (head >= g.heads) return;
    int64_t count = 0, worst = -1;
    double sum = 0, most = 0;
    for (int64_t i = 0; i < g.a.tq; i++) {
        if (!jasmin_counts(&g.p, visible(g.a, i))) continue;
        const double value = g.value[at + i];
        if (worst < 0 || value > most) worst = i, most = value;
        sum += value;
        count++;
    }
    for (int64_t i = 0; i < g.a.tq && count > 0; i++)
        if (jasmin_counts(&g.p, visible(g.a, i)) && (g.p.mean || i == worst))
            g.factor[at + i] = g.p.weight * g.a.scale / (g.p.mean ? (double)count : 1);
    g.total[head] = count == 0 ? 0 : g.p.mean ? sum / (double)count : most;
}

static __global__ void __launch_bounds__(THREADS) add_total(double *sum, const group g)
{
    double all = 0;
    for (int64_t head = threadIdx.x; head < g.heads; head += THREADS) all += g.total[head];
    all = block_sum(all);
    if (threadIdx.x == 0) *sum += g.p.weight * all;
}

/* One thread per entry of gq. */
static __global__ void __launch_bounds__(THREADS) add_queries(real *gq, const real *k, const group g)
{
    const int64_t entry = (int64_t)blockIdx.x * THREADS + threadIdx.x, row = entry / g.a.dh, c = entry % g.a.dh;
    if (row >= g.heads * g.a.tq || g.factor[row] == 0) return;
    const int64_t head = row / g.a.tq, i = row % g.a.tq;
    double sum = 0;
    for (int64_t j = 0; j < visible(g.a, i); j++)
        sum += g.gz[row * g.a.tk + j] * (double)k[token(g, g.a.tk, head, j) + c];
    real &to = gq[token(g, g.a.tq, head, i) + c];
    to = (real)((double)to + g.factor[row] * sum);
}

/* One thread per entry of gk. */
static __global__ void __launch_bounds__(THREADS) add_keys(real *gk, const real *q, const group g)
{
    const int64_t entry = (int64_t)blockIdx.x * THREADS + threadIdx.x, key = entry / g.a.dh, c = entry % g.a.dh;
    if (key >= g.heads * g.a.tk) return;
    const int64_t head = key / g.a.tk, j = key % g.a.tk;
    double sum = 0;
    for (int64_t i = 0; i < g.a.tq; i++) {
        const int64_t row = head * g.a.tq + i;
        if (j < visible(g.a, i) && g.factor[row] != 0)
            sum += g.factor[row] * g.gz[row * g.a.tk + j] * (double)q[token(g, g.a.tq, head, i) + c];
    }
    real &to = gk[token(g, g.a.tk, head, j) + c];
    to = (real)((double)to + sum);
}

void CUDA(attention_jasmin)(taut_sum *sum, taut_real *gq, taut_real *gk, const taut_real *q, const taut_real *k,
                            const taut_attn *a, const taut_jasmin *p)
{
    const int64_t all = a->n * a->heads, each = 2 * a->tq * a->tk + 2 * a->tq + 1;
    if (all * a->tq == 0) return;
    const size_t shared = 2 * WARP * (size_t)(a->tk | 1) * sizeof(double); /* odd: threads meet different banks */
    const bool fits = shared <= SHARED;
    const int64_t most = (fits ? NEAR : ROOM) / (each * 8), many = most < 1 ? 1 : all < most ? all : most;
    double *room = (double *)cuda_work((size_t)(many * each) * sizeof(double));
    for (int64_t first = 0; first < all && room; first += many) {
        const int64_t count = all - first < many ? all - first : many, rows = count * a->tq, square = rows * a->tk;
        const group g = { *a,
                          *p,
                          first,
                          count,
                          room,
                          room + square,
                          room + 2 * square,
                          room + 2 * square + rows,
                          room + 2 * square + 2 * rows };
        CUDA_LAUNCH(weights, count * blocks_for(a->tq, TEAMS), THREADS, 0, g, at(q), at(k));
        CUDA_LAUNCH(penalties, blocks_for(rows, WARP), WARP, fits ? shared : 0, g, fits ? (int)(a->tk | 1) : 0);
        CUDA_LAUNCH(heads, blocks_for(count, WARP), WARP, 0, g);
        CUDA_LAUNCH(add_total, 1, THREADS, 0, at(sum), g);
        CUDA_LAUNCH(add_queries, blocks_for(rows * a->dh, THREADS), THREADS, 0, at(gq), at(k), g);
        CUDA_LAUNCH(add_keys, blocks_for(count * a->tk * a->dh, THREADS), THREADS, 0, at(gk), at(q), g);
    }
}
