/* Certificates for the program that runs.  On every architecture, in both norms, what the tables of floats compute
 * stays within the proved distance of what ref computes, wherever the input was moved to; and gradient ascent through
 * those very kernels, strictly inside the radii that are certified for them, turns no answer.  Architectures without
 * a rule certify nothing. */
#include "certify/example.h"
#include "check/kinds.h"
#include "temp.h"

enum { BATCH = 3, MOST = 4096, ROWS = 2 };
static const char *const tables[] = { "cpu", "wide" };
static double sharpest;
static int64_t steps, proved, silent, certified;

/* Modules that have a rule; with others in it a network's tolerance is +inf. */
static bool has_rule(int kind)
{
    static const char *const without[] = { "attlip", "nystrom", "clustered", "probsparse", "plash" };
    for (size_t i = 0; i < sizeof without / sizeof *without; i++)
        if (strstr(kinds[kind], without[i])) return false;
    return true;
}

/* x + d, |d| = r in the norm: every token's, or all of it. */
static void move(double *y, const double *x, const double *d, taut_shape s, taut_norm n, double r)
{
    const int64_t rows = n == TAUT_NORM_FLAT ? 1 : s.t, len = s.t * s.d / rows;
    for (int64_t t = 0; t < rows; t++) {
        const double size = norm(d + t * len, len);
        for (int64_t i = t * len; i < (t + 1) * len; i++) y[i] = x[i] + (size > 0 ? d[i] * (r / size) : 0);
    }
}

static void any_input(taut_pass *pass, double *x)
{
    const taut_model *m = pass->m;
    int32_t ids[64];
    if (m->spec.ahead) { /* rows of a series */
        for (int64_t t = 0; t < pass->in.t; t++) {
            double *row = x + t * pass->in.d;
            fill(row, pass->in.d);
            const double by = ROWS * rng_unit() / norm(row, pass->in.d);
            for (int64_t i = 0; i < pass->in.d; i++) row[i] *= by;
        }
        return;
    }
    if (taut_model_sees(m)) {
        for (int64_t i = 0; i < taut_len(pass->in); i++) x[i] = rng_unit();
        return;
    }
    for (int64_t i = 0; i < pass->in.t; i++) ids[i] = (int32_t)rng_int(0, m->embed.rows - 1);
    taut_pass_embed(pass, ids, 1, pass->in.t);
    m->k->get(x, pass->x.data, taut_len(pass->in));
}

/* All logits at n inputs. */
static void logits_at(taut_pass *pass, const double *x, int64_t n, double *logits)
{
    const taut_kernels *k = pass->m->k;
    taut_pass_shape(pass, n, pass->in.t);
    k->put(pass->x.data, x, taut_len(pass->in));
    taut_pass_run(pass);
    k->get(logits, pass->logits.data, taut_len(pass->logits.shape));
}

/* Three moved inputs at once in floats, one by one in double. */
static void near(const taut_certificate *c, taut_pass *ref, taut_pass *table)
{
    const int64_t len = ref->in.t * ref->in.d;
    double *x = doubles(BATCH * len), *d = doubles(len), g[MOST], f[MOST];
    for (int i = 0; i < BATCH; i++) {
        any_input(ref, x + i * len);
        fill(d, len);
        move(x + i * len, x + i * len, d, ref->in, c->norm, c->room.v * rng_unit());
    }
    logits_at(table, x, BATCH, g);
    for (int i = 0; i < BATCH; i++) {
        logits_at(ref, x + i * len, 1, f);
        const int64_t all = taut_len(ref->logits.shape);
        for (int64_t j = 0; j < all; j++) {
            CHECK_LE(fabs(g[i * all + j] - f[j]), c->tolerance + c->round.v, "floats stray no further than proved");
            sharpest = fmax(sharpest, fabs(g[i * all + j] - f[j]) / c->tolerance);
        }
    }
    free(x), free(d);
}

/* Ascent of g_j - g_p in floats. */
static void attack(const taut_certificate *c, taut_pass *table, const double *x, const taut_example *e, int64_t j)
{
    const taut_kernels *k = table->m->k;
    const taut_shape s = { 1, table->in.t, table->in.d };
    const int64_t len = taut_len(s), classes = table->logits.shape.d;
    double *d = doubles(len), *y = doubles(len), g[MOST];
    fill(d, len);
    for (int i = 0; i < 10; i++, steps++) {
        move(y, x, d, s, c->norm, e->radius.v * (1 - 1e-6));
        logits_at(table, y, 1, g);
        const int64_t all = taut_len(table->logits.shape), last = all - classes;
        CHECK(g[last + e->predicted] > g[last + j], "an answer was turned inside the radius for these kernels");
        for (int64_t l = 0; l < all; l++) g[l] = (l == last + j) - (l == last + e->predicted);
        k->put(table->logits.data, g, all);
        taut_pass_input_grad(table);
        k->get(y, table->gx, len);
        const double size = norm(y, len), share = 2. / (i + 2);
        for (int64_t l = 0; size > 0 && l < len; l++) d[l] = (1 - share) * d[l] + share * y[l] / size;
    }
    free(d), free(y);
}

static void besiege(const taut_certificate *c, taut_pass *ref, taut_pass *table)
{
    int32_t ids[64];
    double *x = doubles(ref->in.t * ref->in.d), logits[MOST];
    any_input(ref, x);
    for (int64_t i = 0; i < ref->in.t; i++) ids[i] = (int32_t)rng_int(0, 2);
    const bool sees = taut_model_sees(ref->m);
    const taut_example e = taut_example_certify(c, ref, (taut_input){ sees ? NULL : ids, sees ? x : NULL }, 0, logits);
    ref->m->k->get(x, ref->x.data, ref->in.t * ref->in.d);
    certified += e.radius.v > 0;
    for (int64_t j = 0; e.radius.v > 0 && j < ref->logits.shape.d; j++)
        if (j != e.predicted) attack(c, table, x, &e, j);
    free(x);
}

static void judge(int kind, taut_norm n, const char *name)
{
    const char *path = temp_path("model.safetensors");
    taut_certificate c;
    taut_model *m = NULL;
    taut_pass *ref = NULL, *table = NULL;
    must(taut_certify_rows(&c, path, n, 0.2, is_series(kind) ? ROWS : INFINITY));
    must(taut_certificate_run_on(&c, name));
    const bool finite = c.tolerance < 1e300, wide = is_series(kind) && strstr(kinds[kind], "norm = none");
    CHECK(finite == (has_rule(kind) && isfinite(c.lip.v)) || (wide && !finite),
          "finite where every module has a rule, and the region is not so wide that a logit may be off by 1/4");
    CHECK(strcmp(cJSON_GetObjectItem(c.json, "for")->valuestring, name) == 0, "the file says for which table");
    proved += c.tolerance < 1e300, silent += c.tolerance == 1e300;
    if (c.tolerance < 1e300) {
        must(taut_model_open(&m, path, taut_kernels_find(name), false));
        must(taut_pass_create(&ref, c.model, 1, c.tokens, false));
        must(taut_pass_create(&table, m, BATCH, c.tokens, true));
        taut_pass_shape(ref, 1, c.tokens), taut_pass_shape(table, 1, c.tokens);
        for (int i = 0; i < 6; i++) near(&c, ref, table);
        for (int i = 0; i < 4 && !is_series(kind); i++) besiege(&c, ref, table);
        taut_pass_free(ref), taut_pass_free(table);
        taut_model_free(m);
    }
    taut_certificate_free(&c);
}

int main(void)
{
    test_begin();
    temp_begin();
    for (case_no = 0; case_no < effort(4 * KINDS); case_no++) {
        const int kind = (int)(case_no % KINDS);
        save_kind(kind, temp_path("model.safetensors"));
        for (int i = 0; i < 4; i++) judge(kind, (taut_norm)(i / 2), tables[i % 2]);
    }
    taut_certificate c;
    must(taut_certify(&c, temp_path("model.safetensors"), TAUT_NORM_FLAT, 1));
    CHECK(taut_certificate_run_on(&c, "gpu") == TAUT_BAD_CALL, "a table that does not exist");
    ((double *)c.model->values)[0] = 1. / 3;
    CHECK(taut_certificate_run_on(&c, "wide") == TAUT_BAD_CONFIG, "a weight that floats have to round");
    CHECK(taut_certificate_run_on(&c, "cuda64") == TAUT_OK, "and doubles need not");
    taut_certificate_free(&c);
    CHECK(certified > 0 && steps > 0, "something was certified and attacked");
    return test_end("runs_on", "%d proved, %d silent; %d certified, %d steps; found / proved %.3f", (int)proved,
                    (int)silent, (int)certified, (int)steps, sharpest);
}
