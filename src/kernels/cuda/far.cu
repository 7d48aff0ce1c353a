/* What proofs ask of the device (base/far.h); bound/far.c has the proof.  Matrices are row-major.
 *
 * G is W^T W or W W^T by one product of cuBLASLt, its lower half copied from the upper one.  The factor is cholesky.h's, with
 * zeros above its diagonal.  Sums of squares: a thread adds up its own, a block those of its threads, one block those of all. */
#include "base/far.h"

#include <stdlib.h>
#include <string.h>

#include "kernels/cuda/cholesky.h"
#include "kernels/cuda/products.h"
#include "kernels/cuda/reduce.h"

static const int STEPS = 128, BLOCKS = 256;

/* Memory that grows. */
struct room {
    double *x;
    int64_t len;
};

static struct {
    int64_t n;
    room w, g, s, l, v,
        row; /* v: STEPS + 1 vectors; row: a factor's workspace, and other things that do not live long */
} held;

static double *reserve(room *r, int64_t len)
{
    if (len <= r->len) return r->x;
    cuda_note(cudaFree(r->x), "memory of a proof");
    size_t bytes = (size_t)len * sizeof *r->x;
    *r = { (double *)cuda_memory(bytes, bytes, &bytes), len };
    if (!r->x) *r = { NULL, 0 }, cuda_fault("memory of a proof: out of memory");
    return r->x;
}

static void as_double(void *to, const void *from, int64_t len) { memcpy(to, from, (size_t)len * sizeof(double)); }

static void up(double *to, const double *from, int64_t len)
{
    cuda_up(to, sizeof *to, from, sizeof *from, len, as_double);
}

static bool down(double *to, const double *from, int64_t len)
{
    return cuda_down(to, sizeof *to, from, sizeof *from, len, as_double) && !cuda_failed();
}

static void product(double *c, const double *a, bool ta, const double *b, bool tb, int64_t m, int64_t n, int64_t k,
                    double alpha, double beta)
{
    const cuda_product p = { m, n, k, ta, tb, 1, {}, {}, {}, (int)sizeof *c, false };
    cuda_multiply(&p, c, c, a, b, &alpha, &beta);
}

static bool far_gemm(double *c, const double *a, bool ta, const double *b, bool tb, int64_t m, int64_t n, int64_t k,
                     double alpha, double beta)
{
    cuda_enter();
    double *x = reserve(&held.w, m * k), *y = reserve(&held.s, k * n), *z = reserve(&held.l, m * n);
    if (!x || !y || !z) return false;
    up(x, a, m * k), up(y, b, k * n);
    if (beta != 0) up(z, c, m * n);
    product(z, x, ta, y, tb, m, n, k, alpha, beta);
    return down(c, z, m * n);
}

static __global__ void mirror(double *g, int64_t n)
{
    const int64_t i = blockIdx.x;
    for (int64_t j = threadIdx.x; j < i; j += THREADS) g[i * n + j] = g[j * n + i];
}

/* max |x_ii|, one block. */
static __global__ void largest(double *out, const double *x, int64_t n)
{
    __shared__ double part[THREADS];
    double most = 0;
    bool bad = false;
    for (int64_t i = threadIdx.x; i < n; i += THREADS)
        most = fmax(most, fabs(x[i * n + i])), bad |= isnan(x[i * n + i]);
    part[threadIdx.x] = bad ? NAN : most;
    __syncthreads();
    if (threadIdx.x != 0) return;
    for (int i = 0; i < THREADS; i++) most = isnan(part[i]) || isnan(most) ? NAN : fmax(most, part[i]);
    *out = most;
}

static bool far_hold(double *diagonal, const double *w, int64_t rows, int64_t cols)
{
    cuda_enter();
    const bool tall = rows >= cols;
    const int64_t n = tall ? cols : rows, m = tall ? rows : cols;
    double *x = reserve(&held.w, rows * cols), *g = reserve(&held.g, n * n), *one = reserve(&held.row, SIDE * n + 2048);
    held.n = n;
    if (!x || !g || !one) return false;
    up(x, w, rows * cols);
    product(g, x, tall, x, !tall, n, n, m, 1, 0);
    CUDA_LAUNCH(mirror, n, THREADS, 0, g, n);
    CUDA_LAUNCH(largest, 1, THREADS, 0, one, g, n);
    return down(diagonal, one, 1);
}

/* y_i = x_i . v for the rows x_i of a matrix (rows, n); `also`, if there, gets the last of them.  Block: a row. */
static __global__ void dots(double *y, const double *x, const double *v, int64_t n, double *also)
{
    const double *row = x + blockIdx.x * n;
    double sum = 0;
    for (int64_t j = threadIdx.x; j < n; j += THREADS) sum += row[j] * v[j];
    sum = block_sum(sum);
    if (threadIdx.x != 0) return;
    y[blockIdx.x] = sum;
    if (also && blockIdx.x + 1 == gridDim.x) *also = sum;
}

/* v minus sum h_i x_i.  Thread: an entry. */
static __global__ void subtract(double *v, const double *x, const double *h, int64_t rows, int64_t n)
{
    const int64_t j = (int64_t)blockIdx.x * THREADS + threadIdx.x;
    if (j >= n) return;
    double sum = v[j];
    for (int64_t i = 0; i < rows; i++) sum -= h[i] * x[i * n + j];
    v[j] = sum;
}

/* v becomes v / |v|, and *length |v|; nothing is left of a v that is only the rounding of `alpha`.  One block. */
static __global__ void unit(double *v, double *length, const double *alpha, int64_t n)
{
    double sum = 0;
    for (int64_t j = threadIdx.x; j < n; j += THREADS) sum += v[j] * v[j];
    const double size = sqrt(block_sum(sum)), beta = size > 1e-15 * fabs(*alpha) ? size : 0;
    for (int64_t j = threadIdx.x; j < n; j += THREADS) v[j] = beta > 0 ? v[j] / beta : 0;
    if (threadIdx.x == 0) *length = beta;
}

static bool far_lanczos(double *alpha, double *beta, const double *start, int from, int to)
{
    cuda_enter();
    const int64_t n = held.n;
    double *v = reserve(&held.v, (STEPS + 1) * n), *there = held.row.x, *h = there + 2 * STEPS;
    if (!v || to > STEPS) return false;
    if (from == 0) up(v, start, n);
    for (int64_t k = from; k < to; k++) {
        double *next = v + (k + 1) * n;
        CUDA_LAUNCH(dots, n, THREADS, 0, next, held.g.x, v + k * n, n, (double *)NULL);
        for (int pass = 0; pass < 2; pass++) {
            CUDA_LAUNCH(dots, k + 1, THREADS, 0, h, v, next, n, pass ? (double *)NULL : there + k);
            CUDA_LAUNCH(subtract, blocks_for(n, THREADS), THREADS, 0, next, v, h, k + 1, n);
        }
        CUDA_LAUNCH(unit, 1, THREADS, 0, next, there + STEPS + k, there + k, n);
    }
    return down(alpha + from, there + from, to - from) && down(beta + from, there + STEPS + from, to - from);
}

/* S = mu I - G, and a copy.  Block: a row. */
static __global__ void shift(double *s, double *l, const double *g, double mu, int64_t n)
{
    const int64_t i = blockIdx.x;
    for (int64_t j = threadIdx.x; j < n; j += THREADS)
        s[i * n + j] = l[i * n + j] = i == j ? mu - g[i * n + j] : -g[i * n + j];
}

static __global__ void clear_above(double *l, int64_t n)
{
    const int64_t i = blockIdx.x;
    for (int64_t j = i + 1 + threadIdx.x; j < n; j += THREADS) l[i * n + j] = 0;
}

static __global__ void squares(double *part, const double *x, int64_t len)
{
    double sum = 0;
    for (int64_t i = (int64_t)blockIdx.x * THREADS + threadIdx.x; i < len; i += (int64_t)BLOCKS * THREADS)
        sum += x[i] * x[i];
    sum = block_sum(sum);
    if (threadIdx.x == 0) part[blockIdx.x] = sum;
}

static __global__ void total(double *out, const double *part)
{
    const double sum = block_sum(part[threadIdx.x]);
    if (threadIdx.x == 0) *out = sum;
}

static void sum_squares(double *out, double *part, const double *x, int64_t len)
{
    CUDA_LAUNCH(squares, BLOCKS, THREADS, 0, part, x, len);
    CUDA_LAUNCH(total, 1, BLOCKS, 0, out, part);
}

static __global__ void as_number(double *out, const int *bad) { *out = *bad; }

static bool far_prove(taut_far_proof *p, double mu)
{
    cuda_enter();
    const int64_t n = held.n;
    double *s = reserve(&held.s, n * n), *l = reserve(&held.l, n * n),
           *small = reserve(&held.v, (STEPS + 1) * n + SIDE * SIDE);
    double *row = held.row.x, *facts = row + SIDE * n, *part = facts + 8, found[5];
    if (!s || !l || !small || !row) return false;
    int *bad = (int *)(facts + 7);
    cuda_note(cudaMemsetAsync(bad, 0, sizeof *bad, cuda_stream()), "a proof");
    CUDA_LAUNCH(shift, n, THREADS, 0, s, l, held.g.x, mu, n);
    CUDA_LAUNCH(largest, 1, THREADS, 0, facts, s, n);
    sum_squares(facts + 1, part, s, n * n);
    for (int64_t k = 0; k < n; k += SIDE) factor_columns(l, row, small, bad, n, k);
    CUDA_LAUNCH(clear_above, n, THREADS, 0, l, n);
    sum_squares(facts + 2, part, l, n * n);
    product(s, l, false, l, true, n, n, n, -1, 1);
    sum_squares(facts + 3, part, s, n * n);
    CUDA_LAUNCH(as_number, 1, 1, 0, facts + 4, bad);
    if (!down(found, facts, 5) || found[4] != 0) return false;
    *p = { found[0], found[1], found[2], found[3] };
    return true;
}

static const taut_far functions = { far_gemm, far_hold, far_lanczos, far_prove };

/* cuBLAS can be told from outside to make doubles of shorter numbers. */
extern "C" __attribute__((visibility("default"))) const taut_far *taut_cuda_far(const taut_host *host)
{
    const char *emulate = getenv("CUBLAS_EMULATE_DOUBLE_PRECISION");
    if (!emulate || strcmp(emulate, "0") == 0) return &functions;
    (void)host->fail(TAUT_DEVICE,
                     "kernels cuda64: proofs need true doubles, and CUBLAS_EMULATE_DOUBLE_PRECISION is set");
    return NULL;
}
