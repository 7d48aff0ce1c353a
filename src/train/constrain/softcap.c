/* Spectral soft cap:  W <- p2(p1(W)),  p1 = s - alpha s^3, p2 = s + alpha s^3, alpha from cap_strength.c.  k >= s1
 * is how large the step may have made W: from ||W|| <= cap, k = cap (1 - decay) + the step's norm.  0: not known,
 * and taken from an estimate of s1.
 *
 * Slack   From ||W|| <= cap before the step and an honest k, only rounding, about 1e-7.  Without that history, a
 *         norm above k is first scaled down to k by power iteration, and what that misses (1 or 2 %) may remain.
 *         Where no alpha exists (k > 81/31 cap) the matrix is scaled down to cap instead.
 * Cost    With A = alpha W W^T on the smaller side, p2(p1(W)) = W - (3 A^2 - 3 A^3 + A^4) W: the Gram matrix, two
 *         small squares and one product, half of what the two cubics cost one after the other. */
#include "train/constrain/odd.h"

/* sqrt of the top eigenvalue of g, by power iteration with its square, which we have anyway. */
static double est_from_square(const taut_hold *h, const taut_real *g, const taut_real *g2, taut_real *x,
                              taut_real *next, taut_sum *room)
{
    const taut_kernels *k = h->k;
    const int64_t side = odd_side(h->rows, h->cols);
    k->axpby(x, 1, h->start, 0, side);
    for (int i = 0; i < h->iterations; i++) {
        k->gemm(next, g2, x, side, 1, side, false, false, 1, 0);
        k->axpby(x, 1, next, 0, side);
        taut_make_unit(k, room, x, side);
    }
    k->gemm(next, g, x, side, 1, side, false, false, 1, 0);
    return sqrt(taut_dot(k, room, x, next, side));
}

void taut_softcap(taut_hold h, double k)
{
    const taut_kernels *t = h.k;
    const int64_t side = odd_side(h.rows, h.cols), square = side * side, len = h.rows * h.cols;
    const double unit = hold_unit(&h), most = k == 0 ? 1.02 * est_hold_norm(h) : fmax(k, h.cap);
    double alpha;
    if (!taut_cap_strength(&alpha, h.cap, k == 0 ? most : k)) {
        taut_normalise(h);
        return;
    }
    taut_real *w = taut_take(&h.work, len), *a = taut_take(&h.work, square), *a2 = taut_take(&h.work, square);
    taut_real *sum = taut_take(&h.work, square);
    taut_sum *room = taut_take_sums(&h.work, 2);
    odd_gram(t, a, h.w, h.w, h.rows, h.cols, 1 / (unit * unit));
    t->gemm(a2, a, a, side, side, side, false, false, 1, 0);
    const bool above = est_from_square(&h, a, a2, w, sum, room) > most; /* rarely: then it is worth a better look */
    const double c = above ? fmin(1, most / est_hold_norm(h)) : 1, c2 = c * c * alpha;
    if (c < 1) t->axpby(h.w, c, h.w, 0, len);
    if (alpha == 0) return;

    t->axpby(a2, c2 * c2, a2, 0, square);
    t->axpby(sum, 3, a2, 0, square);
    t->axpby(a, 1, a2, -3 * c2, square);                       /* A^2 - 3 A */
    t->gemm(sum, a2, a, side, side, side, false, false, 1, 1); /* 3 A^2 + A^2 (A^2 - 3 A) */
    t->axpby(w, 1, h.w, 0, len);
    odd_times(t, h.w, sum, w, h.rows, h.cols, -1, 1);
}
