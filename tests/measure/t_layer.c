/* A layer between found and proved, for every map and every placing of the norm: lower <= the norm of the dense derivative <=
 * upper <= ball, and no slope found in the ball is above the last. */
#include "base/float32.h"
#include "measure/layer.h"

#include "bound/oracle.h"
#include "certify/build.h"
#include "measure/scatter.h"

static const char *const recipes[] = {
    "[model]\nwidth = 4\nheads = 2\ndepth = 2\ncontext = 6\nmlp = 4\n",
    "[model]\nwidth = 4\nheads = 1\ndepth = 1\ncontext = 6\nmlp = 4\nnorm = rmsnorm\nbias = false\n",
    "[model]\narch = encoder\nwidth = 4\nheads = 2\ndepth = 1\ncontext = 6\nmlp = 4\nnorm_place = post\n",
    ("[model]\nwidth = 4\nheads = 2\ndepth = 1\ncontext = 6\nmlp = 4\nnorm = none\nresidual = convex\n"
     "positions = rope\n"),
};

static double dense(taut_probe *p)
{
    const int64_t nx = taut_len(p->in), ny = taut_len(p->out);
    double *j = doubles(nx * ny), *u = doubles(nx), *y = doubles(ny);
    for (int64_t c = 0; c < nx; c++) {
        u[c] = 1;
        taut_probe_jvp(p, (taut_real *)y, (taut_real *)u);
        u[c] = 0;
        for (int64_t r = 0; r < ny; r++) j[r * nx + c] = y[r];
    }
    const double n = oracle_norm(j, ny, nx);
    free(j), free(u), free(y);
    return n;
}

static double tightest = INFINITY;

/* The steepest of a few inputs in the ball, all tokens moved by as much as is allowed. */
static double attack(taut_probe *p, const double *x, double r, const taut_slope_options *o)
{
    const int64_t d = p->in.d;
    double most = 0, *y = doubles(taut_len(p->in));
    for (int i = 0; i < 12; i++) {
        for (int64_t t = 0; t < p->in.t; t++) {
            double move[16];
            fill(move, d);
            const double size = norm(move, d);
            for (int64_t c = 0; c < d; c++) y[t * d + c] = x[t * d + c] + r * move[c] / size * (1 - 1e-14);
        }
        taut_slope s;
        taut_probe_move(p, y);
        must(taut_slope_find(&s, NULL, p, o));
        most = fmax(most, s.value);
    }
    free(y);
    return most;
}

static void one_map(taut_capture *c, int layer, taut_map map)
{
    const double r = 0.02;
    const taut_layer_options o = { { TAUT_SLOPE_LANCZOS, 60, 1e-9, 1 }, true, true, true, r };
    taut_layer_measure m;
    must(taut_layer_measure_at(&m, c, layer, map, &o));
    const taut_tensor x = taut_capture_input(c, layer, map);
    taut_module *module = NULL;
    taut_probe p;
    must(taut_capture_map(&module, c, layer, map));
    must(taut_probe_create(&p, module, c->m->k, (const double *)x.data, x.shape));
    const double exact = dense(&p);
    CHECK_LE(m.lower, exact * (1 + 1e-10), "lower <= exact");
    CHECK_LE(exact * (1 - 1e-6), m.lower, "lower is near");
    CHECK_LE(exact, m.upper.v * (1 + 1e-10), "exact <= upper");
    CHECK_LE(m.upper.v, m.ball.v * (1 + 1e-9), "upper <= ball");
    CHECK_LE(m.lower, m.ball_lower, "the input is in the ball");
    CHECK_LE(m.ball_lower, m.ball.v, "no pair in the ball is steeper");
    CHECK_LE(exact, m.probable, "the probabilistic number, this time");
    CHECK_LE(attack(&p, (const double *)x.data, r, &o.slope), m.ball.v, "nothing in the ball is steeper");
    for (int64_t h = 0; h < m.heads; h++) CHECK_LE(m.head[h].lower, m.head[h].upper * (1 + 1e-10), "heads");
    tightest = fmin(tightest, m.upper.v / exact);
    taut_probe_free(&p);
    taut_module_free(module);
    taut_layer_measure_free(&m);
}

static void layers(void)
{
    for (case_no = 0; case_no < 4; case_no++) {
        taut_model *m = blank_model(recipes[case_no], 7, false);
        must(taut_model_init(m, 3));
        for (int64_t i = 0; i < m->slab; i++)
            ((double *)m->values)[i] = taut_float32(25 * ((double *)m->values)[i]); /* steep enough */
        const int32_t ids[] = { 1, 4, 2, 2, 6, 0 };
        taut_capture *c = NULL;
        must(taut_capture_create(&c, m, 1, 6));
        taut_capture_run(c, ids, 1, 6);
        for (int l = 0; l < c->layers; l++)
            for (int map = 0; map < TAUT_MAPS; map++) one_map(c, l, (taut_map)map);
        taut_capture_free(c);
        taut_model_free(m);
    }
}

static double *weight_of(taut_model *m, const char *path)
{
    for (int i = 0; i < m->weights; i++)
        if (strstr(m->weight[i].path, path)) return (double *)m->values + m->weight[i].offset;
    return NULL;
}

static double published(const taut_head_measure *h, const char *name)
{
    for (int i = 0; i < TAUT_PUBLISHED; i++)
        if (h->published[i].name && strcmp(h->published[i].name, name) == 0) return h->published[i].value;
    return NAN;
}

/* The papers' numbers beside a head with biases: b_K and b_V change none of them, b_Q brings Theorem E.3, W_V = 0 leaves no
 * lower bound above 0. */
static void publishes(void)
{
    const taut_layer_options o = { { TAUT_SLOPE_LANCZOS, 60, 1e-9, 1 }, true, true, true, 0 };
    const int32_t ids[] = { 1, 4, 2, 2, 6, 0 };
    taut_head_measure first[2];
    taut_model *m = blank_model(recipes[2], 7, false);
    must(taut_model_init(m, 3));
    for (int64_t i = 0; i < m->slab; i++) ((double *)m->values)[i] = taut_float32(25 * ((double *)m->values)[i]);
    for (case_no = 0; case_no < 4; case_no++) {
        taut_capture *c = NULL;
        taut_layer_measure l;
        if (case_no == 1) weight_of(m, "attn.k.bias")[1] = 7, weight_of(m, "attn.v.bias")[2] = 1000;
        if (case_no == 2) weight_of(m, "attn.q.bias")[0] = 2;
        if (case_no == 3) memset(weight_of(m, "attn.v.weight"), 0, 16 * sizeof(double));
        must(taut_capture_create(&c, m, 1, 6));
        taut_capture_run(c, ids, 1, 6);
        must(taut_layer_measure_at(&l, c, 0, TAUT_MAP_BARE, &o));
        for (int64_t h = 0; h < 2; h++) {
            const taut_head_measure *at = &l.head[h];
            const double e3 = published(at, "castin_e_3");
            CHECK_LE(at->lower, at->upper, "lower <= upper");
            if (case_no == 0) first[h] = *at;
            CHECK(!(published(at, "castin_3_4_lower") > published(at, "taut_global_flat")), "3.4 <= ours");
            CHECK(isnan(e3) == !(case_no >= 2 && h == 0), "E.3 is there with a b_Q");
            CHECK(isnan(e3) || at->lower <= e3, "E.3 holds");
            for (int i = 0; case_no == 1 && i < TAUT_PUBLISHED; i++)
                CHECK(at->published[i].value == first[h].published[i].value ||
                          (isnan(at->published[i].value) && isnan(first[h].published[i].value)),
                      "b_K and b_V are not in the derivative");
            if (case_no == 3) CHECK_LE(at->lower, 1e-10, "a constant head; its b_V of 1000 leaves rounding");
        }
        taut_layer_measure_free(&l);
        taut_capture_free(c);
    }
    taut_model_free(m);
}

/* Lengths: as many points as promised, the ones of a length beside each other; what is refused. */
static void scatters(void)
{
    taut_model *m = blank_model(recipes[0], 7, false);
    must(taut_model_init(m, 3));
    int32_t ids[60];
    for (int i = 0; i < 60; i++) ids[i] = (int32_t)rng_int(0, 6);
    taut_scatter_point p[32];
    taut_scatter_options o = { 2, 6, 2, 3, 1, TAUT_MAP_BARE, { TAUT_SLOPE_LANCZOS, 40, 1e-6, 1 }, NULL, NULL };
    CHECK(taut_scatter_count(&o, false) == 9 && taut_scatter_count(&o, true) == 3, "count");
    must(taut_scatter_text(p, m, ids, 60, &o));
    for (int i = 0; i < 9; i++) CHECK(p[i].n == 2 + 2 * (i / 3) && p[i].value > 0 && p[i].radius > 0, "points");
    CHECK(taut_scatter_text(p, m, ids, 30, &o) == TAUT_BAD_DATA, "a text too short");
    double gap;
    CHECK(taut_scatter_adversarial(p, &gap, m, &(taut_scatter_attack){ 1, 10, false, 1 }, &o) == TAUT_OK && gap > 0,
          "clusters");
    for (int i = 0; i < m->weights; i++)
        if (strstr(m->weight[i].path, "attn.q.weight")) memset((double *)m->values + m->weight[i].offset, 0, 16 * 8);
    CHECK(taut_scatter_adversarial(p, &gap, m, &(taut_scatter_attack){ 1, 10, false, 1 }, &o) == TAUT_BAD_DATA,
          "A = 0");
    o.last = 60;
    CHECK(taut_scatter_text(p, m, ids, 60, &o) == TAUT_BAD_CONFIG, "beyond the context");
    taut_model_free(m);
}

int main(void)
{
    test_begin();
    layers();
    publishes();
    scatters();
    return test_end("layer", "smallest upper / exact %.6f", tightest);
}
