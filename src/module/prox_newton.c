/* Newton-CG in inner coordinates, for one lane (module/prox.h): for |A d + g| <= th |g| the slope of |g|^2 along d is at most
 * -2 (1 - th) |g|^2, so |g| is its own merit. */
#include <math.h>

#include "module/prox.h"

enum { STEPS = 100, TRIALS = 30, PRODUCTS = 500 };

/* One step of Newton-CG from (z, g); false: no step helps. */
static bool newton_step(prox *p, taut_real *z, taut_real *g, taut_real *z_new, taut_real *g_new, taut_real *dir,
                        double *size, int64_t e, taut_span rest)
{
    const double tol = 0.1 * fmin(1, sqrt(*size));
    prox_add(p, g_new, -1, g, 0, e);
    if (prox_cg(p, dir, g_new, &tol, PRODUCTS, e, 1, rest) == 0) { /* not there: good enough to go on? */
        if (!(prox_dot(p, dir, g, e) < 0)) return false;
    }
    double t = 1;
    for (int trial = 0; trial < TRIALS; trial++, t *= 0.5) {
        prox_add(p, z_new, 1, z, 0, e);
        prox_add(p, z_new, t, dir, 1, e);
        prox_gradient(p, g_new, NULL, z_new, e, 1);
        const double now = sqrt(prox_dot(p, g_new, g_new, e));
        if (!(now <= (1 - 1e-4 * t) * *size)) continue;
        prox_add(p, z, 1, z_new, 0, e);
        prox_add(p, g, 1, g_new, 0, e);
        *size = now;
        return true;
    }
    return false;
}

void prox_newton(prox *p, taut_real *z, prox_lane_end *end, int64_t e, taut_span scratch)
{
    const int64_t len = p->shape.n * prox_lane(p);
    taut_real *g = taut_take(&scratch, len), *dir = taut_take(&scratch, len);
    taut_real *z_new = taut_take(&scratch, len), *g_new = taut_take(&scratch, len);
    prox_gradient(p, g, NULL, z, e, 1);
    double size = sqrt(prox_dot(p, g, g, e));
    for (int step = 0; step < STEPS && isfinite(size); step++) {
        if (size <= end[e].tol * sqrt(p->eta)) {
            prox_norms(p, &end[e].at, g, e, 1, scratch);
            end[e].done = end[e].at <= end[e].tol;
            if (end[e].done) return;
        }
        if (!newton_step(p, z, g, z_new, g_new, dir, &size, e, scratch)) break;
        /* g_new, v and the rows are those of z */
    }
    end[e].at = size;
    end[e].why = isfinite(size) ? "the residual did not fall to the tolerance" : "a number that is not finite";
}
