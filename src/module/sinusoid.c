/* Fixed positions:  y_t = x_t + p_t,  p_t[2i] = sin(t w_i), p_t[2i+1] = cos(t w_i), w_i = 10000^(-2i/d).
 *
 * jvp, vjp  the identity.   Bound  Lip = 1;  |y_t| <= |x_t| + sqrt(ceil(d/2)): sin^2 + cos^2 = 1 for every pair. */
#include <math.h>
#include <stdlib.h>

#include "bound/rounding.h"
#include "module/leaf.h"

typedef struct {
    taut_module base;
    int64_t d;
} sinusoid;

static taut_plan sinusoid_plan(const taut_module *m, taut_shape in)
{
    TAUT_CHECK(in.d == ((const sinusoid *)m)->d, "sinusoid: width of the input");
    return (taut_plan){ .out = in, .scratch = in.t * in.d };
}

static void sinusoid_forward(const taut_module *m, taut_run *run, taut_tensor y, taut_point at)
{
    (void)m;
    const taut_span mark = run->scratch;
    const int64_t t = at.x.shape.t, d = at.x.shape.d;
    taut_real *table = taut_take(&run->scratch, t * d);
    for (int64_t i = 0; i < t; i++)
        for (int64_t c = 0; c < d; c++) {
            const double angle = (double)i * pow(10000, -(double)(c - c % 2) / (double)d);
            const double value = c % 2 ? cos(angle) : sin(angle);
            run->k->put(taut_at(run->k, table, i * d + c), &value, 1);
        }
    run->k->add_rows(y.data, at.x.data, table, taut_rows(y.shape), d, t);
    run->scratch = mark;
}

static void sinusoid_jvp(const taut_module *m, taut_run *run, taut_tensor ty, taut_tensor tx, taut_point at)
{
    (void)m;
    (void)at;
    run->k->axpby(ty.data, 1, tx.data, 0, taut_len(ty.shape));
}

static taut_bound sinusoid_bound(const taut_module *m, taut_region in)
{
    const taut_up wave = up_sqrt(up_int((((const sinusoid *)m)->d + 1) / 2));
    const taut_up size = up_add(in.size, wave);
    /* an angle below `tokens` is wrong by 2^-48 of it */
    const taut_up round = up_mul(up_mul((taut_up){ 0x1p-46 }, up_int(in.tokens + 1)), size);
    return (taut_bound){ { 1 }, region_after(in, size, round) };
}

static const taut_module_ops sinusoid_ops = {
    .kind = "sinusoid",
    .plan = sinusoid_plan,
    .forward = sinusoid_forward,
    .jvp = sinusoid_jvp,
    .vjp = sinusoid_jvp,
    .bound = sinusoid_bound,
    .params = leaf_no_params,
    .free = leaf_free,
};

taut_module *taut_sinusoid(int64_t d)
{
    sinusoid *s = taut_malloc(sizeof *s);
    if (s) *s = (sinusoid){ { &sinusoid_ops }, d };
    return s ? &s->base : NULL;
}
