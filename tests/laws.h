/* Laws every module obeys, checked on the ref kernels (double), alone and nested in random trees:
 *   1  <J u, v> = <u, J^T v>                                  jvp and vjp are adjoint
 *   2  jvp is the derivative of forward                       central differences
 *   3  parameter gradients are derivatives too, and are added central differences, gradients not from 0
 *   4  no slope we can find is above `bound`, no output token outside its region, in both norms
 *   5  nothing is written past the sizes that `plan` promised
 *   6  every parameter is visited once, under a name of its own
 * A soundness test is only as sharp as the attack inside it: law 4 climbs over inputs and directions. */
#ifndef LAWS_H
#define LAWS_H
#include "harness.h"
#include "module/modules.h"

#define CANARY 7.25e77

typedef struct {
    taut_module *m;
    taut_run run;
    taut_plan plan;
    taut_shape in;
    int64_t nx, ny;
    double *x, *y, *u, *v, *ju, *jv, *trace, *scratch, *host;
    taut_param *seen[256];
    char name[256][64];
    int params;
} law;

static inline taut_tensor tensor_of(double *p, taut_shape s) { return (taut_tensor){ (taut_real *)p, s }; }
static inline taut_point law_at(law *l)
{
    return (taut_point){ tensor_of(l->x, l->in), { (taut_real *)l->trace, l->plan.trace, 8 } };
}
static inline double *guarded(int64_t n)
{
    double *p = malloc((size_t)(n + 1) * 8);
    for (int64_t i = 0; i <= n; i++) p[i] = CANARY;
    return p;
}
static inline void law_forward(law *l, double *y) { taut_forward(l->m, &l->run, tensor_of(y, l->plan.out), law_at(l)); }
static inline void law_jvp(law *l)
{
    taut_jvp(l->m, &l->run, tensor_of(l->ju, l->plan.out), tensor_of(l->u, l->in), law_at(l));
}
static inline void law_vjp(law *l)
{
    taut_vjp(l->m, &l->run, tensor_of(l->jv, l->in), tensor_of(l->v, l->plan.out), law_at(l));
}

static inline void bind_param(taut_param *p, const char *path, void *arg)
{
    law *l = arg;
    const int64_t n = p->rows * p->cols;
    const double scale = p->role == TAUT_MATRIX ? 1.5 / sqrt((double)p->cols) : 1;
    p->value = (taut_real *)doubles(n);
    p->grad = (taut_real *)doubles(n);
    for (int64_t i = 0; i < n; i++) ((double *)p->value)[i] = scale * rng_pm();
    for (int i = 0; i < l->params; i++) {
        CHECK(l->seen[i] != p, "law 6: a parameter visited twice");
        CHECK(strcmp(l->name[i], path) != 0, "law 6: two parameters of one name");
    }
    CHECK(l->params < 256 && strlen(path) < 64, "law 6: room for the names");
    l->seen[l->params] = p;
    snprintf(l->name[l->params++], 64, "%s", path);
}

static inline void law_begin(law *l, taut_module *m, taut_shape in)
{
    *l = (law){ .m = m, .in = in };
    CHECK(m != NULL, "the module was built");
    taut_params(m, bind_param, l);
    CHECK(taut_module_place(m, taut_kernels_find("ref")) == TAUT_OK, "constants are where ref reads them");
    l->plan = taut_plan_of(m, in);
    l->nx = taut_len(in);
    l->ny = taut_len(l->plan.out);
    l->x = guarded(l->nx), l->y = guarded(l->ny), l->u = guarded(l->nx), l->v = guarded(l->ny);
    l->ju = guarded(l->ny), l->jv = guarded(l->nx);
    l->trace = guarded(l->plan.trace), l->scratch = guarded(l->plan.scratch), l->host = guarded(l->plan.host);
    l->run = (taut_run){ .k = taut_kernels_find("ref"),
                         .scratch = { (taut_real *)l->scratch, l->plan.scratch, 8 },
                         .host = { (taut_real *)l->host, l->plan.host, 8 },
                         .param_grads = true };
    fill(l->x, l->nx);
    law_forward(l, l->y);
}

static inline void law_end(law *l)
{
    const double last[] = { l->x[l->nx],
                            l->y[l->ny],
                            l->u[l->nx],
                            l->v[l->ny],
                            l->ju[l->ny],
                            l->jv[l->nx],
                            l->trace[l->plan.trace],
                            l->scratch[l->plan.scratch],
                            l->host[l->plan.host] };
    double *all[] = { l->x, l->y, l->u, l->v, l->ju, l->jv, l->trace, l->scratch, l->host };
    for (int i = 0; i < 9; i++) {
        CHECK(last[i] == CANARY, "law 5: written past what plan() promised");
        free(all[i]);
    }
    for (int i = 0; i < l->params; i++) {
        free(l->seen[i]->value);
        free(l->seen[i]->grad);
    }
    taut_module_free(l->m);
}

/* Rounding is relative to the pieces that are summed, whose size the proved constant measures. */
static inline void law_adjoint(law *l)
{
    fill(l->u, l->nx);
    fill(l->v, l->ny);
    law_jvp(l);
    law_vjp(l);
    const double left = dot(l->ju, l->v, l->ny), right = dot(l->u, l->jv, l->nx);
    const double nu = norm(l->u, l->nx), nv = norm(l->v, l->ny);
    const taut_ask all = { .norm = TAUT_NORM_FLAT, .tokens = l->in.t, .size = { 2 * sqrt((double)l->in.d) } };
    const double lip = taut_bound_of(l->m, all).lip.v;
    const double scale = norm(l->ju, l->ny) * nv + nu * norm(l->jv, l->nx);
    CHECK_LE(fabs(left - right), 1e-12 * scale + (isfinite(lip) ? 1e-15 * lip * nu * nv : 0), "law 1: adjoint");
}

/* |(f(x + h u) - f(x - h u)) / 2h - J u|; x and the trace are as before afterwards */
static inline double difference_error(law *l, double h)
{
    double *keep = doubles(l->nx), *up = doubles(l->ny), *down = doubles(l->ny);
    memcpy(keep, l->x, (size_t)l->nx * 8);
    for (int64_t i = 0; i < l->nx; i++) l->x[i] = keep[i] + h * l->u[i];
    law_forward(l, up);
    for (int64_t i = 0; i < l->nx; i++) l->x[i] = keep[i] - h * l->u[i];
    law_forward(l, down);
    memcpy(l->x, keep, (size_t)l->nx * 8);
    law_forward(l, l->y);
    for (int64_t i = 0; i < l->ny; i++) up[i] = (up[i] - down[i]) / (2 * h) - l->ju[i];
    const double error = norm(up, l->ny);
    free(keep), free(up), free(down);
    return error;
}

/* The smallest error over several h: a kink (ReLU) inside the larger steps is no fault. */
static inline void law_derivative(law *l)
{
    double best = INFINITY;
    fill(l->u, l->nx);
    law_jvp(l);
    for (double h = 1e-4; h > 1e-7; h /= 8) best = fmin(best, difference_error(l, h));
    CHECK_LE(best, 1e-6 * (1 + norm(l->ju, l->ny)), "law 2: derivative");
}

static inline double objective(law *l)
{
    law_forward(l, l->y);
    return dot(l->y, l->v, l->ny);
}

static inline void law_parameters(law *l)
{
    fill(l->v, l->ny);
    for (int i = 0; i < l->params; i++) { /* one random entry of each: gradients must be added, not set */
        const int64_t n = l->seen[i]->rows * l->seen[i]->cols, at = rng_int(0, n - 1);
        double *w = (double *)l->seen[i]->value + at, *g = (double *)l->seen[i]->grad + at, keep = *w, best = INFINITY;
        *g = 3;
        law_forward(l, l->y);
        law_vjp(l);
        for (double h = 1e-4; h > 1e-7; h /= 8) {
            *w = keep + h;
            const double up = objective(l);
            *w = keep - h;
            const double down = objective(l);
            const double fd = (up - down) / (2 * h);
            best = fmin(best, fabs(fd - (*g - 3)) / (1 + fabs(fd) + norm(l->v, l->ny)));
        }
        *w = keep;
        CHECK_LE(best, 1e-6, "law 3: parameter gradient");
    }
    law_forward(l, l->y);
}

static inline double longest_token(const double *x, taut_shape s)
{
    double most = 0;
    for (int64_t i = 0; i < taut_rows(s); i++) most = fmax(most, norm(x + i * s.d, s.d));
    return most;
}

/* The steepest slope at x in the flat norm: power iteration on J^T J. */
static inline double slope_flat(law *l, int steps)
{
    double steepest = 0;
    for (int i = 0; i < steps; i++) {
        const double size = norm(l->u, l->nx);
        if (!(size > 0)) break;
        for (int64_t j = 0; j < l->nx; j++) l->u[j] /= size;
        law_jvp(l);
        steepest = fmax(steepest, norm(l->ju, l->ny));
        memcpy(l->v, l->ju, (size_t)l->ny * 8);
        law_vjp(l);
        memcpy(l->u, l->jv, (size_t)l->nx * 8);
    }
    return steepest;
}

/* In the max-token norm: aim at one output token, turn every input token its way, choose again. */
static inline double slope_tokens(law *l, int steps)
{
    const taut_shape out = l->plan.out;
    double steepest = 0;
    for (int i = 0; i < steps; i++) {
        for (int64_t t = 0; t < taut_rows(l->in); t++) {
            double *token = l->u + t * l->in.d, size = norm(token, l->in.d);
            for (int64_t c = 0; c < l->in.d; c++) token[c] = size > 0 ? token[c] / size : 0;
        }
        law_jvp(l);
        int64_t aim = 0;
        for (int64_t t = 1; t < taut_rows(out); t++)
            if (norm(l->ju + t * out.d, out.d) > norm(l->ju + aim * out.d, out.d)) aim = t;
        steepest = fmax(steepest, norm(l->ju + aim * out.d, out.d));
        memset(l->v, 0, (size_t)l->ny * 8);
        memcpy(l->v + aim * out.d, l->ju + aim * out.d, (size_t)out.d * 8);
        law_vjp(l);
        memcpy(l->u, l->jv, (size_t)l->nx * 8);
    }
    return steepest;
}

static inline double slope_at(law *l, taut_norm n, int steps)
{
    fill(l->u, l->nx);
    return n == TAUT_NORM_FLAT ? slope_flat(l, steps) : slope_tokens(l, steps);
}

static inline taut_answer law_ask(const law *l, taut_norm n, double radius)
{
    const taut_ask in = { .norm = n, .tokens = l->in.t, .size = { radius } };
    return taut_bound_of(l->m, in);
}

/* Hill climbing over inputs in the ball; returns the steepest slope found.  x is then where it was found. */
static inline double law_climb(law *l, taut_norm n, double radius, int tries)
{
    double best = 0, *keep = doubles(l->nx);
    memcpy(keep, l->x, (size_t)l->nx * 8);
    for (int i = 0; i < tries; i++) {
        const double step = i ? pow(10, -2 * rng_unit()) * radius : 0;
        for (int64_t j = 0; j < l->nx; j++) l->x[j] = keep[j] + step * rng_pm();
        for (int64_t t = 0; t < taut_rows(l->in); t++) {
            const double size = norm(l->x + t * l->in.d, l->in.d);
            if (size > radius)
                for (int64_t c = 0; c < l->in.d; c++) l->x[t * l->in.d + c] *= radius / size * (1 - 1e-15);
        }
        law_forward(l, l->y);
        const double slope = slope_at(l, n, 8);
        if (!(slope > best)) continue;
        best = slope;
        memcpy(keep, l->x, (size_t)l->nx * 8);
    }
    memcpy(l->x, keep, (size_t)l->nx * 8);
    law_forward(l, l->y);
    free(keep);
    return fmax(best, slope_at(l, n, 40));
}

/* Worst ratio found / proved over the whole run, for the closing line. */
static double law_worst;

static inline double longest_example(const double *x, taut_shape s)
{
    double most = 0;
    for (int64_t i = 0; i < s.n; i++) most = fmax(most, norm(x + i * s.t * s.d, s.t * s.d));
    return most;
}

/* Told how long all tokens are together, a module must not say too little of what comes out. */
static inline void law_whole(law *l, taut_norm n, double radius)
{
    const double whole = longest_example(l->x, l->in) * (1 + 1e-15);
    const taut_ask in = { .norm = n, .tokens = l->in.t, .size = { radius }, .whole = { whole } };
    const taut_answer b = taut_bound_of(l->m, in);
    if (b.whole.v > 0) CHECK_LE(longest_example(l->y, l->plan.out), b.whole.v, "law 4: all tokens together");
}

static inline void law_bound(law *l)
{
    const double radius = longest_token(l->x, l->in);
    for (int n = 0; n < 2; n++) {
        const taut_answer b = law_ask(l, (taut_norm)n, radius);
        const double slope = law_climb(l, (taut_norm)n, radius, 6);
        CHECK_LE(slope, b.lip.v * (1 + 1e-12), n == TAUT_NORM_FLAT ? "law 4: flat bound" : "law 4: tokens bound");
        CHECK_LE(longest_token(l->y, l->plan.out), b.size.v * (1 + 1e-12), "law 4: output region");
        CHECK(b.tokens == l->plan.out.t, "law 4: tokens of the output");
        law_whole(l, (taut_norm)n, radius);
        if (b.lip.v > 0 && slope / b.lip.v > law_worst) law_worst = slope / b.lip.v;
    }
}

static inline void laws_hold(taut_module *m, taut_shape in)
{
    law l;
    law_begin(&l, m, in);
    law_adjoint(&l);
    law_derivative(&l);
    law_parameters(&l);
    law_bound(&l);
    law_end(&l);
}

/* A random tree around m, which maps (n, t, d) to the shape that plan says. */
static inline taut_module *nested(taut_module *m, taut_shape in)
{
    const taut_shape out = taut_plan_of(m, in).out;
    const double a = rng_unit();
    switch (rng_int(0, 4)) {
    case 0:
        return taut_same_shape(in, out) ? taut_mix(m, 1 - a, a) : m;
    case 1:
        return taut_same_shape(in, out) ? taut_mix(m, 1, 1) : m;
    case 2: {
        const char *const names[] = { "before", "it", "after" };
        taut_module *const row[] = { taut_linear(in.d, in.d, true, TAUT_INIT_NORMAL, 1), m,
                                     taut_pointwise((taut_curve)rng_int(0, 5), 1 + a) };
        return taut_sequence(3, names, row);
    }
    case 3: {
        const char *const names[] = { rng_int(0, 1) ? "core" : "first", "last" };
        taut_module *const row[] = { m, taut_linear(rng_int(1, 4), out.d, a < 0.5, TAUT_INIT_NORMAL, 1) };
        return taut_sequence(2, names, row);
    }
    default: {
        taut_module *const side[] = { m, taut_linear(2, in.d, false, TAUT_INIT_NORMAL, 1) };
        return out.t == in.t ? taut_heads(2, side) : (taut_module_free(side[1]), m);
    }
    }
}

/* All laws on what `make` builds for random shapes with d in [least, 6], alone and one or two trees deep. */
static inline void laws(taut_module *(*make)(taut_shape in), int64_t least)
{
    for (case_no = 0; case_no < effort(60); case_no++) {
        const taut_shape in = { rng_int(1, 2), rng_int(1, 4), rng_int(least, 6) };
        taut_module *m = make(in);
        for (int64_t depth = rng_int(0, 2); m && depth > 0; depth--) m = nested(m, in);
        laws_hold(m, in);
    }
}
#endif
