/* One step of an optimiser, in place.
 *   sgd    m = momentum m + g,           w = w (1 - decay) - lr m
 *   adamw  m = b1 m + (1-b1) g,  v = b2 v + (1-b2) g^2,
 *          w = w (1 - decay) - lr (m/c1) / (sqrt(v/c2) + eps)
 * decay already holds the learning rate; c1 = 1 - b1^step and c2 = 1 - b2^step are the caller's. */
#include <math.h>

#include "kernels/ref/ref.h"

void taut_ref_sgd(taut_real *w_, taut_real *m_, const taut_real *g_, int64_t len, double lr, double momentum,
                  double decay)
{
    double *w = (double *)w_, *m = (double *)m_;
    const double *g = (const double *)g_;
    for (int64_t i = 0; i < len; i++) {
        m[i] = momentum * m[i] + g[i];
        w[i] = w[i] * (1 - decay) - lr * m[i];
    }
}

void taut_ref_adamw(taut_real *w_, taut_real *m_, taut_real *v_, const taut_real *g_, int64_t len, const taut_adam *s)
{
    double *w = (double *)w_, *m = (double *)m_, *v = (double *)v_;
    const double *g = (const double *)g_;
    for (int64_t i = 0; i < len; i++) {
        m[i] = s->b1 * m[i] + (1 - s->b1) * g[i];
        v[i] = s->b2 * v[i] + (1 - s->b2) * g[i] * g[i];
        w[i] = w[i] * (1 - s->decay) - s->lr * (m[i] / s->c1) / (sqrt(v[i] / s->c2) + s->eps);
    }
}
