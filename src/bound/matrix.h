/* A matrix known up to a proved error: the true matrix M has ||M - v||_F <= err.
 *
 * Joint matrices (W_O W_V, W_K^T W_Q, W_out W_in, W diag(g) C) are computed, hence rounded; the norm of
 * the computed product is not a bound of the true one.  A ball carries what was lost.  Every operation
 * makes a new ball that the caller frees.  Where memory is out or a number is not finite, v is NULL and
 * err +inf, and so is everything made from it: nothing needs checking before the last line. */
#ifndef TAUT_BOUND_MATRIX_H
#define TAUT_BOUND_MATRIX_H
#include <stdbool.h>
#include <stdint.h>

#include "bound/up.h"

typedef struct {
    double *v;
    int64_t rows, cols;
    taut_up err;
} taut_ball; /* row-major */

taut_ball ball_of(const double *w, int64_t rows, int64_t cols);               /* exact copy */
taut_ball ball_identity(double a, int64_t n);                                 /* a I, exact */
taut_ball ball_mul(const taut_ball *a, bool ta, const taut_ball *b, bool tb); /* op(a) op(b); t: transposed */
taut_ball ball_add(const taut_ball *a, const taut_ball *b);
taut_ball ball_scale(const taut_ball *a, double s);
taut_ball ball_scale_rows(const taut_ball *a, const double *d); /* diag(d) a */
taut_ball ball_scale_cols(const taut_ball *a, const double *d); /* a diag(d) */
taut_ball ball_hcat(const taut_ball *parts, int64_t count);     /* [p_1 ... p_count], count >= 1 */
taut_ball ball_vcat(const taut_ball *parts, int64_t count);     /* one below the other */
taut_ball ball_cols(const taut_ball *a, int64_t first, int64_t count);
void ball_free(taut_ball *a); /* NULL v is fine */

taut_up up_ball_norm(const taut_ball *a);      /* of the true matrix: up_norm(v) + err */
taut_up up_ball_frobenius(const taut_ball *a); /* a true vector's l2 norm */
bool ball_is_zero(const taut_ball *a);         /* the true matrix is certainly 0 */
#endif
