/* Bjorck: on singular values s <- s (3 - s^2)/2, which converges to 1 from (0, sqrt 3).  X is first scaled so that s <=
 * 1.3, by ||X||^4 <= ||G^2||_F with G = X^T X on the smaller side, which is at most sqrt(side) too much. */
#include "train/constrain/orthogonal.h"

static int64_t smaller(int64_t a, int64_t b) { return a < b ? a : b; }
static int64_t larger(int64_t a, int64_t b) { return a < b ? b : a; }

/* gram = X^T X or X X^T, on the smaller side */
static void gram_of(const taut_kernels *k, taut_real *gram, const taut_real *x, int64_t rows, int64_t cols)
{
    const bool wide = rows <= cols;
    const int64_t side = smaller(rows, cols);
    k->gemm(gram, x, x, side, side, larger(rows, cols), !wide, wide, 1, 0);
}

/* Scales X so that its largest singular value is at most 1.3; zero stays zero. */
static void fit(const taut_kernels *k, taut_real *x, taut_real *gram, taut_real *square, taut_sum *room, int64_t rows,
                int64_t cols)
{
    const int64_t side = smaller(rows, cols), len = rows * cols;
    taut_make_unit(k, room, x, len);
    gram_of(k, gram, x, rows, cols);
    k->gemm(square, gram, gram, side, side, side, false, false, 1, 0);
    k->dot(room, square, 0, square, 0, 1, side * side);
    k->sum_op(room, TAUT_SUM_ROOT, 1, room, NULL, 1);
    k->sum_op(room, TAUT_SUM_ROOT, 1, room, NULL, 1); /* at least ||X||^2 */
    k->sum_op(room, TAUT_SUM_UNIT, 1.3, room, NULL, 1);
    k->axpby_by(x, 0, (taut_factor){ 0, NULL }, NULL, 0, (taut_factor){ 1, room }, 1, len);
}

void taut_bjorck(const taut_kernels *k, taut_real *x, taut_real *work, int64_t rows, int64_t cols, int steps)
{
    const int64_t side = smaller(rows, cols), len = rows * cols;
    const bool wide = rows <= cols;
    taut_span rest = { work, len + 2 * side * side + taut_sums_len(2), k->elem };
    taut_real *next = taut_take(&rest, len), *gram = taut_take(&rest, side * side);
    taut_real *square = taut_take(&rest, side * side);
    fit(k, x, gram, square, taut_take_sums(&rest, 2), rows, cols);
    for (int i = 0; i < steps; i++) {
        gram_of(k, gram, x, rows, cols);
        k->axpby(next, 1.5, x, 0, len);
        if (wide)
            k->gemm(next, gram, x, rows, cols, rows, false, false, -0.5, 1);
        else
            k->gemm(next, x, gram, rows, cols, cols, false, false, -0.5, 1);
        k->axpby(x, 1, next, 0, len);
    }
}
