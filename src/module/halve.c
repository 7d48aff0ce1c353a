/* Every other token, with the largest of its neighbourhood (a max-pooling of 3 by 2):
 *     y_j = max(x_{2j-1}, x_{2j}, x_{2j+1})  feature by feature, over the tokens that are there;  (t+1)/2 tokens of t
 *
 * jvp    the tangent of the entry that was largest (the first of equals);   vjp  its transpose
 * Bound  docs/modules/halve.md.  A difference of maxima is at most the largest difference, so |dy_j|^2 <= the sum over the
 *        window of |dx_i|^2:  TOKENS sqrt 3 (fewer tokens: the root of their number).  FLAT sqrt 2: no token is in more
 *        than two windows; 1 where there is one window.  Likewise |y_j| <= sqrt 3 max |x_i|.  Nothing is rounded.
 * Trace  which token each entry came from. */
#include "module/leaf.h"

static int64_t half(int64_t t) { return (t + 1) / 2; }

static taut_plan halve_plan(const taut_module *m, taut_shape in)
{
    (void)m;
    TAUT_CHECK(in.t > 0, "halve: no token");
    const taut_shape out = { in.n, half(in.t), in.d };
    return (taut_plan){ out, taut_len(out), 0, 0 };
}

static void halve_forward(const taut_module *m, taut_run *run, taut_tensor y, taut_point at)
{
    const taut_shape in = at.x.shape;
    (void)m;
    run->k->halve(y.data, taut_take(&at.trace, taut_len(y.shape)), at.x.data, in.n, in.t, in.d);
}

static void halve_jvp(const taut_module *m, taut_run *run, taut_tensor ty, taut_tensor tx, taut_point at)
{
    const taut_shape in = at.x.shape;
    (void)m;
    run->k->halve_slope(ty.data, tx.data, taut_take(&at.trace, taut_len(ty.shape)), in.n, in.t, in.d, false);
}

static void halve_vjp(const taut_module *m, taut_run *run, taut_tensor gx, taut_tensor gy, taut_point at)
{
    const taut_shape in = at.x.shape;
    (void)m;
    run->k->halve_slope(gx.data, gy.data, taut_take(&at.trace, taut_len(gy.shape)), in.n, in.t, in.d, true);
}

static taut_answer halve_bound(const taut_module *m, taut_ask in)
{
    (void)m;
    const taut_up root = up_sqrt(up_int(in.tokens < 3 ? in.tokens : 3));
    const taut_up flat = up_sqrt(up_int(in.tokens < 3 ? 1 : 2));
    const taut_up lip = in.norm == TAUT_NORM_FLAT ? flat : root;
    in.tokens = half(in.tokens);
    return answer_of(in, lip, up_mul(root, in.size), UP_ZERO);
}

/* Numbers are compared and copied: nothing is rounded. */
static taut_up halve_strays(const taut_module *m, taut_ask in, const taut_answer *b)
{
    (void)m, (void)in, (void)b;
    return UP_ZERO;
}

static const taut_module_ops halve_ops = {
    .kind = "halve",
    .plan = halve_plan,
    .forward = halve_forward,
    .jvp = halve_jvp,
    .vjp = halve_vjp,
    .bound = halve_bound,
    .strays = halve_strays,
    .params = leaf_no_params,
    .free = leaf_free,
};

taut_module *taut_halve(void)
{
    taut_module *s = taut_malloc(sizeof *s);
    if (s) s->ops = &halve_ops;
    return s;
}
