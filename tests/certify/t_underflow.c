/* Numbers that underflow and are made large again behind.  A perceptron's two paths, one of 128 shares that are each too small
 * for a double and one of one share that is not: the real logits stand as 128 * 0.499 to 20, the computed as 0 to 20.  Neither
 * the stated rounding nor a radius may be beaten by that. */
#include "build.h"
#include "certify/example.h"
#include "taut.h"
#include "temp.h"

enum { WIDTH = 130, SHARES = 128, DOWN = 6, UP = 8, INPUTS = 6 };

static int wrong_predictions;
static double least_round = INFINITY;

static double *weight_of(const taut_model *m, const char *path)
{
    const taut_weight *w = taut_model_find(m, path);
    if (!w) must(taut_fail(TAUT_BAD_CONFIG, "no weight %s", path));
    return (double *)w->param->value;
}

static double *layer_weight(const taut_model *m, int layer, const char *what)
{
    char path[64];
    snprintf(path, sizeof path, "layer.%d.%s", layer, what);
    return weight_of(m, path);
}

static void diagonal(const taut_model *m, int layer, double value)
{
    double *w = layer_weight(m, layer, "weight");
    for (int i = 0; i < WIDTH; i++) w[i * WIDTH + i] = value;
}

/* All units are 2^-149 at first, then 2^-1022; the paths take 2^-52 more, and come back by 2^1071. */
static taut_model *two_paths(void)
{
    taut_model *m = blank_model(
        "[model]\narch = mlp\nimage_height = 3\nimage_width = 2\nimage_channels = 1\nclasses = 2\n"
        "hidden = 130 130 130 130 130 130 130 130 130 130 130 130 130 130 130 130\nactivation = relu\n",
        0, false);
    int left = 1022 - 149, layer = 1;
    for (int i = 0; i < WIDTH; i++) layer_weight(m, 0, "bias")[i] = 0x1p-149;
    layer_weight(m, 0, "weight")[(WIDTH - 1) * INPUTS] = 0x1p-149; /* of no path */
    for (; layer < DOWN; layer++) {
        const int by = (int)rng_int(left - 149 * (DOWN - layer), 149);
        diagonal(m, layer, ldexp(1, -by));
        left -= by;
    }
    diagonal(m, layer++, ldexp(1, -left));
    double *w = layer_weight(m, layer++, "weight");
    for (int i = 0; i < SHARES; i++) w[i] = (double)0.499f * 0x1p-52;
    w[WIDTH + SHARES] = 20 * 0x1p-52;
    for (int i = 0; i < UP; i++) diagonal(m, layer++, 0x1p119);
    w = weight_of(m, "head.weight");
    w[0] = w[WIDTH + 1] = 0x1p113;
    return m;
}

/* The same perceptron in long double, which reaches down to 2^-16445. */
static void real_logits(long double *out, const taut_model *m, const double *pixels)
{
    long double x[WIDTH] = { 0 }, y[WIDTH];
    for (int i = 0; i < INPUTS; i++) x[i] = (long double)pixels[i];
    for (int layer = 0, cols = INPUTS; layer <= 1 + DOWN + UP; layer++, cols = WIDTH) {
        const double *w = layer_weight(m, layer, "weight"), *b = layer_weight(m, layer, "bias");
        for (int i = 0; i < WIDTH; i++) {
            y[i] = b[i];
            for (int c = 0; c < cols; c++) y[i] += (long double)w[i * cols + c] * x[c];
        }
        for (int i = 0; i < WIDTH; i++) x[i] = y[i] > 0 ? y[i] : 0;
    }
    const double *w = weight_of(m, "head.weight");
    for (int j = 0; j < 2; j++) {
        out[j] = 0;
        for (int c = 0; c < WIDTH; c++) out[j] += (long double)w[j * WIDTH + c] * x[c];
    }
}

static void judge(taut_certificate *c, taut_pass *pass)
{
    double pixels[INPUTS];
    double got[2];
    long double want[2];
    for (int i = 0; i < INPUTS; i++) pixels[i] = rng_unit();
    real_logits(want, c->model, pixels);
    const taut_example e = taut_example_certify(c, pass, (taut_input){ .reals = pixels }, 0, got);
    CHECK_LE((double)hypotl(got[0] - want[0], got[1] - want[1]), c->round.v, "round");
    if (want[e.predicted] < want[1 - e.predicted]) {
        wrong_predictions++;
        CHECK_LE(e.radius.v, 0, "radius of a wrong prediction");
    }
    least_round = fmin(least_round, c->round.v);
}

int main(void)
{
    test_begin();
    temp_begin();
    const char *path = temp_path("model.safetensors");
    for (case_no = 0; case_no < effort(20); case_no++) {
        taut_certificate c;
        taut_pass *pass = NULL;
        taut_model *m = two_paths();
        must(taut_model_save(m, path));
        taut_model_free(m);
        must(taut_certify(&c, path, TAUT_NORM_FLAT, 0.5));
        must(taut_pass_create(&pass, c.model, 1, c.tokens, false));
        judge(&c, pass);
        taut_pass_free(pass);
        taut_certificate_free(&c);
    }
    CHECK_LE(1, wrong_predictions, "predictions that are wrong by underflow");
    return test_end("underflow", "%d wrong predictions, none certified; rounding from %.3g", wrong_predictions,
                    least_round);
}
