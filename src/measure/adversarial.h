/* Inputs where attention is steep: two clusters of tokens, x_1 alone and all others together, so that the n-1 rows of
 * the large cluster depend on one token, and the derivative grows like sqrt(n); and a configuration that grows like
 * R^2. */
#ifndef TAUT_MEASURE_ADVERSARIAL_H
#define TAUT_MEASURE_ADVERSARIAL_H
#include <stdint.h>

#include "base/status.h"

/* One head's logits x_i.A^T x_j, A = scale W_K^T W_Q, from its (dh, width) matrices. */
typedef struct {
    const double *wq, *wk;
    int64_t dh, width;
    double scale;
} taut_logits;

/* x_1 = R alone, all others R rest; both `width` long, neither longer than 1.  gap = (A x_2).(x_1 - x_2) at R = 1: at
 * radius R the others give x_1 the weight 1 / (1 + (n-1) exp(-R^2 gap)).  gap 0: nothing to offer for this A. */
typedef struct {
    double *alone, *rest, gap;
} taut_clusters;
void taut_clusters_free(taut_clusters *);

/* The published construction: with the real eigenvalues g_1 >= ... >= g_d of A, (u_1, u_1/2, ...) if g_1 >= -8 g_d,
 * otherwise (u_d, -u_d, ...).  Heads have rank dh < width, so 0 is among the eigenvalues; with no other real one the
 * gap is 0. */
taut_status taut_clusters_castin(taut_clusters *, const taut_logits *) TAUT_MUST_USE;

/* For every A that is not 0: the unit w with the largest gap, by ascent from `starts` random ones. */
taut_status taut_clusters_general(taut_clusters *, const taut_logits *, int starts, uint64_t seed) TAUT_MUST_USE;

void taut_clusters_tokens(double *x, const taut_clusters *, int64_t n, int64_t width, double radius);
/* The radius where the large cluster gives half its weight to x_1, R^2 gap = ln(n - 1): the steepest; 0 for n < 3. */
double taut_clusters_radius(const taut_clusters *, int64_t n);

/* 0, then half of the tokens at R e and half at -R e (Appendix C.7): for A = I the slope grows like R^2. */
void taut_quadratic_tokens(double *x, int64_t n, int64_t width, double radius);
#endif
