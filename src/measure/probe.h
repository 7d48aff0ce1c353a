/* A module standing at an input: forward has run there, so its derivative can be multiplied by vectors.  The input may
 * hold several examples; they do not see each other, and everything below answers for each of them. */
#ifndef TAUT_MEASURE_PROBE_H
#define TAUT_MEASURE_PROBE_H
#include "module/module.h"

typedef struct {
    const taut_module *module;
    taut_run run;
    taut_point at;
    taut_shape in, out;
    taut_tensor y;
    taut_real *memory; /* x, y, trace, scratch, sum */
    double *host;      /* what the module plans there */
    taut_sum *sum;     /* for whoever asks for a number of a vector */
} taut_probe;

/* x is in.n * in.t * in.d doubles.  Refused: an input or output that is not finite. */
taut_status taut_probe_create(taut_probe *, const taut_module *, const taut_kernels *, const double *x,
                              taut_shape in) TAUT_MUST_USE;
void taut_probe_move(taut_probe *, const double *x); /* to another input of the same shape */
void taut_probe_free(taut_probe *);

static inline void taut_probe_jvp(taut_probe *p, taut_real *ty, const taut_real *tx)
{
    taut_jvp(p->module, &p->run, (taut_tensor){ ty, p->out }, (taut_tensor){ (taut_real *)tx, p->in }, p->at);
}
static inline void taut_probe_vjp(taut_probe *p, taut_real *gx, const taut_real *gy)
{
    taut_vjp(p->module, &p->run, (taut_tensor){ gx, p->in }, (taut_tensor){ (taut_real *)gy, p->out }, p->at);
}
#endif
