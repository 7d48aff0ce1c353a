/* Rows of a (rows, cols) matrix against one row that repeats, and means over tokens (formulas: ref/rows.c).
 *
 * Sums run in double: a block takes 32 columns of at most SLAB rows, 8 threads a column, whose sums are added in order;
 * slabs are added in order.
 * Aliasing  y may be x in add_rows and mul_rows.  Poison: NaN and infinity propagate.
 * Error     with u = 2^-24 (cuda64: 2^-53): add_rows, mul_rows, spread_tokens: 2 u |y|; copy_rows: none.
 *           sum_rows, dot_rows, mean_tokens: 2 u |result| + (rows+4) 2^-53 sum |terms|. */
#include "kernels/cuda/each.h"

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

static const int COLS = 32, DOWN = THREADS / COLS, SLAB = 128;

/* For g < groups: sum over i < count of x[g start + i step][c], times y there if there is a y. */
template <class T> struct columns {
    const T *x, *y;
    int64_t cols, groups, count, start, step;
};

/* Where a sum goes: to a slab's place, or to the result. */
struct to_slab {
    double *part;
    __device__ void put(int64_t i, double sum) const { part[i] = sum; }
};
struct to_result {
    real *y;
    double share; /* 0: the sum is added to y, else it is multiplied by this */
    __device__ void put(int64_t i, double sum) const { y[i] = (real)(share == 0 ? (double)y[i] + sum : sum * share); }
};

/* Block: 32 columns (fastest), a group, a slab. */
template <class T, class OUT>
static __global__ void __launch_bounds__(THREADS) slab_sums(OUT out, columns<T> c, int64_t across)
{
    __shared__ double sums[DOWN][COLS];
    const int64_t block = blockIdx.x / across, group = block % c.groups, slab = block / c.groups;
    const int64_t col = blockIdx.x % across * COLS + threadIdx.x % COLS, from = slab * SLAB;
    const int64_t to = min(c.count, from + SLAB);
    double sum = 0;
    if (col < c.cols) {
#pragma unroll 8
        for (int64_t i = from + threadIdx.x / COLS; i < to; i += DOWN) {
            const int64_t at = (group * c.start + i * c.step) * c.cols + col;
            sum += c.y ? (double)c.x[at] * (double)c.y[at] : (double)c.x[at];
        }
    }
    sums[threadIdx.x / COLS][threadIdx.x % COLS] = sum;
    __syncthreads();
    if (threadIdx.x >= COLS || col >= c.cols) return;
    for (int i = 1; i < DOWN; i++) sum += sums[i][threadIdx.x];
    out.put((slab * c.groups + group) * c.cols + col, sum);
}

/* Slabs are rows of `groups * cols` sums: they are summed in the same way, until there is one. */
template <class T> static void column_sums(const to_result &y, const columns<T> &c, double *part)
{
    const int64_t across = blocks_for(c.cols, COLS), slabs = c.count > 0 ? blocks_for(c.count, SLAB) : 1;
    const int64_t len = c.groups * c.cols;
    if (slabs == 1)
        CUDA_LAUNCH(slab_sums, across * c.groups, THREADS, 0, y, c, across);
    else {
        CUDA_LAUNCH(slab_sums, across * c.groups * slabs, THREADS, 0, to_slab{ part }, c, across);
        column_sums(y, columns<double>{ part, NULL, len, 1, slabs, 0, 1 }, part + slabs * len);
    }
}

static void all_sums(real *y, const columns<real> &c, double share)
{
    const int64_t len = c.groups * c.cols, slabs = blocks_for(c.count, SLAB);
    if (len <= 0) return;
    double *part = (double *)cuda_work((size_t)(slabs > 1 ? 2 * slabs * len : 1) * sizeof *part);
    if (part) column_sums(to_result{ y, share }, c, part);
}

/* Row r = i period + group, as far as there are rows: groups that have one more are summed apart. */
void CUDA(sum_rows)(taut_real *p, const taut_real *y, int64_t rows, int64_t cols, int64_t period)
{
    const int64_t whole = rows / period, more = rows % period;
    if (more > 0) all_sums(at(p), { at(y), NULL, cols, more, whole + 1, 1, period }, 0);
    if (whole > 0)
        all_sums(at(p) + more * cols, { at(y) + more * cols, NULL, cols, period - more, whole, 1, period }, 0);
}

void CUDA(dot_rows)(taut_real *g, const taut_real *x, const taut_real *y, int64_t rows, int64_t cols)
{
    all_sums(at(g), { at(x), at(y), cols, 1, rows, 0, 1 }, 0);
}

void CUDA(mean_tokens)(taut_real *y, const taut_real *x, int64_t n, int64_t t, int64_t d)
{
    all_sums(at(y), { at(x), NULL, d, n, t, t, 1 }, 1 / (double)t);
}
