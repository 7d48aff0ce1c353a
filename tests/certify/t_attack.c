/* Whole networks under attack.  Random recipes (gpt and encoder, every norm, position, activation, block and
 * residual), with random, orthogonal and adversarially climbed weights.  Gradient ascent over inputs in the region
 * and over directions, in both norms, and over the weights themselves, never finds a slope, a pair or a token that
 * the bound excludes: neither taut_model_bound's nor that of a certificate of the stored file.  The ascent: for
 * unit u and v the gradient in x of <v, J(x) u> is the derivative of J(x)^T v along u, and the gradient in a
 * weight is that of the weight's gradient of <v, f(x)> along u: two vjps each. */
#include "base/float32.h"
#include "certify/certify.h"

#include "build.h"
#include "laws.h"
#include "proved.h"
#include "recipe.h"
#include "taut.h"
#include "temp.h"

enum { TOKENS = 5 };

static double worst[2], worst_climbed[2], worst_pair, worst_out;
static int cases, climbs, files, bounded;

static taut_model *random_model(char *text, size_t room)
{
    taut_model_spec spec;
    taut_model *m = NULL;
    for (taut_status s = TAUT_BAD_CONFIG; s;) {
        taut_config *cfg = NULL;
        random_recipe(text, room);
        must(taut_config_parse(&cfg, text, "test"));
        s = taut_model_spec_read(&spec, cfg);
        must(taut_config_problem(cfg));
        taut_config_free(cfg);
    }
    must(taut_model_create(&m, &spec, rng_int(2, TOKENS), text, "bytes", taut_kernels_find("ref")));
    must(taut_model_bind(m, true));
    return m;
}

static double gauss(void) { return sqrt(-2 * log(1 - rng_unit())) * cos(6.283185307179586 * rng_unit()); }

/* Kinds: 0 gaussian, 1 orthogonal (a corner of two reflections), 2 rank one, 3 mostly zeros.  Floats, as in a file. */
static void random_matrix(double *w, int64_t rows, int64_t cols, int kind, double size)
{
    const int64_t len = rows > cols ? rows : cols;
    double u[64], v[64];
    for (int64_t i = 0; i < len; i++) u[i] = gauss(), v[i] = gauss();
    const double uu = dot(u, u, len), vv = dot(v, v, len), uv = dot(u, v, len);
    for (int64_t i = 0; i < rows * cols; i++) {
        const double a = u[i / cols], b = v[i % cols];
        w[i] = (kind == 2 ? a * b : kind == 3 && rng_int(0, 2) ? 0 : gauss()) / sqrt((double)len);
        if (kind == 1)
            w[i] = (i / cols == i % cols) - 2 * a * u[i % cols] / uu - 2 * v[i / cols] * b / vv +
                   4 * uv * a * b / (uu * vv);
        w[i] = taut_float32(size * w[i]);
    }
}

/* Part 0: only the first attention writes, 1: only the first perceptron, 2: neither.  Then the bound can be sharp. */
static void silence(taut_model *m, int part)
{
    for (int i = 0; i < m->weights; i++) {
        const char *path = m->weight[i].path;
        const bool attention = strstr(path, ".attn.o.weight"), mlp = strstr(path, ".mlp.out.weight");
        if ((attention || mlp) && !(strstr(path, "block.0.") && part == mlp))
            memset(m->weight[i].param->value, 0, (size_t)taut_weight_len(&m->weight[i]) * 8);
    }
}

static void random_weights(taut_model *m)
{
    const bool simple = case_no % 2;
    const int kind = simple ? 1 : (int)rng_int(0, 4);
    const double size = pow(10, simple ? 0.4 * rng_pm() : 1.2 * rng_unit() - 0.7),
                 shift = simple ? rng_unit() : (double)rng_int(0, 1) * rng_unit();
    for (int i = 0; i < m->weights; i++) {
        const taut_param *p = m->weight[i].param;
        double *w = (double *)p->value;
        if (p->role != TAUT_VECTOR)
            random_matrix(w, p->rows, p->cols, kind == 4 ? (int)rng_int(0, 3) : kind, size);
        else
            for (int64_t j = 0; j < p->cols; j++)
                w[j] = taut_float32((p->init == TAUT_INIT_ONE) + shift * gauss() * (j % 2 ? 1 : size));
        if (p->above) *w = taut_float32(0.5 + 2 * size * size); /* a layer divides by it */
    }
    if (simple) silence(m, (int)rng_int(0, 2));
}

/* ---- the network as the laws see it ---- */

static void law_open(law *l, taut_module *m, taut_shape in)
{
    *l = (law){ .m = m, .in = in, .plan = taut_plan_of(m, in) };
    l->nx = taut_len(in), l->ny = taut_len(l->plan.out);
    l->x = doubles(l->nx), l->y = doubles(l->ny), l->u = doubles(l->nx), l->v = doubles(l->ny);
    l->ju = doubles(l->ny), l->jv = doubles(l->nx);
    l->trace = doubles(l->plan.trace), l->scratch = doubles(l->plan.scratch), l->host = doubles(l->plan.host);
    l->run = (taut_run){ .k = taut_kernels_find("ref"),
                         .scratch = { (taut_real *)l->scratch, l->plan.scratch, 8 },
                         .host = { (taut_real *)l->host, l->plan.host, 8 } };
}

static void law_shut(law *l)
{
    free(l->x), free(l->y), free(l->u), free(l->v), free(l->ju), free(l->jv), free(l->trace), free(l->scratch);
    free(l->host);
}

static void into_ball(double *x, taut_shape s, double radius)
{
    for (int64_t t = 0; t < taut_rows(s); t++) {
        const double size = norm(x + t * s.d, s.d);
        for (int64_t c = 0; size > radius && c < s.d; c++) x[t * s.d + c] *= radius / size * (1 - 1e-15);
    }
}

/* Somewhere in the ball: anywhere, near the origin, on the sphere, in two clusters, or embeddings. */
static void start(law *l, const taut_model *m, double radius)
{
    const int kind = (int)rng_int(0, 4);
    const int64_t d = l->in.d;
    double way[64];
    for (int i = 0; i < 64; i++) way[i] = gauss();
    for (int64_t i = 0; i < l->nx; i++) {
        const double side = i / d % 2 ? 1 : -1;
        l->x[i] = radius * (kind == 0 ? rng_pm() : kind == 1 ? 1e-3 * gauss() : 9 * gauss());
        if (kind == 3) l->x[i] = i < d ? 9 * radius * gauss() : 9 * radius * side * way[i % d];
        if (kind == 4) l->x[i] = taut_ref_values(&m->embed)[rng_int(0, m->embed.rows - 1) * d + i % d];
    }
    into_ball(l->x, l->in, radius);
}

/* u and v of length 1 in the sense of the norm, v the direction in which J u points (at its longest token). */
static void unit_pair(law *l, taut_norm n)
{
    const taut_shape o = l->plan.out;
    if (n == TAUT_NORM_FLAT) {
        const double size = norm(l->u, l->nx);
        for (int64_t i = 0; i < l->nx; i++) l->u[i] = size > 0 ? l->u[i] / size : 0;
    }
    for (int64_t t = 0; n == TAUT_NORM_TOKENS && t < l->in.t; t++) {
        double *token = l->u + t * l->in.d, size = norm(token, l->in.d);
        for (int64_t c = 0; c < l->in.d; c++) token[c] = size > 0 ? token[c] / size : 0;
    }
    law_jvp(l);
    int64_t aim = 0;
    for (int64_t t = 1; t < o.t; t++)
        if (norm(l->ju + t * o.d, o.d) > norm(l->ju + aim * o.d, o.d)) aim = t;
    const double size = n == TAUT_NORM_FLAT ? norm(l->ju, l->ny) : norm(l->ju + aim * o.d, o.d);
    for (int64_t i = 0; i < l->ny; i++)
        l->v[i] = size > 0 && (n == TAUT_NORM_FLAT || i / o.d == aim) ? l->ju[i] / size : 0;
}

static double slope_here(law *l, taut_norm n, int steps)
{
    law_forward(l, l->y);
    return n == TAUT_NORM_FLAT ? slope_flat(l, steps) : slope_tokens(l, steps);
}

/* vjp at x + h u; with param_grads on it also adds to the weights' gradients */
static void vjp_moved(law *l, double h)
{
    for (int64_t i = 0; i < l->nx; i++) l->x[i] += h * l->u[i];
    law_forward(l, l->y);
    law_vjp(l);
    for (int64_t i = 0; i < l->nx; i++) l->x[i] -= h * l->u[i];
}

/* Gradient ascent from l->x; the steepest slope found, and l->x is where. */
static double ascend(law *l, taut_norm n, double radius, int steps)
{
    double *keep = doubles(l->nx), *g = doubles(l->nx), step = 0.5 * radius;
    fill(l->u, l->nx);
    double best = slope_here(l, n, 6);
    memcpy(keep, l->x, (size_t)l->nx * 8);
    for (int i = 0; i < steps; i++) {
        law_forward(l, l->y);
        unit_pair(l, n);
        const double h = 1e-5 * radius;
        vjp_moved(l, h);
        memcpy(g, l->jv, (size_t)l->nx * 8);
        vjp_moved(l, -h);
        for (int64_t j = 0; j < l->nx; j++) g[j] -= l->jv[j];
        const double size = norm(g, l->nx);
        for (int64_t j = 0; j < l->nx; j++)
            l->x[j] = keep[j] + (size > 0 ? step * g[j] / size : 1e-3 * radius * gauss());
        into_ball(l->x, l->in, radius);
        const double slope = slope_here(l, n, 4);
        const bool better = slope > best;
        if (better) best = slope;
        memcpy(better ? keep : l->x, better ? l->x : keep, (size_t)l->nx * 8);
        step *= better ? 1.3 : 0.4;
    }
    free(keep), free(g);
    return fmax(best, slope_here(l, n, 12));
}

static double size_in(const double *x, taut_shape s, taut_norm n)
{
    return n == TAUT_NORM_FLAT ? norm(x, taut_len(s)) : longest_token(x, s);
}

/* A whole step along the steepest direction: the bound is about pairs, not only about slopes. */
static void pair(law *l, taut_norm n, double radius, taut_answer b)
{
    double *other = doubles(l->nx), *there = doubles(l->ny);
    const double far = pow(10, -3 * rng_unit()) * radius;
    law_forward(l, l->y);
    unit_pair(l, n);
    for (int64_t i = 0; i < l->nx; i++) other[i] = l->x[i], l->x[i] += far * l->u[i];
    into_ball(l->x, l->in, radius);
    law_forward(l, there);
    for (int64_t i = 0; i < l->ny; i++) there[i] -= l->y[i];
    for (int64_t i = 0; i < l->nx; i++) l->x[i] -= other[i];
    const double moved = size_in(l->x, l->in, n), got = size_in(there, l->plan.out, n);
    memcpy(l->x, other, (size_t)l->nx * 8);
    CHECK_LE(got, b.lip.v * moved * (1 + 1e-12) + 2 * b.round.v, "a pair of inputs");
    if (1e9 * b.round.v < got) worst_pair = fmax(worst_pair, got / moved / b.lip.v);
    free(other), free(there);
}

/* Ascent on the length of the longest output token. */
static void region(law *l, double radius, taut_answer b)
{
    const taut_shape o = l->plan.out;
    for (int i = 0; i < 4; i++) {
        law_forward(l, l->y);
        int64_t aim = 0;
        for (int64_t t = 1; t < o.t; t++)
            if (norm(l->y + t * o.d, o.d) > norm(l->y + aim * o.d, o.d)) aim = t;
        const double out = norm(l->y + aim * o.d, o.d);
        CHECK_LE(out, b.size.v, "a token outside its region");
        if (b.size.v > 0) worst_out = fmax(worst_out, out / b.size.v);
        for (int64_t j = 0; j < l->ny; j++) l->v[j] = j / o.d == aim ? l->y[j] : 0;
        law_vjp(l);
        const double size = norm(l->jv, l->nx);
        for (int64_t j = 0; size > 0 && j < l->nx; j++) l->x[j] += radius * l->jv[j] / size;
        into_ball(l->x, l->in, radius);
    }
}

static void attack(taut_model *m, law *l, taut_norm n, taut_answer b, double radius, int steps)
{
    start(l, m, radius);
    const double slope = ascend(l, n, radius, steps);
    CHECK_LE(slope, b.lip.v * (1 + 1e-12), n == TAUT_NORM_FLAT ? "flat bound" : "tokens bound");
    if (b.lip.v > 0) worst[n] = fmax(worst[n], slope / b.lip.v);
    pair(l, n, radius, b);
    region(l, radius, b);
    cases++;
}

/* ---- weights that are attacked too ---- */

/* The gradient of <v, J u> in every weight, in the grads slab. */
static void weight_gradient(taut_model *m, law *l, double h)
{
    double *g = (double *)m->grads, *plus = doubles(m->slab);
    l->run.param_grads = true;
    memset(g, 0, (size_t)m->slab * 8);
    vjp_moved(l, h);
    memcpy(plus, g, (size_t)m->slab * 8);
    memset(g, 0, (size_t)m->slab * 8);
    vjp_moved(l, -h);
    for (int64_t i = 0; i < m->slab; i++) g[i] = plus[i] - g[i];
    l->run.param_grads = false;
    free(plus);
}

/* Every weight a step along its gradient, its Frobenius norm as before. */
static void step_weights(taut_model *m, double step)
{
    for (int i = 0; i < m->weights; i++) {
        double *w = (double *)m->weight[i].param->value, *g = (double *)m->weight[i].param->grad;
        const int64_t len = taut_weight_len(&m->weight[i]);
        const double size = norm(w, len), slope = norm(g, len);
        if (!(slope > 0) || !(size > 0)) continue;
        for (int64_t j = 0; j < len; j++) w[j] += step * size * g[j] / slope;
        const double now = norm(w, len);
        for (int64_t j = 0; j < len; j++) w[j] = taut_float32(w[j] * size / now);
    }
}

/* Hill climbing on slope / bound over weights and inputs together. */
static void climb(taut_model *m, law *l, taut_norm n, int steps)
{
    double *w = doubles(m->slab), *x = doubles(l->nx), best = 0, step = 0.5;
    for (int i = 0; i < steps; i++) {
        const taut_answer b = proved_bound(m, n);
        const double radius = taut_model_reach(m).v;
        if (i == 0) start(l, m, radius);
        into_ball(l->x, l->in, radius);
        const double slope = ascend(l, n, radius, 2), ratio = b.lip.v > 0 ? slope / b.lip.v : 0;
        CHECK_LE(slope, b.lip.v * (1 + 1e-12), "a bound of climbed weights");
        const bool better = i == 0 || ratio > best;
        if (better) best = ratio;
        memcpy(better ? w : (double *)m->values, better ? (double *)m->values : w, (size_t)m->slab * 8);
        memcpy(better ? x : l->x, better ? l->x : x, (size_t)l->nx * 8);
        step *= better ? 1.2 : 0.5;
        law_forward(l, l->y);
        slope_here(l, n, 4);
        unit_pair(l, n);
        weight_gradient(m, l, 1e-5 * radius);
        step_weights(m, step);
        cases++;
    }
    memcpy(m->values, w, (size_t)m->slab * 8);
    worst_climbed[n] = fmax(worst_climbed[n], best);
    climbs++;
    free(w), free(x);
}

static taut_answer constant(taut_answer b, taut_up lip)
{
    b.lip = lip;
    return b;
}

/* The same network from a file, with room for embeddings that are moved. */
static void through_a_file(taut_model *m)
{
    taut_certificate c;
    law l;
    const taut_norm n = (taut_norm)rng_int(0, 1);
    const double room = rng_int(0, 2) ? rng_unit() : 0;
    const char *path = temp_path("attacked.safetensors");
    must(taut_model_save(m, path));
    must(taut_certify(&c, path, n, room));
    CHECK_LE(taut_model_reach(m).v + room, c.reach.v, "the region covers every embedding and the room");
    CHECK_LE(proved_bound(m, n).lip.v, c.lip.v, "a larger region, a larger constant");
    law_open(&l, c.model->root, (taut_shape){ 1, c.tokens, m->spec.width });
    const taut_ask in = { .norm = n, .tokens = c.tokens, .size = c.reach };
    attack(c.model, &l, n, constant(taut_bound_of(c.model->root, in), c.lip), c.reach.v, 6);
    law_shut(&l);
    law_open(&l, c.model->body, (taut_shape){ 1, c.tokens, m->spec.width });
    attack(c.model, &l, n, constant(taut_bound_of(c.model->body, in), c.body), c.reach.v, 4);
    law_shut(&l);
    taut_certificate_free(&c);
    files++;
}

static void network(void)
{
    char text[1024];
    law l;
    taut_model *m = random_model(text, sizeof text);
    random_weights(m);
    const int64_t t = rng_int(0, 2) ? m->spec.context : rng_int(1, m->spec.context);
    law_open(&l, m->root, (taut_shape){ 1, t, m->spec.width });
    const double radius = taut_model_reach(m).v;
    const int before = fails;
    for (int n = 0; n < 2; n++) {
        const taut_answer b = proved_bound(m, (taut_norm)n);
        bounded += isfinite(b.lip.v) && isfinite(b.size.v);
        for (int k = 0; k < 3; k++) attack(m, &l, (taut_norm)n, b, radius, 6);
    }
    if (case_no % 4 < 2) climb(m, &l, (taut_norm)rng_int(0, 1), case_no % 4 ? 24 : 8);
    if (case_no % 4 == 2) through_a_file(m);
    if (fails > before) fprintf(stderr, "%s", text);
    law_shut(&l);
    taut_model_free(m);
}

int main(void)
{
    test_begin();
    taut_threads_set(1); /* these networks are tiny */
    temp_begin();
    for (case_no = 0; case_no < effort(400); case_no++) network();
    CHECK_LE(2 * 0.98 * effort(400), bounded, "bounds are finite, as a rule"); /* logits beyond 1e14 have none */
    return test_end("attack",
                    "%d attacks on %d networks (%d climbed, %d from files); found / bound: tokens %.4f flat %.4f, "
                    "climbed %.4f %.4f, pairs %.4f, regions %.4f",
                    cases, effort(400), climbs, files, worst[0], worst[1], worst_climbed[0], worst_climbed[1],
                    worst_pair, worst_out);
}
