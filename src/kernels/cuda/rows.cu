/* Rows of a (rows, cols) matrix against one row that repeats, and means over tokens (formulas: ref/rows.c).
 *
 * Sums run in double: a block takes 32 columns of at most SLAB rows, 8 threads a column, whose sums are added in order;
 * slabs are added in the same way, by the block that ends last: which one that is does not matter.
 * Aliasing  y may be x in add_rows and mul_rows.  Poison: NaN and infinity propagate.
 * Error     with u = 2^-24 (cuda64: 2^-53): add_rows, mul_rows, spread_tokens: 2 u |y|; copy_rows: none.
 *           sum_rows, dot_rows, mean_tokens: 2 u |result| + (rows+4) 2^-53 sum |terms|. */
#include "kernels/cuda/each.h"
#include "kernels/cuda/lowered.h"

struct plus_rows {
    real *y;
    const real *x, *p;
    divisor repeat; /* period * cols */
    __device__ real read(int64_t i) const { return x[i] + p[repeat.remainder(i)]; }
    __device__ void write(int64_t i, real v) const { y[i] = v; }
};

void CUDA(add_rows)(taut_real *y, const taut_real *x, const taut_real *p, int64_t rows, int64_t cols, int64_t period)
{
    each(plus_rows{ at(y), at(x), at(p), divisor(rows * cols, period * cols) }, rows * cols);
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
    each(spread{ at(x), at(y), (real)(1.0 / (double)t), d, divisor(len, t * d), divisor(len, d) }, len);
}

static const int COLS = 32, DOWN = THREADS / COLS, SLAB = 128, TICKETS = 1 << 14;

/* For g < groups: sum over i < count of x[g start + i step][c], times y there if there is a y, into sum[g][c].  The slabs
 * that a column is cut into leave their sums in `part`. */
struct columns {
    const real *x, *y;
    int64_t cols, groups, count, start, step;
    real *sum;
    double share; /* 0: the sum is added to what is there, else it is multiplied by this */
    double *part;
    int64_t across, slabs;
    __device__ void put(int64_t i, double s) const { sum[i] = (real)(share == 0 ? (double)sum[i] + s : s * share); }
};

/* How many slabs of each 32 columns are done; whoever is last leaves 0. */
static __device__ unsigned tickets[TICKETS];

/* Every thread gets the sum over the DOWN threads of its column, in order. */
__device__ static inline double add_down(double x)
{
    __shared__ double sums[DOWN][COLS];
    double sum = 0;
    __syncthreads(); /* whoever read `sums` before is done */
    sums[threadIdx.x / COLS][threadIdx.x % COLS] = x;
    __syncthreads();
    for (int i = 0; i < DOWN; i++) sum += sums[i][threadIdx.x % COLS];
    return sum;
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

/* Block: 32 columns of a group (fastest, `chunks` of them from `first` on), a slab.  The last slab adds up all. */
static __global__ void __launch_bounds__(THREADS) slab_sums(columns c, int64_t first, int64_t chunks)
{
    const int64_t chunk = first + blockIdx.x % chunks, group = chunk / c.across, slab = blockIdx.x / chunks;
    const int64_t col = chunk % c.across * COLS + threadIdx.x % COLS, from = slab * SLAB;
    const int64_t to = col < c.cols ? min(c.count, from + SLAB) : 0, len = c.groups * c.cols,
                  out = group * c.cols + col;
    double sum = 0;
#pragma unroll 8
    for (int64_t i = from + threadIdx.x / COLS; i < to; i += DOWN) {
        const int64_t at = (group * c.start + i * c.step) * c.cols + col;
        sum += c.y ? (double)c.x[at] * (double)c.y[at] : (double)c.x[at];
    }
    sum = add_down(sum);
    const bool mine = threadIdx.x < COLS && col < c.cols;
    if (c.slabs > 1) {
        if (mine) c.part[slab * len + out] = sum;
        if (!all_done(&tickets[blockIdx.x % chunks], (unsigned)c.slabs)) return;
        sum = 0;
        if (col < c.cols)
#pragma unroll 4
            for (int64_t i = threadIdx.x / COLS; i < c.slabs; i += DOWN) sum += __ldcg(c.part + i * len + out);
        sum = add_down(sum);
    }
    if (mine) c.put(out, sum);
}

static void all_sums(columns c)
{
    c.across = blocks_for(c.cols, COLS), c.slabs = c.count > 0 ? blocks_for(c.count, SLAB) : 1;
    const int64_t all = c.across * c.groups, len = c.groups * c.cols, most = c.slabs > 1 ? TICKETS : all;
    if (all <= 0) return;
    c.part = (double *)cuda_work((size_t)(c.slabs > 1 ? c.slabs * len : 1) * sizeof *c.part);
    for (int64_t first = 0; c.part && first < all; first += most) {
        const int64_t chunks = all - first < most ? all - first : most;
        CUDA_LAUNCH(slab_sums, chunks * c.slabs, THREADS, 0, c, first, chunks);
    }
}

/* Row r = i period + group, as far as there are rows: groups that have one more are summed apart. */
void CUDA(sum_rows)(taut_real *p, const taut_real *y, int64_t rows, int64_t cols, int64_t period)
{
    const int64_t whole = rows / period, more = rows % period;
    cuda_lowered_begin();
    cuda_lowered_wrote(p, (size_t)(period * cols) * sizeof(real));
    if (more > 0) all_sums({ at(y), NULL, cols, more, whole + 1, 1, period, at(p) });
    if (whole > 0) all_sums({ at(y) + more * cols, NULL, cols, period - more, whole, 1, period, at(p) + more * cols });
    cuda_lowered_end();
}

void CUDA(dot_rows)(taut_real *g, const taut_real *x, const taut_real *y, int64_t rows, int64_t cols)
{
    all_sums({ at(x), at(y), cols, 1, rows, 0, 1, at(g) });
}

void CUDA(mean_tokens)(taut_real *y, const taut_real *x, int64_t n, int64_t t, int64_t d)
{
    all_sums({ at(x), NULL, d, n, t, t, 1, at(y), 1 / (double)t });
}
