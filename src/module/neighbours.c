/* Each token with its neighbours in a circle, so that a linear map behind it is a circular convolution of width 3:
 *     y_t = [ x_{t-1}[0..c), x_t[0..c), x_{t+1}[0..c), x_t[c..d) ]        c columns have neighbours, the rest none
 *
 * jvp    the same;   vjp  gx_t[0..c) = the first part of gy_{t+1} + the second of gy_t + the third of gy_{t-1}
 * Bound  Lip = sqrt(3) in both norms: a token comes three times.   |y_t|^2 <= |x_{t-1}|^2 + |x_t|^2 + |x_{t+1}|^2. */
#include "bound/rounding.h"
#include "module/leaf.h"

typedef struct {
    taut_module base;
    int64_t cols;
} neighbours;

static taut_plan neighbours_plan(const taut_module *m, taut_shape in)
{
    const int64_t c = ((const neighbours *)m)->cols;
    TAUT_CHECK(in.d >= c, "neighbours: width of the input");
    return (taut_plan){ .out = { in.n, in.t, in.d + 2 * c }, .scratch = 2 * in.n * in.t * c };
}

/* y_t = x_{t + by} over a circle of tokens, `cols` features of rows that are ys and xs apart; by is -1, 0 or 1 */
static void turn(const taut_kernels *k, taut_real *y, int64_t ys, const taut_real *x, int64_t xs, taut_shape in, int by,
                 int64_t cols)
{
    const int64_t t = in.t, rows = taut_rows(in), to = by < 0 ? 1 : 0, from = by > 0 ? 1 : 0, last = t - 1;
    if (rows == 0) return;
    k->copy_rows(taut_at(k, y, to * ys), ys, taut_at(k, x, from * xs), xs, by ? rows - 1 : rows, cols);
    if (by) /* the tokens that met another example's */
        k->copy_rows(taut_at(k, y, by > 0 ? last * ys : 0), t * ys, taut_at(k, x, by > 0 ? 0 : last * xs), t * xs, in.n,
                     cols);
}

static void gather(const taut_module *m, const taut_kernels *k, taut_tensor y, taut_tensor x)
{
    const int64_t c = ((const neighbours *)m)->cols, d = x.shape.d, wide = d + 2 * c;
    for (int part = 0; part < 3; part++) turn(k, taut_at(k, y.data, part * c), wide, x.data, d, x.shape, part - 1, c);
    k->copy_rows(taut_at(k, y.data, 3 * c), wide, taut_at(k, x.data, c), d, taut_rows(x.shape), d - c);
}

static void neighbours_forward(const taut_module *m, taut_run *run, taut_tensor y, taut_point at)
{
    gather(m, run->k, y, at.x);
}

static void neighbours_jvp(const taut_module *m, taut_run *run, taut_tensor ty, taut_tensor tx, taut_point at)
{
    (void)at;
    gather(m, run->k, ty, tx);
}

static void neighbours_vjp(const taut_module *m, taut_run *run, taut_tensor gx, taut_tensor gy, taut_point at)
{
    const taut_kernels *k = run->k;
    const taut_span mark = run->scratch;
    const taut_shape in = at.x.shape;
    const int64_t c = ((const neighbours *)m)->cols, d = in.d, wide = d + 2 * c, len = taut_rows(in) * c;
    taut_real *sum = taut_take(&run->scratch, len), *one = taut_take(&run->scratch, len);
    for (int part = 0; part < 3; part++) {
        turn(k, one, c, taut_at(k, gy.data, part * c), wide, in, 1 - part, c);
        k->axpby(sum, 1, one, part ? 1 : 0, len);
    }
    k->copy_rows(gx.data, d, sum, c, taut_rows(in), c);
    k->copy_rows(taut_at(k, gx.data, c), d, taut_at(k, gy.data, 3 * c), wide, taut_rows(in), d - c);
    run->scratch = mark;
}

static taut_answer neighbours_bound(const taut_module *m, taut_ask in)
{
    (void)m;
    const taut_up root = up_sqrt((taut_up){ 3 });
    return answer_of(in, root, up_mul(root, in.size), UP_ZERO);
}

static void neighbours_describe(const taut_module *m, taut_ledger *l)
{
    ledger_exact(l, "cols", (double)((const neighbours *)m)->cols);
}

/* Numbers are copied: nothing is rounded. */
static taut_up neighbours_strays(const taut_module *m, taut_ask in, const taut_answer *b)
{
    (void)m, (void)in, (void)b;
    return UP_ZERO;
}

static const taut_module_ops neighbours_ops = {
    .kind = "neighbours",
    .plan = neighbours_plan,
    .forward = neighbours_forward,
    .jvp = neighbours_jvp,
    .vjp = neighbours_vjp,
    .bound = neighbours_bound,
    .strays = neighbours_strays,
    .params = leaf_no_params,
    .describe = neighbours_describe,
    .free = leaf_free,
};

taut_module *taut_neighbours(int64_t cols)
{
    neighbours *s = taut_malloc(sizeof *s);
    if (s) *s = (neighbours){ { &neighbours_ops }, cols };
    return s ? &s->base : NULL;
}
