/* One constant in other units (docs/guarantees.md, Units): with T tokens of d numbers in and S of c out RMS units are sqrt(d/c)
 * times in norm tokens and sqrt(T d / (S c)) times in norm flat, which of a forecaster is another number; and no pair of
 * inputs moves the output by more in any of the four. */
#include "base/float32.h"
#include "certify/build.h"
#include "certify/units.h"
#include "model/pass.h"
#include "temp.h"

static const struct {
    const char *text;
    int classes;
    double t, d, s, c;
} kinds[] = {
    { "[model]\nwidth = 8\ndepth = 1\nheads = 2\ncontext = 5\nmlp = 6\nnorm = none\n", 11, 5, 8, 5, 11 },
    { "[model]\narch = mlp\nimage_height = 3\nimage_width = 2\nimage_channels = 2\nclasses = 4\nhidden = 6 4\n"
      "activation = relu\n",
      0, 1, 12, 1, 4 },
    { "[model]\narch = forecaster\nseq = 5\nahead = 2\nlabel = 3\ncolumns = 2\nmarks = 1\nwidth = 8\nheads = 2\nmlp = "
      "6\n"
      "depth = 1\nnorm = none\nattention = position\n",
      0, 10, 3, 2, 2 },
};
enum { KINDS = sizeof kinds / sizeof *kinds, MOST = 100 };
static double closest;

/* The length of v, (rows, cols), in a unit. */
static double size_of(const double *v, double rows, double cols, const taut_unit *u)
{
    double most = 0, sum = 0;
    for (int64_t i = 0; i < (int64_t)rows; i++) {
        const double one = dot(v + i * (int64_t)cols, v + i * (int64_t)cols, (int64_t)cols);
        most = fmax(most, one), sum += one;
    }
    const bool flat = u->norm == TAUT_NORM_FLAT;
    return sqrt((flat ? sum : most) / (!u->rms ? 1 : flat ? rows * cols : cols));
}

static void pairs(int k, const taut_certificate *c, const taut_unit *unit)
{
    taut_pass *pass;
    double x[2][MOST], y[2][MOST], dx[MOST], dy[MOST];
    const int64_t nx = (int64_t)(kinds[k].t * kinds[k].d), ny = (int64_t)(kinds[k].s * kinds[k].c);
    must(taut_pass_create(&pass, c->model, 1, c->tokens, false));
    taut_pass_shape(pass, 1, c->tokens);
    for (int i = 0; i < effort(200); i++) {
        for (int side = 0; side < 2; side++) {
            for (int64_t j = 0; j < nx; j++) /* short enough for every region here */
                x[side][j] = taut_model_sees(c->model) ? rng_unit()
                             : side && i % 2           ? x[0][j] + 1e-3 * rng_pm()
                                                       : 0.2 * rng_pm();
            pass->m->k->put(pass->x.data, x[side], nx);
            taut_pass_run(pass);
            pass->m->k->get(y[side], pass->logits.data, ny);
        }
        for (int64_t j = 0; j < nx; j++) dx[j] = x[0][j] - x[1][j];
        for (int64_t j = 0; j < ny; j++) dy[j] = y[0][j] - y[1][j];
        for (int u = 0; u < TAUT_UNITS; u++) {
            const double slope = size_of(dy, kinds[k].s, kinds[k].c, unit + u) /
                                 size_of(dx, kinds[k].t, kinds[k].d, unit + u);
            CHECK_LE(slope, unit[u].lip.v, "a pair");
            closest = fmax(closest, slope / unit[u].lip.v);
        }
    }
    taut_pass_free(pass);
}

int main(void)
{
    test_begin();
    temp_begin();
    for (case_no = 0; case_no < 2 * KINDS; case_no++) {
        const int k = case_no / 2;
        const bool flat = case_no % 2;
        const double t = kinds[k].t, d = kinds[k].d, s = kinds[k].s, c = kinds[k].c;
        taut_certificate cert;
        taut_unit unit[TAUT_UNITS];
        const char *path = temp_path("model.safetensors");
        taut_model *m = blank_model(kinds[k].text, kinds[k].classes, false);
        for (int64_t i = 0; i < m->slab; i++) ((double *)m->values)[i] = taut_float32(0.6 * rng_pm());
        must(taut_model_save(m, path));
        taut_model_free(m);
        must(taut_certify_rows(&cert, path, flat ? TAUT_NORM_FLAT : TAUT_NORM_TOKENS, 1, k == 2 ? 2 : INFINITY));
        taut_units(unit, &cert);
        const double own = flat ? sqrt(t * d / (s * c)) : sqrt(d / c),
                     other = flat ? sqrt(d / c) : sqrt(t * d / (s * c));
        const double cross = flat ? sqrt(t) : sqrt(s);
        CHECK(unit[0].norm == cert.norm && !unit[0].rms && unit[0].factor.v == 1, "as proved");
        CHECK_NEAR(unit[1].factor.v, own, 1e-12 * own, "RMS");
        CHECK_NEAR(unit[2].factor.v, cross, 1e-12 * cross, "the other norm");
        CHECK_NEAR(unit[3].factor.v, cross * other, 1e-12 * cross * other, "both");
        CHECK_NEAR(up_model_rms(cert.model, cert.norm, (taut_up){ 1 }).v, own, 1e-12 * own, "what certify prints");
        pairs(k, &cert, unit);
        taut_certificate_free(&cert);
    }
    return test_end("units", "texts, images, forecasters; found / proved at most %.3f", closest);
}
