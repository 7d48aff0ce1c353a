/* Constants around an example, attacked: slopes by power iteration (flat) and by steepest ascent (tokens) at points of the
 * ball never exceed the local constant, which never exceeds the global one; no step of gradient descent on a margin inside
 * the local radius changes the prediction.  And the corners: radius 0, a huge one, a weight that is not finite. */
#include "base/float32.h"
#include "certify/build.h"
#include "certify/local.h"
#include "temp.h"

enum { TOKENS = 11, T = 5, D = 8, LEN = T * D };

static const char *const kinds[] = {
    "norm = layernorm\nnorm_eps = 0.01\nactivation = gelu\n",
    "norm = rmsnorm\nnorm_place = post\nnorm_eps = 1e-5\nactivation = relu\npositions = rope\n",
    "norm = none\nactivation = abs\nresidual = convex\npositions = alibi\n",
    "norm = none\nactivation = silu\nattention_scale = inv_width\n",
    "norm = centernorm\nactivation = maxmin\nattention = cosine\ncosine_eps = 0.1\n",
    "norm = none\nactivation = relu\nmlp_block = sll\npositions = none\n",
    "norm = layernorm\nnorm_eps = 0\nactivation = tanh\n",
    "norm = none\nactivation = gelu_tanh\nattention = position\n",
};

static double worst_flat, worst_tokens, closer;
static int examples, sharper, certified, steps;

static double size_of(const double *x, int64_t rows, int64_t d, taut_norm n)
{
    double most = 0, sum = 0;
    for (int64_t t = 0; t < rows; t++) {
        const double row = norm(x + t * d, d);
        most = fmax(most, row), sum += row * row;
    }
    return n == TAUT_NORM_FLAT ? sqrt(sum) : most;
}

/* A change of size exactly r in the norm: every token, or all together. */
static void scale_to(double *v, double r, taut_norm n)
{
    const double all = norm(v, LEN);
    for (int64_t t = 0; t < T; t++) {
        const double row = n == TAUT_NORM_FLAT ? all : norm(v + t * D, D);
        for (int64_t i = 0; i < D; i++) v[t * D + i] *= row > 0 ? r / row : 0;
    }
}

static void move(taut_pass *p, const double *centre, const double *by)
{
    double *x = (double *)p->x.data;
    for (int64_t i = 0; i < LEN; i++) x[i] = centre[i] + by[i];
    taut_pass_run(p);
}

/* The steepest direction found at the point in the pass. */
static double climb(taut_pass *p, taut_norm n)
{
    const taut_module *root = p->m->root;
    const taut_point at = { p->x, p->trace };
    const int64_t classes = p->logits.shape.d;
    double v[LEN], y[T * TOKENS], g[LEN], best = 0;
    for (int64_t i = 0; i < LEN; i++) v[i] = rng_pm();
    for (int i = 0; i < 12; i++) {
        scale_to(v, 1, n);
        taut_jvp(root, &p->run, (taut_tensor){ (taut_real *)y, p->logits.shape },
                 (taut_tensor){ (taut_real *)v, p->x.shape }, at);
        const double slope = size_of(y, T, classes, n) / size_of(v, T, D, n);
        best = fmax(best, slope);
        for (int64_t t = 0; n == TAUT_NORM_TOKENS && t < T; t++) /* only the token that moved most */
            if (norm(y + t * classes, classes) < slope * (1 - 1e-12))
                memset(y + t * classes, 0, sizeof *y * (size_t)classes);
        taut_vjp(root, &p->run, (taut_tensor){ (taut_real *)g, p->x.shape },
                 (taut_tensor){ (taut_real *)y, p->logits.shape }, at);
        memcpy(v, g, sizeof v);
        if (!(norm(v, LEN) > 0)) break;
    }
    return best;
}

/* Down the margin of every rival, at the edge of the ball. */
static void push(taut_pass *p, const double *centre, int32_t predicted, double r, taut_norm n)
{
    const int64_t classes = p->logits.shape.d;
    for (int64_t j = 0; j < classes; j++) {
        double y[T * TOKENS], by[LEN] = { 0 };
        if (j == predicted) continue;
        for (int i = 0; i < 4; i++) {
            move(p, centre, by);
            const double *last = (const double *)p->logits.data + (T - 1) * classes;
            CHECK(last[predicted] >= last[j], "the prediction stands inside the local radius");
            steps++;
            memset(y, 0, sizeof y);
            y[(T - 1) * classes + predicted] = -1, y[(T - 1) * classes + j] = 1;
            taut_vjp(p->m->root, &p->run, (taut_tensor){ (taut_real *)by, p->x.shape },
                     (taut_tensor){ (taut_real *)y, p->logits.shape }, (taut_point){ p->x, p->trace });
            scale_to(by, r * (1 - 1e-9), n);
        }
    }
}

static void one(const taut_certificate *c, taut_pass *p, taut_norm n, bool finite)
{
    int32_t ids[T];
    double logits[TOKENS], centre[LEN], by[LEN];
    for (int t = 0; t < T; t++) ids[t] = (int32_t)rng_int(0, TOKENS - 1);
    const taut_example e = taut_example_certify(c, p, (taut_input){ ids, NULL }, 0, logits);
    memcpy(centre, p->x.data, sizeof centre);
    taut_local l;
    must(taut_local_certify(&l, c, p, &e, logits));
    CHECK_LE(l.lip.v, c->lip.v, "never above the global constant");
    CHECK_LE(e.radius.v, l.radius.v, "never below the global radius");
    CHECK_LE(l.radius.v, c->room.v, "no further than the room");
    CHECK_LE(e.radius.v, l.told.v, "what the file says is never below it either");
    CHECK_LE(l.told.v, l.radius.v, "nor above what is printed");
    examples++, sharper += l.lip.v<c->lip.v * 0.999, certified += l.radius.v> e.radius.v;
    if (!finite) {
        CHECK(isinf(l.lip.v) && l.radius.v == 0, "a weight that is not finite: no constant, no radius");
        return;
    }
    for (int i = 0; i < 4; i++) {
        for (int64_t k = 0; k < LEN; k++) by[k] = rng_pm();
        scale_to(by, c->room.v * rng_unit(), n);
        move(p, centre, by);
        const double found = climb(p, n);
        CHECK_LE(found, l.lip.v * (1 + 1e-9), "a slope in the ball");
        CHECK_LE(found, l.told_lip.v, "nor above what the file says");
        if (n == TAUT_NORM_FLAT) worst_flat = fmax(worst_flat, found / l.lip.v);
        if (n == TAUT_NORM_TOKENS) worst_tokens = fmax(worst_tokens, found / l.lip.v);
    }
    if (isfinite(c->lip.v)) closer = fmax(closer, c->lip.v / l.lip.v);
    if (l.radius.v > 0) push(p, centre, e.predicted, l.radius.v, n);
}

int main(void)
{
    static const double rooms[] = { 0.3, 0.01, 1e-4, 0, 1e250 };
    test_begin();
    temp_begin();
    char *path = strdup(temp_path("model.safetensors"));
    for (case_no = 0; case_no < effort(160); case_no++) {
        char text[400];
        const taut_norm n = case_no / 8 % 2 ? TAUT_NORM_FLAT : TAUT_NORM_TOKENS;
        const bool finite = case_no % 20 != 19;
        taut_certificate c;
        taut_pass *pass = NULL;
        snprintf(text, sizeof text, "[model]\nwidth = 8\ndepth = 2\nheads = 2\ncontext = 5\nmlp = 6\n%s",
                 kinds[case_no % 8]);
        taut_model *m = blank_model(text, TOKENS, false);
        for (int64_t i = 0; i < m->slab; i++) ((double *)m->values)[i] = taut_float32(0.6 * rng_pm());
        if (!finite) ((double *)m->values)[m->weight[m->weights / 2].offset] = case_no % 40 == 39 ? NAN : INFINITY;
        must(taut_model_save(m, path));
        taut_model_free(m);
        must(taut_certify(&c, path, n, rooms[case_no / 16 % 5]));
        must(taut_near_state(&c));
        must(taut_pass_create(&pass, c.model, 1, T, false));
        one(&c, pass, n, finite);
        taut_pass_free(pass);
        taut_certificate_free(&c);
    }
    free(path);
    CHECK(sharper > examples / 4 && certified > 0, "local constants are worth having");
    return test_end("local",
                    "%d examples, %d sharper, %d with a larger radius, %d steps; found / bound: tokens %.4f flat %.4f; "
                    "up to %.3g sharper",
                    examples, sharper, certified, steps, worst_tokens, worst_flat, closer);
}
