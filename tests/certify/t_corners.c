/* Corners of certification: NaN and infinite weights say "inf" and where; zero matrices, thin matrices, a width of one;
 * eps = 0; a region of radius 0 and of any size; files that are none; and memory that runs out anywhere.  A correct
 * answer or one line, never a wrong bound. */
#include "base/alloc.h"
#include "base/float32.h"
#include "build.h"
#include "certify/local.h"
#include "laws.h"
#include "proved.h"
#include "report/waterfall.h"
#include "taut.h"
#include "temp.h"

enum { V = 6 };
#define BASE  "[model]\ndepth = 2\ncontext = 3\n"
#define PLAIN BASE "width = 4\nheads = 2\nmlp = 5\nnorm = none\n"

static double worst;

static taut_model *model_of(const char *text, double size)
{
    taut_model *m = blank_model(text, V, false);
    for (int i = 0; i < m->weights; i++) {
        const taut_param *p = m->weight[i].param;
        for (int64_t j = 0; j < p->rows * p->cols; j++)
            ((double *)p->value)[j] = taut_float32(size * ((p->init == TAUT_INIT_ONE) + rng_pm()));
    }
    return m;
}

static double *values(const taut_model *m, const char *path)
{
    const taut_weight *w = taut_model_find(m, path);
    if (!w) must(taut_fail(TAUT_BAD_CONFIG, "no weight %s", path));
    return (double *)w->param->value;
}

static taut_certificate certify(const taut_model *m, taut_norm n, double room)
{
    taut_certificate c;
    const char *path = temp_path("model.safetensors");
    must(taut_model_save(m, path));
    must(taut_certify(&c, path, n, room));
    return c;
}

/* "inf" as a string where it is infinite, a number elsewhere, in text that can be parsed. */
static void says_inf(const taut_certificate *c, const char *key, bool infinite)
{
    char *text = cJSON_Print(c->json);
    cJSON *back = cJSON_Parse(text);
    const cJSON *own = cJSON_GetObjectItem(back, key), *region = cJSON_GetObjectItem(back, "region");
    const cJSON *item = own ? own : cJSON_GetObjectItem(region, key);
    CHECK(item != NULL && !strstr(text, "nan") && !strstr(text, "null"), "JSON that can be read");
    CHECK(infinite ? cJSON_IsString(item) && strcmp(item->valuestring, "inf") == 0 : cJSON_IsNumber(item), key);
    cJSON_Delete(back);
    cJSON_free(text);
}

/* A slope that climbing finds is below the constant. */
static void holds(const taut_certificate *c)
{
    const taut_shape in = { 1, c->tokens, c->model->spec.width };
    law l = { .m = c->model->root, .in = in, .plan = taut_plan_of(c->model->root, in) };
    const double radius = fmin(c->reach.v, 3);
    l.nx = taut_len(in), l.ny = taut_len(l.plan.out);
    l.x = doubles(l.nx), l.y = doubles(l.ny), l.u = doubles(l.nx), l.v = doubles(l.ny);
    l.ju = doubles(l.ny), l.jv = doubles(l.nx), l.trace = doubles(l.plan.trace), l.scratch = doubles(l.plan.scratch);
    l.run = (taut_run){ .k = taut_kernels_find("ref"), .scratch = { (taut_real *)l.scratch, l.plan.scratch, 8 } };
    const double slope = law_climb(&l, c->norm, radius, 20);
    CHECK_LE(slope, c->lip.v * (1 + 1e-12), "a slope");
    if (c->lip.v > 0) worst = fmax(worst, slope / c->lip.v);
    free(l.x), free(l.y), free(l.u), free(l.v), free(l.ju), free(l.jv), free(l.trace), free(l.scratch);
}

/* Which rows of the waterfall are infinite. */
static int infinite_rows(const taut_certificate *c, int *all)
{
    taut_fall rows[64];
    int count = 0;
    *all = taut_waterfall(rows, 64, cJSON_GetObjectItem(c->json, "proof"));
    for (int i = 0; i < *all; i++) count += rows[i].lip == INFINITY;
    return count;
}

/* One bad number in any weight, be it a bias that no constant depends on: the network answers NaN, so nothing is proved
 * of it. */
static void poison(const char *text, taut_norm n)
{
    const double bad[] = { NAN, INFINITY, -INFINITY };
    taut_model *m = model_of(text, 0.5);
    for (int i = 0; i < 3 * m->weights; i++) {
        const taut_weight *w = &m->weight[i / 3];
        double *at = (double *)w->param->value + rng_int(0, taut_weight_len(w) - 1), keep = *at;
        *at = bad[i % 3];
        taut_certificate c = certify(m, n, 0);
        CHECK(c.lip.v == INFINITY, w->path);
        says_inf(&c, "lip", c.lip.v == INFINITY);
        taut_certificate_free(&c);
        *at = keep;
    }
    taut_model_free(m);
}

/* 1 x N, N x 1 and 1 x 1 matrices, one head of width one, one position. */
static void thin(void)
{
    static const char *const recipes[] = {
        BASE "width = 1\nheads = 1\nmlp = 1\nnorm = none\n",
        BASE "width = 1\nheads = 1\nmlp = 7\nnorm = layernorm\nnorm_eps = 0.1\n",
        BASE "width = 6\nheads = 6\nmlp = 1\nnorm = rmsnorm\nnorm_eps = 0.1\n",
        BASE "width = 2\nheads = 1\nmlp = 1\nnorm = centernorm\n",
        "[model]\ndepth = 1\ncontext = 1\nwidth = 3\nheads = 3\nmlp = 1\nnorm = none\n",
        "[model]\narch = encoder\ndepth = 1\ncontext = 1\nwidth = 1\nheads = 1\nmlp = 1\nnorm = none\n",
    };
    for (int i = 0; i < 6; i++)
        for (int n = 0; n < 2; n++) {
            taut_model *m = model_of(recipes[i], 1);
            taut_certificate c = certify(m, (taut_norm)n, 0.25);
            says_inf(&c, "lip", false);
            holds(&c);
            taut_certificate_free(&c);
            taut_model_free(m);
        }
}

static void zeros(void)
{
    for (int n = 0; n < 2; n++) {
        taut_model *m = model_of(PLAIN, 0);
        taut_certificate c = certify(m, (taut_norm)n, 0);
        CHECK(c.lip.v == 0 && c.reach.v == 0 && c.body.v >= 1, "a model of zeros answers zeros");
        says_inf(&c, "lip", false);
        taut_certificate_free(&c);
        taut_model_free(m);
        m = model_of(PLAIN, 0.5); /* every single matrix may be zero */
        for (int i = 0; i < m->weights; i++) {
            double *w = (double *)m->weight[i].param->value, *keep = doubles(taut_weight_len(&m->weight[i]));
            const size_t bytes = (size_t)taut_weight_len(&m->weight[i]) * 8;
            memcpy(keep, w, bytes);
            memset(w, 0, bytes);
            c = certify(m, (taut_norm)n, 0);
            CHECK(isfinite(c.lip.v), m->weight[i].path);
            if (c.reach.v > 0) holds(&c);
            taut_certificate_free(&c);
            memcpy(w, keep, bytes);
            free(keep);
        }
        taut_model_free(m);
    }
}

/* eps = 0: LayerNorm is not continuous at constant tokens, and the certificate says so where it stands. */
static void no_eps(void)
{
    static const char *const norms[] = { "layernorm", "rmsnorm", "centernorm", "none" };
    for (int i = 0; i < 4; i++) {
        char text[256];
        int all = 0;
        snprintf(text, sizeof text, BASE "width = 4\nheads = 2\nmlp = 5\nnorm = %s\n%s", norms[i],
                 i < 2 ? "norm_eps = 0\n" : "");
        taut_model *m = model_of(text, 0.5);
        taut_certificate c = certify(m, TAUT_NORM_TOKENS, 0);
        says_inf(&c, "lip", i < 2);
        const int rows = infinite_rows(&c, &all);
        CHECK(i < 2 ? rows == 5 : rows == 0, "two branches a block and the last norm, nothing else");
        taut_certificate_free(&c);
        taut_model_free(m);
    }
}

/* Room 0 covers the embeddings and no more; room infinity needs a network whose constant is the same everywhere. */
static void regions(void)
{
    taut_model *m = model_of(PLAIN, 0.7);
    for (int n = 0; n < 2; n++) {
        taut_certificate c = certify(m, (taut_norm)n, 0), far = certify(m, (taut_norm)n, 10),
                         all = certify(m, (taut_norm)n, INFINITY);
        CHECK_LE(taut_model_reach(m).v, c.reach.v, "room 0 reaches every embedding");
        CHECK_LE(c.lip.v, far.lip.v, "more room, a larger constant");
        says_inf(&all, "lip", true), says_inf(&all, "reach", true), says_inf(&all, "room", true);
        says_inf(&c, "lip", false);
        holds(&c), holds(&far);
        taut_certificate_free(&c), taut_certificate_free(&far), taut_certificate_free(&all);
    }
    for (int b = 0; b < 2; b++) { /* no logits: attention is linear, and any input is fine */
        memset(values(m, b ? "block.1.attn.q.weight" : "block.0.attn.q.weight"), 0, 16 * 8);
        memset(values(m, b ? "block.1.attn.q.bias" : "block.0.attn.q.bias"), 0, 4 * 8);
    }
    taut_certificate all = certify(m, TAUT_NORM_TOKENS, INFINITY);
    if (isfinite(all.lip.v)) holds(&all); /* finite would be right; +inf is an answer, too */
    taut_certificate_free(&all);
    taut_model_free(m);
}

/* The constant of norm tokens does not depend on the length; that of norm flat does not fall with it. */
static void lengths(void)
{
    double tokens = 0, flat = 0;
    for (int context = 1; context <= 65; context *= 4) {
        char text[256];
        snprintf(text, sizeof text,
                 "[model]\ndepth = 1\nwidth = 4\nheads = 2\nmlp = 5\nnorm = none\npositions = none\ncontext = %d\n",
                 context);
        rng_state = 77;
        taut_model *m = model_of(text, 0.7);
        const double t = proved_bound(m, TAUT_NORM_TOKENS).lip.v, f = proved_bound(m, TAUT_NORM_FLAT).lip.v;
        if (context > 1) CHECK(t == tokens, "norm tokens: any length");
        CHECK_LE(flat, f, "norm flat");
        tokens = t, flat = f;
        taut_model_free(m);
    }
}

static void no_files(void)
{
    taut_certificate c;
    const char *const bad[] = { temp_path("nothing"), temp_text("empty", ""), temp_text("short", "12345678"),
                                temp_text("text", "this is no model, not at all, but long enough to be one") };
    for (int i = 0; i < 4; i++) {
        CHECK(taut_certify(&c, bad[i], TAUT_NORM_TOKENS, 0) != TAUT_OK, "refused");
        CHECK(!strchr(taut_last_error(), '\n') && *taut_last_error(), "in one line");
        CHECK(!c.json && !c.model, "and nothing is left");
        taut_certificate_free(&c);
    }
}

/* Whichever allocation fails: an error, or the very numbers. */
static int no_memory(void)
{
    taut_model *m = model_of(PLAIN "positions = rope\n", 0.7);
    taut_certificate c = certify(m, TAUT_NORM_FLAT, 0.5), again;
    int failed = 0, whole = 0;
    for (int n = 1; whole < 3 && n < 100000; n += n < 200 ? 1 : 17) {
        taut_alloc_fail_at(n);
        const taut_status s = taut_certify(&again, temp_path("model.safetensors"), TAUT_NORM_FLAT, 0.5);
        taut_alloc_fail_at(0);
        CHECK(s == TAUT_OK || s == TAUT_NO_MEMORY, "no memory");
        if (!s) CHECK(again.lip.v == c.lip.v && again.body.v == c.body.v && again.round.v == c.round.v, "the numbers");
        failed += s != TAUT_OK;
        whole = s ? 0 : whole + 1;
        taut_certificate_free(&again);
    }
    taut_certificate_free(&c);
    taut_model_free(m);
    return failed;
}

/* The same of what holds near an example. */
static int no_memory_near(void)
{
    taut_model *m = model_of(PLAIN, 0.7);
    taut_certificate c = certify(m, TAUT_NORM_FLAT, 0.25);
    taut_pass *pass = NULL;
    const int32_t ids[] = { 1, 2, 3 };
    double logits[V];
    taut_local right, again;
    int failed = 0, whole = 0;
    must(taut_pass_create(&pass, c.model, 1, 3, false));
    const taut_example e = taut_example_certify(&c, pass, (taut_input){ .ids = ids }, 0, logits);
    must(taut_local_certify(&right, &c, pass, &e, logits));
    CHECK(right.lip.v < c.lip.v, "sharper near the example");
    for (int n = 1; whole < 3 && n < 100000; n += n < 100 ? 1 : 17) {
        taut_alloc_fail_at(n);
        const taut_status s = taut_local_certify(&again, &c, pass, &e, logits);
        taut_alloc_fail_at(0);
        CHECK(s == TAUT_OK || s == TAUT_NO_MEMORY, "no memory near an example");
        if (!s) CHECK(again.lip.v == right.lip.v && again.radius.v == right.radius.v, "the numbers near an example");
        failed += s != TAUT_OK;
        whole = s ? 0 : whole + 1;
    }
    taut_pass_free(pass);
    taut_certificate_free(&c);
    taut_model_free(m);
    return failed;
}

/* A model that cannot be proved for want of memory is not one that has no constant. */
static int no_memory_enforced(void)
{
    const taut_constrain_spec spec = { .target = 2, .l2 = true };
    taut_model *m = model_of(PLAIN, 0.4);
    taut_enforcer *e = NULL;
    int failed = 0, whole = 0;
    bool shrunk;
    for (int n = 1; whole < 2 && n < 100000; n += n < 100 ? 1 : 41) {
        must(taut_enforcer_create(&e, m, &spec));
        taut_alloc_fail_at(n);
        const taut_status s = taut_enforcer_run(e, m, &shrunk);
        taut_alloc_fail_at(0);
        CHECK(s == TAUT_OK || s == TAUT_NO_MEMORY, "no memory while enforcing");
        CHECK(s ? e->proved.v == INFINITY : shrunk && e->proved.v <= 2, "enforced, or not");
        failed += s != TAUT_OK;
        whole = s ? 0 : whole + 1;
        taut_enforcer_free(e);
    }
    taut_model_free(m);
    return failed;
}

/* A solver's numbers of every example are planned: a step of a proximal layer asks for no memory. */
static void no_memory_inside(void)
{
    static const taut_prox_solver solvers[] = { TAUT_PROX_DESCENT, TAUT_PROX_BARZILAI };
    for (int i = 0; i < 4; i++) {
        const taut_attlip_spec spec = { .width = 4,
                                        .heads = 2,
                                        .head_width = 2,
                                        .eta = 0.5,
                                        .tol = 1e-9,
                                        .slope_tol = 1e-9,
                                        .solver = solvers[i % 2],
                                        .steps = i < 2 ? 0 : 3,
                                        .unrolled = i == 2,
                                        .init = TAUT_INIT_NORMAL,
                                        .gain = 0.5 };
        law l;
        law_begin(&l, taut_attlip(&spec), (taut_shape){ 2, 3, 4 });
        l.run.phase.kind = i < 2 ? TAUT_PHASE_PROVE : TAUT_PHASE_USE;
        const long before = taut_alloc_failures();
        taut_alloc_fail_at(1);
        law_forward(&l, l.y);
        law_vjp(&l);
        taut_alloc_fail_at(0);
        CHECK(taut_alloc_failures() == before && isfinite(l.y[0]) && isfinite(l.jv[0]), "no allocation in a pass");
        law_end(&l);
    }
}

int main(void)
{
    test_begin();
    temp_begin();
    for (int n = 0; n < 2; n++) {
        poison(PLAIN, (taut_norm)n);
        poison(BASE "width = 4\nheads = 2\nmlp = 5\nnorm = layernorm\nnorm_eps = 0.1\n", (taut_norm)n);
        poison(BASE "arch = encoder\nwidth = 4\nheads = 2\nmlp = 5\nnorm = centernorm\npositions = rope\n",
               (taut_norm)n);
    }
    thin();
    zeros();
    no_eps();
    regions();
    lengths();
    no_files();
    no_memory_inside();
    const int failed = no_memory() + no_memory_near() + no_memory_enforced();
    return test_end("corners", "%d allocations failed; worst slope / constant %.4f", failed, worst);
}
