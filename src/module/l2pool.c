/* A read-out that keeps lengths: feature by feature the l2 norm over all t tokens,  y_c = sqrt(sum_j x_jc^2).
 *
 * jvp    ty_c = sum_j x_jc tx_jc / y_c      vjp  gx_jc = x_jc gy_c / y_c      both 0 where y_c = 0
 * Bound  FLAT: 1, attained where x moves along itself.  TOKENS: sqrt(t), when all tokens do.   |y| <= sqrt(t) max |x_j|.
 * Error  A sum of t squares has the relative error gamma(t), its root no more; a square that underflows loses less than
 *        2^-1074, and all of them less than 2^-537 sqrt(t) of a root: 2^-500 of the whole.
 * Trace  y. */
#include "module/leaf.h"
#include "module/strays.h"

static taut_plan l2pool_plan(const taut_module *m, taut_shape in)
{
    (void)m;
    TAUT_CHECK(in.t > 0, "l2pool: no token to read");
    return (taut_plan){ .out = { in.n, 1, in.d }, .trace = in.n * in.d };
}

static void l2pool_forward(const taut_module *m, taut_run *run, taut_tensor y, taut_point at)
{
    const taut_shape in = at.x.shape;
    taut_real *kept = taut_take(&at.trace, in.n * in.d);
    (void)m;
    run->k->lengths(kept, at.x.data, in.n, in.t, in.d);
    run->k->axpby(y.data, 1, kept, 0, in.n * in.d);
}

static void l2pool_jvp(const taut_module *m, taut_run *run, taut_tensor ty, taut_tensor tx, taut_point at)
{
    const taut_shape in = at.x.shape;
    const taut_real *kept = taut_take(&at.trace, in.n * in.d);
    (void)m;
    run->k->lengths_jvp(ty.data, tx.data, at.x.data, kept, in.n, in.t, in.d);
}

static void l2pool_vjp(const taut_module *m, taut_run *run, taut_tensor gx, taut_tensor gy, taut_point at)
{
    const taut_shape in = at.x.shape;
    const taut_real *kept = taut_take(&at.trace, in.n * in.d);
    (void)m;
    run->k->lengths_vjp(gx.data, gy.data, at.x.data, kept, in.n, in.t, in.d);
}

static taut_answer l2pool_bound(const taut_module *m, taut_ask in)
{
    (void)m;
    const taut_up root = up_sqrt(up_int(in.tokens)), whole = taut_whole(in);
    const taut_up round = up_add(up_mul(up_gamma(in.tokens + 4), whole), (taut_up){ 0x1p-500 });
    in.tokens = 1;
    return answer_within(in, in.norm == TAUT_NORM_FLAT ? up_int(1) : root, up_mul(root, in.size), round, whole);
}

static taut_up l2pool_strays(const taut_module *m, taut_ask in, const taut_answer *b)
{
    (void)m, (void)b;
    return strays_of(in, promise_tokens(in.table, in.tokens), taut_whole(in));
}

static const taut_module_ops l2pool_ops = {
    .kind = "l2pool",
    .plan = l2pool_plan,
    .forward = l2pool_forward,
    .jvp = l2pool_jvp,
    .vjp = l2pool_vjp,
    .bound = l2pool_bound,
    .strays = l2pool_strays,
    .params = leaf_no_params,
    .free = leaf_free,
};

taut_module *taut_l2pool(void)
{
    taut_module *s = taut_malloc(sizeof *s);
    if (s) *s = (taut_module){ &l2pool_ops };
    return s;
}
