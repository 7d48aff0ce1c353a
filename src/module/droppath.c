/* Drop path:  y = x / (1 - p) or 0, one coin for a whole example, while training; y = x otherwise.
 *
 * Placed at the end of a residual branch it switches the branch off.  The coins are keyed by (step, this
 * layer's id, example), so forward, jvp and vjp toss the same ones and nothing is stored.  A branch that is
 * switched off is not read: its NaN is not seen in that step.
 * Bound  of the network that is used, where it is the identity: Lip = 1. */
#include "base/rng.h"
#include "module/leaf.h"

typedef struct {
    taut_module base;
    double p;
    uint64_t id;
} droppath;

static taut_plan droppath_plan(const taut_module *m, taut_shape in)
{
    (void)m;
    return (taut_plan){ .out = in };
}

static void droppath_linear(const taut_module *m, taut_run *run, taut_tensor y, taut_tensor t, taut_point at)
{
    const droppath *s = (const droppath *)m;
    const taut_kernels *k = run->k;
    const int64_t len = y.shape.t * y.shape.d;
    (void)at;
    if (!run->phase.key || !(s->p > 0)) {
        k->axpby(y.data, 1, t.data, 0, taut_len(y.shape));
        return;
    }
    const uint64_t key = taut_rng_key(run->phase.key, TAUT_RNG_DROPOUT, ~s->id); /* no dropout layer has ~id */
    for (int64_t e = 0; e < y.shape.n; e++) {
        const double factor = taut_rng_unit(key, (uint64_t)e) >= s->p ? 1 / (1 - s->p) : 0;
        k->axpby(taut_at(k, y.data, e * len), factor, taut_at(k, t.data, e * len), 0, len);
    }
}

static void droppath_forward(const taut_module *m, taut_run *run, taut_tensor y, taut_point at)
{
    droppath_linear(m, run, y, at.x, at);
}

static taut_answer droppath_bound(const taut_module *m, taut_ask in)
{
    (void)m;
    return answer_of(in, (taut_up){ 1 }, in.size, UP_ZERO);
}

static const taut_module_ops droppath_ops = {
    .kind = "droppath",
    .trains_only = true,
    .plan = droppath_plan,
    .forward = droppath_forward,
    .jvp = droppath_linear,
    .vjp = droppath_linear,
    .bound = droppath_bound,
    .params = leaf_no_params,
    .free = leaf_free,
};

taut_module *taut_droppath(double p, uint64_t id)
{
    droppath *s = taut_calloc(1, sizeof *s);
    if (!s) return NULL;
    *s = (droppath){ { &droppath_ops }, p, id };
    return &s->base;
}
