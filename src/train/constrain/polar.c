/* Steps of Newton and Schulz towards the nearest matrices with orthonormal rows or columns, X <- 1.5 X - 0.5 X X^T X: of an
 * error e they leave 1.5 e^2.  k steps of length lr along the tangent space of square matrices lead to e <= (k lr)^2, so
 * one is enough; others may go further, and have two. */
#include "train/alike.h"
#include "train/constrain/hold.h"

static int64_t one_work(const taut_param *p)
{
    const int64_t side = p->rows < p->cols ? p->rows : p->cols;
    return 2 * p->rows * p->cols + side * side;
}

int64_t taut_polar_work(const taut_model *m)
{
    int64_t most = 0;
    for (int i = 0; i < m->weights; i++) {
        const taut_param *p = m->weight[i].param;
        const int64_t len = taut_is_matrix(p) ? taut_side_by_side(m, p) * one_work(p) : 0;
        if (len > most) most = len;
    }
    return most;
}

/* Matrices like weight number i, the first of them. */
static void polar(const taut_model *m, int i, int times, taut_real *work)
{
    const taut_kernels *k = m->k;
    const taut_param *p = m->weight[i].param;
    const taut_weight *chosen[TAUT_SIDE_BY_SIDE];
    const int64_t rows = p->rows, cols = p->cols, len = rows * cols;
    const bool wide = rows <= cols;
    const int64_t side = wide ? rows : cols, other = wide ? cols : rows;
    const int most = taut_side_by_side(m, p);
    for (int count; (count = taut_next_alike(chosen, m, &i, p, most)) > 0;) {
        taut_real *x = work, *next = taut_at(k, x, most * len), *gram = taut_at(k, next, most * len);
        taut_real *w[TAUT_SIDE_BY_SIDE], *copy[TAUT_SIDE_BY_SIDE];
        for (int j = 0; j < count; j++) w[j] = chosen[j]->param->value;
        taut_lay_out(k, copy, x, count, len);
        k->axpby_all(copy, 1, w, 0, count, len);
        for (int step = 0; step < (rows == cols ? times : 2 * times); step++) {
            k->gemm_each(gram, gram, x, x, count, side, side, other, !wide, wide, 1, 0);
            k->gemm_each(next, x, wide ? gram : x, wide ? x : gram, count, rows, cols, side, false, false, -0.5, 1.5);
            taut_real *before = x;
            x = next, next = before;
        }
        taut_lay_out(k, copy, x, count, len);
        k->axpby_all(w, 1, copy, 0, count, len);
    }
}

void taut_polar(const taut_model *m, int times, taut_real *work)
{
    for (int i = 0; i < m->weights; i++)
        if (taut_first_alike(m, i)) polar(m, i, times, work);
}
