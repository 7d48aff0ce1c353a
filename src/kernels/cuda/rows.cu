/* Rows of a (rows, cols) matrix against one row that repeats, and means over tokens (formulas: ref/rows.c).
 *
 * Sums run in double: a block takes 32 groups of neighbouring columns of at most SLAB rows, 8 threads a group, whose sums are
 * added in order; slabs are added in the same way, by the block that ends last: which one that is does not matter.
 * Aliasing  y may be x in add_rows and mul_rows.  Poison: NaN and infinity propagate.
 * Error     with u = 2^-24 (cuda64: 2^-53): add_rows, mul_rows, spread_tokens: 2 u |y|; copy_rows: none.
 *           sum_rows, dot_rows, mean_tokens: 2 u |result| + (rows+4) 2^-53 sum |terms|. */
#include "kernels/cuda/each.h"
#include "kernels/cuda/lowered.h"

/* G numbers at a time.  low: y as bf16 (lowered.h), or NULL. */
template <int G> struct plus_rows {
    real *y;
    void *low;
    const real *x, *p;
    divisor repeat; /* of groups: period * cols */
    __device__ group<G> read(int64_t i) const
    {
        group<G> v = ((const group<G> *)x)[i];
        const group<G> more = ((const group<G> *)p)[repeat.remainder(i)];
#pragma unroll
        for (int g = 0; g < G; g++) v.x[g] += more.x[g];
        return v;
    }
    __device__ void write(int64_t i, const group<G> &v) const
    {
        ((group<G> *)y)[i] = v;
        lower_group<G>(low, i, v.x);
    }
};

template <int G> static void add_groups(real *y, void *low, const real *x, const real *p, int64_t len, int64_t repeat)
{
    each(plus_rows<G>{ y, low, x, p, divisor(len / G, repeat / G) }, len / G);
}

void CUDA(add_rows)(taut_real *y, const taut_real *x, const taut_real *p, int64_t rows, int64_t cols, int64_t period)
{
    const int64_t len = rows * cols;
    const bool wide = cols % WIDE == 0 && wide_part(len, x, y, p) > 0;
    const cuda_says says;
    void *const low = says.lowers(at(y), len);
    (wide ? add_groups<WIDE> : add_groups<1>)(at(y), low, at(x), at(p), len, period * cols);
}

struct times_rows {
    real *y;
    const real *x, *g;
    divisor cols;
    __device__ real read(int64_t i) const { return x[i] * g[cols.remainder(i)]; }
    __device__ void write(int64_t i, real v) const { y[i] = v; }
};

void CUDA(mul_rows)(taut_real *y, const taut_real *x, const taut_real *g, int64_t rows, int64_t cols)
{
    const cuda_says says;
    says.writes(at(y), rows * cols);
    each(times_rows{ at(y), at(x), at(g), divisor(rows * cols, cols) }, rows * cols);
}

struct copied {
    real *y;
    int64_t y_stride;
    const real *x;
    int64_t x_stride;
    divisor cols;
    struct place {
        real value;
        int64_t to;
    };
    __device__ place read(int64_t i) const
    {
        const int64_t r = cols.quotient(i), c = i - r * cols.by;
        return { x[r * x_stride + c], r * y_stride + c };
    }
    __device__ void write(int64_t, place p) const { y[p.to] = p.value; }
};

void CUDA(copy_rows)(taut_real *y, int64_t y_stride, const taut_real *x, int64_t x_stride, int64_t rows, int64_t cols)
{
    const cuda_says says;
    says.writes(at(y), rows > 0 ? (rows - 1) * y_stride + cols : 0);
    each(copied{ at(y), y_stride, at(x), x_stride, divisor(rows * cols, cols) }, rows * cols);
}

struct spread {
    real *x;
    const real *y;
    real share;
    int64_t d;
    divisor example, cols;
    __device__ real read(int64_t i) const { return y[example.quotient(i) * d + cols.remainder(i)] * share; }
    __device__ void write(int64_t i, real v) const { x[i] = v; }
};

void CUDA(spread_tokens)(taut_real *x, const taut_real *y, int64_t n, int64_t t, int64_t d)
{
    const int64_t len = n * t * d;
    const cuda_says says;
    says.writes(at(x), len);
    each(spread{ at(x), at(y), (real)(1.0 / (double)t), d, divisor(len, t * d), divisor(len, d) }, len);
}

static const int ACROSS = 32, DOWN = THREADS / ACROSS, SLAB = 128, TICKETS = 1 << 14;

/* For g < groups: sum over i < count of x[g start + i step][c], times y there if there is a y, into sum[g][c], and of x
 * alone into plain[g][c] as well, if there is one.  The slabs that a column is cut into leave their sums in `part`. */
struct columns {
    const real *x, *y;
    int64_t cols, groups, count, start, step;
    real *sum, *plain;
    double share; /* 0: a sum is added to what is there, else it is multiplied by this */
    double *part;
    int64_t across, slabs;
    __device__ void put(real *to, int64_t i, double s) const
    {
        to[i] = (real)(share == 0 ? (double)to[i] + s : s * share);
    }
};

/* How many slabs of each chunk of columns are done; whoever is last leaves 0. */
static __device__ unsigned tickets[TICKETS];

/* A thread's sums become those over the DOWN threads of its columns, in order. */
template <int S, int G> __device__ static inline void add_down(double (&sum)[S][G])
{
    __shared__ double sums[DOWN][ACROSS * S * G];
    const int down = threadIdx.x / ACROSS, lane = threadIdx.x % ACROSS;
    __syncthreads(); /* whoever read `sums` before is done */
#pragma unroll
    for (int i = 0; i < S * G; i++) sums[down][i * ACROSS + lane] = sum[i / G][i % G];
    __syncthreads();
#pragma unroll
    for (int i = 0; i < S * G; i++) {
        double all = 0;
        for (int k = 0; k < DOWN; k++) all += sums[k][i * ACROSS + lane];
        sum[i / G][i % G] = all;
    }
}

/* Whether this block is the last of its columns; then it sees what the others wrote. */
__device__ static inline bool all_done(unsigned *ticket, unsigned slabs)
{
    __shared__ bool last;
    __threadfence();
    __syncthreads();
    if (threadIdx.x == 0) last = atomicInc(ticket, slabs - 1) == slabs - 1;
    __syncthreads();
    __threadfence();
    return last;
}

/* Block: a chunk of ACROSS groups of G columns (fastest, `chunks` of them from `first` on), a slab.  The last slab adds up all.
 * S is 2 where there is `plain`. */
template <int S, int G>
static __global__ void __launch_bounds__(THREADS) slab_sums(columns c, int64_t first, int64_t chunks)
{
    const int64_t chunk = first + blockIdx.x % chunks, of = chunk / c.across, slab = blockIdx.x / chunks;
    const int64_t col = (chunk % c.across * ACROSS + threadIdx.x % ACROSS) * G, from = slab * SLAB;
    const int64_t to = col < c.cols ? min(c.count, from + SLAB) : 0, len = c.groups * c.cols, out = of * c.cols + col;
    double sum[S][G] = {};
#pragma unroll 8
    for (int64_t i = from + threadIdx.x / ACROSS; i < to; i += DOWN) {
        const int64_t at = (of * c.start + i * c.step) * c.cols + col;
        const group<G> x = *(const group<G> *)(c.x + at), y = c.y ? *(const group<G> *)(c.y + at) : x;
#pragma unroll
        for (int g = 0; g < G; g++) {
            sum[0][g] += c.y ? (double)x.x[g] * (double)y.x[g] : (double)x.x[g];
            if (S == 2) sum[S - 1][g] += (double)x.x[g];
        }
    }
    add_down(sum);
    const bool mine = threadIdx.x < ACROSS && col < c.cols;
    if (c.slabs > 1) {
#pragma unroll
        for (int i = 0; i < S * G; i++)
            if (mine) c.part[(slab * S + i / G) * len + out + i % G] = sum[i / G][i % G];
        if (!all_done(&tickets[blockIdx.x % chunks], (unsigned)c.slabs)) return;
#pragma unroll
        for (int i = 0; i < S * G; i++) sum[i / G][i % G] = 0;
        if (col < c.cols)
#pragma unroll 4
            for (int64_t k = threadIdx.x / ACROSS; k < c.slabs; k += DOWN)
#pragma unroll
                for (int i = 0; i < S * G; i++)
                    sum[i / G][i % G] += __ldcg(c.part + (k * S + i / G) * len + out + i % G);
        add_down(sum);
    }
#pragma unroll
    for (int g = 0; g < G; g++) {
        if (mine) c.put(c.sum, out + g, sum[0][g]);
        if (mine && S == 2) c.put(c.plain, out + g, sum[S - 1][g]);
    }
}

template <int S, int G> static void sum_columns(columns c)
{
    c.across = blocks_for(c.cols, ACROSS * G), c.slabs = c.count > 0 ? blocks_for(c.count, SLAB) : 1;
    const int64_t all = c.across * c.groups, len = S * c.groups * c.cols, most = c.slabs > 1 ? TICKETS : all;
    if (all <= 0) return;
    c.part = (double *)cuda_work((size_t)(c.slabs > 1 ? c.slabs * len : 1) * sizeof *c.part);
    for (int64_t first = 0; c.part && first < all; first += most) {
        const int64_t chunks = all - first < most ? all - first : most;
        CUDA_LAUNCH((slab_sums<S, G>), chunks * c.slabs, THREADS, 0, c, first, chunks);
    }
}

/* 16 bytes at a time, where arrays and columns allow it. */
static void all_sums(const columns &c)
{
    const bool wide = c.cols % WIDE == 0 && c.cols >= 64 && ((uintptr_t)c.x | (uintptr_t)c.y) % 16 == 0;
    (c.plain ? (wide ? sum_columns<2, WIDE> : sum_columns<2, 1>) : (wide ? sum_columns<1, WIDE> : sum_columns<1, 1>))(
        c);
}

/* Row r = i period + group, as far as there are rows: groups that have one more are summed apart. */
void CUDA(sum_rows)(taut_real *p, const taut_real *y, int64_t rows, int64_t cols, int64_t period)
{
    const int64_t whole = rows / period, more = rows % period;
    const cuda_says says;
    says.writes(at(p), period * cols);
    if (more > 0) all_sums({ at(y), NULL, cols, more, whole + 1, 1, period, at(p) });
    if (whole > 0) all_sums({ at(y) + more * cols, NULL, cols, period - more, whole, 1, period, at(p) + more * cols });
}

void CUDA(dot_rows)(taut_real *g, taut_real *s, const taut_real *x, const taut_real *y, int64_t rows, int64_t cols)
{
    const cuda_says says;
    says.writes(at(g), cols);
    if (s) says.writes(at(s), cols);
    all_sums({ at(x), at(y), cols, 1, rows, 0, 1, at(g), at(s) });
}

void CUDA(mean_tokens)(taut_real *y, const taut_real *x, int64_t n, int64_t t, int64_t d)
{
    const cuda_says says;
    says.writes(at(y), n * d);
    all_sums({ at(x), NULL, d, n, t, t, 1, at(y), NULL, 1 / (double)t });
}
