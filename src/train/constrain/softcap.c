/* Spectral soft cap:  W <- p2(p1(W)),  p1 = s - alpha s^3, p2 = s + alpha s^3, alpha from cap_strength.c.  k >= s1
 * is how large the step may have made W: from ||W|| <= cap, k = cap (1 - decay) + the step's norm.  0: not known,
 * and taken from an estimate of s1.
 *
 * Slack   From ||W|| <= cap before the step and an honest k, only rounding, about 1e-7.  Without that history, and where
 *         it is asked for (`look`), a norm above k is first scaled down to k by power iteration, and what that misses (1
 *         or 2 %) may remain.  Where no alpha exists (k > 81/31 cap) the matrix is scaled down to cap instead.
 * Cost    With A = alpha W W^T on the smaller side, p2(p1(W)) = W - (3 A^2 - 3 A^3 + A^4) W: the Gram matrix, two
 *         small squares and one product, half of what the two cubics cost one after the other.  Matrices of one shape go
 *         side by side; without `look` and with known k the host waits for nothing. */
#include "train/alike.h"
#include "train/constrain/odd.h"

typedef struct { /* `count` matrices, each array one behind the other */
    const taut_kernels *k;
    int64_t count, rows, cols, side;
    taut_real *w, *next;            /* rows cols */
    taut_real *gram, *square, *sum; /* side^2 */
    taut_real *x, *y;               /* side */
    taut_sum *room;                 /* 2 */
} group;

int64_t taut_softcap_work(int64_t rows, int64_t cols, int64_t count)
{
    const int64_t side = odd_side(rows, cols);
    return count * (2 * rows * cols + 3 * side * side + 2 * side) + taut_sums_len(2 * count) +
           taut_hold_work(rows, cols);
}

static group take(const taut_hold *h, int count, taut_span *work)
{
    const int64_t side = odd_side(h->rows, h->cols), len = count * h->rows * h->cols, square = count * side * side;
    group g = { .k = h->k, .count = count, .rows = h->rows, .cols = h->cols, .side = side };
    g.w = taut_take(work, len), g.next = taut_take(work, len);
    g.gram = taut_take(work, square), g.square = taut_take(work, square), g.sum = taut_take(work, square);
    g.x = taut_take(work, count * side), g.y = taut_take(work, count * side);
    g.room = taut_take_sums(work, 2 * count);
    return g;
}

/* Each matrix, of `len` numbers, times its factor on the host. */
static void scale(const group *g, taut_real *x, int64_t len, const double *by)
{
    g->k->put_sum(g->room, by, g->count);
    g->k->axpby_by(x, len, (taut_factor){ 0, NULL }, NULL, 0, (taut_factor){ 1, g->room }, g->count, len);
}

/* sqrt of the top eigenvalues of the Gram matrices, by power iteration with their squares, which we have anyway. */
static void est_from_squares(double *top, const group *g, const taut_real *start, int iterations)
{
    const taut_kernels *k = g->k;
    const int64_t n = g->side;
    taut_real *x = g->x, *y = g->y;
    k->axpby_by(x, n, (taut_factor){ 1, NULL }, start, 0, (taut_factor){ 0, NULL }, g->count, n);
    for (int i = 0; i < iterations; i++) {
        k->gemm_each(y, y, g->square, x, g->count, n, 1, n, false, false, 1, 0);
        taut_make_units(k, g->room, y, g->count, n);
        taut_real *before = x;
        x = y, y = before;
    }
    k->gemm_each(y, y, g->gram, x, g->count, n, 1, n, false, false, 1, 0);
    k->dot(g->room, x, n, y, n, g->count, n);
    const bool failed = k->read(top, g->room, g->count) != TAUT_OK;
    for (int64_t j = 0; j < g->count; j++) top[j] = failed ? NAN : sqrt(top[j]);
}

/* What a matrix of the group is multiplied by first, and its alpha.  h: the matrix as it lies there; top: what
 * est_from_squares found, NaN: it was not asked. */
static double prepare(double *alpha, taut_hold h, double k, double top)
{
    const double most = k == 0 ? 1.02 * est_hold_norm(h) : fmax(k, h.cap);
    if (!taut_cap_strength(alpha, h.cap, k == 0 ? most : k)) {
        taut_normalise(h);
        return 1;
    }
    return top > most ? fmin(1, most / est_hold_norm(h)) : 1; /* rarely: then it is worth a better look */
}

/* W <- W - (3 A^2 - 3 A^3 + A^4) W, where A is c2 times the Gram matrix. */
static void apply(const group *g, const double *c2)
{
    const taut_kernels *k = g->k;
    const bool wide = g->rows <= g->cols;
    const int64_t n = g->side, square = n * n;
    double c4[TAUT_SIDE_BY_SIDE];
    for (int64_t j = 0; j < g->count; j++) c4[j] = c2[j] * c2[j];
    scale(g, g->gram, square, c2);
    scale(g, g->square, square, c4);
    k->axpby(g->sum, 3, g->square, 0, g->count * square);
    k->axpby(g->gram, 1, g->square, -3, g->count * square); /* A^2 - 3 A */
    k->gemm_each(g->sum, g->sum, g->square, g->gram, g->count, n, n, n, false, false, 1,
                 1); /* 3 A^2 + A^2 (A^2 - 3 A) */
    k->gemm_each(g->next, g->w, wide ? g->sum : g->w, wide ? g->w : g->sum, g->count, g->rows, g->cols, n, false, false,
                 -1, 1);
}

void taut_softcap(const taut_hold *h, const double *k, int count, bool look)
{
    const double unit = hold_unit(h);
    taut_span rest = h->work;
    const group g = take(h, count, &rest);
    const int64_t len = g.rows * g.cols;
    const bool wide = g.rows <= g.cols;
    double reach[TAUT_SIDE_BY_SIDE], top[TAUT_SIDE_BY_SIDE], c[TAUT_SIDE_BY_SIDE], c2[TAUT_SIDE_BY_SIDE];
    taut_real *w[TAUT_SIDE_BY_SIDE], *copy[TAUT_SIDE_BY_SIDE];
    bool any = false, smaller = false;
    for (int j = 0; j < count; j++) reach[j] = taut_reach(&h[j]), top[j] = NAN, w[j] = h[j].w;
    taut_lay_out(g.k, copy, g.w, count, len);
    g.k->axpby_all(copy, 1, w, 0, count, len);
    taut_tame(g.k, g.w, count, len, reach, g.room);
    g.k->gemm_each(g.gram, g.gram, g.w, g.w, count, g.side, g.side, wide ? g.cols : g.rows, !wide, wide,
                   1 / (unit * unit), 0);
    g.k->gemm_each(g.square, g.square, g.gram, g.gram, count, g.side, g.side, g.side, false, false, 1, 0);
    if (look) est_from_squares(top, &g, h->start, h->iterations);
    for (int j = 0; j < count; j++) {
        taut_hold one = h[j];
        double alpha;
        one.w = copy[j], one.work = rest;
        c[j] = prepare(&alpha, one, k[j], top[j]);
        c2[j] = c[j] * c[j] * alpha;
        any |= alpha > 0, smaller |= c[j] < 1;
    }
    if (smaller) scale(&g, g.w, len, c);
    if (any) apply(&g, c2);
    taut_lay_out(g.k, copy, any ? g.next : g.w, count, len);
    g.k->axpby_all(w, 1, copy, 0, count, len);
}
