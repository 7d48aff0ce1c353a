/* How far the tables of floats stray from modules that are built of several slots, one module at a time: no further than
 * `round` of a bound that was asked about the table, in both norms, for weights and inputs of every size. */
#include "base/float32.h"
#include "laws.h"
#include "table.h"

enum { MOST = 12 };
static const char *const names[MOST] = { "potential",  "sll",   "cosine", "l2",  "window",    "softmax",
                                         "neighbours", "halve", "waves",  "ask", "cosformer", "performer" };
static double worst[MOST];
static int64_t proved[MOST];

static taut_module *residual(taut_shape in, bool sll)
{
    static const taut_curve curves[] = { TAUT_RELU, TAUT_SILU, TAUT_TANH, TAUT_GELU };
    const taut_potential_spec s = {
        .width = in.d, .hidden = rng_int(1, 24), .curve = curves[rng_int(0, 3)], .bias = rng_int(0, 1)
    };
    return sll ? taut_sll(&s) : taut_potential(&s);
}

static taut_module *softmax(taut_shape in, int64_t queries)
{
    return taut_attention(&(taut_attention_spec){ .width = in.d,
                                                  .heads = 2,
                                                  .scale = 0.5,
                                                  .out = 0.7,
                                                  .queries = queries,
                                                  .rope = !queries && rng_int(0, 1),
                                                  .rope_base = 100,
                                                  .alibi = !queries && rng_int(0, 1),
                                                  .bias = true });
}

static taut_module *make(int which, taut_shape in)
{
    const taut_around around = {
        .width = in.d, .heads = 2, .scale = 0.8, .out = 0.9, .causal = rng_int(0, 1), .bias = rng_int(0, 1)
    };
    switch (which) {
    case 0:
    case 1:
        return residual(in, which == 1);
    case 2:
        return taut_cosattention(&(taut_cosattention_spec){ .width = in.d,
                                                            .heads = rng_int(1, 2),
                                                            .tau = pow(10, 2 * rng_unit() - 1),
                                                            .eps = pow(10, -6 * rng_unit()),
                                                            .out = 0.3,
                                                            .values = rng_int(0, 1),
                                                            .causal = rng_int(0, 1),
                                                            .alibi = rng_int(0, 1),
                                                            .rope = rng_int(0, 1),
                                                            .rope_base = 100,
                                                            .bias = rng_int(0, 1) });
    case 3:
        return taut_l2attention(&(taut_l2attention_spec){ .width = in.d, .heads = rng_int(1, 2), .tied = true });
    case 4: {
        const int64_t size = rng_int(1, 3);
        return taut_window(&around, size, rng_int(0, 2));
    }
    case 5:
        return softmax(in, 0);
    case 6:
        return taut_neighbours(in.d / 2);
    case 7:
        return taut_halve();
    case 8:
        return taut_sinusoid(in.t, in.d);
    case 10: {
        taut_around open = around;
        open.causal = false;
        return taut_cosformer(&open, in.t + rng_int(0, 3), pow(10, -3 * rng_unit()));
    }
    case 11: {
        taut_around open = around;
        open.causal = false;
        return taut_performer(&open, rng_int(1, 40), (uint64_t)rng_int(0, 99));
    }
    default:
        return taut_askers(1, softmax(in, 1));
    }
}

/* Numbers of every size that are floats; a potential's scale is kept near ||W||^2, so that it is no expansion. */
static void scatter(law *l, int which)
{
    const double by = which == 3 ? 0.5 : pow(10, 1.5 * rng_pm());
    for (int p = 0; p < l->params; p++) {
        double *v = (double *)l->seen[p]->value;
        const int64_t len = l->seen[p]->rows * l->seen[p]->cols;
        const bool scale = which == 0 && p == l->params - 1, log_q = which == 1 && p == l->params - 1;
        for (int64_t i = 0; i < len; i++) v[i] = taut_float32(scale ? 2 * by * by : log_q ? 3 * v[i] : by * v[i]);
    }
    for (int64_t i = 0; i < l->nx; i++) l->x[i] = taut_float32(l->x[i] / (which == 3 || which == 4 ? 1 : by));
}

/* The table's own copy. */
static taut_real *there(const taut_kernels *k, const double *x, int64_t len)
{
    taut_real *y = taut_reals(k, len);
    if (x) k->put(y, x, len);
    return y;
}

/* y by the table's kernels, which the module's weights are put to for as long. */
static double *computed(law *l, const taut_kernels *k)
{
    taut_real *kept[256], *x = there(k, l->x, l->nx), *y = there(k, NULL, l->ny);
    taut_real *trace = there(k, NULL, l->plan.trace), *scratch = there(k, NULL, l->plan.scratch);
    double *result = doubles(l->ny);
    for (int p = 0; p < l->params; p++) {
        taut_param *w = l->seen[p];
        kept[p] = w->value;
        w->value = there(k, (const double *)kept[p], w->rows * w->cols);
    }
    CHECK(taut_module_place(l->m, k) == TAUT_OK, "constants are where the table reads them");
    taut_run run = { .k = k, .scratch = { scratch, l->plan.scratch, k->elem } };
    const taut_point at = { { x, l->in }, { trace, l->plan.trace, k->elem } };
    taut_forward(l->m, &run, (taut_tensor){ y, l->plan.out }, at);
    k->get(result, y, l->ny);
    for (int p = 0; p < l->params; p++) k->release(l->seen[p]->value), l->seen[p]->value = kept[p];
    CHECK(taut_module_place(l->m, l->run.k) == TAUT_OK, "and back");
    k->release(x), k->release(y), k->release(trace), k->release(scratch);
    return result;
}

static void judge(law *l, int which, const char *table)
{
    const taut_shape out = l->plan.out;
    double *off = computed(l, taut_kernels_find(table));
    for (int64_t i = 0; i < l->ny; i++) off[i] -= l->y[i];
    for (int n = 0; n < 2; n++) {
        taut_ask in = { .norm = (taut_norm)n, .tokens = l->in.t, .size = up_exact(longest_token(l->x, l->in)) };
        const taut_answer ref = taut_bound_of(l->m, in);
        in.table = taut_promise_find(table);
        const taut_answer b = taut_bound_of(l->m, in);
        const double error = n == TAUT_NORM_FLAT ? norm(off, l->ny) : longest_token(off, out);
        CHECK_LE(error, b.round.v + ref.round.v, names[which]);
        proved[which] += isfinite(b.round.v);
        if (b.round.v > 0) worst[which] = fmax(worst[which], error / b.round.v);
    }
    free(off);
}

int main(void)
{
    static const char *const tables[] = { "cpu", "wide" };
    char said[400] = "";
    test_begin();
    for (case_no = 0; case_no < effort(60 * MOST); case_no++) {
        const int which = (int)(case_no % MOST);
        const taut_shape in = { 1, rng_int(which == 9 ? 2 : 1, 9), 4 * rng_int(1, which == 1 ? 12 : 6) };
        law l;
        law_begin(&l, make(which, in), in);
        scatter(&l, which);
        law_forward(&l, l.y);
        for (int i = 0; i < 2; i++) judge(&l, which, tables[i]);
        law_end(&l);
    }
    for (int i = 0; i < MOST; i++) {
        CHECK(proved[i] > 0, names[i]);
        snprintf(said + strlen(said), sizeof said - strlen(said), " %s %.4f", names[i], worst[i]);
    }
    return test_end("strays", "found / proved:%s", said);
}
