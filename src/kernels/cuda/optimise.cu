/* One step of SGD or AdamW, in place (formulas: ref/optimise.c).
 *
 * Poison    NaN and infinity propagate into m, v and w.
 * Error     with u = 2^-24 (cuda64: 2^-53): m: 3 u (|b m| + |(1-b) g|), likewise v, plus 2^-126 where g^2 underflows;
 *           w: 3 u |w| + 10 u |step| beyond what the rounded m and v bring, which for AdamW is the error of
 *           m and half that of v, relative to each. */
#include "kernels/cuda/each.h"

struct sgd_step {
    real *w, *m;
    const real *g;
    real lr, momentum, keep;
    struct state {
        real w, m;
    };
    __device__ state read(int64_t i) const
    {
        const real now = momentum * m[i] + g[i];
        return state{ w[i] * keep - lr * now, now };
    }
    __device__ void write(int64_t i, state s) const { w[i] = s.w, m[i] = s.m; }
};

void CUDA(sgd)(taut_real *w, taut_real *m, const taut_real *g, int64_t len, double lr, double momentum, double decay)
{
    each(sgd_step{ at(w), at(m), at(g), (real)lr, (real)momentum, (real)(1 - decay) }, len);
}

struct adamw_step {
    real *w, *m, *v;
    const real *g;
    real b1, b1_rest, b2, b2_rest, keep, eps, rate, root;
    struct state {
        real w, m, v;
    };
    __device__ state read(int64_t i) const
    {
        const real gi = g[i], mi = b1 * m[i] + b1_rest * gi, vi = b2 * v[i] + b2_rest * gi * gi;
        return state{ w[i] * keep - rate * mi / (sqrt(vi) * root + eps), mi, vi };
    }
    __device__ void write(int64_t i, state s) const { w[i] = s.w, m[i] = s.m, v[i] = s.v; }
};

void CUDA(adamw)(taut_real *w, taut_real *m, taut_real *v, const taut_real *g, int64_t len, const taut_adam *s)
{
    each(adamw_step{ at(w), at(m), at(v), at(g), (real)s->b1, (real)(1 - s->b1), (real)s->b2, (real)(1 - s->b2),
                     (real)(1 - s->decay), (real)s->eps, (real)(s->lr / s->c1), (real)(1 / sqrt(s->c2)) },
         len);
}
