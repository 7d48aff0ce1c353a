/* Golub-Kahan-Lanczos with full reorthogonalisation, and power iteration.
 *
 * Lanczos.  J V_k = U_k B_k,  J^T U_k = V_k B_k^T + b_k v_{k+1} e_k^T,  B_k upper bidiagonal with a_1..a_k and
 * b_1..b_{k-1}.
 * The largest singular value s of B_k, B_k z = s p, grows to that of J; at v = V_k z the residual is exactly
 * |J^T J v - s^2 v| = s b_k |p_k|, so it costs nothing to know.  Every new vector is made orthogonal to all earlier
 * ones twice.
 * Power.  v <- J^T J v / |.|; s = |J v|, s^2 = v.J^T J v.
 * At the end the slope along v is measured once more, and that number is answered: it is attained whatever happened
 * before.
 *
 * Examples of a batch have their own vectors and their own B; they share the products.  One that is finished goes along
 * with a zero vector.  Start vectors are gaussian, keyed by (seed, example).
 * Probabilistic bound: Kuczynski and Wozniakowski (1992), Lanczos on J^T J from a gaussian start: lam_max (1 - e) >
 * theta_k with probability at most 1.648 sqrt(n) exp(-sqrt(e) (2k - 1)).  Their constant is quoted, not proved here.
 * Which k it stops at depends on the start, so each k that is allowed gets its share of the probability to fail. */
#include "measure/slope.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/rng.h"
#include "bound/blas.h"

extern void dstev_(const char *jobz, const blasint *n, double *d, double *e, double *z, const blasint *ldz,
                   double *work, blasint *info);

enum { MOST = 128 };

typedef struct {
    taut_probe *p;
    const taut_kernels *k;
    int64_t nx, ny; /* of one example */
    int64_t examples;
    taut_real **v, **u; /* steps + 1 and steps vectors, each a whole batch */
    double *a, *b;      /* (examples, steps) */
    bool *done;
    int steps;
} lanczos;

static taut_real *part(const lanczos *l, taut_real *whole, int64_t example, int64_t len)
{
    return taut_at(l->k, whole, example * len);
}

static double length(const lanczos *l, const taut_real *x, int64_t n)
{
    return sqrt(taut_dot(l->k, l->p->sum, x, x, n));
}

/* Gaussian, of length 1. */
static taut_status start(const lanczos *l, taut_real *v, uint64_t seed)
{
    double *x = taut_malloc((size_t)l->nx * sizeof *x);
    if (!x) return taut_no_memory("a start vector");
    for (int64_t e = 0; e < l->examples; e++) {
        const uint64_t key = taut_rng_key(seed, TAUT_RNG_SAMPLE, (uint64_t)e);
        double size = 0;
        for (int64_t i = 0; i < l->nx; i++) {
            x[i] = taut_rng_normal(key, (uint64_t)i);
            size += x[i] * x[i];
        }
        for (int64_t i = 0; i < l->nx; i++) x[i] /= sqrt(size);
        l->k->put(part(l, v, e, l->nx), x, l->nx);
    }
    free(x);
    return TAUT_OK;
}

/* w of example e minus its parts along the first k vectors, twice; then scaled to length 1 (or to 0).  Answers its
 * length. */
static double clean(const lanczos *l, taut_real *whole, taut_real **against, int k, int64_t e, int64_t len,
                    double scale)
{
    taut_real *w = part(l, whole, e, len);
    for (int pass = 0; pass < 2; pass++)
        for (int i = 0; i < k; i++) {
            const taut_real *q = part(l, against[i], e, len);
            l->k->dot(l->p->sum, w, len, q, len, 1, len);
            l->k->axpby_by(w, 0, (taut_factor){ -1, l->p->sum }, q, 0, (taut_factor){ 1, NULL }, 1, len);
        }
    const double size = length(l, w, len);
    const bool gone = !(size > 1e-6 * l->k->elem * scale * 0x1p-20) || !(size > 0);
    l->k->axpby(w, 0, w, gone ? 0 : 1 / size, len);
    return gone ? 0 : size;
}

/* The top of B: s, the residual, and z (k entries, or NULL). */
static bool small_top(const double *a, const double *b, int k, double *s, double *residual, double *z_out)
{
    double d[MOST], e[MOST], work[2 * MOST], *z = taut_malloc((size_t)(k * k) * sizeof *z);
    const blasint n = k;
    blasint info = 0;
    if (!z) return false;
    for (int i = 0; i < k; i++) {
        d[i] = a[i] * a[i] + (i ? b[i - 1] * b[i - 1] : 0);
        e[i] = a[i] * b[i];
    }
    dstev_("V", &n, d, e, z, &n, work, &info);
    const double *top = z + (size_t)(k - 1) * (size_t)k;
    *s = info == 0 && d[k - 1] > 0 ? sqrt(d[k - 1]) : 0;
    *residual = *s > 0 ? b[k - 1] * fabs(a[k - 1] * top[k - 1] / *s) / *s : 0;
    if (z_out) memcpy(z_out, top, (size_t)k * sizeof *top);
    free(z);
    return true;
}

/* One step for all examples; k vectors are there already, v[k] is the newest. */
static bool lanczos_step(lanczos *l, int k, taut_slope *out, double tolerance)
{
    bool open = false;
    taut_probe_jvp(l->p, l->u[k], l->v[k]);
    for (int64_t e = 0; e < l->examples; e++) {
        double *a = l->a + e * MOST, *b = l->b + e * MOST;
        if (l->done[e])
            l->k->axpby(part(l, l->u[k], e, l->ny), 0, l->u[k], 0, l->ny);
        else
            a[k] = clean(l, l->u[k], l->u, k, e, l->ny, k ? a[0] : 0), b[k] = 0;
    }
    taut_probe_vjp(l->p, l->v[k + 1], l->u[k]);
    for (int64_t e = 0; e < l->examples; e++) {
        double *a = l->a + e * MOST, *b = l->b + e * MOST, s;
        if (l->done[e]) {
            l->k->axpby(part(l, l->v[k + 1], e, l->nx), 0, l->v[k + 1], 0, l->nx);
            continue;
        }
        b[k] = clean(l, l->v[k + 1], l->v, k + 1, e, l->nx, a[0]);
        if (!small_top(a, b, k + 1, &s, &out[e].residual, NULL)) return false;
        out[e].value = s, out[e].steps = k + 1;
        l->done[e] = !(b[k] > 0) || out[e].residual <= tolerance;
        open |= !l->done[e];
    }
    return open;
}

/* The direction V z of every example into v[0], which is no longer needed otherwise; then the slope along it. */
static taut_status witness(lanczos *l, taut_slope *out, double *direction)
{
    taut_real *found = taut_reals(l->k, l->examples * l->nx);
    if (!found) return taut_no_memory("the direction found");
    for (int64_t e = 0; e < l->examples; e++) {
        double z[MOST] = { 1 }, s, r;
        taut_real *to = part(l, found, e, l->nx);
        if (out[e].steps && !small_top(l->a + e * MOST, l->b + e * MOST, out[e].steps, &s, &r, z)) continue;
        for (int i = 0; i < out[e].steps; i++) l->k->axpby(to, z[i], part(l, l->v[i], e, l->nx), 1, l->nx);
    }
    taut_probe_jvp(l->p, l->u[0], found);
    for (int64_t e = 0; e < l->examples; e++) {
        const double size = length(l, part(l, found, e, l->nx), l->nx);
        out[e].value = size > 0 ? length(l, part(l, l->u[0], e, l->ny), l->ny) / size : 0;
        if (direction && size > 0) l->k->axpby(part(l, found, e, l->nx), 0, found, 1 / size, l->nx);
    }
    if (direction) l->k->get(direction, found, l->examples * l->nx);
    l->k->release(found);
    return TAUT_OK;
}

static void vectors_free(lanczos *l)
{
    for (int i = 0; l->v && i <= l->steps; i++)
        if (l->v[i]) l->k->release(l->v[i]);
    for (int i = 0; l->u && i < l->steps; i++)
        if (l->u[i]) l->k->release(l->u[i]);
    free(l->v), free(l->u), free(l->a), free(l->done);
}

static taut_status run_lanczos(lanczos *l, taut_slope *out, double *direction, const taut_slope_options *o)
{
    bool open = true;
    taut_status s = TAUT_OK;
    for (int k = 0; open && !s && k < l->steps; k++) {
        if (k == 0 && !(l->v[0] = taut_reals(l->k, l->examples * l->nx))) return taut_no_memory("Lanczos vectors");
        l->u[k] = taut_reals(l->k, l->examples * l->ny);
        l->v[k + 1] = taut_reals(l->k, l->examples * l->nx);
        if (!l->u[k] || !l->v[k + 1]) return taut_no_memory("Lanczos vectors");
        if (k == 0) s = start(l, l->v[0], o->seed);
        if (!s) open = lanczos_step(l, k, out, o->tolerance);
    }
    return s ? s : witness(l, out, direction);
}

static taut_status run_power(lanczos *l, taut_slope *out, double *direction, const taut_slope_options *o)
{
    l->v[0] = taut_reals(l->k, l->examples * l->nx), l->v[1] = taut_reals(l->k, l->examples * l->nx);
    l->u[0] = taut_reals(l->k, l->examples * l->ny);
    taut_status s = l->v[0] && l->v[1] && l->u[0] ? start(l, l->v[0], o->seed) : taut_no_memory("vectors");
    bool open = !s;
    for (int k = 0; open && k < o->steps; k++) {
        open = false;
        taut_probe_jvp(l->p, l->u[0], l->v[0]);
        taut_probe_vjp(l->p, l->v[1], l->u[0]);
        for (int64_t e = 0; e < l->examples; e++) {
            taut_real *v = part(l, l->v[0], e, l->nx), *w = part(l, l->v[1], e, l->nx);
            const double value = length(l, part(l, l->u[0], e, l->ny), l->ny), size = length(l, w, l->nx);
            if (!(size > 0)) continue; /* value is 0: nothing to follow */
            out[e] = (taut_slope){ value, 0, k + 1 };
            if (direction) l->k->get(direction + e * l->nx, v, l->nx);
            l->k->axpby(v, 1, w, -value * value, l->nx); /* the residual, before v is replaced */
            out[e].residual = length(l, v, l->nx) / (value * value);
            l->k->axpby(v, 1 / size, w, 0, l->nx);
            open |= !(out[e].residual <= o->tolerance);
        }
    }
    return s;
}

taut_status taut_slope_find(taut_slope *out, double *direction, taut_probe *p, const taut_slope_options *o)
{
    const int64_t n = p->in.n;
    lanczos l = { .p = p, .k = p->run.k, .nx = p->in.t * p->in.d, .ny = p->out.t * p->out.d, .examples = n };
    l.steps = o->steps < 1 ? 1 : o->steps > MOST ? MOST : o->steps;
    if (l.steps > l.nx) l.steps = (int)l.nx;
    for (int64_t e = 0; e < n; e++) out[e] = (taut_slope){ 0, 0, 0 };
    for (int64_t i = 0; direction && i < n * l.nx; i++) direction[i] = 0;
    if (l.nx == 0 || l.ny == 0) return TAUT_OK;
    l.v = taut_calloc((size_t)l.steps + 2, sizeof *l.v), l.u = taut_calloc((size_t)l.steps + 1, sizeof *l.u);
    l.a = taut_calloc((size_t)(2 * n * MOST), sizeof *l.a), l.done = taut_calloc((size_t)n + 1, sizeof *l.done);
    taut_status s = l.v && l.u && l.a && l.done ? TAUT_OK : taut_no_memory("Lanczos vectors");
    l.b = l.a + n * MOST;
    if (!s) s = o->method == TAUT_SLOPE_POWER ? run_power(&l, out, direction, o) : run_lanczos(&l, out, direction, o);
    vectors_free(&l);
    return s ? s : l.k->read(NULL, NULL, 0); /* what failed on the way is no small slope */
}

double taut_slope_probable(const taut_slope *s, const taut_slope_options *o, int64_t n, double miss)
{
    const int allowed = o->steps < 1 ? 1 : o->steps > MOST ? MOST : o->steps;
    const double root = log(1.648 * sqrt((double)n) * allowed / miss) / (2.0 * s->steps - 1);
    const bool says = o->method == TAUT_SLOPE_LANCZOS && s->steps > 0 && root < 1;
    return says ? s->value / sqrt(1 - root * root) : INFINITY;
}
