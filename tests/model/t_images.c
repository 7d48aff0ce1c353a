/* Models that read images: the whole way from pixels to logits by hand, the gradient of the input, bad recipes, and the
 * file by itself. */
#include "base/config.h"
#include "harness.h"
#include "model/pass.h"
#include "proved.h"
#include "table.h"
#include "temp.h"

static const char recipe[] =
    "[model]\narch = mlp\nimage_height = 3\nimage_width = 2\nimage_channels = 2\nclasses = 4\n"
    "pixel_mean = 0.5 0.25\npixel_std = 0.5\nhidden = 6 4\nactivation = relu\ninit_std = 0.5\n";
enum { PIXELS = 12, N = 3, CLASSES = 4 };

static taut_status read_spec(taut_model_spec *spec, const char *text, char **printed)
{
    taut_config *cfg = NULL;
    if (taut_config_parse(&cfg, text, "test")) abort();
    const taut_status relation = taut_model_spec_read(spec, cfg);
    taut_status s = taut_config_finish(cfg);
    if (printed) *printed = taut_config_print(cfg);
    taut_config_free(cfg);
    return s ? s : relation;
}

static taut_model *model_of(const char *text, const char *kernels, bool grads)
{
    taut_model *m = NULL;
    taut_model_spec spec;
    char *printed;
    CHECK(!read_spec(&spec, text, &printed), taut_last_error());
    CHECK(!taut_model_create(&m, &spec, 0, printed, "", taut_kernels_find(kernels)) && !taut_model_bind(m, grads) &&
              !taut_model_init(m, seed),
          taut_last_error());
    free(printed);
    return m;
}

static const double *weight(const taut_model *m, const char *path)
{
    const taut_weight *w = taut_model_find(m, path);
    CHECK(w != NULL, path);
    return (const double *)w->param->value;
}

static void affine(double *y, const taut_model *m, const char *layer, const double *x, int out, int in, bool relu)
{
    char path[64];
    snprintf(path, sizeof path, "%s.weight", layer);
    const double *w = weight(m, path);
    snprintf(path, sizeof path, "%s.bias", layer);
    const double *b = weight(m, path);
    for (int i = 0; i < out; i++) {
        y[i] = b[i];
        for (int j = 0; j < in; j++) y[i] += w[i * in + j] * x[j];
        if (relu && y[i] < 0) y[i] = 0;
    }
}

static void by_hand(void)
{
    taut_model *m = model_of(recipe, "ref", false);
    taut_pass *p = NULL;
    double x[N * PIXELS], h[PIXELS], a[6], b[4], z[CLASSES];
    for (int i = 0; i < N * PIXELS; i++) x[i] = rng_unit();
    CHECK(m->in.t == 1 && m->in.d == PIXELS && m->classes == CLASSES && m->embed.rows == 0, "what goes in and out");
    CHECK(m->weights == 6 && !taut_model_find(m, "embed.weight"), "no embedding");
    CHECK(!taut_pass_create(&p, m, N, 1, false), taut_last_error());
    taut_pass_read(p, (taut_input){ NULL, x }, N);
    const double *got = (const double *)p->logits.data;
    CHECK(p->logits.shape.n == N && p->logits.shape.t == 1 && p->logits.shape.d == CLASSES, "one row an image");
    for (int e = 0; e < N; e++) {
        for (int i = 0; i < PIXELS; i++) h[i] = (x[e * PIXELS + i] - (i % 2 ? 0.25 : 0.5)) / 0.5;
        affine(a, m, "layer.0", h, 6, PIXELS, true);
        affine(b, m, "layer.1", a, 4, 6, true);
        affine(z, m, "head", b, CLASSES, 4, false);
        for (int c = 0; c < CLASSES; c++) CHECK_NEAR(got[e * CLASSES + c], z[c], 1e-12, "logits");
    }
    taut_pass_free(p);
    taut_model_free(m);
}

#define VIT                                                                                                       \
    "[model]\narch = vit\nimage_height = 4\nimage_width = 4\nimage_channels = 1\nclasses = 4\npixel_mean = 0.5\n" \
    "pixel_std = 0.25\npatch = 2\nwidth = 8\ndepth = 2\nheads = 2\nmlp = 12\ninit_std = 0.5\n"

/* Without positions a ViT does not see where a patch is: exchanging two of them changes nothing, and with positions it
 * does.  The class token and the mean read different numbers from the same weights. */
static void patches(void)
{
    static const char *const text[] = { VIT "positions = none\npool = mean\n", VIT "positions = none\n", VIT };
    double x[16], turned[16];
    for (int i = 0; i < 16; i++) x[i] = turned[i] = rng_unit();
    for (int i = 0; i < 2; i++) /* patch (0, 0) and patch (1, 1), rows of two pixels */
        for (int j = 0; j < 2; j++)
            turned[4 * i + j] = x[4 * (i + 2) + j + 2], turned[4 * (i + 2) + j + 2] = x[4 * i + j];
    for (int k = 0; k < 3; k++) {
        taut_model *m = model_of(text[k], "ref", false);
        taut_pass *p = NULL;
        double z[2][CLASSES], apart = 0;
        CHECK((taut_model_find(m, "cls.weight") != NULL) == (k > 0) && m->spec.context == 4 + (k > 0), "its tokens");
        CHECK(!taut_pass_create(&p, m, 1, 1, false), taut_last_error());
        for (int i = 0; i < 2; i++) {
            taut_pass_forward_real(p, i ? turned : x, 1);
            memcpy(z[i], p->logits.data, sizeof z[i]);
        }
        for (int c = 0; c < CLASSES; c++) apart = fmax(apart, fabs(z[0][c] - z[1][c]));
        if (k < 2) CHECK_LE(apart, 1e-12, "patches are a set");
        if (k == 2) CHECK(apart > 1e-6, "positions tell them apart");
        taut_pass_free(p);
        taut_model_free(m);
    }
}

/* No two images are further apart behind the model than its constant allows, in the flat norm. */
static void constants(void)
{
    static const char *const text[] = {
        recipe,
        VIT "norm = none\nresidual = convex\n",
        VIT "norm = none\nresidual = convex\npool = mean\n",
        VIT,
        VIT "norm = centernorm\nattention = cosine\nresidual = convex\n",
        VIT "norm_place = post\nfinal_norm = true\n",
        VIT "norm = none\nresidual = convex\nattention = position\ntorus = true\npool = concat\nhead_hidden = 6\n",
    };
    for (int k = 0; k < 7; k++) {
        taut_model *m = model_of(text[k], "ref", false);
        taut_pass *p = NULL;
        const double lip = proved_bound(m, TAUT_NORM_FLAT).lip.v;
        const int64_t d = m->in.d;
        double *x = doubles(2 * d), z[CLASSES];
        CHECK(isfinite(lip) && !taut_pass_create(&p, m, 1, 1, false), "a constant");
        for (int i = 0; i < effort(40); i++) {
            const double step = pow(10, -5 * rng_unit());
            double apart = 0, moved = 0;
            for (int64_t j = 0; j < d; j++) x[j] = i % 2 ? (double)rng_int(0, 1) : rng_unit();
            for (int64_t j = 0; j < d; j++) x[d + j] = fmin(1, fmax(0, x[j] + step * rng_pm()));
            taut_pass_forward_real(p, x, 1);
            memcpy(z, p->logits.data, sizeof z);
            taut_pass_forward_real(p, x + d, 1);
            for (int c = 0; c < CLASSES; c++) apart += pow(z[c] - ((double *)p->logits.data)[c], 2);
            for (int64_t j = 0; j < d; j++) moved += pow(x[j] - x[d + j], 2);
            CHECK_LE(sqrt(apart), lip * sqrt(moved) + 1e-12, "pixels to logits");
        }
        free(x);
        taut_pass_free(p);
        taut_model_free(m);
    }
}

static double loss_at(taut_pass *p, const double *x, const int32_t *y, bool backward)
{
    double sums[TAUT_PASS_SUMS];
    taut_pass_clear(p);
    taut_pass_forward_real(p, x, N);
    taut_pass_loss(p, y, 1, backward);
    CHECK(!taut_pass_sums(p, sums), taut_last_error());
    return sums[TAUT_PASS_LOSS];
}

/* gx by central differences; asking for it leaves the gradients of the weights alone, and agrees with a backward. */
static void input_gradient(const char *text)
{
    taut_model *m = model_of(text, "ref", true);
    taut_pass *p = NULL;
    const int len = N * (int)m->in.d;
    double x[N * 16], g[N * 16], worst = 0;
    const int32_t y[N] = { 1, 0, 3 };
    for (int i = 0; i < len; i++) x[i] = rng_unit();
    CHECK(!taut_pass_create(&p, m, N, 1, true), taut_last_error());
    loss_at(p, x, y, true);
    taut_pass_input_grad(p);
    memcpy(g, p->gx, (size_t)len * sizeof *g);
    for (int64_t i = 0; i < m->slab; i++) CHECK(((double *)m->grads)[i] == 0, "no gradient of a weight");
    loss_at(p, x, y, true);
    taut_pass_backward(p);
    CHECK(memcmp(g, p->gx, (size_t)len * sizeof *g) == 0, "the same as with the weights");
    CHECK(table_dot(m->k, m->grads, m->grads, m->slab) > 0, "and now there are gradients");
    for (int i = 0; i < len; i++) {
        const double keep = x[i], step = 1e-6;
        x[i] = keep + step;
        const double up = loss_at(p, x, y, false);
        x[i] = keep - step;
        const double fd = (up - loss_at(p, x, y, false)) / (2 * step);
        x[i] = keep;
        worst = fmax(worst, fabs(fd - g[i]));
    }
    CHECK_LE(worst, 1e-7, "the gradient of the pixels");
    taut_pass_free(p);
    taut_model_free(m);
}

/* Saved and opened again: all it needs is in the file. */
static void stored(void)
{
    taut_model *m = model_of(recipe, "cpu", false), *back = NULL;
    temp_begin();
    const char *path = temp_path("model.safetensors");
    CHECK(!taut_model_save(m, path) && !taut_model_open(&back, path, taut_kernels_find("ref"), false),
          taut_last_error());
    CHECK(back->in.d == PIXELS && back->classes == CLASSES && back->spec.image.mean[1] == 0.25, "its preprocessing");
    CHECK(isfinite(proved_bound(back, TAUT_NORM_FLAT).lip.v), "a constant from pixels to logits");
    CHECK_NEAR(taut_model_reach(back).v, sqrt(PIXELS), 1e-9, "the longest image is white");
    taut_model_free(m);
    taut_model_free(back);
}

static void refused(void)
{
    static const char *const bad[] = {
        "hidden = ",
        "hidden = 3 x",
        "hidden = 0",
        "hidden = 2.5",
        "hidden = 3\nactivation = maxmin",
        "heads = 2",
        "pixel_std = 0",
        "pixel_mean = 1 2 3",
        "classes = 1",
        "image_channels = 5",
        "hidden = 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1",
        "arch = vit\npatch = 3",
        "arch = vit\nnorm = none\nfinal_norm = true",
        "arch = vit\nhidden = 3",
        "arch = vit\ntied = true",
        "arch = vit\nattention = position\ntorus = true", /* a class token has no place on it */
        "arch = vit\ntorus = true\npool = mean",          /* softmax attention has no table */
        "arch = vit\npool = all",
        "arch = vit\nhead_hidden = ",
        "arch = vit\nactivation = maxmin\nhead_hidden = 3",
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        char text[256];
        taut_model_spec spec;
        snprintf(text, sizeof text, "[model]\narch = mlp\nimage_channels = 2\n%s\n", bad[i]);
        if (strstr(bad[i], "channels") || strstr(bad[i], "vit"))
            snprintf(text, sizeof text, "[model]\n%s%s\n", strstr(bad[i], "vit") ? "" : "arch = mlp\n", bad[i]);
        CHECK(read_spec(&spec, text, NULL) == TAUT_BAD_CONFIG, bad[i]);
    }
}

int main(void)
{
    test_begin();
    by_hand();
    patches();
    constants();
    input_gradient(recipe);
    input_gradient(VIT);
    stored();
    refused();
    return test_end("images", "mlp by hand, vit, pixel gradients, its file");
}
