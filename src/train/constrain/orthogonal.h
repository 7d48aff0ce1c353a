/* Matrices made orthogonal: every singular value 1, the columns (or, if wide, the rows) orthonormal.
 *
 * An orthogonal linear layer is a plain linear whose weight is kept here while it trains, so a model file holds the
 * effective weight and its bound is linear's certified norm.  Nothing here is a certificate. */
#ifndef TAUT_TRAIN_CONSTRAIN_ORTHOGONAL_H
#define TAUT_TRAIN_CONSTRAIN_ORTHOGONAL_H
#include "kernels/kernels.h"

enum { TAUT_BJORCK_STEPS = 12 }; /* enough for singular values within a factor 30 of each other */

/* The nearest orthogonal matrix, by Bjorck's iteration X <- X (3 I - X^T X)/2.  Does nothing to one that is
 * orthogonal already, so it may follow every optimiser step.  work holds rows cols + 2 min(rows, cols)^2
 * elements, fewer than taut_hold_work. */
void taut_bjorck(const taut_kernels *, taut_real *x, taut_real *work, int64_t rows, int64_t cols, int steps);

/* Cayley's retraction: the move from `before`, which is orthogonal, to x becomes a rotation that agrees with it to first
 * order.  work holds taut_cayley_work doubles.  false: x was not finite, and is as it was. */
int64_t taut_cayley_work(int64_t rows, int64_t cols);
bool taut_cayley(const taut_kernels *, taut_real *x, const taut_real *before, double *work, int64_t rows, int64_t cols);
#endif
