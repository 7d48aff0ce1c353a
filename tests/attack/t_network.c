/* Models as targets: logits are the pass's, gradients are derivatives, and an attack's result does not depend on who is
 * beside an example or on the number of threads, to the bit, on float kernels too. */
#include "models.h"
#include "taut.h"

enum { N = 21 };
static double worst_slope;
static int compared;

static void gradient(const char *recipe, int64_t tokens)
{
    taut_model *m = make_model(recipe, "ref", seed);
    taut_target t;
    taut_pass *pass = NULL;
    must(taut_network_open(&t, m));
    must(taut_pass_create(&pass, m, 1, m->in.t, false));
    double *x = doubles(2 * t.dim), *z = doubles(2 * t.classes), *g = doubles(2 * t.dim), loss[2], h = 1e-6;
    const int32_t label[] = { 1, 0 }, wrong[] = { 2, 2 };
    model_inputs(&t, x, 2, tokens);
    for (int kind = 0; kind < 4; kind++) {
        taut_target_slope(&t, z, loss, g, x, NULL, NULL, 2, taut_loss_for((taut_loss)kind, t.classes), label, wrong);
        double *d = doubles(2 * t.dim), sum = 0, size = 0, up[2], down[2], *gg = doubles(2 * t.dim);
        fill(d, 2 * t.dim);
        for (int64_t i = 0; i < 2 * t.dim; i++) sum += d[i] * g[i], size += fabs(d[i] * g[i]), x[i] += h * d[i];
        taut_target_slope(&t, z, up, gg, x, NULL, NULL, 2, taut_loss_for((taut_loss)kind, t.classes), label, wrong);
        for (int64_t i = 0; i < 2 * t.dim; i++) x[i] -= 2 * h * d[i];
        taut_target_slope(&t, z, down, gg, x, NULL, NULL, 2, taut_loss_for((taut_loss)kind, t.classes), label, wrong);
        for (int64_t i = 0; i < 2 * t.dim; i++) x[i] += h * d[i];
        const double error = fabs((up[0] + up[1] - down[0] - down[1]) / (2 * h) - sum) / size;
        CHECK_LE(error, 1e-5, "the gradient is the derivative"); /* h^2 curvature and 1e-16 / h */
        worst_slope = fmax(worst_slope, error);
        free(d), free(gg);
    }
    taut_target_logits(&t, z, x, NULL, NULL, 2);
    taut_pass_forward_real(pass, x, 1);
    const taut_shape s = pass->logits.shape;
    for (int64_t c = 0; c < t.classes; c++)
        CHECK(((const double *)pass->logits.data)[(s.t - 1) * s.d + c] == z[c], "the logits of the last question");
    taut_pass_free(pass);
    taut_network_close(&t);
    taut_model_free(m);
    free(x), free(z), free(g);
}

/* Attacked all together with two threads, then in groups of another order with another number. */
static void alone(const char *recipe, const char *kernels, const char *name, taut_ball_kind kind, double eps,
                  int64_t tokens)
{
    taut_model *m = make_model(recipe, kernels, seed);
    taut_target t;
    taut_profile p;
    field all, part;
    must(taut_network_open(&t, m));
    must(taut_profile_find(&p, name, kind, (taut_profile_options){ .steps = 8, .queries = 30 }));
    taut_threads_set(2);
    field_open(&all, &t, N);
    model_inputs(&t, all.x, N, tokens);
    field_label(&all);
    all.h.ball = (taut_ball){ kind, eps, t.lo, t.hi };
    field_attack(&all, &p);
    for (int64_t first = 0, count; first < N; first += count) {
        count = first + 4 <= N ? 4 : N - first;
        taut_threads_set((int)rng_int(1, 3));
        field_open(&part, &t, count);
        for (int64_t i = 0; i < count; i++) {
            const int64_t e = N - 1 - (first + i);
            memcpy(part.x + i * t.dim, all.x + e * t.dim, (size_t)t.dim * 8);
            part.id[i] = (uint64_t)e;
        }
        field_label(&part);
        part.h.ball = all.h.ball;
        field_attack(&part, &p);
        for (int64_t i = 0; i < count; i++) {
            const int64_t e = N - 1 - (first + i);
            CHECK(memcmp(part.z + i * t.classes, all.z + e * t.classes, (size_t)t.classes * 8) == 0, "clean logits");
            CHECK(part.h.broken[i] == all.h.broken[e], "broken or not");
            if (!part.h.broken[i]) continue;
            CHECK(memcmp(part.h.adv + i * t.dim, all.h.adv + e * t.dim, (size_t)t.dim * 8) == 0, "the very input");
            compared++;
        }
        field_close(&part);
    }
    field_close(&all);
    taut_network_close(&t);
    taut_model_free(m);
}

int main(void)
{
    test_begin();
    gradient(mlp_recipe, 0);
    gradient(vit_recipe, 0);
    gradient(gpt_recipe, 6);
    alone(mlp_recipe, "cpu", "aa-standard", TAUT_BALL_LINF, 0.1, 0);
    alone(vit_recipe, "cpu", "aa-standard", TAUT_BALL_L2, 1, 0);
    alone(vit_recipe, "cpu", "pgd", TAUT_BALL_LINF, 0.2, 0);
    alone(gpt_recipe, "cpu", "ta-10", TAUT_BALL_L2, 0.5, 6);
    alone(vit_recipe, "ref", "apgd-ce", TAUT_BALL_L1, 8, 0);
    CHECK(compared > 20, "some were broken");
    return test_end("network", "gradients within %.1e; %d broken inputs the same to the bit", worst_slope, compared);
}
