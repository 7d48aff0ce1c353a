/* The solvers we are compared with, in plain coordinates (module/prox.h), as their papers have them:
 *     descent   y <- y - lambda g from y = x, lambda = 1 halved at most 20 times until phi falls by 1e-4 lambda |g|^2
 *               (Algorithms 1 and 2 of the AttLip paper, with the right gradient).  To a tolerance, where phi's rounding hides
 *               such a fall, by the slope at the new point: g_new.g >= -(1 - 2e-4) |g|^2, which is the same rule wherever phi is
 *               a quadratic (Hager and Zhang's approximate condition)
 *     barzilai  y <- y - lambda g, lambda = s.s/s.y and s.y/y.y in turns, quartered until phi is 1e-4 lambda |g|^2 below
 *               the largest of the last 10 values
 * The map from x to the K-th point of either is not Lipschitz, not even continuous: a halving more or less is a jump. */
#include <math.h>

#include "module/prox.h"

enum { HALVINGS = 20, QUARTERINGS = 30, MEMORY = 10, MOST = 2000, HIDES = 64 /* roundings of phi */ };

typedef struct {
    double phi, size, rate; /* |g|, lambda */
    double past[MEMORY];
    bool open, trying, hidden; /* hidden: what the step changes in phi is lost in its rounding */
} lane;

int64_t prox_descent_host(const prox *p) { return taut_host_len(p->shape.n, sizeof(lane)) + p->shape.n; }

static int64_t count_open(lane *l, const prox *p, const taut_real *g, prox_lane_end *end, bool to_tolerance)
{
    int64_t open = 0;
    for (int64_t e = 0; e < p->shape.n; e++) {
        if (!l[e].open) continue;
        end[e].at = l[e].size = sqrt(prox_dot(p, g, g, e));
        end[e].done = l[e].size <= end[e].tol;
        l[e].open = isfinite(l[e].size) && !(to_tolerance && end[e].done);
        open += l[e].open;
    }
    return open;
}

/* z_new = z - rate g in every lane that is trying, z in the others */
static void step_from(const prox *p, taut_real *z_new, const taut_real *z, const taut_real *g, const lane *l)
{
    for (int64_t e = 0; e < p->shape.n; e++) {
        prox_add(p, z_new, 1, z, 0, e);
        if (l[e].open) prox_add(p, z_new, -l[e].rate, g, 1, e);
    }
}

/* Whether a lane that tries has a step whose change of phi, about rate |g|^2, is lost in rounding. */
static bool any_hidden(const prox *p, lane *l)
{
    bool any = false;
    for (int64_t e = 0; e < p->shape.n; e++) {
        l[e].hidden = l[e].rate * l[e].size * l[e].size <= HIDES * p->k->unit * fabs(l[e].phi);
        any |= l[e].trying && l[e].hidden;
    }
    return any;
}

/* z_new, accepted by every lane that is open or after the last halving; g_new NULL: by phi alone.  Answers whether g_new is
 * its gradient. */
static bool armijo(prox *p, lane *l, taut_real *z_new, taut_real *g_new, const taut_real *z, const taut_real *g,
                   double *phi)
{
    for (int64_t e = 0; e < p->shape.n; e++) l[e].trying = l[e].open, l[e].rate = 1;
    for (int trial = 0; trial < HALVINGS; trial++) {
        int64_t trying = 0;
        const bool slope = any_hidden(p, l) && g_new;
        step_from(p, z_new, z, g, l);
        if (slope)
            prox_gradient(p, g_new, phi, z_new, 0, p->shape.n);
        else
            prox_value(p, phi, z_new, 0, p->shape.n);
        for (int64_t e = 0; e < p->shape.n; e++) {
            if (!l[e].trying) continue;
            const double square = l[e].size * l[e].size;
            const bool falls = slope && l[e].hidden ? prox_dot(p, g_new, g, e) >= -(1 - 2e-4) * square
                                                    : phi[e] <= l[e].phi - 1e-4 * l[e].rate * square;
            l[e].trying = !falls;
            if (l[e].trying) l[e].rate *= 0.5;
            trying += l[e].trying;
        }
        if (trying == 0) return slope;
    }
    step_from(p, z_new, z, g, l);
    return false;
}

static lane *begin(prox *p, taut_real *g, double *phi, const taut_real *z, prox_lane_end *end)
{
    lane *l = taut_take_host(&p->host, p->shape.n, sizeof *l);
    prox_gradient(p, g, phi, z, 0, p->shape.n);
    for (int64_t e = 0; e < p->shape.n; e++) {
        l[e] = (lane){ .phi = phi[e], .open = true };
        for (int i = 0; i < MEMORY; i++) l[e].past[i] = phi[e];
        end[e].why = "the residual did not fall to the tolerance";
    }
    return l;
}

void prox_descent(prox *p, taut_real *z, prox_lane_end *end, int steps, int most, taut_real *path, double *rates,
                  taut_span scratch)
{
    const int64_t n = p->shape.n, len = taut_len(p->shape);
    taut_real *g = taut_take(&scratch, len), *z_new = taut_take(&scratch, len), *g_new = taut_take(&scratch, len);
    const taut_span mark = p->host;
    double *phi = taut_take_host(&p->host, n, sizeof *phi);
    lane *l = begin(p, g, phi, z, end);
    const int last = steps ? steps : most ? most : MOST;
    for (int step = 0; step < last; step++) {
        if (count_open(l, p, g, end, steps == 0) == 0) break;
        const bool known = armijo(p, l, z_new, steps ? NULL : g_new, z, g, phi);
        if (path) p->k->axpby(taut_at(p->k, path, step * len), 1, z, 0, len);
        for (int64_t e = 0; path && e < n; e++) rates[step * n + e] = l[e].open ? l[e].rate : 0;
        p->k->axpby(z, 1, z_new, 0, len);
        if (known)
            p->k->axpby(g, 1, g_new, 0, len);
        else
            prox_gradient(p, g, phi, z, 0, n);
        for (int64_t e = 0; e < n; e++) l[e].phi = phi[e];
    }
    count_open(l, p, g, end, steps == 0);
    p->host = mark;
}

static double highest(const lane *l)
{
    double most = l->past[0];
    for (int i = 1; i < MEMORY; i++) most = fmax(most, l->past[i]);
    return most;
}

/* z_new and its gradient, accepted by every lane that is open */
static void backtrack(prox *p, lane *l, taut_real *z_new, taut_real *g_new, const taut_real *z, const taut_real *g,
                      double *phi)
{
    for (int64_t e = 0; e < p->shape.n; e++) l[e].trying = l[e].open;
    for (int trial = 0; trial < QUARTERINGS; trial++) {
        int64_t trying = 0;
        step_from(p, z_new, z, g, l);
        prox_gradient(p, g_new, phi, z_new, 0, p->shape.n);
        for (int64_t e = 0; e < p->shape.n; e++) {
            if (!l[e].trying) continue;
            const double fall = 1e-4 * l[e].rate * l[e].size * l[e].size, size = sqrt(prox_dot(p, g_new, g_new, e));
            const bool rounding = size < l[e].size && fabs(phi[e] - l[e].phi) < 1e-12 * fabs(l[e].phi);
            l[e].trying = !(phi[e] <= highest(&l[e]) - fall || rounding);
            if (l[e].trying) l[e].rate *= 0.25;
            trying += l[e].trying;
        }
        if (trying == 0) return;
    }
}

void prox_barzilai(prox *p, taut_real *z, prox_lane_end *end, taut_span scratch)
{
    const int64_t n = p->shape.n, len = taut_len(p->shape);
    taut_real *g = taut_take(&scratch, len), *z_new = taut_take(&scratch, len), *g_new = taut_take(&scratch, len);
    const taut_span mark = p->host;
    double *phi = taut_take_host(&p->host, n, sizeof *phi);
    lane *l = begin(p, g, phi, z, end);
    for (int64_t e = 0; e < n; e++) l[e].rate = 0.25 * p->eta;
    for (int step = 0; step < MOST && count_open(l, p, g, end, true) > 0; step++) {
        backtrack(p, l, z_new, g_new, z, g, phi);
        for (int64_t e = 0; e < n; e++) {
            if (!l[e].open) continue;
            prox_add(p, z, -1, z_new, 1, e); /* z and g hold -s and -y for a moment */
            prox_add(p, g, -1, g_new, 1, e);
            const double ss = prox_dot(p, z, z, e), sy = prox_dot(p, z, g, e), yy = prox_dot(p, g, g, e);
            l[e].rate = step % 2 ? sy / yy : ss / sy;
            l[e].phi = l[e].past[step % MEMORY] = phi[e];
            prox_add(p, z, 1, z_new, 0, e);
            prox_add(p, g, 1, g_new, 0, e);
            l[e].open = isfinite(l[e].rate);
        }
    }
    prox_gradient(p, g, phi, z, 0, n);
    p->host = mark;
}
