/* Some tokens alone:  y_t = x_{first + t}, t < count.
 *
 * jvp    the same;   vjp  gx is gy there and 0 elsewhere
 * Bound  Lip = 1 in both norms, |y| <= |x|: tokens are left out, none changes. */
#include "bound/rounding.h"
#include "module/leaf.h"
#include "module/strays.h"

typedef struct {
    taut_module base;
    int64_t first, count;
} tokens;

static taut_plan tokens_plan(const taut_module *m, taut_shape in)
{
    const tokens *s = (const tokens *)m;
    TAUT_CHECK(in.t >= s->first + s->count, "tokens: not so many");
    return (taut_plan){ .out = { in.n, s->count, in.d } };
}

static void pick(const tokens *s, const taut_kernels *k, taut_tensor y, taut_tensor x)
{
    const int64_t d = x.shape.d, len = s->count * d;
    k->copy_rows(y.data, len, taut_at(k, x.data, s->first * d), x.shape.t * d, x.shape.n, len);
}

static void tokens_forward(const taut_module *m, taut_run *run, taut_tensor y, taut_point at)
{
    pick((const tokens *)m, run->k, y, at.x);
}

static void tokens_jvp(const taut_module *m, taut_run *run, taut_tensor ty, taut_tensor tx, taut_point at)
{
    (void)at;
    pick((const tokens *)m, run->k, ty, tx);
}

static void tokens_vjp(const taut_module *m, taut_run *run, taut_tensor gx, taut_tensor gy, taut_point at)
{
    const tokens *s = (const tokens *)m;
    const taut_shape in = at.x.shape;
    const int64_t len = s->count * in.d;
    run->k->axpby(gx.data, 0, gx.data, 0, taut_len(in));
    run->k->copy_rows(taut_at(run->k, gx.data, s->first * in.d), in.t * in.d, gy.data, len, in.n, len);
}

static taut_answer tokens_bound(const taut_module *m, taut_ask in)
{
    in.tokens = ((const tokens *)m)->count;
    return answer_of(in, (taut_up){ 1 }, in.size, UP_ZERO);
}

static void tokens_describe(const taut_module *m, taut_ledger *l)
{
    const tokens *s = (const tokens *)m;
    if (s->first) ledger_exact(l, "first", (double)s->first);
    ledger_exact(l, "count", (double)s->count);
}

static taut_up tokens_strays(const taut_module *m, taut_ask in, const taut_answer *b)
{
    (void)m, (void)in, (void)b;
    return UP_ZERO; /* copies */
}

static const taut_module_ops tokens_ops = {
    .kind = "tokens",
    .plan = tokens_plan,
    .forward = tokens_forward,
    .jvp = tokens_jvp,
    .vjp = tokens_vjp,
    .bound = tokens_bound,
    .strays = tokens_strays,
    .params = leaf_no_params,
    .describe = tokens_describe,
    .free = leaf_free,
};

taut_module *taut_tokens(int64_t first, int64_t count)
{
    tokens *s = taut_malloc(sizeof *s);
    if (s) *s = (tokens){ { &tokens_ops }, first, count };
    return s ? &s->base : NULL;
}
