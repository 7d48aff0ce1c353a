/* Dropout:  y = x * keep / (1 - p) while training, y = x otherwise.
 *
 * The coins are keyed by (step, this layer's id, entry), so forward, jvp and vjp toss the same ones and
 * nothing is stored.  Bound: of the network that is used, where dropout is the identity: Lip = 1. */
#include "base/rng.h"
#include "module/leaf.h"

typedef struct {
    taut_module base;
    double p;
    uint64_t id;
} dropout;

static taut_plan dropout_plan(const taut_module *m, taut_shape in)
{
    (void)m;
    return (taut_plan){ .out = in };
}

static void dropout_linear(const taut_module *m, taut_run *run, taut_tensor y, taut_tensor t, taut_point at)
{
    const dropout *s = (const dropout *)m;
    const int64_t len = taut_len(y.shape);
    (void)at;
    if (run->phase.key && s->p > 0)
        run->k->dropout(y.data, t.data, taut_rng_key(run->phase.key, TAUT_RNG_DROPOUT, s->id), s->p, len);
    else
        run->k->axpby(y.data, 1, t.data, 0, len);
}

static void dropout_forward(const taut_module *m, taut_run *run, taut_tensor y, taut_point at)
{
    dropout_linear(m, run, y, at.x, at);
}

static taut_answer dropout_bound(const taut_module *m, taut_ask in)
{
    (void)m;
    return answer_of(in, (taut_up){ 1 }, in.size, UP_ZERO);
}

static const taut_module_ops dropout_ops = {
    .kind = "dropout",
    .trains_only = true,
    .plan = dropout_plan,
    .forward = dropout_forward,
    .jvp = dropout_linear,
    .vjp = dropout_linear,
    .bound = dropout_bound,
    .params = leaf_no_params,
    .free = leaf_free,
};

taut_module *taut_dropout(double p, uint64_t id)
{
    dropout *s = taut_calloc(1, sizeof *s);
    if (!s) return NULL;
    *s = (dropout){ { &dropout_ops }, p, id };
    return &s->base;
}
