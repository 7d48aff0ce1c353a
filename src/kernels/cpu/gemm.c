/* C (m,n) = alpha op(A) op(B) + beta C, row-major: OpenBLAS, one single-threaded call a block of C.
 *
 * The blocks depend on m, n and k alone, so the same bits come out for any thread count.  They are as
 * large as leaves about 32 of them, because a call packs its strips of A and B anew.
 * Poison    NaN and infinity propagate; with beta = 0 nothing in C does.
 * Error     |C - exact| <= (k+4) 2^-24 (|alpha| |op A| |op B| + |beta C|), entry by entry (no Strassen). */
#include <cblas.h>

#include "kernels/cpu/cpu.h"

typedef struct {
    int64_t rows, cols;
} block;

static int64_t round_up(int64_t x, int64_t step) { return (x + step - 1) / step * step; }

/* Halve the longer side until there are enough blocks or they are too small to be worth a call. */
static block block_of(int64_t m, int64_t n, int64_t k)
{
    enum { ENOUGH = 32, STEP = 16, LEAST = 64 };
    block b = { m, n };
    for (int64_t count = 1; count < ENOUGH && (double)b.rows * (double)b.cols * (double)k > 1e6; count *= 2) {
        if (b.rows >= b.cols && b.rows > LEAST)
            b.rows = round_up((b.rows + 1) / 2, STEP);
        else if (b.cols > LEAST)
            b.cols = round_up((b.cols + 1) / 2, STEP);
        else
            break;
    }
    return b;
}

void CPU(gemm)(taut_real *c_, const taut_real *a_, const taut_real *b_, int64_t m, int64_t n, int64_t k,
               bool ta, bool tb, double alpha, double beta)
{
    if (m <= 0 || n <= 0) return;
    const block size = block_of(m, n, k);
    const int64_t down = (m + size.rows - 1) / size.rows, across = (n + size.cols - 1) / size.cols;
    const int64_t lda = ta ? m : k, ldb = tb ? k : n;
#pragma omp parallel for schedule(dynamic) if (down * across > 1)
    for (int64_t task = 0; task < down * across; task++) {
        const int64_t i = task / across * size.rows, j = task % across * size.cols;
        const float *a = (const float *)a_ + (ta ? i : i * k), *b = (const float *)b_ + (tb ? j * k : j);
        cblas_sgemm(CblasRowMajor, ta ? CblasTrans : CblasNoTrans, tb ? CblasTrans : CblasNoTrans,
                    (int)cpu_min(size.rows, m - i), (int)cpu_min(size.cols, n - j), (int)k, (float)alpha, a,
                    (int)(lda > 0 ? lda : 1), b, (int)(ldb > 0 ? ldb : 1), (float)beta,
                    (float *)c_ + i * n + j, (int)n);
    }
}
