/* Self-attention of a measure with few atoms: f_a, in which atom j counts with mass a_j, as if it were repeated.  Its
 * local constant in the norm |e|_a^2 = sum_j a_j |e_j|^2 is that of mean-field attention at the measure, in
 * Wasserstein's W_2. */
#ifndef TAUT_MEASURE_MEANFIELD_H
#define TAUT_MEASURE_MEANFIELD_H
#include <stdbool.h>
#include <stdint.h>

typedef struct {
    int64_t atoms, d;
    const double *x, *mass; /* (atoms, d) and atoms, positive */
    const double *a, *v;    /* (d, d): logits x_i.A^T x_j, values V x_j */
    bool masked;            /* atom i sees atoms j <= i: their order is their position */
} taut_measure_at;

/* The norm of the derivative; no promise but for rounding.  NaN when memory is out. */
double taut_meanfield_slope(const taut_measure_at *);
#endif
