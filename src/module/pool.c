/* Read-outs from t tokens to one:  mean  y = (1/t) sum_j x_j   or   first  y = x_0.
 *
 * vjp    mean: every token gets gy/t;  first: token 0 gets gy, the others 0
 * Bound  TOKENS: 1 for both.  FLAT: mean 1/sqrt(t), attained by equal changes; first 1.   |y| <= max |x_j|.
 * The mean is over all t tokens.  A text may be shorter than the region says: the mean of any number of tokens has the bound of
 * one token, 1, in both norms. */
#include "module/leaf.h"
#include "module/strays.h"

typedef struct {
    taut_module base;
    bool mean, any; /* any: inputs may have fewer tokens than the region */
} pool;

static taut_plan pool_plan(const taut_module *m, taut_shape in)
{
    (void)m;
    TAUT_CHECK(in.t > 0, "pool: no token to read");
    return (taut_plan){ .out = { in.n, 1, in.d } };
}

static void pool_linear(const taut_module *m, taut_run *run, taut_tensor y, taut_tensor t, taut_point at)
{
    const taut_shape in = t.shape;
    (void)at;
    if (((const pool *)m)->mean)
        run->k->mean_tokens(y.data, t.data, in.n, in.t, in.d);
    else
        run->k->copy_rows(y.data, in.d, t.data, in.t * in.d, in.n, in.d);
}

static void pool_forward(const taut_module *m, taut_run *run, taut_tensor y, taut_point at)
{
    pool_linear(m, run, y, at.x, at);
}

static void pool_vjp(const taut_module *m, taut_run *run, taut_tensor gx, taut_tensor gy, taut_point at)
{
    const taut_shape in = at.x.shape;
    const taut_kernels *k = run->k;
    if (((const pool *)m)->mean) {
        k->spread_tokens(gx.data, gy.data, in.n, in.t, in.d);
        return;
    }
    k->axpby(gx.data, 0, at.x.data, 0, taut_len(in));
    k->copy_rows(gx.data, in.t * in.d, gy.data, in.d, in.n, in.d);
}

static taut_answer pool_bound(const taut_module *m, taut_ask in)
{
    const bool mean = ((const pool *)m)->mean, shorter = mean && !((const pool *)m)->any && in.norm == TAUT_NORM_FLAT;
    const taut_up one = { 1 }, lip = shorter ? up_div(one, lo_sqrt(lo_exact((double)in.tokens))) : one;
    taut_answer b = answer_of(in, lip, in.size, mean ? up_rounded(in.tokens + 4, in.size) : UP_ZERO);
    b.tokens = 1;
    return b;
}

static void pool_describe(const taut_module *m, taut_ledger *l) { ledger_exact(l, "mean", ((const pool *)m)->mean); }

static taut_up pool_strays(const taut_module *m, taut_ask in, const taut_answer *b)
{
    (void)b;
    return ((const pool *)m)->mean ? strays_of(in, promise_tokens(in.table, in.tokens), taut_longest(in)) : UP_ZERO;
}

static const taut_module_ops pool_ops = {
    .kind = "pool",
    .plan = pool_plan,
    .forward = pool_forward,
    .jvp = pool_linear,
    .vjp = pool_vjp,
    .bound = pool_bound,
    .strays = pool_strays,
    .params = leaf_no_params,
    .describe = pool_describe,
    .free = leaf_free,
};

static taut_module *create(bool mean, bool any)
{
    pool *s = taut_calloc(1, sizeof *s);
    if (!s) return NULL;
    *s = (pool){ { &pool_ops }, mean, any };
    return &s->base;
}

taut_module *taut_pool_mean(void) { return create(true, false); }

taut_module *taut_pool_mean_any(void) { return create(true, true); }

taut_module *taut_pool_first(void) { return create(false, false); }
