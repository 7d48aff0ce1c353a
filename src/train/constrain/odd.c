#include "train/constrain/odd.h"

void odd_gram(const taut_kernels *k, taut_real *g, const taut_real *x, const taut_real *y, int64_t rows, int64_t cols,
              double alpha)
{
    const bool wide = rows <= cols;
    const int64_t side = odd_side(rows, cols);
    k->gemm(g, x, y, side, side, wide ? cols : rows, !wide, wide, alpha, 0);
}

void odd_times(const taut_kernels *k, taut_real *y, const taut_real *m, const taut_real *x, int64_t rows, int64_t cols,
               double alpha, double beta)
{
    if (rows <= cols)
        k->gemm(y, m, x, rows, cols, rows, false, false, alpha, beta);
    else
        k->gemm(y, x, m, rows, cols, cols, false, false, alpha, beta);
}

void odd_step(const taut_kernels *k, taut_real *x, int64_t rows, int64_t cols, odd_quintic p, taut_span work)
{
    const int64_t side = odd_side(rows, cols), square = side * side, len = rows * cols;
    taut_real *before = taut_take(&work, len), *gram = taut_take(&work, square), *mix = taut_take(&work, square);
    odd_gram(k, gram, x, x, rows, cols, 1);
    k->axpby(mix, p.b, gram, 0, square);
    k->gemm(mix, gram, gram, side, side, side, false, false, p.c, 1);
    k->axpby(before, 1, x, 0, len);
    odd_times(k, x, mix, before, rows, cols, 1, p.a);
}
