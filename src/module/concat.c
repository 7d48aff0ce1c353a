/* A read-out that loses nothing: all t tokens side by side as one,  y = (x_0, x_1, ..., x_{t-1}).
 *
 * jvp    the same;   vjp  gx = gy: numbers stay where they are, only the shape is another
 * Bound  FLAT: 1, an isometry.  TOKENS: sqrt(t), attained by changes of one length.   |y| <= sqrt(t) max |x_j|. */
#include "module/leaf.h"
#include "module/strays.h"

static taut_plan concat_plan(const taut_module *m, taut_shape in)
{
    (void)m;
    TAUT_CHECK(in.t > 0, "concat: no token to read");
    return (taut_plan){ .out = { in.n, 1, in.t * in.d } };
}

static void concat_jvp(const taut_module *m, taut_run *run, taut_tensor ty, taut_tensor tx, taut_point at)
{
    (void)m;
    (void)at;
    run->k->axpby(ty.data, 1, tx.data, 0, taut_len(tx.shape));
}

static void concat_forward(const taut_module *m, taut_run *run, taut_tensor y, taut_point at)
{
    concat_jvp(m, run, y, at.x, at);
}

static void concat_vjp(const taut_module *m, taut_run *run, taut_tensor gx, taut_tensor gy, taut_point at)
{
    concat_jvp(m, run, gx, gy, at);
}

static taut_answer concat_bound(const taut_module *m, taut_ask in)
{
    (void)m;
    const taut_up root = up_sqrt(up_int(in.tokens));
    in.tokens = 1;
    return answer_of(in, in.norm == TAUT_NORM_FLAT ? up_int(1) : root, up_mul(root, in.size), UP_ZERO);
}

static taut_up concat_strays(const taut_module *m, taut_ask in, const taut_answer *b)
{
    (void)m;
    (void)b; /* of the longest token, or all together, whatever it is read as */
    const taut_up all = up_mul(up_sqrt(up_int(in.tokens)), in.size);
    return strays_of(in, promise_axpby(in.table), in.norm == TAUT_NORM_FLAT ? taut_whole(in) : all);
}

static const taut_module_ops concat_ops = {
    .kind = "concat",
    .plan = concat_plan,
    .forward = concat_forward,
    .jvp = concat_jvp,
    .vjp = concat_vjp,
    .bound = concat_bound,
    .strays = concat_strays,
    .params = leaf_no_params,
    .free = leaf_free,
};

taut_module *taut_concat(void)
{
    taut_module *s = taut_malloc(sizeof *s);
    if (s) *s = (taut_module){ &concat_ops };
    return s;
}
