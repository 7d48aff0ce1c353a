/* Certificates of forecasters: for rows up to a length, in both norms, with every attention that has a constant.  No slope that
 * was found (Lanczos on the derivative, and pairs of inputs) is above them, at windows of noise, of equal rows, of zeros; a
 * longer region has no smaller constant; a weight of NaN has none; windows of one row; and what the region leaves out may not
 * be claimed. */
#include "base/float32.h"
#include "build.h"
#include "certify/certify.h"
#include "measure/slope.h"
#include "temp.h"

static const char *const attentions[] = {
    "softmax",
    "l2",
    "cosine\ncosine_eps = 0.1",
    "position",
    "attlip\nattlip_tol = 1e-11\nattlip_slope_tol = 1e-13\nattlip_loose = 0",
    "plash\nplash_groups = 1\nplash_sizes = 8\nplash_floor = 0.5\nplash_norm_eps = 0.3",
    "softmax\nnorm_place = pre",
    "softmax\nbias = false",
};
enum { ATTENTIONS = sizeof attentions / sizeof *attentions };
static double closest; /* found / proved */

static taut_model *random_model(double size)
{
    char text[1024];
    const int seq = (int)rng_int(1, 5), depth = (int)rng_int(1, 2);
    snprintf(
        text, sizeof text,
        "[model]\narch = forecaster\nseq = %d\nlabel = %d\nahead = %d\ncolumns = %d\nmarks = %d\nwidth = 4\nheads = 2\n"
        "mlp = 5\nnorm = %s\nresidual = %s\nactivation = %s\ndepth = %d\ndistil = %s\nattention = %s\n",
        seq, (int)rng_int(0, seq), (int)rng_int(1, 3), (int)rng_int(1, 2), (int)rng_int(0, 1),
        rng_int(0, 1) ? "layernorm\nnorm_eps = 0.3" : "none", rng_int(0, 1) ? "plain" : "convex",
        rng_int(0, 1) ? "gelu" : "abs", depth, depth > 1 && rng_int(0, 1) ? "true" : "false",
        attentions[case_no % ATTENTIONS]);
    taut_model *m = blank_model(text, 0, false);
    for (int64_t i = 0; i < m->slab; i++) ((double *)m->values)[i] = taut_float32(size * rng_pm());
    return m;
}

/* Rows of length at most `rows`: noise, all the same one, or zeros. */
static void window(double *x, taut_shape in, double rows)
{
    const int64_t kind = rng_int(0, 3);
    for (int64_t t = 0; t < in.t; t++) {
        double *row = x + t * in.d;
        for (int64_t c = 0; c < in.d; c++) row[c] = kind == 3 ? 0 : kind == 2 && t ? x[c] : rng_pm();
        const double len = norm(row, in.d), by = kind == 2 && t ? 1 : rows * (rng_int(0, 1) ? 1 : rng_unit());
        for (int64_t c = 0; c < in.d && len > 0 && !(kind == 2 && t); c++) row[c] *= by / len;
    }
}

static double longest(const double *x, int64_t rows, int64_t d)
{
    double most = 0;
    for (int64_t r = 0; r < rows; r++) most = fmax(most, norm(x + r * d, d));
    return most;
}

/* A pair in the region, in both norms. */
static void pair_holds(taut_probe *p, const double *x, const double lip[2], const double round[2], double rows)
{
    const int64_t in = p->in.t * p->in.d, out = p->out.t * p->out.d;
    double *z = malloc((size_t)(2 * in + 2 * out) * sizeof *z), *e = z + in, *y = e + in, *y2 = y + out;
    const double far = rows * pow(10, -3 * rng_unit());
    window(e, p->in, far);
    for (int64_t i = 0; i < in; i++) z[i] = x[i] + e[i];
    for (int64_t t = 0; t < p->in.t; t++) { /* back into the region */
        const double len = norm(z + t * p->in.d, p->in.d), by = len > rows ? rows / len * (1 - 1e-12) : 1;
        for (int64_t c = 0; c < p->in.d; c++)
            z[t * p->in.d + c] *= by, e[t * p->in.d + c] = z[t * p->in.d + c] - x[t * p->in.d + c];
    }
    taut_probe_move(p, x);
    memcpy(y, p->y.data, (size_t)out * sizeof *y);
    taut_probe_move(p, z);
    memcpy(y2, p->y.data, (size_t)out * sizeof *y);
    for (int64_t i = 0; i < out; i++) y2[i] -= y[i];
    CHECK_LE(longest(y2, p->out.t, p->out.d), lip[0] * longest(e, p->in.t, p->in.d) + 2 * round[0],
             "a pair, norm tokens");
    CHECK_LE(norm(y2, out), lip[1] * norm(e, in) + 2 * round[1], "a pair, norm flat");
    free(z);
}

static void model_holds(void)
{
    taut_model *m = random_model(pow(10, 1.5 * rng_unit() - 1));
    const char *path = temp_path("model.safetensors");
    const double rows = pow(10, 3 * rng_unit() - 1.5), room = rng_int(0, 1) ? 0 : rows / 3;
    double lip[2], round[2];
    must(taut_model_save(m, path));
    for (int n = 0; n < 2; n++) {
        taut_certificate c, wider;
        must(taut_certify_rows(&c, path, (taut_norm)n, room, rows));
        must(taut_certify_rows(&wider, path, (taut_norm)n, room, 2 * rows));
        CHECK_LE(c.lip.v, wider.lip.v * (1 + 1e-9), "more rows, no smaller constant");
        CHECK_LE(rows + room, c.reach.v, "what it is about");
        CHECK(cJSON_GetObjectItem(cJSON_GetObjectItem(c.json, "region"), "rows") != NULL, "it says so");
        CHECK(isfinite(c.lip.v), attentions[case_no % ATTENTIONS]);
        lip[n] = c.lip.v, round[n] = c.round.v;
        taut_certificate_free(&c);
        taut_certificate_free(&wider);
    }
    const taut_shape in = { 1, m->in.t, m->in.d };
    double *x = malloc((size_t)taut_len(in) * sizeof *x);
    window(x, in, rows + room);
    taut_probe p;
    if (!taut_probe_create(&p, m->root, m->k, x, in)) {
        const taut_slope_options o = { TAUT_SLOPE_LANCZOS, 30, 1e-6, rng_next() };
        taut_slope s;
        for (int i = 0; i < 4; i++) pair_holds(&p, x, lip, round, rows + room);
        taut_probe_move(&p, x);
        must(taut_slope_find(&s, NULL, &p, &o));
        CHECK_LE(s.value, lip[1] * (1 + 1e-6), "a slope, norm flat");
        const double numbers = (double)taut_len(p.in) / (double)taut_len(p.out), wide = (double)in.d / (double)p.out.d;
        CHECK_NEAR(up_model_rms(m, TAUT_NORM_FLAT, (taut_up){ 1 }).v, sqrt(numbers), 1e-12, "RMS over all tokens");
        CHECK_NEAR(up_model_rms(m, TAUT_NORM_TOKENS, (taut_up){ 1 }).v, sqrt(wide), 1e-12, "RMS of a token");
        if (case_no % ATTENTIONS != 5) closest = fmax(closest, s.value / lip[1]);
        taut_probe_free(&p);
    }
    free(x);
    taut_model_free(m);
}

static void corners(void)
{
    taut_certificate c;
    taut_model *m = random_model(0.5);
    const char *path = temp_path("corner.safetensors");
    ((double *)m->values)[m->slab / 2] = NAN;
    must(taut_model_save(m, path));
    must(taut_certify_rows(&c, path, TAUT_NORM_TOKENS, 0, 1));
    CHECK(c.lip.v == INFINITY, "NaN");
    taut_certificate_free(&c);
    for (int64_t i = 0; i < m->slab; i++) ((double *)m->values)[i] = 1e30;
    must(taut_model_save(m, path));
    must(taut_certify_rows(&c, path, TAUT_NORM_FLAT, 0, 1e30));
    CHECK(c.lip.v > 1e30, "huge weights, huge constant or none");
    taut_certificate_free(&c);
    CHECK(taut_certify_rows(&c, path, TAUT_NORM_FLAT, 0, -1) == TAUT_BAD_CONFIG, "rows below 0");
    CHECK(taut_certify_rows(&c, path, TAUT_NORM_FLAT, 0, NAN) == TAUT_BAD_CONFIG, "rows NaN");
    taut_model_free(m);
    m = blank_model("[model]\nwidth = 4\nheads = 1\ndepth = 1\ncontext = 2\n", 5, false);
    must(taut_model_save(m, path));
    CHECK(taut_certify_rows(&c, path, TAUT_NORM_FLAT, 0, 1) == TAUT_BAD_CONFIG, "a gpt has no rows");
    taut_model_free(m);
}

int main(void)
{
    test_begin();
    temp_begin();
    for (case_no = 0; case_no < effort(600); case_no++) model_holds();
    case_no = 0;
    corners();
    return test_end("rows", "forecasters of %d attentions; found / proved at most %.3f", ATTENTIONS, closest);
}
