/* Certified radii.  On small trained models projected gradient ascent inside each radius, in both norms, against every
 * other class, changes no prediction; on linear models the radius is the exact distance to the flip, with a tolerance for
 * the runtime too, so that any factor too large is seen at once; and ties, NaN, infinity, one class and equal rows are never
 * certified. */
#include "base/float32.h"
#include "build.h"
#include "certify/example.h"
#include "laws.h"
#include "taut.h"
#include "temp.h"

enum { V = 5, T = 4, MOST = 8 };

static double consumed, sharpest = 1;
static int certified, unknown, attacks, linear_models;

static taut_model *model_of(const char *text, int64_t classes)
{
    taut_model *m = blank_model(text, classes, true);
    must(taut_model_init(m, rng_next()));
    return m;
}

static double *values(const taut_model *m, const char *path)
{
    const taut_weight *w = taut_model_find(m, path);
    if (!w) must(taut_fail(TAUT_BAD_CONFIG, "no weight %s", path));
    return (double *)w->param->value;
}

static void set(const taut_model *m, const char *path, double value)
{
    const taut_weight *w = taut_model_find(m, path);
    for (int64_t i = 0; w && i < taut_weight_len(w); i++) ((double *)w->param->value)[i] = value;
}

/* A certificate of the model as it is stored. */
static void certify(taut_certificate *c, taut_pass **pass, const taut_model *m, taut_norm n, double room)
{
    const char *path = temp_path("model.safetensors");
    must(taut_model_save(m, path));
    must(taut_certify(c, path, n, room));
    must(taut_pass_create(pass, c->model, 1, c->tokens, true));
}

static void finish(taut_certificate *c, taut_pass *pass)
{
    taut_pass_free(pass);
    taut_certificate_free(c);
}

/* ---- the attack ---- */

/* Logits of the last token at pass->x, and the gradient of f_j - f_p there. */
static void look(taut_pass *pass, double *x, double *logits, double *gradient, int64_t j, int64_t p)
{
    const taut_model *m = pass->m;
    const int64_t classes = pass->logits.shape.d, last = (pass->in.t - 1) * classes;
    m->k->put(pass->x.data, x, taut_len(pass->in));
    taut_forward(m->root, &pass->run, pass->logits, (taut_point){ pass->x, pass->trace });
    m->k->get(logits, taut_at(m->k, pass->logits.data, last), classes);
    double *gy = doubles(taut_len(pass->logits.shape));
    gy[last + j] = 1, gy[last + p] = -1;
    taut_vjp(m->root, &pass->run, (taut_tensor){ (taut_real *)gradient, pass->in },
             (taut_tensor){ (taut_real *)gy, pass->logits.shape }, (taut_point){ pass->x, pass->trace });
    free(gy);
}

/* d of length r: every token in norm tokens, the whole in norm flat */
static void to_length(double *d, taut_shape s, taut_norm n, double r)
{
    const int64_t rows = n == TAUT_NORM_FLAT ? 1 : taut_rows(s), len = taut_len(s) / rows;
    for (int64_t t = 0; t < rows; t++) {
        const double size = norm(d + t * len, len);
        for (int64_t i = 0; i < len; i++) d[t * len + i] = size > 0 ? d[t * len + i] * (r / size) : 0;
    }
}

/* The least f_p - f_j that is found with the input moved by r. */
static double pgd(taut_pass *pass, const double *x, taut_norm n, double r, int64_t p, int64_t j, int steps)
{
    const taut_shape s = pass->in;
    const int64_t len = taut_len(s);
    double *d = doubles(len), *g = doubles(len), *at = doubles(len), logits[64], least = INFINITY;
    if (rng_int(0, 1)) fill(d, len), to_length(d, s, n, r);
    for (int i = 0; i < steps; i++) {
        for (int64_t k = 0; k < len; k++) at[k] = x[k] + d[k];
        look(pass, at, logits, g, j, p);
        least = fmin(least, logits[p] - logits[j]);
        to_length(g, s, n, r);
        const double share = 2. / (i + 2); /* of the best linear step: the first is taken whole */
        for (int64_t k = 0; k < len; k++) d[k] = (1 - share) * d[k] + share * g[k];
    }
    free(d), free(g), free(at);
    attacks++;
    return least;
}

/* Nothing that is certified can be moved; returns the radius. */
static taut_example examine(const taut_certificate *c, taut_pass *pass, const int32_t *ids)
{
    double logits[64], x[64];
    const taut_example e = taut_example_certify(c, pass, (taut_input){ ids, NULL }, 0, logits);
    const int64_t classes = pass->logits.shape.d;
    pass->m->k->get(x, pass->x.data, taut_len(pass->in));
    certified += e.radius.v > 0, unknown += !(e.radius.v > 0);
    for (int64_t j = 0; e.radius.v > 0 && j < classes; j++) {
        if (j == e.predicted) continue;
        for (int k = 0; k < 2; k++) {
            const double left = pgd(pass, x, c->norm, e.radius.v * (1 - 1e-9), e.predicted, j, 12);
            CHECK(left > 0, "a certified prediction was changed");
            consumed = fmax(consumed, 1 - left / (logits[e.predicted] - logits[j]));
        }
    }
    CHECK_LE(e.radius.v, c->room.v, "no further than the proof reaches");
    return e;
}

/* ---- trained models ---- */

static const char *const recipes[] = {
    "[model]\nwidth = 4\nheads = 2\ndepth = 1\ncontext = 4\nmlp = 6\nnorm = none\nresidual = convex\n",
    "[model]\nwidth = 6\nheads = 3\ndepth = 2\ncontext = 4\nmlp = 5\nnorm = none\nresidual = convex\npositions = rope\n"
    "attention_scale = inv_width\nattention_out = 0.33\nactivation_factor = 0.88\ntied = false\nlogit_scale = 3\n",
    "[model]\nwidth = 4\nheads = 1\ndepth = 1\ncontext = 4\nmlp = 4\nnorm = layernorm\nnorm_eps = 0.3\npositions = "
    "alibi\n",
    "[model]\nwidth = 4\nheads = 2\ndepth = 1\ncontext = 4\nmlp = 4\nnorm = rmsnorm\nnorm_eps = 0.5\nbias = false\n",
    "[model]\nwidth = 4\nheads = 2\ndepth = 2\ncontext = 4\nmlp = 4\nnorm = centernorm\nactivation = relu\n",
    "[model]\narch = encoder\nwidth = 4\nheads = 2\ndepth = 1\ncontext = 4\nmlp = 6\nnorm = none\nactivation = silu\n",
    "[model]\narch = encoder\nwidth = 4\nheads = 2\ndepth = 1\ncontext = 4\nmlp = 4\nnorm = none\nattention = l2\n",
    "[model]\narch = encoder\nwidth = 4\nheads = 2\ndepth = 2\ncontext = 4\nmlp = 4\nnorm = none\nmlp_block = sll\n"
    "activation = relu\nattention = attlip\nattlip_reflected = true\nattlip_turn = true\nattlip_eta = 0.5\n",
    "[model]\narch = encoder\nwidth = 4\nheads = 1\ndepth = 1\ncontext = 4\nmlp = 4\nnorm = none\nresidual = convex\n"
    "attention = attlip\nattlip_head_width = 2\nattlip_tol = 0.003\n", /* a coarse solver: its defect is what is left */
};
enum { RECIPES = sizeof recipes / sizeof *recipes };

/* A next token that depends on the last two; some steps of gradient descent. */
static void train(taut_model *m, int steps)
{
    enum { N = 8 };
    taut_pass *pass = NULL;
    int32_t ids[N * T], target[N * T];
    double *momentum = doubles(m->slab);
    for (int i = 0; i < m->weights; i++) {
        const taut_param *p = m->weight[i].param; /* larger than the default, so that there is something to attack */
        for (int64_t j = 0; p->role != TAUT_VECTOR && j < p->rows * p->cols; j++) ((double *)p->value)[j] = rng_pm();
    }
    must(taut_pass_create(&pass, m, N, T, true));
    for (int s = 0; s < steps; s++) {
        for (int i = 0; i < N * T; i++) ids[i] = (int32_t)rng_int(0, V - 1);
        for (int i = 0; i < N * T; i++) target[i] = (ids[i] + (i % T ? ids[i - 1] : 1)) % V;
        memset(m->grads, 0, (size_t)m->slab * 8);
        taut_pass_forward(pass, ids, N, T);
        taut_pass_loss(pass, target, 1. / (N * T), true);
        taut_pass_backward(pass);
        m->k->sgd(m->values, (taut_real *)momentum, m->grads, m->slab, 0.1, 0.9, 0);
    }
    taut_pass_free(pass);
    free(momentum);
}

static void trained(const char *text)
{
    taut_model *m = model_of(text, V);
    train(m, (int)rng_int(0, 120));
    for (int n = 0; n < 2; n++) {
        taut_certificate c;
        taut_pass *pass = NULL;
        certify(&c, &pass, m, (taut_norm)n, rng_int(0, 1) ? 0.05 : 0.5);
        for (int k = 0; k < 4; k++) {
            int32_t ids[T];
            for (int i = 0; i < T; i++) ids[i] = (int32_t)rng_int(0, V - 1);
            examine(&c, pass, ids);
        }
        finish(&c, pass);
    }
    taut_model_free(m);
}

/* ---- linear models: body(x)_t = k (x_t + c mean of the tokens up to t), without biases ---- */

static taut_model *linear_model(double mean, int64_t classes, bool convex)
{
    char text[512];
    snprintf(
        text, sizeof text,
        "[model]\nwidth = 3\nheads = 1\ndepth = 1\ncontext = %d\nmlp = 2\nnorm = none\npositions = none\ntied = %s\n"
        "bias = false\nlogit_scale = %g\nresidual = %s\nattention_out = %g\n",
        T, rng_int(0, 1) ? "true" : "false", rng_int(0, 1) ? 1 : 2.5, convex ? "convex\nresidual_alpha = 0.5" : "plain",
        mean);
    taut_model *m = model_of(text, classes);
    const taut_weight *embed = taut_model_find(m, "embed.weight"), *head = taut_model_find(m, "head.weight");
    fill((double *)embed->param->value, taut_weight_len(embed));
    if (head) fill((double *)head->param->value, taut_weight_len(head));
    set(m, "block.0.attn.q.weight", 0), set(m, "block.0.mlp.out.weight", 0);
    set(m, "block.0.attn.v.weight", 0), set(m, "block.0.attn.o.weight", 0);
    for (int i = 0; i < 3; i++)
        values(m, "block.0.attn.v.weight")[4 * i] = values(m, "block.0.attn.o.weight")[4 * i] = 1;
    return m;
}

/* The distance to the nearest flip: every token moves along w_j - w_p (flat: only the last, when there is no mean). */
static double flip_distance(const taut_certificate *c, const double *logits, int64_t p, double body)
{
    const taut_param *w = taut_linear_weight(c->model->head);
    double least = INFINITY;
    for (int64_t j = 0; j < w->rows; j++) {
        double sum = 0;
        for (int64_t i = 0; i < w->cols; i++) {
            const double d = taut_ref_values(w)[p * w->cols + i] - taut_ref_values(w)[j * w->cols + i];
            sum += d * d;
        }
        if (j != p)
            least = fmin(least,
                         (logits[p] - logits[j]) / (taut_float32(c->model->spec.logit_scale) * sqrt(sum) * body));
    }
    return least;
}

static void linear(taut_norm n, bool convex)
{
    const double mean = n == TAUT_NORM_TOKENS && rng_int(0, 1) ? 0.75 : 0;
    const int64_t classes = rng_int(2, MOST);
    taut_model *m = linear_model(mean, classes, convex);
    const double body = convex ? 0.5 * (0.5 + 0.5 * mean) : 1 + mean; /* the perceptron's residual keeps half, too */
    taut_certificate c;
    taut_pass *pass = NULL;
    int32_t ids[T];
    double logits[64], x[64];
    certify(&c, &pass, m, n, 100);
    CHECK_NEAR(c.body.v, body, 1e-7 * body, "the constant of a linear body");
    for (int i = 0; i < T; i++) ids[i] = (int32_t)rng_int(0, classes - 1);
    const taut_example e = examine(&c, pass, ids);
    taut_example_certify(&c, pass, (taut_input){ ids, NULL }, 0, logits);
    m->k->get(x, pass->x.data, taut_len(pass->in));
    const double exact = flip_distance(&c, logits, e.predicted, body);
    CHECK_LE(e.radius.v, exact, "not beyond the flip");
    CHECK_LE(exact * (1 - 1e-6), e.radius.v, "and just before it");
    sharpest = fmin(sharpest, e.radius.v / exact);
    /* a runtime that is off by E: the answer is as if its logit were 2 E lower */
    double off[64];
    memcpy(off, logits, sizeof off);
    const double tolerance = e.margin * rng_unit() * 0.49;
    off[e.predicted] -= 2 * tolerance;
    must(taut_certificate_tolerate(&c, tolerance));
    const double nearer = examine(&c, pass, ids).radius.v, there = flip_distance(&c, off, e.predicted, body);
    CHECK_LE(nearer, there, "not beyond the flip of a runtime that is off");
    CHECK_LE(there * (1 - 1e-5), nearer, "and just before that");
    double least = INFINITY;
    for (int64_t j = 0; j < classes; j++)
        if (j != e.predicted) least = fmin(least, pgd(pass, x, n, exact * (1 + 1e-6), e.predicted, j, 2));
    CHECK(least < 0, "a little further the prediction flips");
    linear_models++;
    finish(&c, pass);
    taut_model_free(m);
}

/* ---- what must not be certified ---- */

typedef struct {
    double lip, radius, margin;
} verdict;

static verdict judge(const taut_model *m, double room)
{
    taut_certificate c;
    taut_pass *pass = NULL;
    int32_t ids[T] = { 0 };
    double logits[64];
    certify(&c, &pass, m, TAUT_NORM_TOKENS, room);
    const taut_example e = taut_example_certify(&c, pass, (taut_input){ ids, NULL }, 0, logits);
    cJSON *json = taut_example_json(&e, (taut_input){ ids, NULL }, c.tokens);
    const char *word = cJSON_GetObjectItem(json, "verdict")->valuestring;
    CHECK(strcmp(word, e.radius.v > 0 ? "certified" : "unknown") == 0, "the verdict in the file");
    const verdict v = { c.lip.v, e.radius.v, e.margin };
    cJSON_Delete(json);
    finish(&c, pass);
    return v;
}

static void bad_weights(void)
{
    static const char *const paths[] = { "embed.weight",          "block.0.attn.q.weight", "block.0.mlp.out.weight",
                                         "block.0.mlp.in.weight", "block.0.attn.o.weight", "head.weight" };
    const double poison[] = { NAN, INFINITY, -INFINITY };
    for (int i = 0; i < 18; i++) {
        taut_model *m = model_of(recipes[1], V);
        values(m, paths[i / 3])[rng_int(0, 5)] = poison[i % 3];
        const verdict v = judge(m, 1);
        CHECK(v.lip == INFINITY && v.radius == 0, "NaN and infinity: no constant, no radius");
        taut_model_free(m);
    }
}

static void ties(void)
{
    taut_model *m = linear_model(0, 4, false);
    set(m, "embed.weight", 0), set(m, "head.weight", 0);
    CHECK(judge(m, 1).radius == 0, "all logits are 0: a tie");
    taut_model_free(m);
    m = linear_model(0, 4, false); /* rows 0 and 1 the same, and the largest */
    double *e = values(m, "embed.weight"), *w = taut_model_find(m, "head.weight") ? values(m, "head.weight") : e;
    for (int i = 0; i < 12; i++) e[i] = 0.25 * (i < 3), w[i] = (i % 3 == 0) * (i < 6 ? 1 : 0.1 * i);
    e[0] = 1;
    if (w == e) e[3] = 1, e[4] = e[1], e[5] = e[2];
    CHECK(judge(m, 1).radius == 0, "two equal rows on top: a tie");
    if (w != e) {
        for (int i = 3; i < 6; i++) w[i] = w[i + 3]; /* two equal rows below do no harm */
        CHECK(judge(m, 1).radius > 0, "equal rows elsewhere");
    }
    taut_model_free(m);
    m = model_of(recipes[0], V);
    CHECK(judge(m, 0).radius == 0, "no room, no radius");
    CHECK(judge(m, INFINITY).radius == 0, "a proof for inputs of any size there is none");
    taut_model_free(m);
}

/* One class: refused when it is opened, or nothing to certify. */
static void one_class(void)
{
    taut_certificate c;
    taut_model *m = model_of(recipes[0], 1);
    const char *path = temp_path("one.safetensors");
    must(taut_model_save(m, path));
    if (!taut_certify(&c, path, TAUT_NORM_TOKENS, 1)) {
        CHECK(judge(m, 1).radius == 0, "one class: nothing to certify");
        taut_certificate_free(&c);
    }
    taut_model_free(m);
}

/* A network that answers the same vector h = (1, 1, 1) whatever it reads, so that its constant is 0, and two rows with
 * the same sum: a real tie that rounding breaks, (2^60 + 1) - 2^60 = 0 but (2^60 - 2^60) + 1 = 1. */
static void tie_behind_rounding(void)
{
    taut_model *m = model_of("[model]\nwidth = 3\nheads = 1\ndepth = 1\ncontext = 4\nmlp = 2\nnorm = none\n"
                             "positions = none\ntied = false\nresidual = convex\nresidual_alpha = 1\n",
                             2);
    static const double rows[] = { 0x1p60, 1, -0x1p60, 0x1p60, -0x1p60, 1 };
    memcpy(values(m, "head.weight"), rows, sizeof rows);
    set(m, "block.0.mlp.out.weight", 0), set(m, "block.0.mlp.out.bias", 1);
    const verdict v = judge(m, 1);
    CHECK(v.margin == 1, "the tie is not seen in what is computed");
    CHECK(v.lip == 0, "the network is constant");
    CHECK(v.radius == 0, "a tie hidden by rounding is not certified");
    taut_model_free(m);
}

int main(void)
{
    test_begin();
    temp_begin();
    for (case_no = 0; case_no < effort(60); case_no++) trained(recipes[case_no % RECIPES]);
    for (case_no = 0; case_no < effort(80); case_no++) linear((taut_norm)(case_no % 2), case_no / 2 % 2);
    bad_weights();
    for (case_no = 0; case_no < 8; case_no++) ties();
    one_class();
    tie_behind_rounding();
    CHECK(certified > unknown, "most predictions are certified at some radius");
    return test_end(
        "radius",
        "%d certified, %d unknown, %d attacks, at most %.4f of a margin consumed; %d linear models, radius / "
        "flip >= %.9f",
        certified, unknown, attacks, consumed, linear_models, sharpest);
}
