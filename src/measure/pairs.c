/* Random pairs, then projected gradient ascent on ln(|f(x) - f(y)| / |x - y|) from the best one.
 *
 * With g = (f(y) - f(x)) / |f(y) - f(x)|^2 and e = (y - x) / |y - x|^2 the gradient is J_y^T g - e in y and
 * -(J_x^T g - e) in x.  Both ends move along their gradients by a step relative to |x - y|, then back into the ball; a
 * step that does not help is undone and made smaller.  Ends that come too close for the difference to mean anything
 * are not counted. */
#include "measure/pairs.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/rng.h"

typedef struct {
    taut_probe *p;
    int64_t nx, ny, examples;
    double radius, closest;
    const double *centre;
    double *x, *y, *fx, *fy, *gx, *gy, *step, *ratio; /* whole batches; step and ratio one an example */
    double *best_x, *best_y;
    taut_real *real;
} pairs;

static double apart(const double *a, const double *b, int64_t n)
{
    double sum = 0;
    for (int64_t i = 0; i < n; i++) sum += (a[i] - b[i]) * (a[i] - b[i]);
    return sqrt(sum);
}

static void into_ball(const pairs *s, double *x, int64_t e)
{
    const double *c = s->centre + e * s->nx, size = apart(x + e * s->nx, c, s->nx);
    if (!(size > s->radius)) return;
    for (int64_t i = 0; i < s->nx; i++) x[e * s->nx + i] = c[i] + (x[e * s->nx + i] - c[i]) * (s->radius / size);
}

static void output_at(const pairs *s, const double *x, double *f)
{
    taut_probe_move(s->p, x);
    s->p->run.k->get(f, s->p->y.data, s->examples * s->ny);
}

/* Both outputs, and which examples improved: their pairs are kept. */
static void judge(pairs *s, bool *better)
{
    output_at(s, s->x, s->fx);
    output_at(s, s->y, s->fy);
    for (int64_t e = 0; e < s->examples; e++) {
        const double d = apart(s->x + e * s->nx, s->y + e * s->nx, s->nx);
        const double r = d > s->closest ? apart(s->fx + e * s->ny, s->fy + e * s->ny, s->ny) / d : 0;
        better[e] = r > s->ratio[e];
        if (!better[e]) continue;
        s->ratio[e] = r;
        memcpy(s->best_x + e * s->nx, s->x + e * s->nx, (size_t)s->nx * sizeof *s->x);
        memcpy(s->best_y + e * s->nx, s->y + e * s->nx, (size_t)s->nx * sizeof *s->y);
    }
}

static void draw(pairs *s, int round, uint64_t seed)
{
    for (int64_t e = 0; e < s->examples; e++)
        for (int end = 0; end < 2; end++) {
            const uint64_t key = taut_rng_key(seed, TAUT_RNG_SAMPLE, (uint64_t)((round * s->examples + e) * 2 + end));
            double *x = (end ? s->y : s->x) + e * s->nx, size = 0;
            for (int64_t i = 0; i < s->nx; i++) x[i] = taut_rng_normal(key, (uint64_t)i + 1), size += x[i] * x[i];
            const double r = s->radius * taut_rng_unit(key, 0) / sqrt(size > 0 ? size : 1);
            for (int64_t i = 0; i < s->nx; i++) x[i] = s->centre[e * s->nx + i] + r * x[i];
        }
}

/* J^T g - e at one end, into `to`; sign of g and e for the other end. */
static void gradient(pairs *s, const double *at, double *to, double sign)
{
    const taut_kernels *k = s->p->run.k;
    double *g = s->fx; /* the difference, scaled */
    taut_probe_move(s->p, at);
    k->put(s->real, g, s->examples * s->ny);
    taut_probe_vjp(s->p, taut_at(k, s->real, s->examples * s->ny), s->real);
    k->get(to, taut_at(k, s->real, s->examples * s->ny), s->examples * s->nx);
    for (int64_t e = 0; e < s->examples; e++) {
        const double *x = s->best_x + e * s->nx, *y = s->best_y + e * s->nx, d = apart(x, y, s->nx);
        for (int64_t i = 0; i < s->nx; i++)
            to[e * s->nx + i] = sign * (to[e * s->nx + i] - (d > 0 ? (y[i] - x[i]) / (d * d) : 0));
    }
}

static void climb(pairs *s, bool *better)
{
    output_at(s, s->best_x, s->fx);
    output_at(s, s->best_y, s->fy);
    for (int64_t e = 0; e < s->examples; e++) {
        const double d = apart(s->fx + e * s->ny, s->fy + e * s->ny, s->ny);
        for (int64_t i = e * s->ny; i < (e + 1) * s->ny; i++) s->fx[i] = d > 0 ? (s->fy[i] - s->fx[i]) / (d * d) : 0;
    }
    gradient(s, s->best_x, s->gx, -1);
    gradient(s, s->best_y, s->gy, 1);
    for (int64_t e = 0; e < s->examples; e++) {
        const int64_t at = e * s->nx;
        double size = 0;
        for (int64_t i = at; i < at + s->nx; i++) size += s->gx[i] * s->gx[i] + s->gy[i] * s->gy[i];
        const double d = apart(s->best_x + at, s->best_y + at, s->nx), f = size > 0 ? s->step[e] * d / sqrt(size) : 0;
        for (int64_t i = at; i < at + s->nx; i++)
            s->x[i] = s->best_x[i] + f * s->gx[i], s->y[i] = s->best_y[i] + f * s->gy[i];
        into_ball(s, s->x, e), into_ball(s, s->y, e);
    }
    judge(s, better);
    for (int64_t e = 0; e < s->examples; e++) s->step[e] = fmin(1, s->step[e] * (better[e] ? 1.5 : 0.4));
}

static taut_status allocate(pairs *s, double **memory, bool **better)
{
    const int64_t x = s->examples * s->nx, y = s->examples * s->ny;
    double *m = *memory = taut_calloc((size_t)(6 * x + 2 * y + 2 * s->examples + 1), sizeof *m);
    *better = taut_calloc((size_t)s->examples + 1, sizeof **better);
    s->real = taut_reals(s->p->run.k, x + y);
    if (!m || !*better || !s->real) return taut_no_memory("pairs");
    s->x = m, s->y = m + x, s->gx = m + 2 * x, s->gy = m + 3 * x, s->best_x = m + 4 * x, s->best_y = m + 5 * x;
    s->fx = m + 6 * x, s->fy = s->fx + y, s->step = s->fy + y, s->ratio = s->step + s->examples;
    return TAUT_OK;
}

taut_status taut_pairs_find(double *out, double *x, double *y, taut_probe *p, const double *centre,
                            const taut_pairs_options *o)
{
    pairs s = { .p = p,
                .nx = p->in.t * p->in.d,
                .ny = p->out.t * p->out.d,
                .examples = p->in.n,
                .radius = o->radius,
                .centre = centre };
    double *memory = NULL;
    bool *better = NULL;
    if (!(o->radius > 0)) return taut_fail(TAUT_BAD_CONFIG, "pairs need a ball: the radius is %g", o->radius);
    s.closest = o->radius * (p->run.k->unit < 0x1p-40 ? 1e-6 : 1e-2);
    const taut_status status = allocate(&s, &memory, &better);
    if (!status) {
        for (int i = 0; i < o->random || i < 1; i++) {
            draw(&s, i, o->seed);
            judge(&s, better);
        }
        for (int64_t e = 0; e < s.examples; e++) s.step[e] = 0.5;
        for (int i = 0; i < o->steps; i++) climb(&s, better);
        taut_probe_move(p, centre);
        memcpy(out, s.ratio, (size_t)s.examples * sizeof *out);
        if (x) memcpy(x, s.best_x, (size_t)(s.examples * s.nx) * sizeof *x);
        if (y) memcpy(y, s.best_y, (size_t)(s.examples * s.nx) * sizeof *y);
    }
    if (s.real) p->run.k->release(s.real);
    free(memory), free(better);
    return status ? status : p->run.k->read(NULL, NULL, 0); /* what failed on the way is no small slope */
}
