/* model.attlip_turn: the maps between proximal layers are orthogonal from the start and stay so, with every optimiser and
 * constraint and without one, and turn while they train; the norm that is proved of them is 1 to the rounding of floats. */
#include "bound/norm.h"
#include "train/small.h"

enum { D = 8 };

/* max |W W^T - I| */
static double skew(const double *w)
{
    double most = 0;
    for (int i = 0; i < D; i++)
        for (int j = 0; j < D; j++) most = fmax(most, fabs(dot(w + i * D, w + j * D, D) - (i == j)));
    return most;
}

static void run(const char *more)
{
    char text[900];
    taut_trainer t;
    snprintf(
        text, sizeof text,
        "[data]\nlength = 800\n[model]\narch = encoder\nwidth = 8\ndepth = 2\nheads = 2\ncontext = 8\nnorm = none\n"
        "attention = attlip\nattlip_turn = true\nattlip_head_width = 3\n[train]\nsteps = 20\nbatch = 2\n%s",
        more);
    taut_config *cfg = trainer_of(&t, text, "cpu");
    double *before = values_of(t.model);
    taut_step r;
    for (int step = 0; step < 12; step++) must(taut_trainer_step(&t, &r));
    double *now = values_of(t.model);
    int found = 0;
    for (int i = 0; i < t.model->weights; i++) {
        const taut_weight *w = &t.model->weight[i];
        if (!strstr(w->path, "turn.weight")) continue;
        found++;
        CHECK_LE(skew(before + w->offset), 1e-6, "orthogonal at the start");
        CHECK_LE(skew(now + w->offset), 3e-6, more);
        CHECK(fabs(up_norm(now + w->offset, D, D).v - 1) < 3e-6, "the proved norm");
        for (int k = 0; k < D * D; k++) before[w->offset + k] -= now[w->offset + k];
        CHECK_LE(1e-4, norm(before + w->offset, D * D), "it turns");
    }
    CHECK(found == 2, "one behind every layer");
    free(before), free(now);
    trainer_end(&t, cfg);
}

int main(void)
{
    test_begin();
    run("lr = 0.02\n");
    run("lr = 0.02\n[constrain]\nmethod = stiefel\ncap = 0.5\n");
    run("optimiser = muon\nlr = 0.1\nweight_decay = 0.1\n[constrain]\nmethod = softcap\ncap = 1\n");
    run("optimiser = sgd\nlr = 0.5\n[constrain]\nmethod = spectral_decay\n");
    return test_end("turn", "four ways to train");
}
