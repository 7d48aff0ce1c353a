/* Plans: the published table of caps to four digits (T8), and that a network whose matrices sit at their caps, in
 * the worst shapes we know, is proved to be under the planned constant from its actual weights. */
#include "base/float32.h"
#include "train/plan.h"

#include "proved.h"
#include "small.h"
#include "train/constrain/rescale.h"

static taut_budget shakespeare(double tau, double out, bool rope)
{
    return (taut_budget){ .depth = 3,
                          .width = 256,
                          .heads = 4,
                          .scale = tau / 64,
                          .out = out,
                          .factor = 1 / 1.1289,
                          .rope = rope,
                          .size = 1,
                          .head = 1,
                          .logit = 1,
                          .qk = 1 };
}

static void table(void)
{
    static const struct {
        double tau, out;
        bool rope;
        double caps[3], at[2];
    } rows[] = {
        { 1, 1. / 3, false, { 1.0055, 1.1668, 1.2276 }, { 1.940, 5.166e4 } },
        { 1, 1. / 3, true, { 0.9720, 1.1397, 1.2032 }, { 2.342, 5.565e4 } },
        { .25, 1. / 3, false, { 1.2082, 1.4157, 1.4887 }, { 1.008, 1258 } },
        { .25, 1. / 3, true, { 1.1609, 1.3730, 1.4497 }, { 1.1265, 1533 } },
        { .25, 1. / 6, true, { 1.3333, 1.5798, 1.6684 }, { .810, 112.4 } },
        { 1, 0.1, true, { 1.2359, 1.4506, 1.5308 }, { .9017, 451.9 } },
    };
    static const double targets[] = { 2, 6, 10 };
    for (case_no = 0; case_no < 6; case_no++) {
        const taut_budget b = shakespeare(rows[case_no].tau, rows[case_no].out, rows[case_no].rope);
        for (int t = 0; t < 3; t++)
            CHECK_NEAR(est_budget_cap(&b, targets[t]), rows[case_no].caps[t], 5.01e-5, "T8 caps");
        for (int c = 0; c < 2; c++)
            CHECK_NEAR(up_budget(&b, c + 1).lip.v / rows[case_no].at[c], 1, 5e-4, "T8 constants");
    }
    const taut_budget b = shakespeare(1, 1. / 3, true);
    static const double code[] = { 1.2523, 1.4677, 1.5473 }, theorem[] = { 1.2301, 1.4190, 1.4904 };
    for (int t = 0; t < 3; t++) {
        CHECK_NEAR(printed_cap(printed_by_code, &b, targets[t]), code[t], 5.01e-5, "printed, code");
        CHECK_NEAR(printed_cap(printed_by_theorem, &b, targets[t]), theorem[t], 5.01e-5, "printed, theorem D.1");
        CHECK_LE(1.5 * targets[t], up_budget(&b, code[t]).lip.v, "what the code's caps are really worth");
    }
    CHECK_NEAR(printed_by_code(&b, 1), .8758, 5e-5, "printed, code, L(1)");
    CHECK_NEAR(printed_by_theorem(&b, 2), 1001, 0.5, "printed, theorem D.1, L(2)");
}

static taut_budget random_budget(void)
{
    const int64_t heads = (int64_t)1 << rng_int(0, 3), width = 4 * heads * rng_int(1, 2);
    return (taut_budget){ .depth = rng_int(1, 4),
                          .width = width,
                          .heads = heads,
                          .scale = 1 / (double)width,
                          .out = 0.05 + rng_unit(),
                          .curve = (taut_curve)rng_int(0, 4),
                          .factor = 0.5 + rng_unit(),
                          .rope = rng_int(0, 1),
                          .size = 0.25 + rng_unit(),
                          .head = 0.5 + 2 * rng_unit(),
                          .logit = 1,
                          .qk = 0.5 + rng_unit() };
}

static void solving(void)
{
    for (case_no = 0; case_no < effort(300); case_no++) {
        const taut_budget b = random_budget();
        const double target = exp(4 * rng_pm()), least = up_budget(&b, 0).lip.v;
        double cap = NAN;
        const taut_status s = taut_budget_solve(&cap, &b, target);
        CHECK((s != TAUT_OK) == (target * (1 - 1e-6) <= least), "refused exactly when it cannot be met");
        if (s) {
            CHECK(strstr(taut_last_error(), "cannot be met"), taut_last_error());
            continue;
        }
        CHECK_LE(up_budget(&b, cap).lip.v, target, "the plan is under its target");
        CHECK_LE(target * (1 - 2e-6), up_budget(&b, cap * (1 + 2e-5)).lip.v, "and uses all of it, to five digits");
        CHECK_LE(up_budget(&b, 0.5 * cap).size.v, up_budget(&b, cap).size.v, "tokens grow with the cap");
    }
}

/* ---- a network at its caps ---- */

/* Rows of RMS `size`, all alike in length but not in direction. */
static void set_rows(taut_model *m, const taut_param *p, double size)
{
    double *w = doubles(p->rows * p->cols);
    fill(w, p->rows * p->cols);
    for (int64_t r = 0; r < p->rows; r++) {
        const double rms = norm(w + r * p->cols, p->cols) / sqrt((double)p->cols);
        for (int64_t c = 0; c < p->cols; c++) w[r * p->cols + c] *= (1 - 1e-7) * size / rms;
    }
    m->k->put(p->value, w, p->rows * p->cols);
    free(w);
}

/* A multiple of an orthogonal matrix (init made it one), or any matrix, scaled to the proved norm cap. */
static void set_matrix(taut_model *m, const taut_param *p, double cap, bool random)
{
    const double limit = cap * sqrt((double)p->rows / (double)p->cols);
    double *w = doubles(p->rows * p->cols);
    m->k->get(w, p->value, p->rows * p->cols);
    for (int64_t i = 0; i < p->rows * p->cols; i++) w[i] = taut_float32(100 * limit * (random ? rng_pm() : w[i]));
    CHECK_LE(up_rescale(w, p->rows, p->cols, limit).v, limit, "at its cap");
    m->k->put(p->value, w, p->rows * p->cols);
    free(w);
}

static double attained; /* proved from the weights / planned, the most seen */

static void network(void)
{
    const taut_budget b = random_budget();
    static const char *const curves[] = { "gelu", "gelu_tanh", "relu", "silu", "tanh" };
    const double target = b.head * exp(rng_unit()), embed = 0.6 * b.size, position = b.rope ? 0 : 0.4 * b.size;
    double cap;
    char recipe[2048];
    if (taut_budget_solve(&cap, &b, target)) return;
    snprintf(
        recipe, sizeof recipe,
        "[data]\nlength = 500\n[model]\nwidth = %d\ndepth = %d\nheads = %d\ncontext = 6\nnorm = none\n"
        "residual = convex\nbias = false\ntied = false\npositions = %s\nattention_scale = inv_width\n"
        "attention_out = %.17g\nactivation = %s\nactivation_factor = %.17g\ninit = orthogonal\n[train]\nbatch = 1\n",
        (int)b.width, (int)b.depth, (int)b.heads, b.rope ? "rope" : "learned", b.out, curves[b.curve], b.factor);
    taut_trainer t;
    taut_config *cfg = trainer_of(&t, recipe, "ref");
    taut_model *m = t.model;
    const taut_constrain_spec caps = { .cap = cap, .role = { b.qk * cap, 0, 0, 0, 0, b.head } };
    const bool random = rng_int(0, 3) == 0;
    for (int i = 0; i < m->weights; i++) {
        const taut_param *p = m->weight[i].param;
        if (p->role == TAUT_TABLE) set_rows(m, p, b.rope ? b.size : p == &m->embed ? embed : position);
        if (p->role == TAUT_MATRIX) set_matrix(m, p, taut_cap_of(&caps, m->weight[i].path), random);
    }
    const double proved = proved_constant(m, &caps);
    CHECK_LE(proved, target, "proved from the weights, under the plan");
    attained = fmax(attained, proved / up_budget(&b, cap).lip.v);
    trainer_end(&t, cfg);
}

int main(void)
{
    test_begin();
    table();
    solving();
    for (case_no = 0; case_no < effort(40); case_no++) network();
    CHECK_LE(0.9, attained, "plans are not needlessly tight");
    return test_end("plan", "T8; networks at their caps reach %.3f of what was planned", attained);
}
