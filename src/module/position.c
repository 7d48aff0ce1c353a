/* Learned positions:  y_t = x_t + p_t.
 *
 * jvp = vjp   the identity;  gp_t += sum over examples of gy_t
 * Bound       Lip = 1 in both norms;  |y| <= |x| + max_t |p_t|. */
#include "bound/norm.h"
#include "bound/rounding.h"
#include "module/leaf.h"
#include "module/strays.h"

typedef struct {
    taut_module base;
    taut_param table;
} position;

static taut_plan position_plan(const taut_module *m, taut_shape in)
{
    const position *s = (const position *)m;
    TAUT_CHECK(in.t <= s->table.rows && in.d == s->table.cols, "position: more tokens than positions");
    return (taut_plan){ .out = in };
}

static void position_forward(const taut_module *m, taut_run *run, taut_tensor y, taut_point at)
{
    const position *s = (const position *)m;
    run->k->add_rows(y.data, at.x.data, s->table.value, taut_rows(y.shape), y.shape.d, y.shape.t);
}

static void position_jvp(const taut_module *m, taut_run *run, taut_tensor ty, taut_tensor tx, taut_point at)
{
    (void)m;
    (void)at;
    run->k->axpby(ty.data, 1, tx.data, 0, taut_len(ty.shape));
}

static void position_vjp(const taut_module *m, taut_run *run, taut_tensor gx, taut_tensor gy, taut_point at)
{
    const position *s = (const position *)m;
    if (gx.data != gy.data) position_jvp(m, run, gx, gy, at);
    if (run->param_grads) run->k->sum_rows(s->table.grad, gy.data, taut_rows(gy.shape), gy.shape.d, gy.shape.t);
}

static taut_answer position_bound(const taut_module *m, taut_ask in)
{
    const taut_param *p = &((const position *)m)->table;
    taut_up longest = { 0 };
    for (int64_t t = 0; t < p->rows; t++)
        longest = up_max(longest, up_norm_frobenius(taut_ref_values(p) + t * p->cols, p->cols));
    longest = up_state(in.ledger, "longest", longest);
    const taut_up round = up_round_sum(taut_longest(in), longest);
    const taut_up whole = up_add(taut_whole(in), up_norm_frobenius(taut_ref_values(p), p->rows * p->cols));
    return answer_within(in, (taut_up){ 1 }, up_add(in.size, longest), round, whole);
}

static void position_params(taut_module *m, taut_visitor *v) { taut_visit_param(v, &((position *)m)->table); }

static taut_up position_strays(const taut_module *m, taut_ask in, const taut_answer *b)
{
    (void)m;
    return strays_of(in, promise_rows(in.table), strays_out(in, b));
}

static const taut_module_ops position_ops = {
    .kind = "position",
    .hands_on = true,
    .plan = position_plan,
    .forward = position_forward,
    .jvp = position_jvp,
    .vjp = position_vjp,
    .bound = position_bound,
    .strays = position_strays,
    .params = position_params,
    .free = leaf_free,
};

taut_module *taut_position(int64_t tokens, int64_t d, double gain)
{
    position *s = taut_calloc(1, sizeof *s);
    if (!s) return NULL;
    s->base.ops = &position_ops;
    s->table = (taut_param){
        .name = "weight", .rows = tokens, .cols = d, .role = TAUT_TABLE, .init = TAUT_INIT_NORMAL, .gain = gain
    };
    return &s->base;
}
