/* Norms of joint matrices [c_1 X_1 Y_1 ... c_H X_H Y_H], X_h tall and Y_h flat: W_O^h W_V^h of all heads side by
 * side, or (W_K^h)^T W_Q^h of all heads, transposed. */
#ifndef TAUT_BOUND_JOINT_H
#define TAUT_BOUND_JOINT_H
#include "bound/matrix.h"

typedef struct {
    taut_ball x, y, thin; /* X (n, k), Y (k, m), and X R^T (n, k) with Y Y^T <= R^T R + rest I */
    taut_up rest;         /* rest * ||X||_F^2 */
} taut_pair;

/* Some upper triangular R with g <= R^T R + rest I, whatever it took; g symmetric. */
taut_ball ball_root(const taut_ball *g, taut_up *rest);

taut_pair pair_of(const double *x, const double *y, int64_t n, int64_t k, int64_t m);
void pair_free(taut_pair *);
bool pair_is_zero(const taut_pair *); /* X Y is certainly 0 */
double est_pair(const taut_pair *);   /* its norm, no promise; never NaN or negative */

/* ||[c_h X_h Y_h]||, of those h with c_h != 0. */
taut_up up_joint_norm(const taut_pair *pairs, const double *c, int64_t count);
#endif
