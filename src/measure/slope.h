/* The largest singular value of a module's derivative at an input: how fast the output can change there, in the l2 norm
 * over everything.  Found by search, so it is a lower bound with a witness: a direction along which the slope is
 * attained. */
#ifndef TAUT_MEASURE_SLOPE_H
#define TAUT_MEASURE_SLOPE_H
#include "measure/probe.h"

typedef enum { TAUT_SLOPE_LANCZOS, TAUT_SLOPE_POWER } taut_slope_method;
typedef struct {
    taut_slope_method method;
    int steps;        /* products with J and J^T each; Lanczos at most 128 */
    double tolerance; /* of the relative residual |J^T J v - s^2 v| / s^2 */
    uint64_t seed;
} taut_slope_options;

typedef struct {
    double value;    /* |J v| / |v| at the direction found: attained, up to the kernels' rounding */
    double residual; /* relative, as above; the truth is at least `value`, and near it when this is small */
    int steps;
} taut_slope;

/* out has one entry an example.  direction (or NULL) gets v, in.n * in.t * in.d doubles, each example's of length 1. */
taut_status taut_slope_find(taut_slope *out, double *direction, taut_probe *, const taut_slope_options *) TAUT_MUST_USE;

/* PROBABILISTIC: above the truth except with probability `miss`, when these Lanczos options found it on a space of
 * dimension n; +inf for power iteration, and when the steps do not suffice for any statement.  Never a bound in the sense
 * of taut_up. */
double taut_slope_probable(const taut_slope *, const taut_slope_options *, int64_t n, double miss);
#endif
