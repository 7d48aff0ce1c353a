/* The bounds that papers print for softmax attention, as printed and as corrected, beside ours: plain numbers for a
 * table, no promises.  A name that begins with printed_ is a formula that fails somewhere (docs/errata.md has the input
 * that beats it); the others hold.  Papers: Kim, Papamakarios, Mnih 2021 (kim); Specformer, as quoted by JaSMin
 * (specformer); "How Smooth Is Attention?" (castin); "Pay Attention to Attention Distribution" (jasmin).
 *
 * nm = ||W_V (I + (1 - P_21) (x_1 - x_2) (A x_2)^T)|| at the two clusters (adversarial.c); at least 1 for W_V = I.
 *
 * n tokens; a = ||A|| R^2 with A = s W_K^T W_Q and R the longest token; nv, nq, nk norms of W_V, W_Q, W_K. */
#ifndef TAUT_MEASURE_PUBLISHED_H
#define TAUT_MEASURE_PUBLISHED_H
#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"

double printed_specformer_1(double n, double x_frobenius, double nv, double nqk);
double printed_castin_3_3(double n, double a, double nv); /* 4n + 1; sound, looser than its own proof */
double castin_3_3(double n, double a, double nv);         /* n + 1; also Theorem 4.3, masked */
double castin_3_5(double a, double nv);                   /* any n, unmasked */
/* Somewhere in the ball, unmasked; gap = 2 R^2 gamma. */
double castin_3_4_lower(double n, double gap, double nm);
double printed_castin_4_4(double a, double nv);   /* any n, masked */
double castin_4_4(double n, double a, double nv); /* what holds instead */
double printed_castin_c_3(double n, double rho, double diameter, double nv);
double castin_c_3(double n, double rho, double diameter, double diameter_t, double nv); /* diameter_t: of the A^T x_j */
double printed_castin_e_3(double n, double r, double a_norm, double nk, double nq, double bq, double nv);
double castin_e_3(double n, double r, double a_norm, double nk, double nq, double bq, double nv);
double jasmin_3(double nv, double np, double nx, double a_norm, double nm); /* nm = max ||diag(p) - p p^T|| over rows */
double jasmin_c(double nv, double np, double xm, double xat, double nx, double a_norm); /* xm = max ||X^T M_i|| */
double kim_l2(double n, double dh, double nq, double nv); /* of L2 attention, which is another layer */

/* One head at n tokens x (n, width); its matrices are (dh, width); bq (dh) or NULL. */
typedef struct {
    const double *x, *wq, *wk, *wv, *bq;
    int64_t n, width, dh;
    double scale;
    bool causal;
    bool lifted; /* the last feature is a 1 that carries a bias: inputs made up for the ball do not have it */
} taut_published_at;

typedef enum { TAUT_ABOVE, TAUT_BELOW, TAUT_OTHER_LAYER } taut_published_side;
typedef struct {
    const char *name;
    taut_published_side side;
    bool local; /* at this input; else for every input whose tokens are as long */
    double value;
} taut_published;
enum { TAUT_PUBLISHED = 18 };

/* All of them for this head; those that do not apply (masked ones without a mask, E.3 without a bias, 3.4 with a mask or
 * a bias) are NaN. */
taut_status taut_published_list(taut_published out[TAUT_PUBLISHED], const taut_published_at *) TAUT_MUST_USE;
#endif
