/* Power iteration with G = W W^T (or W^T W, whichever is smaller), of which the eighth power is taken first: a
 * product with G^8 is worth eight iterations.  A fixed number of times from a given start, so that the same weights
 * always give the same bits, also after a resume.  The answer is |W v| <= ||W||: an estimate from below.  16
 * iterations miss the top of Gaussian matrices, which is hard to find, by 0.15 % on average and 0.6 % at worst (1024
 * x 256); where the top stands out they miss nothing.  Matrices of one shape go side by side; none depends on the others. */
#include "train/constrain/odd.h"

/* Nothing here grows, and what counts shrinks slowly: of length 1, three squarings leave at least side^-3.5 (1e-14 for a side of
 * 10,000), four products with the top in them side^-2.  Only then is the length made 1 again. */
enum { SQUARINGS = 3, PRODUCTS = 4 };

typedef struct { /* `count` matrices, each array one behind the other */
    const taut_kernels *k;
    int64_t count, rows, cols, side;
    const taut_real *w;
    taut_sum *room; /* 2 count */
} group;

/* How often G is squared, and how many products follow: `iterations` with G^8, or an eighth of them with G^64.  On a processor
 * three squarings more cost what the products saved at a side of 64, and at 192 they make the whole a third slower; a device
 * waits for the number of calls. */
static int plan(int *products, const group *g, int iterations)
{
    const bool more = iterations >= 8 && g->side <= (g->k->host ? 64 : 512);
    *products = more ? (iterations + 7) / 8 : iterations;
    return more ? 2 * SQUARINGS : SQUARINGS;
}

/* y = W x, or W^T x with `back`, made of length 1; the room begins with |.|^2. */
static void apply(const group *g, taut_real *y, const taut_real *x, bool back)
{
    const int64_t m = back ? g->cols : g->rows;
    g->k->gemm_each(y, y, g->w, x, g->count, m, 1, back ? g->rows : g->cols, back, false, 1, 0);
    taut_make_units(g->k, g->room, y, g->count, m);
}

/* G^8, or G^64, / |.| in one of the two places; 0 when W is 0. */
static taut_real *gram_power(const group *g, taut_real *now, taut_real *other, int squarings)
{
    const bool wide = g->rows <= g->cols;
    const int64_t n = g->side;
    g->k->gemm_each(now, now, g->w, g->w, g->count, n, n, wide ? g->cols : g->rows, !wide, wide, 1, 0);
    taut_make_units(g->k, g->room, now, g->count, n * n);
    for (int i = 0; i < squarings; i++) {
        taut_real *last = now;
        g->k->gemm_each(other, other, last, last, g->count, n, n, n, false, false, 1, 0);
        if (i % SQUARINGS == SQUARINGS - 1) taut_make_units(g->k, g->room, other, g->count, n * n);
        now = other, other = last;
    }
    return now;
}

int64_t est_top_pairs_work(int64_t rows, int64_t cols, int64_t count)
{
    const int64_t side = odd_side(rows, cols);
    return count * (2 * side * side + side) + taut_sums_len(2 * count);
}

void est_top_pairs(const taut_kernels *k, taut_sum *top, taut_real *u, taut_real *v, const taut_real *w, int64_t count,
                   int64_t rows, int64_t cols, int iterations, taut_span work)
{
    const bool wide = rows <= cols;
    const int64_t n = odd_side(rows, cols), square = count * n * n;
    taut_real *a = taut_take(&work, square), *b = taut_take(&work, square);
    taut_real *x = wide ? u : v, *next = taut_take(&work, count * n);
    const group g = { k, count, rows, cols, n, w, taut_take_sums(&work, 2 * count) };
    int products;
    const int squarings = plan(&products, &g, iterations);
    const taut_real *power = gram_power(&g, a, b, squarings);
    if (wide)
        apply(&g, u, v, false);
    else
        taut_make_units(k, g.room, v, count, n);
    for (int i = 0; i < products; i++) {
        taut_real *last = x;
        k->gemm_each(next, next, power, last, count, n, 1, n, false, false, 1, 0);
        if (i % PRODUCTS == PRODUCTS - 1 || i == products - 1) taut_make_units(k, g.room, next, count, n);
        x = next, next = last;
    }
    if (!wide && x != v) k->axpby(v, 1, x, 0, count * n);
    if (wide) apply(&g, v, x, true);
    apply(&g, u, v, false);
    k->sum_op(top, TAUT_SUM_ROOT, 1, g.room, NULL, count);
}

double est_hold_top(taut_hold *h, taut_real **u, taut_real **v)
{
    *u = taut_take(&h->work, h->rows);
    *v = taut_take(&h->work, h->cols);
    taut_sum *top = taut_take_sums(&h->work, 1);
    double size;
    h->k->axpby(*v, 1, h->start, 0, h->cols);
    est_top_pairs(h->k, top, *u, *v, h->w, 1, h->rows, h->cols, h->iterations, h->work);
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
