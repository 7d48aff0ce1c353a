/* cholesky_inverse (ref/cholesky.c), in double, by blocks of SIDE columns of the factor (cholesky.h).  The inverse R grows
 * along: row k of it is R_k = D^-1 (I_k - sum over j < k of L_kj R_j).
 * Error  |r - exact| <= (u + n^2 2^-50 K) |r| as matrices in the Frobenius norm, u = 2^-24 (cuda64: 2^-53), K the
 * condition number of a + shift I. */
#include "kernels/cuda/cholesky.h"
#include "kernels/cuda/each.h"

struct shifted {
    double *l;
    const real *a;
    double shift;
    divisor n;
    __device__ double read(int64_t i) const { return (double)a[i] + (n.quotient(i) == n.remainder(i) ? shift : 0); }
    __device__ void write(int64_t i, double v) const { l[i] = v; }
};

struct result {
    real *r;
    const double *x;
    const int *bad;
    divisor n;
    __device__ real read(int64_t i) const
    {
        return *bad ? (real)NAN : n.remainder(i) <= n.quotient(i) ? (real)x[i] : 0;
    }
    __device__ void write(int64_t i, real v) const { r[i] = v; }
};

/* Columns k .. k + SIDE of the factor, and those rows of the inverse; `row` has room for SIDE rows. */
static void step(double *l, double *inverse, double *row, double *small, int *bad, int64_t n, int64_t k)
{
    const int64_t size = n - k < SIDE ? n - k : SIDE;
    factor_columns(l, row, small, bad, n, k);
    /* R_k = D^-1 (I_k - L_k R): the diagonal block is D^-1 itself */
    times(row, n, { l + k * n, n, 1 }, { inverse, n, 1 }, size, k, k, 0, -1);
    times(inverse + k * n, n, { small, SIDE, 1 }, { row, n, 1 }, size, k, size, 0, 1);
    cuda_note(cudaMemcpy2DAsync(inverse + k * n + k, (size_t)n * sizeof *l, small, SIDE * sizeof *l,
                                (size_t)size * sizeof *l, (size_t)size, cudaMemcpyDeviceToDevice, cuda_stream()),
              "cholesky");
}

void CUDA(cholesky_inverse)(taut_real *r, const taut_real *a, double shift, int64_t n)
{
    if (n <= 0) return;
    double *l = (double *)cuda_work((size_t)(2 * n * n + SIDE * n + SIDE * SIDE + 1) * sizeof *l);
    if (!l) return;
    double *inverse = l + n * n, *row = inverse + n * n, *small = row + SIDE * n;
    int *bad = (int *)(small + SIDE * SIDE);
    cuda_note(cudaMemsetAsync(inverse, 0, (size_t)(n * n) * sizeof *l, cuda_stream()), "cholesky");
    cuda_note(cudaMemsetAsync(bad, 0, sizeof *bad, cuda_stream()), "cholesky");
    each(shifted{ l, at(a), shift, divisor(n * n, n) }, n * n);
    for (int64_t k = 0; k < n; k += SIDE) step(l, inverse, row, small, bad, n, k);
    each(result{ at(r), inverse, bad, divisor(n * n, n) }, n * n);
}
