/* Models that read images: the whole way from pixels to logits by hand, the gradient of the input, bad recipes, and the
 * file by itself. */
#include "base/config.h"
#include "harness.h"
#include "model/pass.h"
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

static double loss_at(taut_pass *p, const double *x, const int32_t *y, bool backward)
{
    int64_t correct = 0;
    taut_pass_forward_real(p, x, N);
    return taut_pass_loss(p, y, &correct, 1, backward);
}

/* gx by central differences; asking for it leaves the gradients of the weights alone, and agrees with a backward. */
static void input_gradient(void)
{
    taut_model *m = model_of(recipe, "ref", true);
    taut_pass *p = NULL;
    double x[N * PIXELS], g[N * PIXELS], worst = 0;
    const int32_t y[N] = { 1, 0, 3 };
    for (int i = 0; i < N * PIXELS; i++) x[i] = rng_unit();
    CHECK(!taut_pass_create(&p, m, N, 1, true), taut_last_error());
    loss_at(p, x, y, true);
    taut_pass_input_grad(p);
    memcpy(g, p->gx, sizeof g);
    for (int64_t i = 0; i < m->slab; i++) CHECK(((double *)m->grads)[i] == 0, "no gradient of a weight");
    loss_at(p, x, y, true);
    taut_pass_backward(p, NULL);
    CHECK(memcmp(g, p->gx, sizeof g) == 0, "the same as with the weights");
    CHECK(m->k->dot(m->grads, m->grads, m->slab) > 0, "and now there are gradients");
    for (int i = 0; i < N * PIXELS; i++) {
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
    CHECK(isfinite(taut_model_bound(back, TAUT_NORM_FLAT).lip.v), "a constant from pixels to logits");
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
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        char text[256];
        taut_model_spec spec;
        snprintf(text, sizeof text, "[model]\narch = mlp\nimage_channels = 2\n%s\n", bad[i]);
        if (strstr(bad[i], "channels")) snprintf(text, sizeof text, "[model]\narch = mlp\n%s\n", bad[i]);
        CHECK(read_spec(&spec, text, NULL) == TAUT_BAD_CONFIG, bad[i]);
    }
}

int main(void)
{
    test_begin();
    by_hand();
    input_gradient();
    stored();
    refused();
    return test_end("images", "mlp by hand, pixel gradients, its file");
}
