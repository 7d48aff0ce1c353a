/* Odd polynomials of a matrix:  p(U S V^T) = U p(S) V^T,  through the Gram matrix of the smaller side. */
#ifndef TAUT_TRAIN_CONSTRAIN_ODD_H
#define TAUT_TRAIN_CONSTRAIN_ODD_H
#include <math.h>

#include "train/constrain/hold.h"

static inline int64_t odd_side(int64_t rows, int64_t cols) { return rows < cols ? rows : cols; }

/* sqrt(rows/cols): the spectral norm of a matrix whose RMS->RMS norm is 1. */
static inline double hold_unit(const taut_hold *h) { return sqrt((double)h->rows / (double)h->cols); }

/* G (side, side) = alpha x y^T when the matrices are wide, alpha x^T y when they are tall. */
void odd_gram(const taut_kernels *, taut_real *g, const taut_real *x, const taut_real *y, int64_t rows, int64_t cols,
              double alpha);
/* y = alpha m x + beta y when wide, alpha x m + beta y when tall; m is (side, side). */
void odd_times(const taut_kernels *, taut_real *y, const taut_real *m, const taut_real *x, int64_t rows, int64_t cols,
               double alpha, double beta);

/* x <- a x + b x^3 + c x^5 on its singular values; work: rows cols + 2 side^2. */
typedef struct {
    double a, b, c;
} odd_quintic;
void odd_step(const taut_kernels *, taut_real *x, int64_t rows, int64_t cols, odd_quintic, taut_span work);

/* x <- the nearest matrix with orthonormal rows or columns: every singular value s becomes 1 within 2e-6, where s is
 * above 0.002 of the Frobenius norm, or 1e-4 with two passes; a smaller one becomes something in [0, 1].  Zero stays
 * zero.  msign.c; work as above. */
void odd_sign(const taut_kernels *, taut_real *x, int64_t rows, int64_t cols, int passes, taut_span work);
#endif
