/* PLASH attention: the keys and values of a head are gathered in M representatives, these are enriched, and the
 * queries read them with exact softmax attention.
 *     stage I    A_i = softmax over j of k_i.p_j / tau;  kt_j = sum_i A_ij k_i,  vt_j = sum_i A_ij v_i  (per head)
 *     stage II   z = mixer(sketch(psi([kt, vt])))        (module/sketch.c; a post-norm encoder over the M tokens)
 *     stage III  o = softmax(scale q.(W_Kg z)) W_Vg z  (per head),     y = out W_O o + b_O
 * The prototypes p are learned.  Two passes over the tokens, and no matrix of tokens by representatives.
 *
 * jvp, vjp  stage by stage; stage II is a module of modules
 * Bound     bound/plash.c around stage II's own; finite, and very large where stage II has LayerNorms
 * Trace     q, k, v, o, lse; of the representatives [kt, vt], z, kg, vg; stage II's own.
 * Causal masks do not exist: every representative holds all keys. */
#include "base/float32.h"
#include "module/reach.h"

typedef struct {
    taut_module base;
    taut_plash_spec spec;
    double route; /* 1/tau */
    taut_qkv qkv;
    taut_param prototypes, w_kg, w_vg;
    taut_module *middle; /* (n, M, 2 width) to (n, M, width) */
} plash;

static const taut_module_ops plash_ops;

typedef struct {
    taut_tensor u, z, kg, vg;
} groups; /* primal, tangent or cotangent */

/* What the three stages keep, given q, k and v. */
typedef struct {
    taut_real *lse;
    groups at;
    taut_point middle;
    taut_group g;
    taut_attn attn;
} core;

typedef struct {
    taut_inside in;
    core core;
} kept;

static taut_shape group_shape(const plash *s, int64_t n) { return (taut_shape){ n, s->spec.groups, s->spec.width }; }
static taut_shape pair_shape(const plash *s, int64_t n) { return (taut_shape){ n, s->spec.groups, 2 * s->spec.width }; }

static groups take_groups(const plash *s, taut_span *from, int64_t n)
{
    groups t = { .u = taut_take_tensor(from, pair_shape(s, n)) };
    t.z = taut_take_tensor(from, group_shape(s, n));
    t.kg = taut_take_tensor(from, group_shape(s, n));
    t.vg = taut_take_tensor(from, group_shape(s, n));
    return t;
}

static int64_t groups_len(const plash *s, int64_t n) { return 5 * taut_len(group_shape(s, n)); }

static core core_at(const plash *s, taut_shape q, taut_shape k, taut_span trace)
{
    const int64_t n = q.n, heads = s->spec.heads, dh = s->spec.width / heads, m = s->spec.groups;
    core t = { .lse = taut_take(&trace, n * heads * q.t), .at = take_groups(s, &trace, n) };
    t.middle = (taut_point){ t.at.u, trace };
    t.g = (taut_group){ n, heads, q.t, k.t, m, dh, s->route };
    t.attn = (taut_attn){ .n = n, .heads = heads, .tq = q.t, .tk = m, .dh = dh, .scale = s->spec.scale };
    return t;
}

static kept kept_at(const plash *s, taut_point at)
{
    kept t = { .in = qkv_take(&s->qkv, &at.trace, at.x) };
    t.core = core_at(s, t.in.q.shape, t.in.k.shape, at.trace);
    return t;
}

taut_plan taut_plash_core_plan(const taut_module *m, taut_shape q)
{
    const plash *s = (const plash *)m;
    const taut_plan middle = taut_plan_of(s->middle, pair_shape(s, q.n));
    const int64_t half = taut_len(group_shape(s, q.n));
    return (taut_plan){ q, q.n * s->spec.heads * q.t + groups_len(s, q.n) + middle.trace, 2 * half + middle.scratch,
                        middle.host };
}

static taut_plan plash_plan(const taut_module *m, taut_shape in)
{
    const plash *s = (const plash *)m;
    TAUT_CHECK(in.d == s->spec.width && in.t >= s->spec.queries, "plash: shape of the input");
    const taut_plan core = taut_plash_core_plan(m, qkv_queries(&s->qkv, in));
    const int64_t inside = qkv_room(&s->qkv, in);
    return (taut_plan){ core.out, inside + core.trace, inside + groups_len(s, in.n) + core.scratch, core.host };
}

/* [kt, vt] side by side, and back */
static void join(const taut_kernels *k, taut_tensor u, const taut_real *kt, const taut_real *vt)
{
    const int64_t rows = taut_rows(u.shape), d = u.shape.d / 2;
    k->copy_rows(u.data, 2 * d, kt, d, rows, d);
    k->copy_rows(taut_at(k, u.data, d), 2 * d, vt, d, rows, d);
}

static void part(const taut_kernels *k, taut_real *kt, taut_real *vt, taut_tensor u)
{
    const int64_t rows = taut_rows(u.shape), d = u.shape.d / 2;
    k->copy_rows(kt, d, u.data, 2 * d, rows, d);
    k->copy_rows(vt, d, taut_at(k, u.data, d), 2 * d, rows, d);
}

static void times(const plash *s, const taut_kernels *k, taut_tensor y, const taut_param *w, taut_tensor x)
{
    k->gemm(y.data, x.data, w->value, taut_rows(x.shape), s->spec.width, s->spec.width, false, true, 1, 0);
}

static void core_forward(const plash *s, taut_run *run, taut_tensor o, taut_tensor q, taut_tensor key, taut_tensor v,
                         const core *t)
{
    const taut_kernels *k = run->k;
    const taut_span mark = run->scratch;
    const int64_t half = taut_len(t->at.z.shape);
    taut_real *kt = taut_take(&run->scratch, half), *vt = taut_take(&run->scratch, half);
    k->route(kt, vt, key.data, v.data, s->prototypes.value, &t->g);
    join(k, t->at.u, kt, vt);
    taut_run r = *run;
    taut_forward(s->middle, &r, t->at.z, t->middle);
    times(s, k, t->at.kg, &s->w_kg, t->at.z);
    times(s, k, t->at.vg, &s->w_vg, t->at.z);
    k->attention(o.data, t->lse, q.data, t->at.kg.data, t->at.vg.data, &t->attn);
    run->scratch = mark;
}

void taut_plash_core(const taut_module *m, taut_run *run, taut_tensor o, taut_tensor q, taut_tensor k, taut_tensor v,
                     taut_span trace)
{
    const core t = core_at((const plash *)m, q.shape, k.shape, trace);
    core_forward((const plash *)m, run, o, q, k, v, &t);
}

bool taut_plash_look(taut_gathered *g, const taut_module *m, taut_point at)
{
    const plash *s = (const plash *)m;
    if (m->ops != &plash_ops) return false;
    const kept t = kept_at(s, at);
    *g = (taut_gathered){ .plash = &s->spec,
                          .heads = s->spec.heads,
                          .groups = s->spec.groups,
                          .scale = s->spec.scale,
                          .q = t.in.q,
                          .k = t.in.k,
                          .v = t.in.v,
                          .o = t.in.o };
    return true;
}

const taut_param *taut_plash_prototypes(const taut_module *m)
{
    return m->ops == &plash_ops ? &((const plash *)m)->prototypes : NULL;
}

static void plash_forward(const taut_module *m, taut_run *run, taut_tensor y, taut_point at)
{
    const plash *s = (const plash *)m;
    const kept t = kept_at(s, at);
    qkv_enter(&s->qkv, run->k, &t.in, at.x, true);
    core_forward(s, run, t.in.o, t.in.q, t.in.k, t.in.v, &t.core);
    qkv_out(&s->qkv, run->k, y, t.in.o, true);
}

static void plash_jvp(const taut_module *m, taut_run *run, taut_tensor ty, taut_tensor tx, taut_point at)
{
    const plash *s = (const plash *)m;
    const taut_kernels *k = run->k;
    const taut_span mark = run->scratch;
    const kept t = kept_at(s, at);
    const taut_inside d = qkv_take(&s->qkv, &run->scratch, tx);
    const groups dg = take_groups(s, &run->scratch, tx.shape.n);
    const int64_t half = taut_len(t.core.at.z.shape);
    taut_real *kt = taut_take(&run->scratch, half), *vt = taut_take(&run->scratch, half);
    qkv_enter(&s->qkv, k, &d, tx, false);
    k->route_jvp(kt, vt, d.k.data, d.v.data, t.in.k.data, t.in.v.data, s->prototypes.value, &t.core.g);
    join(k, dg.u, kt, vt);
    taut_run r = *run;
    taut_jvp(s->middle, &r, dg.z, dg.u, t.core.middle);
    times(s, k, dg.kg, &s->w_kg, dg.z);
    times(s, k, dg.vg, &s->w_vg, dg.z);
    k->attention_jvp(d.o.data, d.q.data, dg.kg.data, dg.vg.data, t.in.q.data, t.core.at.kg.data, t.core.at.vg.data,
                     &t.core.attn);
    qkv_out(&s->qkv, k, ty, d.o, false);
    run->scratch = mark;
}

/* gz = (or +=) W^T gy, and W's gradient */
static void times_back(const plash *s, const taut_run *run, taut_tensor gz, bool more, taut_tensor gy,
                       const taut_param *w, taut_tensor z)
{
    const int64_t d = s->spec.width, rows = taut_rows(z.shape);
    run->k->gemm(gz.data, gy.data, w->value, rows, d, d, false, false, 1, more ? 1 : 0);
    if (run->param_grads) run->k->gemm(w->grad, gy.data, z.data, d, d, rows, true, false, 1, 1);
}

static void plash_vjp(const taut_module *m, taut_run *run, taut_tensor gx, taut_tensor gy, taut_point at)
{
    const plash *s = (const plash *)m;
    const taut_kernels *k = run->k;
    const taut_span mark = run->scratch;
    const kept t = kept_at(s, at);
    const taut_inside d = qkv_take(&s->qkv, &run->scratch, gx);
    const groups dg = take_groups(s, &run->scratch, gx.shape.n);
    const int64_t half = taut_len(t.core.at.z.shape);
    taut_real *kt = taut_take(&run->scratch, half), *vt = taut_take(&run->scratch, half);
    qkv_out_back(&s->qkv, run, d.o, gy, t.in.o);
    k->attention_vjp(d.q.data, dg.kg.data, dg.vg.data, d.o.data, t.in.o.data, t.core.lse, t.in.q.data,
                     t.core.at.kg.data, t.core.at.vg.data, &t.core.attn);
    times_back(s, run, dg.z, false, dg.kg, &s->w_kg, t.core.at.z);
    times_back(s, run, dg.z, true, dg.vg, &s->w_vg, t.core.at.z);
    taut_run r = *run;
    taut_vjp(s->middle, &r, dg.u, dg.z, t.core.middle);
    part(k, kt, vt, dg.u);
    k->route_vjp(d.k.data, d.v.data, run->param_grads ? s->prototypes.grad : NULL, kt, vt, t.in.k.data, t.in.v.data,
                 s->prototypes.value, &t.core.g);
    qkv_leave(&s->qkv, run, gx, &d, &t.in);
    run->scratch = mark;
}

/* The longest prototype of a head. */
static taut_up longest(const plash *s)
{
    const int64_t dh = s->spec.width / s->spec.heads, count = s->spec.groups * s->spec.heads;
    taut_up most = UP_ZERO;
    for (int64_t i = 0; i < count; i++)
        most = up_max(most, up_norm_frobenius(taut_ref_values(&s->prototypes) + i * dh, dh));
    return most;
}

static taut_answer plash_bound(const taut_module *m, taut_ask in)
{
    const plash *s = (const plash *)m;
    const int64_t d = s->spec.width, tq = s->spec.queries ? s->spec.queries : in.tokens;
    const bool flat = in.norm == TAUT_NORM_FLAT;
    const taut_reach q = qkv_reach(&s->qkv, &s->qkv.q, in.ledger, in.size);
    const taut_reach k = qkv_reach(&s->qkv, &s->qkv.k, in.ledger, in.size);
    const taut_reach v = qkv_reach(&s->qkv, &s->qkv.v, in.ledger, in.size);
    taut_plash_reach r = { .q = q,
                           .k = k,
                           .v = v,
                           .prototype = up_state(in.ledger, "longest", longest(s)),
                           .route = s->route,
                           .scale = s->spec.scale,
                           .heads = s->spec.heads,
                           .groups = s->spec.groups,
                           .tq = tq,
                           .tk = in.tokens - s->spec.queries,
                           .dh = d / s->spec.heads };
    const taut_plash_route a = up_plash_route(&r);
    taut_ask middle = { .norm = in.norm, .tokens = s->spec.groups, .ledger = in.ledger };
    middle.size = up_add(a.size, a.round);
    const taut_answer before = { .lip = { 1 }, .round = taut_round_of(middle, a.round) };
    const taut_answer b = taut_answer_then(before, taut_bound_named(s->middle, "middle", middle));
    r.kg = reach_of(in.ledger, "group_key", &s->w_kg, d, b.size);
    r.vg = reach_of(in.ledger, "group_value", &s->w_vg, d, b.size);
    const taut_plash_readout c = up_plash_readout(&r, b.round);
    const taut_up group = flat ? up_mul(up_sqrt(up_int(tq)), up_mul(c.group_flat, up_mul(b.lip, a.flat)))
                               : up_mul(c.group_tokens, up_mul(b.lip, a.tokens));
    const taut_up out = up_exact(s->qkv.out);
    const taut_reach o = qkv_reach(&s->qkv, &s->qkv.o, in.ledger, up_mul(out, up_add(c.size, c.round)));
    const taut_up round = up_add(up_mul(up_mul(out, o.norm), c.round), up_add(o.round, up_round_sum(o.size, UP_ZERO)));
    in.tokens = tq;
    return answer_of(in, up_mul(up_mul(out, o.norm), up_add(c.query, group)), o.size, round);
}

static void plash_params(taut_module *m, taut_visitor *v)
{
    plash *s = (plash *)m;
    qkv_params(&s->qkv, v);
    taut_visit_param(v, &s->prototypes);
    taut_visit_child(v, "middle", s->middle);
    taut_visit_param(v, &s->w_kg);
    taut_visit_param(v, &s->w_vg);
}

static void plash_free(taut_module *m)
{
    plash *s = (plash *)m;
    taut_module_free(s->middle);
    free(s);
}

static void plash_describe(const taut_module *m, taut_ledger *l)
{
    const plash *s = (const plash *)m;
    ledger_exact(l, "heads", (double)s->spec.heads);
    ledger_exact(l, "out", s->qkv.out);
    if (s->spec.queries) ledger_exact(l, "queries", (double)s->spec.queries);
    ledger_exact(l, "scale", s->spec.scale);
    ledger_exact(l, "pair", s->spec.pair);
    ledger_exact(l, "route", s->route);
    taut_describe(s->middle, "middle", l);
}

static const taut_module_ops plash_ops = {
    .kind = "plash",
    .plan = plash_plan,
    .forward = plash_forward,
    .jvp = plash_jvp,
    .vjp = plash_vjp,
    .bound = plash_bound,
    .params = plash_params,
    .describe = plash_describe,
    .free = plash_free,
};

taut_module *taut_plash(const taut_plash_spec *spec)
{
    static const char *const role[] = { "qkv", "kqv", "vqk" }; /* asks, is routed and compared, is read */
    const int64_t d = spec->width;
    TAUT_CHECK(spec->heads > 0 && d % spec->heads == 0, "plash: width must be a multiple of heads");
    TAUT_CHECK(spec->groups > 0 && spec->tau > 0 && spec->mixers <= 64, "plash: groups, tau or mixers");
    TAUT_CHECK(spec->pair == TAUT_PLASH_KV || !spec->queries, "plash: cross-attention compresses keys and values");
    plash *s = taut_calloc(1, sizeof *s);
    if (!s) return NULL;
    s->base.ops = &plash_ops;
    s->spec = *spec;
    s->route = taut_float32(1 / spec->tau);
    s->spec.scale = taut_float32(spec->scale);
    s->qkv = qkv_of(d, spec->queries, spec->bias, spec->out, spec->init, spec->gain, spec->out_gain);
    qkv_name(&s->qkv, role[spec->pair]);
    s->prototypes = (taut_param){ .name = "prototypes",
                                  .rows = spec->groups,
                                  .cols = d,
                                  .role = TAUT_TABLE,
                                  .init = TAUT_INIT_NORMAL,
                                  .gain = 1 / sqrt((double)d / (double)spec->heads) };
    s->w_kg = (taut_param){ .name = "kg.weight", .rows = d, .cols = d, .init = spec->init, .gain = spec->gain };
    s->w_vg = (taut_param){ .name = "vg.weight", .rows = d, .cols = d, .init = spec->init, .gain = spec->gain };
    s->middle = taut_plash_middle(spec);
    if (s->middle) return &s->base;
    plash_free(&s->base);
    return NULL;
}
