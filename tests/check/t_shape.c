/* Radii by what holds of every token by itself, where they can be compared with the truth: networks that are linear around every
 * example (queries of 0, so that shares are even; perceptrons far from their kink) and as steep in one direction as in any other
 * (multiples of the identity).  There the least distance to another answer is a margin over the length of a gradient.  What is
 * told and what taut check accepts reach it, and nothing beyond it is accepted. */
#include <string.h>

#include "certify/local.h"
#include "check/kinds.h"
#include "check/verdict.h"

enum { MOST = 64, CLASSES = 16 };
static int radii;
static double least = INFINITY, most; /* told, over the truth */

#define TINY_TEXT "[model]\nwidth = 4\ndepth = 2\nheads = 1\ncontext = 5\nmlp = 4\nnorm = none\nactivation = relu\n"
#define TINY_VIT                                                                                                  \
    "[model]\narch = vit\nimage_height = 4\nimage_width = 4\nimage_channels = 1\nclasses = 4\npixel_mean = 0.5\n" \
    "pixel_std = 0.25\npatch = 2\nwidth = 4\ndepth = 2\nheads = 1\nmlp = 4\nnorm = none\nactivation = relu\n"
static const char *const linear[] = {
    TINY_TEXT,
    TINY_TEXT "residual = convex\ntied = false\nlogit_scale = 0.5\n",
    TINY_TEXT "attention = window\nwindow_size = 1\n",
    TINY_TEXT "arch = classifier\nclasses = 3\n",
    TINY_TEXT "arch = classifier\nclasses = 3\npool = class\n",
    TINY_VIT "pool = class\n",
    TINY_VIT "pool = mean\nresidual = convex\n",
    TINY_VIT "pool = class\nattention = window\nwindow_size = 1\nwindow_global = 1\n",
};
enum { KINDS_HERE = sizeof linear / sizeof *linear };

static bool ends(const char *path, const char *end)
{
    const size_t a = strlen(path), b = strlen(end);
    return a >= b && strcmp(path + a - b, end) == 0;
}

/* A multiple of I for a matrix that tokens go through, a large bias for the units that are to be on, which the bias behind them
 * takes away again; 0 for queries; else random. */
static void save(const char *text, bool images)
{
    static const char *const identity[] = { "patch.weight", "v.weight", "o.weight", "in.weight", "out.weight" };
    taut_model *m = blank_model(text, images ? 0 : 11, false);
    double out = 0;
    for (int i = 0; i < m->weights; i++) {
        const taut_weight *w = &m->weight[i];
        const bool on = ends(w->path, "in.bias"), off = ends(w->path, "out.bias"),
                   none = ends(w->path, "q.weight") || ends(w->path, "q.bias");
        double *v = (double *)m->values + w->offset;
        const double by = taut_float32(0.5 + rng_unit());
        bool square = false;
        for (int k = 0; k < 5; k++) square = square || ends(w->path, identity[k]);
        for (int64_t k = 0; k < w->param->rows * w->param->cols; k++)
            v[k] = taut_float32(square ? (k % (w->param->cols + 1) == 0) * by
                                : on   ? 64
                                : off  ? -64 * out
                                : none ? 0
                                       : rng_pm());
        if (ends(w->path, "out.weight")) out = by;
    }
    must(taut_model_save(m, model_path));
    taut_model_free(m);
}

/* The least distance to another answer: margins over lengths of gradients, in norm tokens the sum of the tokens'. */
static double truth(taut_pass *p, int64_t predicted, taut_norm n)
{
    const int64_t classes = p->logits.shape.d, out = taut_rows(p->logits.shape) * classes;
    const double *last = (const double *)p->logits.data + out - classes;
    double nearest = INFINITY;
    for (int64_t j = 0; j < classes; j++) {
        double g[MOST] = { 0 }, y[8 * CLASSES] = { 0 }, sum = 0;
        if (j == predicted) continue;
        y[out - classes + predicted] = 1, y[out - classes + j] = -1;
        taut_vjp(p->m->root, &p->run, (taut_tensor){ (taut_real *)g, p->x.shape },
                 (taut_tensor){ (taut_real *)y, p->logits.shape }, (taut_point){ p->x, p->trace });
        for (int64_t t = 0; t < taut_rows(p->x.shape); t++) sum += norm(g + t * p->x.shape.d, p->x.shape.d);
        const double length = n == TAUT_NORM_FLAT ? norm(g, taut_len(p->x.shape)) : sum;
        nearest = fmin(nearest, (last[predicted] - last[j]) / length);
    }
    return nearest;
}

static bool holds(const cJSON *cert)
{
    const taut_checked r = verdict(cert);
    return r.holds && r.unknown == 0;
}

static void compare(taut_certificate *c, cJSON *one, double reach)
{
    cJSON *radius = cJSON_GetObjectItemCaseSensitive(one, "radius");
    const double told = radius->valuedouble;
    CHECK(told <= reach * (1 + 1e-9), "what is told is no further than the nearest other answer");
    CHECK(told >= 0.97 * reach, "nor far from it");
    CHECK(holds(c->json), "the true one");
    radius->valuedouble = reach * (1 - 1e-4);
    CHECK(holds(c->json), "nearly all the way");
    radius->valuedouble = reach * (1 + 1e-6);
    CHECK(!holds(c->json), "a radius beyond the nearest other answer");
    radius->valuedouble = told;
    least = fmin(least, told / reach), most = fmax(most, told / reach);
    radii++;
}

static void one_model(taut_certificate *c, taut_norm n)
{
    taut_pass *p;
    int32_t ids[8];
    double logits[CLASSES], pixels[16];
    const bool images = c->model->embed.rows == 0;
    const int64_t count = images ? c->model->in.d : c->tokens;
    int found = 0;
    cJSON *list = cJSON_AddArrayToObject(c->json, "examples");
    must(taut_near_state(c));
    must(taut_pass_create(&p, c->model, 1, c->tokens, false));
    for (int e = 0; e < 40 && found < 2; e++) {
        for (int64_t i = 0; i < count && !images; i++) ids[i] = (int32_t)rng_int(0, 10);
        for (int64_t i = 0; i < count && images; i++) pixels[i] = rng_unit();
        const taut_input x = images ? (taut_input){ NULL, pixels } : (taut_input){ ids, NULL };
        const taut_example one = taut_example_certify(c, p, x, 1, logits);
        const double reach = one.margin > 0.01 ? truth(p, one.predicted, n) : 0;
        taut_local near;
        if (!(reach > 0 && reach < 0.9 * c->room.v)) continue;
        must(taut_local_certify(&near, c, p, &one, logits));
        cJSON_AddItemToArray(list, taut_near_json(&one, &near, x, count));
        compare(c, cJSON_GetArrayItem(list, found++), reach);
    }
    taut_pass_free(p);
}

int main(void)
{
    test_begin();
    temp_begin();
    model_path = strdup(temp_path("model.safetensors"));
    cert_path = strdup(temp_path("cert.json"));
    for (case_no = 0; case_no < 2 * KINDS_HERE; case_no++) {
        const char *text = linear[case_no % KINDS_HERE];
        const bool images = strstr(text, "image_height") != NULL;
        const taut_norm n = case_no / KINDS_HERE ? TAUT_NORM_FLAT : TAUT_NORM_TOKENS;
        taut_certificate c;
        save(text, images);
        must(taut_certify(&c, model_path, n, 2));
        one_model(&c, n);
        taut_certificate_free(&c);
    }
    free(model_path), free(cert_path);
    CHECK(radii >= 2 * KINDS_HERE, "most networks have an example or two");
    return test_end("shape", "%d radii, told / truth %.4f to %.6f", radii, least, most);
}
