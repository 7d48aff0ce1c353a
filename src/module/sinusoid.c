/* Fixed positions:  y_t = x_t + p_t,  p_t[2i] = sin(t w_i), p_t[2i+1] = cos(t w_i), w_i = 10000^(-2i/d).
 *
 * jvp, vjp  the identity.   Bound  Lip = 1;  |y_t| <= |x_t| + sqrt(ceil(d/2)): sin^2 + cos^2 = 1 for every pair. */
#include <math.h>
#include <stdlib.h>

#include "bound/rounding.h"
#include "module/leaf.h"
#include "module/strays.h"

typedef struct {
    taut_module base;
    int64_t tokens, d;
    taut_constant table; /* (tokens, d) */
} sinusoid;

static taut_plan sinusoid_plan(const taut_module *m, taut_shape in)
{
    const sinusoid *s = (const sinusoid *)m;
    TAUT_CHECK(in.d == s->d && in.t <= s->tokens, "sinusoid: shape of the input");
    return (taut_plan){ .out = in };
}

static void sinusoid_forward(const taut_module *m, taut_run *run, taut_tensor y, taut_point at)
{
    run->k->add_rows(y.data, at.x.data, ((const sinusoid *)m)->table.there, taut_rows(y.shape), y.shape.d, y.shape.t);
}

static void sinusoid_jvp(const taut_module *m, taut_run *run, taut_tensor ty, taut_tensor tx, taut_point at)
{
    (void)m;
    (void)at;
    run->k->axpby(ty.data, 1, tx.data, 0, taut_len(ty.shape));
}

static taut_up up_wave(const taut_module *m) { return up_sqrt(up_int((((const sinusoid *)m)->d + 1) / 2)); }

static taut_answer sinusoid_bound(const taut_module *m, taut_ask in)
{
    const taut_up size = up_add(in.size, up_wave(m));
    /* an angle below `tokens` is wrong by 2^-48 of it */
    const taut_up round = up_mul(up_mul((taut_up){ 0x1p-46 }, up_int(in.tokens + 1)), size);
    return answer_of(in, (taut_up){ 1 }, size, round);
}

/* The waves are off as ref's are, then they become elements and are added. */
static taut_up sinusoid_strays(const taut_module *m, taut_ask in, const taut_answer *b)
{
    const taut_up both = up_add(strays_in(in), up_mul(strays_root(in), up_wave(m)));
    return up_add(b->round, strays_of(in, promise_rows(in.table) + 2 * in.table->unit, both));
}

static void sinusoid_params(taut_module *m, taut_visitor *v) { taut_visit_constant(v, &((sinusoid *)m)->table); }

static void sinusoid_free(taut_module *m)
{
    taut_constant_free(&((sinusoid *)m)->table);
    free(m);
}

static const taut_module_ops sinusoid_ops = {
    .kind = "sinusoid",
    .plan = sinusoid_plan,
    .forward = sinusoid_forward,
    .jvp = sinusoid_jvp,
    .vjp = sinusoid_jvp,
    .bound = sinusoid_bound,
    .strays = sinusoid_strays,
    .params = sinusoid_params,
    .free = sinusoid_free,
};

taut_module *taut_sinusoid(int64_t tokens, int64_t d)
{
    sinusoid *s = taut_malloc(sizeof *s);
    double *table = taut_malloc((size_t)(tokens * d + 1) * sizeof *table);
    if (!s || !table) {
        free(s), free(table);
        return NULL;
    }
    for (int64_t i = 0; i < tokens; i++)
        for (int64_t c = 0; c < d; c++) {
            const double angle = (double)i * pow(10000, -(double)(c - c % 2) / (double)d);
            table[i * d + c] = c % 2 ? cos(angle) : sin(angle);
        }
    *s = (sinusoid){ { &sinusoid_ops }, tokens, d, { .len = tokens * d, .reals = table } };
    return &s->base;
}
