/* The certificate of a stored model: well-formed JSON that reads back to the bit; every stated number at least the true
 * one and close to it, found here by plain power iteration; every rule's arithmetic as docs/certificate.md has it; the
 * waterfall's product is the constant.  Corners are in t_corners.c. */
#include "base/float32.h"
#include "certify/certify.h"

#include <sys/stat.h>

#include "bound/curve.h"
#include "build.h"
#include "laws.h"
#include "proved.h"
#include "report/waterfall.h"
#include "taut.h"
#include "temp.h"

enum { V = 6 };

static const taut_model *model;
static double loosest = 1, room; /* how far embeddings may move */
static int numbers, nodes;

static taut_model *model_of(const char *text, double size)
{
    taut_model *m = blank_model(text, V, false);
    for (int i = 0; i < m->weights; i++) {
        const taut_param *p = m->weight[i].param;
        const double scale = p->role == TAUT_VECTOR ? 0.5 : size / sqrt((double)p->cols);
        for (int64_t j = 0; j < p->rows * p->cols; j++)
            ((double *)p->value)[j] = taut_float32((p->init == TAUT_INIT_ONE) + scale * rng_pm());
    }
    return m;
}

static taut_certificate certify(const taut_model *m, taut_norm n, double far)
{
    taut_certificate c;
    const char *path = temp_path("model.safetensors");
    must(taut_model_save(m, path));
    must(taut_certify(&c, path, n, far));
    return c;
}

/* ---- the numbers of a proof, checked by other means ---- */

static double number(const cJSON *node, const char *key)
{
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(node, key);
    if (cJSON_IsString(item) && strcmp(item->valuestring, "inf") == 0) return INFINITY;
    CHECK(cJSON_IsNumber(item), key);
    return cJSON_IsNumber(item) ? item->valuedouble : NAN;
}

static const char *word(const cJSON *node, const char *key)
{
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(node, key);
    return cJSON_IsString(item) ? item->valuestring : "";
}

/* |W|_2 from below, nearly always to 1e-12 */
static double spectral(const double *w, int64_t rows, int64_t cols)
{
    double x[64], y[64], size = 0;
    for (int64_t c = 0; c < cols; c++) x[c] = rng_pm();
    for (int i = 0; i < 400; i++) {
        const double unit = norm(x, cols);
        for (int64_t c = 0; c < cols; c++) x[c] = unit > 0 ? x[c] / unit : 0;
        for (int64_t r = 0; r < rows; r++) y[r] = dot(w + r * cols, x, cols);
        size = fmax(size, norm(y, rows));
        memset(x, 0, sizeof x);
        for (int64_t r = 0; r < rows; r++)
            for (int64_t c = 0; c < cols; c++) x[c] += w[r * cols + c] * y[r];
    }
    return size;
}

/* A stated number is at least the true one, and nearly that. */
static void at_least(const cJSON *node, const char *key, double truth)
{
    const double stated = number(node, key);
    CHECK_LE(truth * (1 - 1e-12), stated, key);
    CHECK_LE(stated, truth * (1 + 1e-3) + 1e-12, key);
    if (truth > 1e-6) loosest = fmax(loosest, stated / truth);
    numbers++;
}

static const taut_param *param(const char *path, const char *name)
{
    char full[512];
    snprintf(full, sizeof full, "%s.%s", path, name);
    const taut_weight *w = taut_model_find(model, full);
    return w ? w->param : NULL;
}

static double length(const taut_param *p) { return p ? norm(taut_ref_values(p), p->rows * p->cols) : 0; }

static void check_linear(const cJSON *node, const char *path)
{
    const taut_param *w = param(path, "weight"), *b = param(path, "bias");
    if (!w) w = &model->embed;
    at_least(node, "norm", spectral(taut_ref_values(w), w->rows, w->cols));
    if (b) at_least(node, "bias", length(b));
    CHECK_LE(number(node, "norm"), number(node, "lip"), "a linear's lip");
}

static void check_mlp(const cJSON *node, const char *path, double keep, double mix)
{
    const taut_param *in = param(path, "in.weight"), *out = param(path, "out.weight");
    const cJSON *units = cJSON_GetObjectItem(node, "units");
    const int64_t d = in->cols, h = in->rows;
    const double c = mix * taut_float32(model->spec.activation_factor);
    const taut_slopes s = model->spec.activation == TAUT_GELU ? slopes_gelu() : slopes_relu();
    double a[256], b[256], sum[256] = { 0 };
    for (int half = 0; half < 2; half++) {
        const double slope = half ? 0.5 : (s.lo + s.hi) / 2;
        for (int64_t i = 0; i < d * d; i++) {
            sum[i] = i / d == i % d ? keep : 0;
            for (int64_t k = 0; k < h; k++)
                sum[i] += c * slope * taut_ref_values(out)[i / d * h + k] * taut_ref_values(in)[k * d + i % d];
        }
        at_least(node, half ? "joint_half" : "joint", spectral(sum, d, d));
    }
    for (int64_t i = 0; i < d * h; i++) {
        const double e = units ? cJSON_GetArrayItem(units, (int)(i / d))->valuedouble : 0;
        const double f = units ? cJSON_GetArrayItem(units, (int)(i % h))->valuedouble : 0;
        a[i] = taut_ref_values(in)[i] * pow(2, e), b[i] = taut_ref_values(out)[i] * pow(2, -f);
    }
    at_least(node, "scaled_in", spectral(a, h, d));
    at_least(node, "scaled_out", spectral(b, d, h));
    at_least(node, "norm_out", spectral(taut_ref_values(out), d, h));
    at_least(node, "bias_in", length(param(path, "in.bias"))),
        at_least(node, "bias_out", length(param(path, "out.bias")));
    const double p = fabs(c) * number(node, "scaled_in") * number(node, "scaled_out"), most = fmax(-s.lo, s.hi);
    const double rule = fmin(number(node, "joint") + (s.hi - s.lo) / 2 * p, fabs(keep) + most * p);
    CHECK_LE(rule * (1 - 1e-12), number(node, "lip"), "an mlp's lip");
    CHECK_LE(number(node, "lip"), rule * (1 + 1e-8), "an mlp's lip");
}

/* ||[t_h W_O^h W_V^h]|| side by side, and ||[r_h W_K^hT W_Q^h]|| one below the other, of the heads in the proof */
static void check_family(const cJSON *family, const char *path, const int *index, int live)
{
    const int64_t d = model->spec.width, dh = d / model->spec.heads;
    const double *q = taut_ref_values(param(path, "q.weight")), *k = taut_ref_values(param(path, "k.weight")),
                 *v = taut_ref_values(param(path, "v.weight")), *o = taut_ref_values(param(path, "o.weight"));
    const cJSON *t = cJSON_GetObjectItem(family, "weights");
    double *out = doubles(d * d * live), *logit = doubles(d * d * live);
    for (int64_t i = 0; i < d * d * live; i++) {
        const int64_t head = i / (d * d), row = i / d % d, col = i % d, at = index[head] * dh;
        for (int64_t c = at; c < at + dh; c++) {
            out[row * d * live + head * d + col] += cJSON_GetArrayItem(t, (int)head)->valuedouble * o[row * d + c] *
                                                    v[c * d + col];
            logit[i] += k[c * d + row] * q[c * d + col] / cJSON_GetArrayItem(t, (int)head)->valuedouble;
        }
    }
    at_least(family, "out_norm", spectral(out, d, d * live));
    if (model->spec.positions != TAUT_POS_ROPE) at_least(family, "logit_norm", spectral(logit, d * live, d));
    free(out), free(logit);
}

static void check_attention(const cJSON *node, const char *path)
{
    const cJSON *child;
    int index[16], live = 0, families = 0;
    cJSON_ArrayForEach(child, cJSON_GetObjectItem(node, "of"))
    {
        if (strcmp(word(child, "rule"), "head") == 0) index[live++] = (int)number(child, "index");
        if (strcmp(word(child, "rule"), "family") == 0) check_family(child, path, index, live), families++;
    }
    CHECK(live == (int)model->spec.heads && families >= 1 && families <= 3, "heads and families");
    at_least(node, "bias", length(param(path, "o.bias")));
}

/* The tree, with the path of names; keep and mix are those of the mix around it. */
static void walk(const cJSON *node, const char *path, double keep, double mix)
{
    const char *rule = word(node, "rule"), *name = word(node, "name");
    char here[256];
    const cJSON *child;
    double product = 1;
    snprintf(here, sizeof here, "%s%s%s", path, *path && *name ? "." : "", name);
    nodes++;
    if (strcmp(rule, "linear") == 0) check_linear(node, here);
    const bool scoped = strcmp(word(node, "scope"), "mix") == 0;
    if (strcmp(rule, "mlp") == 0) check_mlp(node, here, scoped ? keep : 0, scoped ? mix : 1);
    if (strcmp(rule, "attention") == 0) {
        check_attention(node, here);
        return;
    }
    const double a = taut_spec_alpha(&model->spec);
    if (strcmp(rule, "mix") == 0) keep = model->spec.convex ? taut_float32(1 - a) : 1;
    if (strcmp(rule, "mix") == 0) mix = model->spec.convex ? taut_float32(a) : 1;
    cJSON_ArrayForEach(child, cJSON_GetObjectItem(node, "of"))
    {
        walk(child, here, keep, mix);
        product *= number(child, "lip");
    }
    if (strcmp(rule, "sequence") == 0) CHECK_LE(product * (1 - 1e-12), number(node, "lip"), "a product");
    CHECK(number(node, "out") > 0, "a region");
}

/* ---- one certificate, from all sides ---- */

static double product_of_falls(const cJSON *proof)
{
    static taut_fall rows[64];
    const int count = taut_waterfall(rows, 64, proof);
    double product = 1;
    CHECK(count > 2 && count <= 64 && taut_waterfall(rows, 2, proof) == count, "as many rows, whatever the room");
    taut_waterfall(rows, 64, proof);
    for (int i = 0; i < count; i++) product *= rows[i].lip;
    CHECK(strcmp(rows[0].rule, "position") != 0 || strcmp(rows[0].path, "pos") == 0, "names");
    CHECK(strcmp(rows[count - 1].rule, "scale") == 0 || strcmp(rows[count - 1].path, "head") == 0, "the head is last");
    return product;
}

static void whole(const char *text, taut_norm n)
{
    taut_model *m = model_of(text, 1.5);
    struct stat info;
    taut_certificate c = certify(m, n, room), again;
    char *print = cJSON_Print(c.json), *second;
    cJSON *back = cJSON_Parse(print), *region = cJSON_GetObjectItem(c.json, "region");
    CHECK(back && cJSON_Compare(back, c.json, true), "reads back");
    CHECK(number(c.json, "lip") == c.lip.v && number(region, "reach") == c.reach.v && number(region, "room") == room,
          "the numbers of the certificate");
    CHECK(strcmp(word(back, "format"), "taut-certificate") == 0 && number(back, "version") == 3, "what it is");
    CHECK(strcmp(word(back, "norm"), n == TAUT_NORM_FLAT ? "flat" : "tokens") == 0, "its norm");
    CHECK(number(back, "tokens") == (double)m->spec.context && c.tokens == m->spec.context, "its length");
    stat(temp_path("model.safetensors"), &info);
    const cJSON *file = cJSON_GetObjectItem(back, "model");
    CHECK(number(file, "bytes") == (double)info.st_size && strlen(word(file, "sha256")) == 64, "its file");
    double longest = 0;
    for (int64_t i = 0; i < V; i++)
        longest = fmax(longest, norm(taut_ref_values(&m->embed) + i * m->embed.cols, m->embed.cols));
    CHECK_LE(longest + room, c.reach.v, "reach");
    CHECK_LE(c.reach.v, (longest + room) * (1 + 1e-8), "reach is no larger than it must be");
    model = c.model;
    const cJSON *proof = cJSON_GetObjectItem(back, "proof");
    walk(proof, "", 0, 1);
    const double product = product_of_falls(proof);
    CHECK_LE(product * (1 - 1e-12), c.lip.v, "the waterfall");
    CHECK_LE(c.lip.v, product * (1 + 1e-7), "the waterfall");
    CHECK_LE(c.body.v * number(cJSON_GetArrayItem(cJSON_GetObjectItem(proof, "of"), 1), "lip"), c.lip.v * (1 + 1e-12),
             "body");
    CHECK_LE(proved_bound(m, n).lip.v, c.lip.v, "a proof is never below the bound");
    must(taut_certify(&again, temp_path("model.safetensors"), n, room));
    second = cJSON_Print(again.json);
    CHECK(strcmp(print, second) == 0, "twice the same");
    cJSON_free(print), cJSON_free(second), cJSON_Delete(back);
    taut_certificate_free(&c), taut_certificate_free(&again);
    taut_model_free(m);
}

/* Through the program, where there is one: true certificates check, also where keep = fl32(1-a) has 17 digits. */
static void checks(const char *text, const char *options)
{
    char command[4096];
    taut_model *m = model_of(text, 1);
    const char *program = getenv("TAUT"), *path = temp_path("model.safetensors"), *cert = temp_path("cert.json");
    must(taut_model_save(m, path));
    taut_model_free(m);
    if (!program) return;
    snprintf(command, sizeof command, "'%s' certify '%s' %s --out '%s' >/dev/null && '%s' check '%s' '%s' >/dev/null",
             program, path, options, cert, program, cert, path);
    CHECK(system(command) == 0, command);
}

static void depths(void)
{
    for (int depth = 1; depth <= 20; depth += depth < 6 ? 1 : 7) {
        char text[256];
        snprintf(text, sizeof text,
                 "[model]\nwidth = 4\nheads = 2\ndepth = %d\ncontext = 3\nmlp = 5\nnorm = none\nresidual = convex\n",
                 depth);
        case_no = depth;
        checks(text, depth % 2 ? "--norm tokens" : "--norm flat --radius 0.3");
    }
}

static const char *const recipes[] = {
    "[model]\nwidth = 6\nheads = 3\ndepth = 2\ncontext = 5\nmlp = 8\nnorm = none\nresidual = convex\nlogit_scale = 3\n"
    "activation_factor = 0.8858\nattention_scale = inv_width\nattention_out = 0.3333\n",
    "[model]\nwidth = 4\nheads = 2\ndepth = 1\ncontext = 3\nmlp = 5\nnorm = layernorm\nnorm_eps = 0.1\ntied = false\n"
    "positions = rope\ndropout = 0.1\n",
    "[model]\narch = encoder\nwidth = 4\nheads = 4\ndepth = 2\ncontext = 4\nmlp = 3\nnorm = rmsnorm\nnorm_eps = 0.2\n"
    "positions = alibi\nactivation = relu\n",
    "[model]\nwidth = 6\nheads = 1\ndepth = 3\ncontext = 2\nmlp = 1\nnorm = centernorm\nnorm_place = post\npositions = "
    "none\n"
    "bias = false\nactivation = relu\n",
    "[model]\narch = encoder\nwidth = 2\nheads = 2\ndepth = 1\ncontext = 1\nmlp = 2\nnorm = none\nresidual = convex\n"
    "residual_alpha = 0.3\n",
};

int main(void)
{
    test_begin();
    temp_begin();
    for (case_no = 0; case_no < effort(60); case_no++) {
        room = case_no % 3 == 0 ? 0 : rng_unit();
        whole(recipes[case_no % 5], (taut_norm)(case_no / 5 % 2));
    }
    depths();
    return test_end("certify", "%d certificates, %d nodes; %d numbers recomputed, the loosest %.3g above the truth",
                    effort(60), nodes, numbers, loosest - 1);
}
