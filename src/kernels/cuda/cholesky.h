/* A Cholesky factor A = L L^T in double, by blocks of SIDE columns.
 *
 * With the factor known up to column k, a step takes the block at the diagonal: D = L_kk by plain Cholesky in one
 * block's shared memory, and D^-1 with it.  Below it L_ik = A_ik D^-T, and A_ij -= L_ik L_jk^T.  One number says whether
 * a pivot was not positive and finite. */
#ifndef TAUT_KERNELS_CUDA_CHOLESKY_H
#define TAUT_KERNELS_CUDA_CHOLESKY_H
#include "kernels/cuda/cuda.h"

static const int SIDE = 32;

/* D (SIDE, SIDE) and its inverse, of the block at row and column `k`; `size` of it are inside the matrix.  Thread (row,
 * column). */
static __global__ void factor(double *l, double *inverse, int *bad, int64_t n, int64_t k, int size)
{
    __shared__ double d[SIDE][SIDE + 1], r[SIDE][SIDE + 1];
    const int i = threadIdx.x / SIDE, j = threadIdx.x % SIDE;
    d[i][j] = i < size && j <= i ? l[(k + i) * n + k + j] : i == j;
    for (int c = 0; c < size; c++) {
        __syncthreads();
        const double pivot = d[c][c];
        if (threadIdx.x == 0 && !(pivot > 0 && pivot < INFINITY)) *bad = 1;
        __syncthreads();
        if (j == c && i >= c) d[i][c] = i == c ? sqrt(pivot) : d[i][c] / sqrt(pivot);
        __syncthreads();
        if (j > c && j <= i) d[i][j] -= d[i][c] * d[j][c];
    }
    __syncthreads();
    for (int row = 0; row < SIDE; row++) { /* thread j of the first row of threads owns column j */
        if (i == 0) {
            double sum = row == j;
            for (int m = j; m < row; m++) sum -= d[row][m] * r[m][j];
            r[row][j] = row < j ? 0 : sum / d[row][row];
        }
        __syncthreads();
    }
    inverse[i * SIDE + j] = r[i][j];
    if (i < size && j < size) l[(k + i) * n + k + j] = d[i][j];
}

/* A matrix read through strides. */
struct operand {
    const double *x;
    int64_t row, col; /* strides */
    __device__ double at(int64_t i, int64_t j) const { return x[i * row + j * col]; }
};

/* out (rows, cols) = keep out + sign a b, a (rows, depth), b (depth, cols); a block makes SIDE x SIDE of it. */
static __global__ void multiply(double *out, int64_t stride, operand a, operand b, int64_t rows, int64_t cols,
                                int64_t depth, double keep, double sign, int64_t across)
{
    __shared__ double left[SIDE][SIDE + 1], right[SIDE][SIDE + 1];
    const int y = threadIdx.x / SIDE, x = threadIdx.x % SIDE;
    const int64_t i = blockIdx.x / across * SIDE + y, j = blockIdx.x % across * SIDE + x;
    double sum = 0;
    for (int64_t from = 0; from < depth; from += SIDE) {
        __syncthreads();
        left[y][x] = i < rows && from + x < depth ? a.at(i, from + x) : 0;
        right[y][x] = j < cols && from + y < depth ? b.at(from + y, j) : 0;
        __syncthreads();
        for (int m = 0; m < SIDE; m++) sum += left[y][m] * right[m][x];
    }
    if (i < rows && j < cols) out[i * stride + j] = (keep == 0 ? 0 : keep * out[i * stride + j]) + sign * sum;
}

static void times(double *out, int64_t stride, operand a, operand b, int64_t rows, int64_t cols, int64_t depth,
                  double keep, double sign)
{
    const int64_t across = blocks_for(cols, SIDE);
    CUDA_LAUNCH(multiply, blocks_for(rows, SIDE) * across, SIDE * SIDE, 0, out, stride, a, b, rows, cols, depth, keep,
                sign, across);
}

/* Columns k .. k + SIDE of the factor, in the place of A's; what is right of the diagonal block stays.  `row` has room for
 * SIDE (n - k) numbers, `small` for the inverse of the diagonal block. */
static void factor_columns(double *l, double *row, double *small, int *bad, int64_t n, int64_t k)
{
    const int64_t size = n - k < SIDE ? n - k : SIDE, below = n - k - size;
    double *under = l + (k + size) * n + k;
    CUDA_LAUNCH(factor, 1, SIDE * SIDE, 0, l, small, bad, n, k, (int)size);
    /* L = A D^-T: through `row`, which is (below, size) here, since the product cannot be made in place */
    times(row, size, { under, n, 1 }, { small, 1, SIDE }, below, size, size, 0, 1);
    if (below > 0)
        cuda_note(cudaMemcpy2DAsync(under, (size_t)n * sizeof *l, row, (size_t)size * sizeof *l,
                                    (size_t)size * sizeof *l, (size_t)below, cudaMemcpyDeviceToDevice, cuda_stream()),
                  "cholesky");
    times(l + (k + size) * n + k + size, n, { under, n, 1 }, { under, 1, n }, below, below, size, 1, -1);
}
#endif
