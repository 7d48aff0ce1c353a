/* The scale of a potential layer after a step: raised to ||W||^2 where it was below, by an estimate and by proof; the
 * bound of the layer is then exactly 1, on cpu's floats too. */
#include "train/constrain/potential.h"

#include "bound/norm.h"
#include "harness.h"
#include "must.h"

static const char *const recipe = "[model]\nwidth = 8\ndepth = 2\nheads = 2\ncontext = 4\nmlp = 12\nnorm = none\n"
                                  "mlp_block = potential\nactivation = relu\ninit = spectral\n";

static taut_model *model(const char *text, const char *kernels)
{
    taut_config *cfg = NULL;
    taut_model_spec spec;
    taut_model *m = NULL;
    must(taut_config_parse(&cfg, text, "test"));
    must(taut_model_spec_read(&spec, cfg));
    must(taut_config_finish(cfg));
    taut_config_free(cfg);
    must(taut_model_create(&m, &spec, 5, text, "bytes", taut_kernels_find(kernels)));
    must(taut_model_bind(m, false));
    must(taut_model_init(m, 1));
    return m;
}

static double read_scale(const taut_model *m, const char *path)
{
    double s;
    m->k->get(&s, taut_model_find(m, path)->param->value, 1);
    return s;
}

static void write_scale(taut_model *m, const char *path, double s)
{
    m->k->put(taut_model_find(m, path)->param->value, &s, 1);
}

/* ||W||^2 / s, by proof */
static double ratio(const taut_model *m, const char *weight, const char *scale)
{
    double w[12 * 8];
    m->k->get(w, taut_model_find(m, weight)->param->value, 96);
    const double n = up_norm(w, 12, 8).v;
    return n * n / read_scale(m, scale);
}

static void check(const char *kernels, bool proved)
{
    const char *const s0 = "block.0.mlp.scale", *const s1 = "block.1.mlp.scale";
    taut_model *m = model(recipe, kernels);
    CHECK(taut_scale_work(m) == 96, "work for the largest matrix");
    double *work = doubles(taut_scale_work(m));
    CHECK_NEAR(read_scale(m, s0), 1, 0, "spectral init: s = 1 from the start");
    CHECK_NEAR(ratio(m, "block.0.mlp.weight", s0), 1, 1e-6, "and so is ||W||^2");
    write_scale(m, s0, 0.25);
    write_scale(m, s1, 7);
    taut_scale_raise(m, work, proved);
    CHECK_LE(ratio(m, "block.0.mlp.weight", s0), 1, "raised to ||W||^2");
    CHECK_LE(0.999, ratio(m, "block.0.mlp.weight", s0), "and hardly beyond");
    CHECK(read_scale(m, s1) == 7, "a larger scale stays");
    write_scale(m, s0, -3);
    taut_scale_raise(m, work, proved);
    CHECK_LE(ratio(m, "block.0.mlp.weight", s0), 1, "also from below 0");
    write_scale(m, s1, NAN);
    taut_scale_raise(m, work, proved);
    CHECK_LE(ratio(m, "block.1.mlp.weight", s1), 1, "also from NaN");
    m->k->axpby(taut_model_find(m, "block.0.mlp.weight")->param->value, 0, m->values, 0, 96);
    write_scale(m, s0, 0);
    taut_scale_raise(m, work, proved);
    CHECK(read_scale(m, s0) > 0, "W = 0: some positive number");
    free(work);
    taut_model_free(m);
}

int main(void)
{
    test_begin();
    check("ref", false), check("ref", true), check("cpu", false), check("cpu", true);
    taut_model *plain = model("[model]\nwidth = 8\nheads = 2\n", "cpu");
    CHECK(taut_scale_work(plain) == 0, "nothing to do");
    taut_scale_raise(plain, NULL, false);
    taut_model_free(plain);
    return test_end("scale", "s >= ||W||^2 by estimate and by proof");
}
