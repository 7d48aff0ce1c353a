/* The first tokens ask, all others stay:  y = [ x_0 .. x_{first-1} + f(x), x_first ... ],  f of all tokens to `first` of them.
 *
 * jvp    [ tx_first + J tx, tx_rest ];   vjp  gx = gy + J^T gy_first
 * Bound  Lip = 1 + Lip f in both norms, |y_t| <= |x| + |f(x)|.
 * Trace  f's own. */
#include "bound/rounding.h"
#include "module/leaf.h"
#include "module/strays.h"

typedef struct {
    taut_module base;
    int64_t first;
    taut_module *f;
} ask;

static taut_plan ask_plan(const taut_module *m, taut_shape in)
{
    const ask *s = (const ask *)m;
    const taut_plan f = taut_plan_of(s->f, in);
    TAUT_CHECK(f.out.t == s->first && f.out.d == in.d, "ask: what is asked must have the shape of who asks");
    return (taut_plan){ in, f.trace, f.scratch + 2 * taut_len(f.out) + taut_len(in), f.host };
}

/* y's first tokens += part; `room` holds as many numbers as part */
static void add_first(const taut_kernels *k, taut_tensor y, taut_tensor part, taut_real *room)
{
    const int64_t len = part.shape.t * part.shape.d, wide = y.shape.t * y.shape.d;
    k->copy_rows(room, len, y.data, wide, y.shape.n, len);
    k->axpby(room, 1, part.data, 1, taut_len(part.shape));
    k->copy_rows(y.data, wide, room, len, y.shape.n, len);
}

static taut_tensor take_first(const ask *s, taut_run *run, taut_shape in)
{
    return taut_take_tensor(&run->scratch, (taut_shape){ in.n, s->first, in.d });
}

static void ask_forward(const taut_module *m, taut_run *run, taut_tensor y, taut_point at)
{
    const ask *s = (const ask *)m;
    const taut_span mark = run->scratch;
    const taut_tensor part = take_first(s, run, at.x.shape), room = take_first(s, run, at.x.shape);
    taut_forward(s->f, run, part, at);
    run->k->axpby(y.data, 1, at.x.data, 0, taut_len(y.shape));
    add_first(run->k, y, part, room.data);
    run->scratch = mark;
}

static void ask_jvp(const taut_module *m, taut_run *run, taut_tensor ty, taut_tensor tx, taut_point at)
{
    const ask *s = (const ask *)m;
    const taut_span mark = run->scratch;
    const taut_tensor part = take_first(s, run, at.x.shape), room = take_first(s, run, at.x.shape);
    taut_jvp(s->f, run, part, tx, at);
    run->k->axpby(ty.data, 1, tx.data, 0, taut_len(ty.shape));
    add_first(run->k, ty, part, room.data);
    run->scratch = mark;
}

static void ask_vjp(const taut_module *m, taut_run *run, taut_tensor gx, taut_tensor gy, taut_point at)
{
    const ask *s = (const ask *)m;
    const taut_span mark = run->scratch;
    const taut_tensor part = take_first(s, run, at.x.shape);
    const taut_tensor back = taut_take_tensor(&run->scratch, at.x.shape);
    const int64_t len = part.shape.t * part.shape.d;
    run->k->copy_rows(part.data, len, gy.data, gy.shape.t * gy.shape.d, gy.shape.n, len);
    taut_vjp(s->f, run, back, part, at);
    run->k->axpby(gx.data, 1, gy.data, 0, taut_len(gx.shape));
    run->k->axpby(gx.data, 1, back.data, 1, taut_len(gx.shape));
    run->scratch = mark;
}

static taut_answer ask_bound(const taut_module *m, taut_ask in)
{
    const ask *s = (const ask *)m;
    const taut_answer b = taut_bound_named(s->f, "", in);
    const taut_up size = up_add(in.size, b.size), round = up_round_sum(in.size, b.size);
    taut_answer whole = answer_of(in, up_add((taut_up){ 1 }, b.lip), size, round);
    if (in.table) {
        whole.round = strays_mix(in, b, 1, 1);
        whole.size = up_add(whole.size, whole.round);
    }
    whole.round = up_add(whole.round, b.round);
    whole.defect = b.defect;
    whole.size = up_add(whole.size, b.round);
    return whole;
}

static void ask_parts(const taut_module *m, taut_point at, taut_tour *tour)
{
    taut_tour_child(tour, "", ((const ask *)m)->f, at);
}

static void ask_params(taut_module *m, taut_visitor *v) { taut_visit_child(v, "", ((ask *)m)->f); }

static void ask_describe(const taut_module *m, taut_ledger *l)
{
    const ask *s = (const ask *)m;
    ledger_exact(l, "first", (double)s->first);
    taut_describe(s->f, "", l);
}

static void ask_free(taut_module *m)
{
    taut_module_free(((ask *)m)->f);
    free(m);
}

static const taut_module_ops ask_ops = {
    .kind = "ask",
    .composes = true,
    .plan = ask_plan,
    .forward = ask_forward,
    .jvp = ask_jvp,
    .vjp = ask_vjp,
    .bound = ask_bound,
    .params = ask_params,
    .parts = ask_parts,
    .describe = ask_describe,
    .free = ask_free,
};

taut_module *taut_askers(int64_t first, taut_module *f)
{
    ask *s = f ? taut_malloc(sizeof *s) : NULL;
    if (!s) {
        taut_module_free(f);
        return NULL;
    }
    *s = (ask){ { &ask_ops }, first, f };
    return &s->base;
}
