/* Clustered attention: softmax attention in linear time, with a certificate of how far it is from it
 * (bound/deviation.h).  Per head, the keys are put into `groups` clusters by Lloyd's iteration from evenly
 * spread keys, and
 *     y = out W_O o + b_O,  o = sum_j w_j (vbar_j + scale C_j^T q),  w_j ~ n_j exp(scale q.kbar_j)
 * kbar, vbar, n the means and counts of the clusters, C_j (only with `first`) the mean of (k - kbar)(v - vbar)^T.
 *
 * jvp, vjp  of the means and of the attention to them; which cluster a key is in counts as a constant
 * Bound     Lip +inf: where a key changes its cluster, y jumps.  Region: o is an average of values.
 * Trace     q, k, v, o, the clusters and their means. */
#include "base/float32.h"
#include "module/kind.h"
#include "module/reach.h"

typedef struct {
    taut_module base;
    taut_clustered_spec spec;
    taut_qkv qkv;
} clustered;

typedef struct {
    taut_real *c, *logn, *kbar, *vbar, *cross;
} means;

static taut_group group_of(const clustered *s, taut_shape in)
{
    const taut_shape sq = qkv_queries(&s->qkv, in), sk = qkv_keys(&s->qkv, in);
    return (
        taut_group){ in.n, s->spec.heads, sq.t, sk.t, s->spec.groups, s->spec.width / s->spec.heads, s->spec.scale };
}

static int64_t mean_len(const clustered *s, int64_t n) { return n * s->spec.groups * s->spec.width; }
static int64_t cross_len(const clustered *s, int64_t n)
{
    return s->spec.first ? mean_len(s, n) * (s->spec.width / s->spec.heads) : 0;
}

/* Elements of a set of means; c and logn are only in the trace. */
static int64_t means_len(const clustered *s, int64_t n) { return 2 * mean_len(s, n) + cross_len(s, n); }

static means take_means(const clustered *s, taut_span *from, int64_t n)
{
    means m = { .kbar = taut_take(from, mean_len(s, n)), .vbar = taut_take(from, mean_len(s, n)) };
    if (s->spec.first) m.cross = taut_take(from, cross_len(s, n));
    return m;
}

static taut_plan clustered_plan(const taut_module *m, taut_shape in)
{
    const clustered *s = (const clustered *)m;
    TAUT_CHECK(in.d == s->spec.width && in.t >= s->spec.queries, "clustered: shape of the input");
    const int64_t keys = qkv_keys(&s->qkv, in).t, heads = in.n * s->spec.heads;
    const int64_t inside = qkv_room(&s->qkv, in), all = means_len(s, in.n);
    return (taut_plan){ qkv_queries(&s->qkv, in), inside + heads * (keys + s->spec.groups) + all, inside + all, 0 };
}

typedef struct {
    taut_inside in;
    means m;
    taut_group g;
} kept;

static kept kept_at(const clustered *s, taut_point at)
{
    kept t = { .in = qkv_take(&s->qkv, &at.trace, at.x), .g = group_of(s, at.x.shape) };
    taut_real *c = taut_take(&at.trace, t.g.n * t.g.heads * t.g.t);
    taut_real *logn = taut_take(&at.trace, t.g.n * t.g.heads * t.g.m);
    t.m = take_means(s, &at.trace, at.x.shape.n);
    t.m.c = c;
    t.m.logn = logn;
    return t;
}

/* The first centres: keys spread evenly over each example. */
static void spread_centres(const taut_kernels *k, taut_real *centre, const taut_real *keys, const taut_group *g)
{
    const int64_t width = g->heads * g->dh;
    k->axpby(centre, 0, centre, 0, g->n * g->m * width);
    for (int64_t e = 0; e < g->n; e++) {
        for (int64_t j = 0; j < g->m && g->t > 0; j++)
            k->copy_rows(taut_at(k, centre, (e * g->m + j) * width), width,
                         taut_at(k, keys, (e * g->t + j * g->t / g->m) * width), width, 1, width);
    }
}

static void clustered_forward(const taut_module *m, taut_run *run, taut_tensor y, taut_point at)
{
    const clustered *s = (const clustered *)m;
    const taut_kernels *k = run->k;
    const kept t = kept_at(s, at);
    qkv_enter(&s->qkv, k, &t.in, at.x, true);
    spread_centres(k, t.m.kbar, t.in.k.data, &t.g);
    for (int i = 0; i <= s->spec.steps; i++) {
        k->nearest(t.m.c, t.in.k.data, t.m.kbar, &t.g);
        k->cluster_means(t.m.kbar, t.m.vbar, t.m.logn, i == s->spec.steps ? t.m.cross : NULL, t.m.c, t.in.k.data,
                         t.in.v.data, &t.g);
    }
    k->clustered(t.in.o.data, t.in.q.data, t.m.kbar, t.m.vbar, t.m.logn, t.m.cross, &t.g);
    qkv_out(&s->qkv, k, y, t.in.o, true);
}

static void clustered_jvp(const taut_module *m, taut_run *run, taut_tensor ty, taut_tensor tx, taut_point at)
{
    const clustered *s = (const clustered *)m;
    const taut_kernels *k = run->k;
    const taut_span mark = run->scratch;
    const kept t = kept_at(s, at);
    const taut_inside d = qkv_take(&s->qkv, &run->scratch, tx);
    const means dm = take_means(s, &run->scratch, tx.shape.n);
    qkv_enter(&s->qkv, k, &d, tx, false);
    k->cluster_means_jvp(dm.kbar, dm.vbar, dm.cross, d.k.data, d.v.data, t.m.c, t.in.k.data, t.in.v.data, &t.g);
    k->clustered_jvp(d.o.data, d.q.data, dm.kbar, dm.vbar, dm.cross, t.in.q.data, t.m.kbar, t.m.vbar, t.m.logn,
                     t.m.cross, &t.g);
    qkv_out(&s->qkv, k, ty, d.o, false);
    run->scratch = mark;
}

static void clustered_vjp(const taut_module *m, taut_run *run, taut_tensor gx, taut_tensor gy, taut_point at)
{
    const clustered *s = (const clustered *)m;
    const taut_kernels *k = run->k;
    const taut_span mark = run->scratch;
    const kept t = kept_at(s, at);
    const taut_inside d = qkv_take(&s->qkv, &run->scratch, gx);
    const means dm = take_means(s, &run->scratch, gx.shape.n);
    qkv_out_back(&s->qkv, run, d.o, gy, t.in.o);
    k->clustered_vjp(d.q.data, dm.kbar, dm.vbar, dm.cross, d.o.data, t.in.q.data, t.m.kbar, t.m.vbar, t.m.logn,
                     t.m.cross, &t.g);
    k->cluster_means_vjp(d.k.data, d.v.data, dm.kbar, dm.vbar, dm.cross, t.m.c, t.in.k.data, t.in.v.data, &t.g);
    qkv_leave(&s->qkv, run, gx, &d, &t.in);
    run->scratch = mark;
}

static taut_answer clustered_bound(const taut_module *m, taut_ask in)
{
    const clustered *s = (const clustered *)m;
    const taut_qkv *x = &s->qkv;
    const taut_up v = qkv_reach(x, &x->v, in.ledger, in.size).size;
    taut_up mean = up_mul(up_sqrt(up_int(s->spec.heads)), v);
    if (s->spec.first) { /* |C_j| <= the root mean squares of k and v about their means */
        const taut_up q = qkv_reach(x, &x->q, in.ledger, in.size).size;
        const taut_up qk = up_mul(q, qkv_reach(x, &x->k, in.ledger, in.size).size);
        mean = up_mul(mean, up_add((taut_up){ 1 }, up_mul(up_exact(s->spec.scale), qk)));
    }
    ledger_word(in.ledger, "reason", "a key that changes its cluster makes the output jump");
    in.tokens = s->spec.queries ? s->spec.queries : in.tokens;
    const taut_up size = up_mul(qkv_reach(x, &x->o, in.ledger, up_mul(up_exact(x->out), mean)).size,
                                (taut_up){ 1 + 0x1p-20 });
    return (taut_answer){ .lip = UP_NONE, .size = size, .round = UP_NONE, .tokens = in.tokens };
}

static void clustered_params(taut_module *m, taut_visitor *v) { qkv_params(&((clustered *)m)->qkv, v); }

static void clustered_describe(const taut_module *m, taut_ledger *l)
{
    const clustered *s = (const clustered *)m;
    ledger_exact(l, "heads", (double)s->spec.heads);
    ledger_exact(l, "out", s->qkv.out);
    if (s->spec.queries) ledger_exact(l, "queries", (double)s->spec.queries);
    ledger_exact(l, "scale", s->spec.scale);
    ledger_exact(l, "clusters", (double)s->spec.groups);
    ledger_exact(l, "steps", s->spec.steps);
    ledger_exact(l, "first", s->spec.first);
}

static const taut_module_ops clustered_ops = {
    .kind = "clustered",
    .plan = clustered_plan,
    .forward = clustered_forward,
    .jvp = clustered_jvp,
    .vjp = clustered_vjp,
    .bound = clustered_bound,
    .params = clustered_params,
    .describe = clustered_describe,
    .free = leaf_free,
};

bool taut_clustered_look(taut_gathered *g, const taut_module *m, taut_point at)
{
    const clustered *s = (const clustered *)m;
    if (m->ops != &clustered_ops) return false;
    const kept t = kept_at(s, at);
    *g = (taut_gathered){ .heads = s->spec.heads,
                          .groups = s->spec.groups,
                          .scale = s->spec.scale,
                          .first = s->spec.first,
                          .cluster = t.m.c,
                          .q = t.in.q,
                          .k = t.in.k,
                          .v = t.in.v,
                          .o = t.in.o };
    return true;
}

taut_module *taut_clustered(const taut_clustered_spec *spec)
{
    TAUT_CHECK(spec->heads > 0 && spec->width % spec->heads == 0, "clustered: width must be a multiple of heads");
    TAUT_CHECK(spec->groups > 0 && spec->steps >= 0, "clustered: at least one cluster");
    clustered *s = taut_calloc(1, sizeof *s);
    if (!s) return NULL;
    *s = (clustered){ { &clustered_ops },
                      *spec,
                      qkv_of(spec->width, spec->queries, spec->bias, spec->out, spec->init, spec->gain,
                             spec->out_gain) };
    s->spec.scale = taut_float32(spec->scale);
    return &s->base;
}

typedef struct {
    int64_t groups, steps;
    bool first;
} clustered_own;

static double default_groups(const taut_site *s) { return s->context < 64 ? (double)s->context : 64; }

static const taut_key clustered_keys[] = {
    { "clusters", TAUT_KEY_INT, offsetof(clustered_own, groups), 0, 1, 1 << 20, .def_at = default_groups,
      .help = "clusters of keys per head" },
    { "cluster_steps", TAUT_KEY_INT, offsetof(clustered_own, steps), 2, 0, 100, .help = "steps of Lloyd's iteration" },
    { "cluster_first", TAUT_KEY_BOOL, offsetof(clustered_own, first), .help = "to first order inside a cluster" },
};

static taut_status clustered_check(taut_attention_choice *c, const taut_site *s)
{
    const clustered_own *own = (const void *)c->own.bytes;
    if (own->groups <= s->context) return TAUT_OK;
    return taut_fail(TAUT_BAD_CONFIG, "model.clusters = %lld is more than the %lld tokens there are",
                     (long long)own->groups, (long long)s->context);
}

/* Where tokens were halved and fewer are left than clusters, each has its own. */
static taut_module *clustered_build(const taut_attention_choice *c, const taut_site *s)
{
    const clustered_own *own = (const void *)c->own.bytes;
    return taut_clustered(&(taut_clustered_spec){ .width = s->width,
                                                  .heads = s->heads,
                                                  .queries = s->queries,
                                                  .groups = own->groups < s->tokens ? own->groups : s->tokens,
                                                  .steps = (int)own->steps,
                                                  .first = own->first,
                                                  .scale = s->scale,
                                                  .out = s->out,
                                                  .bias = s->bias,
                                                  .init = s->init,
                                                  .gain = s->gain,
                                                  .out_gain = s->out_gain == 0 ? 0 : s->gain });
}

const taut_attention_kind taut_kind_clustered = {
    .name = "clustered",
    .page = "clustered",
    .can = TAUT_CAN_CROSS | TAUT_CAN_SCALE,
    .keys = clustered_keys,
    .count = sizeof clustered_keys / sizeof *clustered_keys,
    .check = clustered_check,
    .build = clustered_build,
};
