#include "module/core.h"

#include "base/float32.h"
#include "module/reach.h"

taut_cored cored_of(const taut_module_ops *ops, const taut_core *core, const taut_around *a)
{
    TAUT_CHECK(a->heads > 0 && a->width % a->heads == 0, "attention: width must be a multiple of heads");
    taut_cored c = { { ops }, core, *a, qkv_of(a->width, a->queries, a->bias, a->out, a->init, a->gain, a->out_gain) };
    c.around.scale = taut_float32(a->scale);
    c.around.out = taut_float32(a->out);
    return c;
}

taut_around around_of(const taut_site *s)
{
    return (taut_around){ .width = s->width,
                          .heads = s->heads,
                          .queries = s->queries,
                          .scale = s->scale,
                          .out = s->out,
                          .causal = s->causal,
                          .bias = s->bias,
                          .init = s->init,
                          .gain = s->gain,
                          .out_gain = s->out_gain };
}

void core_describe(const taut_cored *s, taut_ledger *l)
{
    ledger_exact(l, "heads", (double)s->around.heads);
    ledger_exact(l, "out", s->around.out);
    if (s->around.queries) ledger_exact(l, "queries", (double)s->around.queries);
}

taut_plan core_plan(const taut_module *m, taut_shape in)
{
    const taut_cored *s = (const taut_cored *)m;
    TAUT_CHECK(in.d == s->qkv.width && in.t > s->qkv.queries, "attention: shape of the input");
    const taut_shape q = qkv_queries(&s->qkv, in);
    const taut_core_room room = s->core->room(m, q, qkv_keys(&s->qkv, in));
    const int64_t inside = qkv_room(&s->qkv, in);
    return (taut_plan){ .out = q, .trace = inside + room.trace, .scratch = inside + room.scratch };
}

void core_forward(const taut_module *m, taut_run *run, taut_tensor y, taut_point at)
{
    const taut_cored *s = (const taut_cored *)m;
    const taut_inside t = qkv_take(&s->qkv, &at.trace, at.x);
    qkv_enter(&s->qkv, run->k, &t, at.x, true);
    s->core->forward(m, run, &t, at.trace);
    qkv_out(&s->qkv, run->k, y, t.o, true);
}

void core_jvp(const taut_module *m, taut_run *run, taut_tensor ty, taut_tensor tx, taut_point at)
{
    const taut_cored *s = (const taut_cored *)m;
    const taut_span mark = run->scratch;
    const taut_inside t = qkv_take(&s->qkv, &at.trace, at.x), d = qkv_take(&s->qkv, &run->scratch, tx);
    qkv_enter(&s->qkv, run->k, &d, tx, false);
    s->core->jvp(m, run, &d, &t, at.trace);
    qkv_out(&s->qkv, run->k, ty, d.o, false);
    run->scratch = mark;
}

void core_vjp(const taut_module *m, taut_run *run, taut_tensor gx, taut_tensor gy, taut_point at)
{
    const taut_cored *s = (const taut_cored *)m;
    const taut_span mark = run->scratch;
    const taut_inside t = qkv_take(&s->qkv, &at.trace, at.x), d = qkv_take(&s->qkv, &run->scratch, gx);
    qkv_out_back(&s->qkv, run, d.o, gy, t.o);
    s->core->vjp(m, run, &d, &t, at.trace);
    qkv_leave(&s->qkv, run, gx, &d, &t);
    run->scratch = mark;
}

taut_answer core_answer(const taut_cored *s, taut_ask in, taut_up lip, taut_up size, taut_up round)
{
    const taut_up out = up_exact(s->qkv.out);
    const taut_reach o = qkv_reach(&s->qkv, &s->qkv.o, in.ledger, up_mul(out, up_add(size, round)));
    const taut_up way = up_mul(out, o.norm);
    if (s->qkv.queries) in.tokens = s->qkv.queries;
    return answer_of(in, up_mul(way, lip), o.size,
                     up_add(up_mul(way, round), up_add(o.round, up_round_sum(o.size, UP_ZERO))));
}

taut_plan taut_core_plan(const taut_module *m, taut_shape q)
{
    const taut_core_room room = ((const taut_cored *)m)->core->room(m, q, q);
    return (taut_plan){ .out = q, .trace = room.trace, .scratch = room.scratch };
}

void taut_core_run(const taut_module *m, taut_run *run, taut_tensor o, taut_tensor q, taut_tensor k, taut_tensor v,
                   taut_span trace)
{
    ((const taut_cored *)m)->core->forward(m, run, &(taut_inside){ .q = q, .k = k, .v = v, .o = o }, trace);
}

void core_split(const taut_kernels *k, taut_real *y, int64_t wide, taut_tensor x, int64_t heads)
{
    const int64_t rows = taut_rows(x.shape), dh = x.shape.d / heads;
    for (int64_t h = 0; h < heads; h++)
        k->copy_rows(taut_at(k, y, h * rows * wide), wide, taut_at(k, x.data, h * dh), x.shape.d, rows, dh);
}

void core_join(const taut_kernels *k, taut_tensor x, const taut_real *y, int64_t wide, int64_t heads)
{
    const int64_t rows = taut_rows(x.shape), dh = x.shape.d / heads;
    for (int64_t h = 0; h < heads; h++)
        k->copy_rows(taut_at(k, x.data, h * dh), x.shape.d, taut_at(k, y, h * rows * wide), wide, rows, dh);
}
