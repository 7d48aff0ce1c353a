/* Power iteration with G = W W^T (or W^T W, whichever is smaller), of which the eighth power is taken first: a
 * product with G^8 is worth eight iterations.  A fixed number of times from a given start, so that the same weights
 * always give the same bits, also after a resume.  The answer is |W v| <= ||W||: an estimate from below.  16
 * iterations miss the top of Gaussian matrices, which is hard to find, by 0.15 % on average and 0.6 % at worst (1024
 * x 256); where the top stands out they miss nothing. */
#include "train/constrain/odd.h"

enum { SQUARINGS = 3 };

/* G^8 / |.| in one of the two places; 0 when W is 0. */
static taut_real *gram_power(const taut_kernels *k, taut_real *g, taut_real *other, taut_sum *room, const taut_real *w,
                             int64_t rows, int64_t cols)
{
    const int64_t side = odd_side(rows, cols);
    odd_gram(k, g, w, w, rows, cols, 1);
    taut_make_unit(k, room, g, side * side);
    for (int i = 0; i < SQUARINGS; i++) {
        taut_real *last = g;
        k->gemm(other, last, last, side, side, side, false, false, 1, 0);
        taut_make_unit(k, room, other, side * side);
        g = other, other = last;
    }
    return g;
}

void est_top_pair(const taut_kernels *k, taut_sum *top, taut_real *u, taut_real *v, const taut_real *w, int64_t rows,
                  int64_t cols, int iterations, taut_span work)
{
    const bool wide = rows <= cols;
    const int64_t side = odd_side(rows, cols);
    taut_real *a = taut_take(&work, side * side), *b = taut_take(&work, side * side), *next = taut_take(&work, side);
    taut_sum *room = taut_take_sums(&work, 2);
    taut_real *x = wide ? u : v;
    const taut_real *g = gram_power(k, a, b, room, w, rows, cols);
    if (wide) k->gemm(u, w, v, rows, 1, cols, false, false, 1, 0);
    taut_make_unit(k, room, x, side);
    for (int i = 0; i < iterations; i++) {
        k->gemm(next, g, x, side, 1, side, false, false, 1, 0);
        taut_make_unit(k, room, next, side);
        k->axpby(x, 1, next, 0, side);
    }
    if (wide) {
        k->gemm(v, w, u, cols, 1, rows, true, false, 1, 0);
        taut_make_unit(k, room, v, cols);
    }
    k->gemm(u, w, v, rows, 1, cols, false, false, 1, 0);
    taut_make_unit(k, room, u, rows);
    k->sum_op(top, TAUT_SUM_ROOT, 1, room, NULL, 1);
}

double est_hold_top(taut_hold *h, taut_real **u, taut_real **v)
{
    *u = taut_take(&h->work, h->rows);
    *v = taut_take(&h->work, h->cols);
    taut_sum *top = taut_take_sums(&h->work, 1);
    double size;
    h->k->axpby(*v, 1, h->start, 0, h->cols);
    est_top_pair(h->k, top, *u, *v, h->w, h->rows, h->cols, h->iterations, h->work);
    return h->k->read(&size, top, 1) ? NAN : size / hold_unit(h);
}

double est_hold_norm(taut_hold h)
{
    taut_real *u, *v;
    return est_hold_top(&h, &u, &v);
}

/* The hard cap needs most: a matrix sign, what it is taken of, and the room to take it. */
int64_t taut_hold_work(int64_t rows, int64_t cols)
{
    const int64_t side = odd_side(rows, cols);
    return 3 * rows * cols + 4 * side * side + rows + cols + 3 * taut_sums_len(2);
}
