/* A glance at a model in training: the slope between examples is never above the proved constant, in all norms and units, and a
 * known network shows its known numbers. */
#include "train/glance.h"

#include "proved.h"
#include "small.h"

static const char text[] =
    "[data]\nsource = brackets\nlength = 4000\n[model]\nwidth = 8\nheads = 2\ndepth = 1\ncontext = 8\n"
    "norm = none\ninit = orthogonal\n[train]\nbatch = 4\nsteps = 1\n";

static void below_the_bound(void)
{
    for (case_no = 0; case_no < 4; case_no++) {
        taut_trainer t;
        taut_config *cfg = trainer_of(&t, text, "ref");
        taut_glance g;
        t.recipe.constrain.flat = case_no & 1;
        t.recipe.constrain.l2 = case_no & 2;
        must(taut_glance_at(&g, t.pass, &t.batch, TAUT_VALID, &t.recipe.constrain));
        CHECK(g.slope > 0, "examples differ");
        CHECK_LE(g.slope, proved_constant(t.model, &t.recipe.constrain), "found <= proved");
        const taut_glance first = g;
        must(taut_glance_at(&g, t.pass, &t.batch, TAUT_VALID, &t.recipe.constrain));
        CHECK(g.slope == first.slope && g.activation == first.activation, "the same every time");
        trainer_end(&t, cfg);
    }
}

static void shows_what_is_there(void)
{
    taut_trainer t;
    taut_config *cfg = trainer_of(&t, text, "ref");
    taut_glance g;
    memset(t.model->values, 0, (size_t)t.model->slab * sizeof(double));
    must(taut_glance_at(&g, t.pass, &t.batch, TAUT_VALID, &t.recipe.constrain));
    CHECK(g.activation == 0 && g.slope == 0, "nothing in, nothing out");
    double *table = (double *)t.model->embed.value;
    for (int64_t i = 0; i < t.model->embed.rows * t.model->embed.cols; i++) table[i] = i % 8 == 3 ? -7 : 0.5;
    must(taut_glance_at(&g, t.pass, &t.batch, TAUT_VALID, &t.recipe.constrain));
    CHECK_NEAR(g.activation, 7 * 0.25 + 49, 1e-12, "the largest entry is seen: a logit, of a row with itself");
    CHECK(g.slope == 0, "equal inputs have no slope");
    trainer_end(&t, cfg);
}

int main(void)
{
    test_begin();
    below_the_bound();
    shows_what_is_there();
    return test_end("glance", "slopes under bounds");
}
