/* Features of several degrees, sketched:  for every token, with g = x / (max(|x|, floor) tau),
 *     y = sum over the degrees k of beta_k W_k TS_k(g)
 * TS_k is TensorSketch (kernels/ref/sketch.c) with hash functions named by the seed, exactly 4-wise
 * independent (base/hash.c); they are constants, not weights.  With `fixed` entry i goes into bucket i with
 * the sign + in every factor: the deterministic reference.
 *
 * jvp    ty = sum_k beta_k W_k tz_k,  tz_k the sketch's jvp at g of tg, tg the slope of the scaling
 * vjp    gz_k = beta_k W_k^T gy,  gg = sum_k of the sketch's vjp,  gx = the slope of the scaling at gg;
 *        gW_k += beta_k gy^T z_k,  gbeta_k += <W_k^T gy, z_k>
 * Bound  docs/modules/sketch.md: the scaling has Lip 1/(floor tau), and a convolution is bounded by the
 *        largest entry of a spectrum.
 * Trace  g, and z_k of every degree. */
#include <stdio.h>

#include "base/float32.h"
#include "base/hash.h"
#include "base/rng.h"
#include "bound/norm.h"
#include "bound/rounding.h"
#include "module/leaf.h"

enum { TERMS = TAUT_SKETCH_DEGREES };

typedef struct {
    taut_module base;
    taut_sketch_spec spec;
    taut_param weight[TERMS], beta;
    taut_constant hash[TERMS]; /* (degree, in) each */
    char name[TERMS][32];
} sketch;

static taut_sketch_shape shape_of(const sketch *s, int i, int64_t rows)
{
    return (taut_sketch_shape){ rows, s->spec.in, s->spec.size[i], s->spec.degree[i], s->hash[i].there };
}

static int64_t largest(const sketch *s)
{
    int64_t most = 0;
    for (int i = 0; i < s->spec.degrees; i++) most = s->spec.size[i] > most ? s->spec.size[i] : most;
    return most;
}

static taut_plan sketch_plan(const taut_module *m, taut_shape in)
{
    const sketch *s = (const sketch *)m;
    TAUT_CHECK(in.d == s->spec.in, "sketch: width of the input");
    int64_t sizes = 0;
    for (int i = 0; i < s->spec.degrees; i++) sizes += s->spec.size[i];
    const int64_t rows = taut_rows(in);
    return (taut_plan){
        { in.n, in.t, s->spec.out }, rows * (in.d + sizes), rows * (in.d + largest(s)) + taut_sums_len(2 * TERMS), 0
    };
}

/* y = or += the sum of beta W z over the degrees, one at a time */
static void read_out(const sketch *s, const taut_kernels *k, taut_tensor y, const taut_real *z, const taut_sum *beta,
                     int i)
{
    k->gemm_by(y.data, z, s->weight[i].value, taut_rows(y.shape), s->spec.out, s->spec.size[i], false, true,
               (taut_factor){ 1, taut_sum_at(beta, i) }, i ? 1 : 0);
}

static taut_sum *betas(const sketch *s, taut_run *run)
{
    taut_sum *beta = taut_take_sums(&run->scratch, 2 * TERMS); /* in the second half, what vjp needs them for */
    run->k->sum_of(beta, s->beta.value, s->spec.degrees);
    return beta;
}

static void sketch_forward(const taut_module *m, taut_run *run, taut_tensor y, taut_point at)
{
    const sketch *s = (const sketch *)m;
    const taut_span mark = run->scratch;
    const taut_sum *beta = betas(s, run);
    const int64_t rows = taut_rows(at.x.shape);
    taut_real *g = taut_take(&at.trace, rows * s->spec.in);
    run->k->unit_rows(g, at.x.data, rows, s->spec.in, s->spec.floor, 1 / s->spec.tau);
    for (int i = 0; i < s->spec.degrees; i++) {
        taut_real *z = taut_take(&at.trace, rows * s->spec.size[i]);
        const taut_sketch_shape shape = shape_of(s, i, rows);
        run->k->sketch(z, g, &shape);
        read_out(s, run->k, y, z, beta, i);
    }
    run->scratch = mark;
}

static void sketch_jvp(const taut_module *m, taut_run *run, taut_tensor ty, taut_tensor tx, taut_point at)
{
    const sketch *s = (const sketch *)m;
    const taut_span mark = run->scratch;
    const int64_t rows = taut_rows(at.x.shape);
    const taut_real *g = taut_take(&at.trace, rows * s->spec.in);
    const taut_sum *beta = betas(s, run);
    taut_real *tg = taut_take(&run->scratch, rows * s->spec.in), *tz = taut_take(&run->scratch, rows * largest(s));
    run->k->unit_rows_slope(tg, tx.data, at.x.data, rows, s->spec.in, s->spec.floor, 1 / s->spec.tau);
    for (int i = 0; i < s->spec.degrees; i++) {
        const taut_sketch_shape shape = shape_of(s, i, rows);
        run->k->sketch_jvp(tz, tg, g, &shape);
        read_out(s, run->k, ty, tz, beta, i);
    }
    run->scratch = mark;
}

static void sketch_vjp(const taut_module *m, taut_run *run, taut_tensor gx, taut_tensor gy, taut_point at)
{
    const sketch *s = (const sketch *)m;
    const taut_kernels *k = run->k;
    const taut_span mark = run->scratch;
    const int64_t rows = taut_rows(at.x.shape), out = s->spec.out;
    const taut_real *g = taut_take(&at.trace, rows * s->spec.in);
    taut_real *gg = taut_take(&run->scratch, rows * s->spec.in), *gz = taut_take(&run->scratch, rows * largest(s));
    const taut_sum *beta = betas(s, run);
    k->axpby(gg, 0, gg, 0, rows * s->spec.in);
    for (int i = 0; i < s->spec.degrees; i++) {
        const int64_t size = s->spec.size[i];
        const taut_real *z = taut_take(&at.trace, rows * size);
        const taut_sketch_shape shape = shape_of(s, i, rows);
        k->gemm(gz, gy.data, s->weight[i].value, rows, size, out, false, false, 1, 0);
        const taut_factor by = { 1, taut_sum_at(beta, i) };
        if (run->param_grads) k->dot(taut_sum_at(beta, TERMS + i), gz, 0, z, 0, 1, rows * size);
        if (run->param_grads) k->gemm_by(s->weight[i].grad, gy.data, z, out, size, rows, true, false, by, 1);
        k->axpby_by(gz, 0, (taut_factor){ 0, NULL }, NULL, 0, by, 1, rows * size);
        k->sketch_vjp(gg, gz, g, &shape);
    }
    if (run->param_grads) k->add_sum(s->beta.grad, 1, taut_sum_at(beta, TERMS), s->spec.degrees);
    k->unit_rows_slope(gx.data, gg, at.x.data, rows, s->spec.in, s->spec.floor, 1 / s->spec.tau);
    run->scratch = mark;
}

/* The fullest bucket of a table. */
static int64_t load(const int32_t *hash, int64_t d)
{
    int64_t most = 0;
    for (int64_t i = 0; i < d; i++) {
        int64_t count = 0;
        for (int64_t j = 0; j < d; j++)
            count += (hash[i] < 0 ? ~hash[i] : hash[i]) == (hash[j] < 0 ? ~hash[j] : hash[j]);
        most = count > most ? count : most;
    }
    return most;
}

/* |TS g| <= size and its slope <= lip over |g| <= r: a factor is at most full r long, and the largest entry
 * of its spectrum at most peak. */
static void sketch_sizes(const sketch *s, int i, taut_up r, taut_up *size, taut_up *lip)
{
    const int degree = s->spec.degree[i];
    int64_t most = 0;
    for (int t = 0; t < degree; t++) {
        const int64_t here = load(s->hash[i].whole + t * s->spec.in, s->spec.in);
        most = here > most ? here : most;
    }
    const taut_up full = up_sqrt(up_int(most));
    const taut_up peak = up_mul(up_min(up_sqrt(up_int(s->spec.in)), up_mul(up_sqrt(up_int(s->spec.size[i])), full)), r);
    taut_up others = { 1 };
    for (int t = 1; t < degree; t++) others = up_mul(others, peak);
    *size = up_mul(up_mul(full, r), others);
    *lip = up_mul(up_int(degree), up_mul(full, others));
}

static taut_answer sketch_bound(const taut_module *m, taut_ask in)
{
    const sketch *s = (const sketch *)m;
    const double *beta = taut_ref_values(&s->beta);
    const taut_lo tau = lo_exact(s->spec.tau), floor = lo_exact(s->spec.floor);
    const taut_up scale = up_div(up_div((taut_up){ 1 }, tau), floor); /* Lip of the scaling */
    const taut_up r = up_mul(up_min(up_div((taut_up){ 1 }, tau), up_mul(in.size, scale)), (taut_up){ 1 + 0x1p-40 });
    taut_up lip = UP_ZERO, size = UP_ZERO, round = UP_ZERO;
    for (int i = 0; i < s->spec.degrees; i++) {
        const int64_t cols = s->spec.size[i], terms = s->spec.degree[i];
        const double *w = taut_ref_values(&s->weight[i]);
        taut_up z, slope;
        sketch_sizes(s, i, r, &z, &slope);
        char key[24];
        snprintf(key, sizeof key, "norm_%d", i);
        const taut_up gain = up_mul(up_exact(beta[i]), up_state(in.ledger, key, up_norm(w, s->spec.out, cols)));
        const taut_up lost = up_mul(
            UP_LOST, up_mul(up_int(terms), up_add((taut_up){ 2 }, up_ldexp(slope, 1)))); /* of a factor */
        const taut_up wrong = up_add(lost, up_rounded(terms * cols + 2 * s->spec.in + 16, up_mul(z, up_int(terms))));
        lip = up_add(lip, up_mul(gain, slope));
        size = up_add(size, up_mul(gain, z));
        round = up_add(round, up_mul(gain, wrong));
        round = up_add(round, up_mul(up_exact(beta[i]), up_round_linear(w, NULL, s->spec.out, cols, up_add(z, wrong))));
    }
    return answer_of(in, up_mul(lip, scale), size, round);
}

static void sketch_params(taut_module *m, taut_visitor *v)
{
    sketch *s = (sketch *)m;
    for (int i = 0; i < s->spec.degrees; i++) taut_visit_param(v, &s->weight[i]);
    taut_visit_param(v, &s->beta);
    for (int i = 0; i < s->spec.degrees; i++) taut_visit_constant(v, &s->hash[i]);
}

static void sketch_free(taut_module *m)
{
    sketch *s = (sketch *)m;
    for (int i = 0; i < TERMS; i++) taut_constant_free(&s->hash[i]);
    free(s);
}

static void sketch_describe(const taut_module *m, taut_ledger *l)
{
    const sketch *s = (const sketch *)m;
    double degree[TERMS], size[TERMS], *hash = NULL;
    int64_t len = 0;
    for (int i = 0; i < s->spec.degrees; i++) {
        degree[i] = s->spec.degree[i], size[i] = (double)s->spec.size[i];
        len += s->hash[i].len;
    }
    hash = taut_malloc((size_t)len * sizeof *hash);
    for (int64_t at = 0, i = 0; hash && i < s->spec.degrees; at += s->hash[i++].len)
        for (int64_t k = 0; k < s->hash[i].len; k++) hash[at + k] = s->hash[i].whole[k];
    ledger_exact(l, "floor", s->spec.floor);
    ledger_exact(l, "tau", s->spec.tau);
    ledger_list(l, "degrees", degree, s->spec.degrees);
    ledger_list(l, "sizes", size, s->spec.degrees);
    ledger_list(l, "hash", hash, (int)len);
    free(hash);
}

static const taut_module_ops sketch_ops = {
    .kind = "sketch",
    .plan = sketch_plan,
    .forward = sketch_forward,
    .jvp = sketch_jvp,
    .vjp = sketch_vjp,
    .bound = sketch_bound,
    .params = sketch_params,
    .describe = sketch_describe,
    .free = sketch_free,
};

static void hash_tables(sketch *s, int i)
{
    const int64_t d = s->spec.in;
    for (int t = 0; t < s->spec.degree[i]; t++) {
        int32_t *table = s->hash[i].whole + t * d;
        if (s->spec.fixed)
            for (int64_t c = 0; c < d; c++) table[c] = (int32_t)c;
        else
            taut_hash_table(table, d, s->spec.size[i],
                            taut_rng_key(s->spec.seed, TAUT_RNG_HASH, (uint64_t)(64 * s->spec.degree[i] + t)));
    }
}

taut_module *taut_sketch(const taut_sketch_spec *spec)
{
    TAUT_CHECK(1 <= spec->degrees && spec->degrees <= TERMS, "sketch: 1 to 4 degrees");
    TAUT_CHECK(spec->tau > 0 && spec->floor > 0, "sketch: tau and floor must be positive");
    sketch *s = taut_calloc(1, sizeof *s);
    bool whole = s != NULL;
    if (!whole) return NULL;
    s->base.ops = &sketch_ops;
    s->spec = *spec;
    s->spec.floor = taut_float32(spec->floor);
    s->spec.tau = taut_float32(spec->tau);
    s->beta = (taut_param){
        .name = "beta", .rows = 1, .cols = spec->degrees, .role = TAUT_VECTOR, .init = TAUT_INIT_ONE
    };
    for (int i = 0; i < spec->degrees; i++) {
        TAUT_CHECK(spec->degree[i] >= 1 && spec->size[i] >= 2 && (!spec->fixed || spec->size[i] >= spec->in),
                   "sketch: degrees from 1, sizes from 2, and from the width when they are fixed");
        snprintf(s->name[i], sizeof s->name[i], "degree%d.weight", spec->degree[i]);
        s->weight[i] = (taut_param){
            .name = s->name[i], .rows = spec->out, .cols = spec->size[i], .init = spec->init, .gain = spec->gain
        };
        s->hash[i].len = spec->degree[i] * spec->in;
        s->hash[i].whole = taut_malloc((size_t)(s->hash[i].len + 1) * sizeof *s->hash[i].whole);
        whole = whole && s->hash[i].whole;
        if (whole) hash_tables(s, i);
    }
    if (whole) return &s->base;
    sketch_free(&s->base);
    return NULL;
}
