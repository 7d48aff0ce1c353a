/* What is captured is what the model computes: layers' inputs from formulas written out here, maps against each other and
 * against the model itself, for norms before and behind, plain, convex and channel residuals, and both kernels. */
#include "base/float32.h"
#include "keys.h"
#include "laws.h"
#include "model/capture.h"
#include "model/pass.h"
#include "must.h"

enum { D = 6, H = 2, T = 5, N = 2, TOKENS = 7 };

static const char *const recipes[] = {
    "arch = gpt\n",
    "arch = gpt\nnorm = rmsnorm\nresidual = convex\nresidual_alpha = 0.25\npositions = none\n",
    "arch = gpt\nnorm = none\nbias = false\ndropout = 0.3\n",
    "arch = encoder\n",
    "arch = encoder\nresidual = channel\ndroppath = 0.2\n",
    "arch = vit\nimage_height = 2\npatch = 1\nclasses = 3\n",
    ("arch = vit\nimage_height = 1\nimage_width = 3\npatch = 1\ndistilled = true\nnorm_place = post\n"
     "activation = relu\n"),
    "arch = gpt\nattention = cosine\nnorm = centernorm\nnorm_place = post\n",
};
enum { RECIPES = sizeof recipes / sizeof *recipes };

static taut_model *make(const char *lines, const taut_kernels *k)
{
    char text[1024];
    taut_config *cfg = NULL;
    taut_model_spec spec;
    taut_model *m = NULL;
    snprintf(text, sizeof text, "[model]\nwidth = 6\ndepth = 3\nheads = 2\ncontext = 5\nmlp = 8\ninit_std = 0.7\n%s",
             lines);
    must(taut_config_parse(&cfg, text, "test"));
    must(taut_model_spec_read(&spec, cfg));
    taut_config_free(cfg);
    must(taut_model_create(&m, &spec, spec.arch == TAUT_ARCH_VIT ? 0 : TOKENS, text, "bytes", k));
    must(taut_model_bind(m, false));
    must(taut_model_init(m, 5));
    return m;
}

static double *values(const taut_kernels *k, taut_tensor x)
{
    double *y = doubles(taut_len(x.shape));
    k->get(y, x.data, taut_len(x.shape));
    return y;
}

/* A map of a layer at the input that belongs to it. */
static double *apply(const taut_capture *c, int layer, taut_map which)
{
    const taut_kernels *k = c->m->k;
    const taut_tensor x = taut_capture_input(c, layer, which);
    taut_module *map = NULL;
    must(taut_capture_map(&map, c, layer, which));
    const taut_plan p = taut_plan_of(map, x.shape);
    const int64_t len = taut_len(p.out) + p.trace + p.scratch;
    taut_real *memory = taut_reals(k, len);
    taut_span rest = { memory, len, k->elem };
    const taut_tensor y = taut_take_tensor(&rest, p.out);
    const taut_point at = { x, taut_take_span(&rest, p.trace) };
    taut_run run = { .k = k, .scratch = rest };
    taut_forward(map, &run, y, at);
    double *out = values(k, y);
    k->release(memory);
    taut_module_free(map);
    return out;
}

static void near(const double *a, const double *b, double tol, const char *what)
{
    for (int64_t i = 0; i < N * T * D; i++) CHECK_NEAR(a[i], b[i], tol, what);
}

/* The maps of a layer, each from the one before it. */
static void check_maps(const taut_capture *c, int l, double tol)
{
    const taut_model *m = c->m;
    const taut_kernels *k = m->k;
    double *x = values(k, c->layer[l].x), *z = values(k, c->layer[l].z);
    double *y = apply(c, l, TAUT_MAP_ATTENTION), *branch = apply(c, l, TAUT_MAP_BRANCH);
    double *residual = apply(c, l, TAUT_MAP_RESIDUAL), *block = apply(c, l, TAUT_MAP_BLOCK);
    const double a = m->spec.convex ? taut_spec_alpha(&m->spec) : 1, keep = m->spec.convex ? 1 - a : 1;
    if (m->spec.place == TAUT_PLACE_POST) near(x, z, 0, "post: nothing stands before the attention");
    if (m->spec.channel) /* one number a channel, all 1/depth at the start */
        for (int i = 0; i < N * T * D; i++) y[i] /= (double)m->spec.depth;
    near(branch, y, tol, "branch: the attention at z");
    for (int i = 0; i < N * T * D; i++) branch[i] = keep * x[i] + a * branch[i];
    near(residual, branch, tol, "residual: keep x + a branch(x)");
    const bool normed = m->spec.place == TAUT_PLACE_POST && m->spec.norm != TAUT_NORM_NONE;
    CHECK((c->layer[l].norm != NULL) == normed, "a norm behind, or none");
    if (!normed) near(block, residual, 0, "block: the residual");
    double *all[] = { x, z, y, branch, residual, block };
    for (int i = 0; i < 6; i++) free(all[i]);
}

/* The bare map through W_O is the attention map. */
static void check_bare(const taut_capture *c, int l, double tol)
{
    const taut_attention_view w = taut_attention_look(c->layer[l].attention);
    double *o = apply(c, l, TAUT_MAP_BARE), *y = apply(c, l, TAUT_MAP_ATTENTION), wo[D * D], bo[D] = { 0 };
    c->m->k->get(wo, w.weight[3]->value, D * D);
    if (w.spec->bias) c->m->k->get(bo, w.bias[3]->value, D);
    for (int t = 0; t < N * T; t++)
        for (int i = 0; i < D; i++)
            CHECK_NEAR(y[t * D + i], bo[i] + dot(wo + i * D, o + t * D, D), tol, "bare: before W_O");
    free(o);
    free(y);
}

/* LayerNorm with eps, gain 1 and shift 0, as a model starts. */
static void plain_layernorm(double *y, const double *x, double eps)
{
    for (int t = 0; t < N * T; t++) {
        double mean = 0, var = 0;
        for (int i = 0; i < D; i++) mean += x[t * D + i] / D;
        for (int i = 0; i < D; i++) var += (x[t * D + i] - mean) * (x[t * D + i] - mean) / D;
        for (int i = 0; i < D; i++) y[t * D + i] = (x[t * D + i] - mean) / sqrt(var + taut_float32(eps));
    }
}

/* A GPT and an encoder whose perceptrons answer 0: the chain of layers, written out. */
static void chain(const taut_kernels *k, bool encoder, double tol)
{
    taut_model *m = make(encoder ? recipes[3] : recipes[0], k);
    taut_capture *c = NULL;
    int32_t ids[N * T];
    for (int i = 0; i < N * T; i++) ids[i] = (int32_t)rng_int(0, TOKENS - 1);
    for (int i = 0; i < m->weights; i++)
        if (strstr(m->weight[i].path, "mlp.out.weight"))
            k->axpby(m->weight[i].param->value, 0, m->values, 0, taut_weight_len(&m->weight[i]));
    must(taut_capture_create(&c, m, N, T));
    taut_capture_run(c, ids, N, T);
    CHECK(c->layers == 3, "every layer");
    double table[TOKENS * D], pos[T * D], start[N * T * D], normed[N * T * D];
    k->get(table, m->embed.value, TOKENS * D);
    k->get(pos, taut_model_find(m, "pos.weight")->param->value, T * D);
    for (int i = 0; i < N * T * D; i++) start[i] = table[ids[i / D] * D + i % D] + pos[i % (T * D)];
    plain_layernorm(normed, start, m->spec.norm_eps);
    double *x = values(k, c->layer[0].x), *z = values(k, c->layer[0].z);
    near(x, encoder ? normed : start, tol, "layer 0 reads the embeddings");
    near(z, normed, tol, "layer 0's attention reads them normalised");
    free(x), free(z);
    for (int l = 0; l < 2; l++) {
        double *out = apply(c, l, TAUT_MAP_BLOCK), *next = values(k, c->layer[l + 1].x), again[N * T * D];
        plain_layernorm(again, out, m->spec.norm_eps);
        near(next, encoder ? again : out, tol, "the next layer reads what this one writes");
        free(out), free(next);
    }
    taut_capture_free(c);
    taut_model_free(m);
}

/* The last features through the head are the model's logits; a smaller batch fits in the same memory. */
static void same_as_pass(taut_capture *c, double tol)
{
    taut_pass *pass = NULL;
    const int32_t ids[] = { 1, 6, 0, 2 };
    double features[4 * D], table[TOKENS * D], bias[TOKENS] = { 0 };
    must(taut_pass_create(&pass, c->m, 1, 4, false));
    taut_pass_forward(pass, ids, 1, 4);
    taut_capture_run(c, ids, 1, 4);
    double *logits = values(c->m->k, pass->logits);
    c->m->k->get(features, c->features.data, 4 * D);
    c->m->k->get(table, c->m->embed.value, TOKENS * D);
    const taut_weight *b = taut_model_find(c->m, "head.bias");
    if (b) c->m->k->get(bias, b->param->value, TOKENS);
    for (int i = 0; i < 4 * TOKENS; i++)
        CHECK_NEAR(logits[i], bias[i % TOKENS] + dot(features + i / TOKENS * D, table + i % TOKENS * D, D), tol,
                   "features and logits");
    free(logits);
    taut_pass_free(pass);
}

/* Five tokens for the attention, whatever goes in: ids, or the pixels of an image and the tokens before its patches. */
static void run(taut_capture *c)
{
    int32_t ids[N * T];
    double pixels[N * T];
    for (int i = 0; i < N * T; i++) ids[i] = (int32_t)rng_int(0, TOKENS - 1);
    fill(pixels, N * T);
    if (c->m->embed.rows)
        taut_capture_run(c, ids, N, T);
    else
        taut_capture_run_real(c, pixels, N);
    CHECK(c->layers == 3, "every layer");
    for (int l = 0; l < c->layers; l++)
        CHECK(taut_same_shape(c->layer[l].z.shape, (taut_shape){ N, T, D }), "the shape that attention reads");
}

/* Of an image only the first token is read: the last features are that token of the blocks, through the last norm. */
static void last_of_image(taut_capture *c, double tol)
{
    taut_pass *pass = NULL;
    double pixels[N * T], head[10 * D];
    const int64_t classes = c->m->classes;
    fill(pixels, N * T);
    must(taut_pass_create(&pass, c->m, N, 1, false));
    taut_pass_forward_real(pass, pixels, N);
    taut_capture_run_real(c, pixels, N);
    double *features = values(c->m->k, c->features), *logits = values(c->m->k, pass->logits);
    CHECK(taut_same_shape(c->features.shape, (taut_shape){ N, 1, D }), "one token");
    c->m->k->get(head, taut_model_find(c->m, "head.weight")->param->value, classes * D);
    for (int64_t i = 0; i < N * classes; i++)
        CHECK_NEAR(logits[i], dot(features + i / classes * D, head + i % classes * D, D), tol, "features and classes");
    free(features), free(logits);
    taut_pass_free(pass);
}

int main(void)
{
    test_begin();
    for (int which = 0; which < 2; which++) {
        const taut_kernels *k = taut_kernels_find(which ? "cpu" : "ref");
        const double tol = which ? 1e-4 : 1e-12; /* float: sums of tens of products of numbers near 1 */
        for (case_no = 0; case_no < RECIPES; case_no++) {
            taut_model *m = make(recipes[case_no], k);
            taut_capture *c = NULL;
            must(taut_capture_create(&c, m, N, m->in.t));
            run(c);
            for (int l = 0; l < c->layers; l++) check_maps(c, l, tol);
            for (int l = 0; l < c->layers && !attends(&m->spec, "cosine"); l++) check_bare(c, l, tol);
            taut_module *none = NULL;
            if (attends(&m->spec, "cosine"))
                CHECK(taut_capture_map(&none, c, 0, TAUT_MAP_BARE) == TAUT_BAD_CONFIG, "no bare map");
            if (m->embed.rows)
                same_as_pass(c, tol);
            else
                last_of_image(c, tol);
            taut_capture_free(c);
            taut_model_free(m);
        }
        for (int encoder = 0; encoder < 2; encoder++) chain(k, encoder, tol);
    }
    return test_end("capture", "%d recipes", RECIPES);
}
