/* What the tests of potential and sll share: laws with weights of one's choice, inside trees and mixes. */
#ifndef RESIDUAL_LAYER_H
#define RESIDUAL_LAYER_H
#include "laws.h"

/* Every law, after `settle` has changed the random weights. */
static inline void settled_laws(taut_module *m, taut_shape in, void (*settle)(law *))
{
    law l;
    law_begin(&l, m, in);
    settle(&l);
    law_forward(&l, l.y);
    law_adjoint(&l);
    law_derivative(&l);
    law_parameters(&l);
    law_bound(&l);
    law_end(&l);
}

/* The parameter whose path ends like this; NULL: none. */
static inline taut_param *ending(law *l, const char *end)
{
    for (int i = 0; i < l->params; i++) {
        const size_t len = strlen(l->name[i]), tail = strlen(end);
        if (len >= tail && strcmp(l->name[i] + len - tail, end) == 0) return l->seen[i];
    }
    return NULL;
}

static inline taut_potential_spec any_spec(taut_shape in)
{
    return (taut_potential_spec){ .width = in.d,
                                  .hidden = rng_int(1, 7),
                                  .curve = (taut_curve)rng_int(0, 5),
                                  .bias = rng_int(0, 1),
                                  .init = TAUT_INIT_NORMAL,
                                  .gain = 1 };
}

static inline void trees(taut_module *(*make)(const taut_potential_spec *), void (*settle)(law *))
{
    for (case_no = 0; case_no < effort(120); case_no++) {
        const taut_shape in = { rng_int(1, 2), rng_int(1, 4), rng_int(1, 6) };
        const taut_potential_spec spec = any_spec(in);
        taut_module *m = make(&spec);
        if (case_no % 3 == 0) m = taut_mix(m, 2 * rng_pm(), 2 * rng_pm());
        for (int64_t depth = case_no % 3 == 1 ? rng_int(1, 2) : 0; m && depth > 0; depth--) m = nested(m, in);
        settled_laws(m, in, settle);
    }
}

/* Found / proved for secants between far inputs, over which kinks are crossed: never above 1. */
static inline double secant(law *l, taut_norm n, double radius)
{
    const double lip = law_ask(l, n, radius).lip.v;
    double *x = doubles(l->nx), *y = doubles(l->ny), worst = 0;
    for (int k = 0; k < 20; k++) {
        fill(l->x, l->nx);
        law_forward(l, l->y);
        memcpy(x, l->x, (size_t)l->nx * 8), memcpy(y, l->y, (size_t)l->ny * 8);
        for (int64_t i = 0; i < l->nx; i++) l->x[i] = rng_int(0, 2) ? -x[i] : x[i] + 0.1 * rng_pm();
        law_forward(l, l->y);
        for (int64_t i = 0; i < l->nx; i++) x[i] -= l->x[i];
        for (int64_t i = 0; i < l->ny; i++) y[i] -= l->y[i];
        const double in = n == TAUT_NORM_FLAT ? norm(x, l->nx) : longest_token(x, l->in);
        const double out = n == TAUT_NORM_FLAT ? norm(y, l->ny) : longest_token(y, l->plan.out);
        CHECK_LE(out, in * lip * (1 + 1e-12), "secant");
        worst = fmax(worst, out / (in * lip));
    }
    free(x), free(y);
    return worst;
}
#endif
