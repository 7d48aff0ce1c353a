/* A two-layer perceptron inside a residual mix:  keep x + mix (W_out c f(W_in x + b_in) + b_out). */
#ifndef TAUT_BOUND_MLP_H
#define TAUT_BOUND_MLP_H
#include <stdint.h>

#include "bound/curve.h"
#include "bound/ledger.h"

typedef struct {
    int64_t width, hidden, out;
    const double *w_in, *b_in;   /* (hidden, width), and hidden or NULL */
    const double *w_out, *b_out; /* (out, hidden), and out or NULL */
    taut_slopes slopes, ratio;   /* secants of f, and those from 0: f(z)/z */
    double factor, keep, mix;    /* c; keep must be 0 unless out = width */
    taut_ledger *ledger;         /* gets the exponents of T when T is not I; may be NULL */
} taut_mlp_weights;

/* The numbers of the proof: ||W_in||, ||W_out||, their best rescaled product min_T ||W_out T^-1|| ||T W_in||,
 * the joint norms ||keep I + mix c m W_out W_in|| for the middle slope m and for the middle of f(z)/z, and the bias terms.
 */
typedef struct {
    taut_up norm_out, scaled_in, scaled_out, joint, joint_half, bias_in, bias_out;
} taut_mlp_numbers;

taut_mlp_numbers up_mlp_numbers(const taut_mlp_weights *);
taut_up up_mlp_lip(const taut_mlp_weights *, const taut_mlp_numbers *);
/* Where unit k has slopes unit[k] of its own: ||keep I + mix c W_out M W_in|| + |mix c| ||W_out R^1/2|| ||R^1/2 W_in||,
 * M and R the diagonals of middles and half widths. */
taut_up up_mlp_near(const taut_mlp_weights *, const taut_slopes *unit);
taut_up up_mlp_growth(const taut_mlp_weights *, const taut_mlp_numbers *, taut_up size); /* for |x| <= size */
#endif
