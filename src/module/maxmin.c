/* GroupSort:  every group of g neighbouring features sorted, the largest first.  g = 2 is MaxMin; g = 0 sorts
 * the whole token.
 *
 * jvp    ty_k = tx_order(k),  the permutation that sorted x;  vjp  gx_order(k) = gy_k.  Ties keep their order.
 * Bound  Lip = 1 in both norms and |y| = |x|: sorting two vectors never moves them apart (rearrangement).
 * Trace  the permutation.   Nothing is rounded. */
#include "module/leaf.h"

typedef struct {
    taut_module base;
    int64_t group;
} maxmin;

static int64_t group_of(const taut_module *m, taut_shape in)
{
    const int64_t g = ((const maxmin *)m)->group;
    return g ? g : in.d;
}

static taut_plan maxmin_plan(const taut_module *m, taut_shape in)
{
    const int64_t g = group_of(m, in);
    TAUT_CHECK(in.d % g == 0 && g < 1 << 24, "maxmin: the width must be a multiple of the group");
    return (taut_plan){ .out = in, .trace = taut_len(in) };
}

static void maxmin_forward(const taut_module *m, taut_run *run, taut_tensor y, taut_point at)
{
    const int64_t g = group_of(m, y.shape), len = taut_len(y.shape);
    run->k->sort_groups(y.data, taut_take(&at.trace, len), at.x.data, len / g, g);
}

static void permute(const taut_module *m, taut_run *run, taut_tensor y, taut_tensor t, taut_point at, bool back)
{
    const int64_t g = group_of(m, y.shape), len = taut_len(y.shape);
    run->k->permute_groups(y.data, t.data, taut_take(&at.trace, len), len / g, g, back);
}

static void maxmin_jvp(const taut_module *m, taut_run *run, taut_tensor ty, taut_tensor tx, taut_point at)
{
    permute(m, run, ty, tx, at, false);
}

static void maxmin_vjp(const taut_module *m, taut_run *run, taut_tensor gx, taut_tensor gy, taut_point at)
{
    permute(m, run, gx, gy, at, true);
}

static taut_answer maxmin_bound(const taut_module *m, taut_ask in)
{
    (void)m;
    return answer_of(in, (taut_up){ 1 }, in.size, UP_ZERO);
}

static taut_up maxmin_strays(const taut_module *m, taut_ask in, const taut_answer *b)
{
    (void)m, (void)in, (void)b;
    return UP_ZERO; /* numbers change their places */
}

static void maxmin_describe(const taut_module *m, taut_ledger *l)
{
    ledger_exact(l, "group", (double)((const maxmin *)m)->group);
}

static const taut_module_ops maxmin_ops = {
    .kind = "maxmin",
    .plan = maxmin_plan,
    .forward = maxmin_forward,
    .jvp = maxmin_jvp,
    .vjp = maxmin_vjp,
    .bound = maxmin_bound,
    .strays = maxmin_strays,
    .params = leaf_no_params,
    .describe = maxmin_describe,
    .free = leaf_free,
};

taut_module *taut_maxmin(int64_t group)
{
    maxmin *s = taut_calloc(1, sizeof *s);
    if (!s) return NULL;
    *s = (maxmin){ { &maxmin_ops }, group };
    return &s->base;
}
