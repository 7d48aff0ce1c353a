/* Spectral hard cap by the matrix-sign formula (enforced paper, section C):
 *     min(s, b) = (b + s - |b - s|) / 2,    W' = (b M + W - sign(b I - M W^T) (b M - W)) / 2,   M = sign(W).
 * Each new singular value lies between s and b whatever the inner sign is worth, and does not depend on M where s is
 * far below b; so errors are where |s - b| is below 1e-4 of ||b I - M W^T||_F, and smaller than that: at most about
 * 1e-3 b. */
#include "train/constrain/hardcap.h"

/* m <- edge I - m.  There is no slot for a diagonal, but a matrix with a longer stride is one. */
static void from_diagonal(const taut_kernels *k, taut_real *m, int64_t side, double edge, taut_real *diagonal)
{
    double part[256];
    k->axpby(m, -1, m, 0, side * side);
    k->copy_rows(diagonal, 1, m, side + 1, side, 1);
    for (int64_t i = 0; i < side; i += 256) {
        const int64_t count = side - i < 256 ? side - i : 256;
        k->get(part, taut_at(k, diagonal, i), count);
        for (int64_t j = 0; j < count; j++) part[j] += edge;
        k->put(taut_at(k, diagonal, i), part, count);
    }
    k->copy_rows(m, side + 1, diagonal, 1, side, 1);
}

void odd_fold(const taut_kernels *k, taut_real *w, const taut_real *sign, int64_t rows, int64_t cols, double edge,
              bool raise, taut_span work)
{
    const int64_t side = odd_side(rows, cols), len = rows * cols;
    taut_real *inner = taut_take(&work, side * side), *gap = taut_take(&work, len);
    odd_gram(k, inner, sign, w, rows, cols, 1);
    from_diagonal(k, inner, side, edge, gap);
    odd_sign(k, inner, side, side, 2, work);
    k->axpby(gap, 1, w, 0, len);
    k->axpby(gap, edge, sign, -1, len);
    k->axpby(w, edge / 2, sign, 0.5, len);
    odd_times(k, w, inner, gap, rows, cols, raise ? 0.5 : -0.5, 1);
}

void taut_hardcap(taut_hold h)
{
    const int64_t len = h.rows * h.cols;
    taut_real *sign = taut_take(&h.work, len);
    h.k->axpby(sign, 1, h.w, 0, len);
    odd_sign(h.k, sign, h.rows, h.cols, 1, h.work);
    odd_fold(h.k, h.w, sign, h.rows, h.cols, h.cap * hold_unit(&h), false, h.work);
}
