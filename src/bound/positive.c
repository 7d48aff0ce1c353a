/* ||W||^2 = rho(W^T W) <= max_j (W^T W y)_j / y_j for every y > 0 (Collatz, Wielandt), W >= 0.
 *
 * Proof.  B = W^T W >= 0 and B y <= m y entry by entry give ||diag(y)^-1 B diag(y)||_inf <= m, and similar matrices
 * share rho.
 * Any y is valid, so y comes from plain power iteration: y <- B y, with a floor that keeps entries positive which the
 * iteration sends to 0 (a column no large entry reaches).  Only the last quotient is a proof: both products are sums of
 * non-negative terms, right to g_{rows} and g_{cols} relatively, plus what underflow takes.  Every iterate is tried;
 * the smallest counts.
 * The answer is never above sqrt(||W||_1 ||W||_inf), which is the first try, y = 1. */
#include "bound/positive.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "bound/blas.h"
#include "bound/range.h"

enum { STEPS = 120 };

/* z = W^T W y by way of h = W y; answers max_j z_j / y_j, no promise yet. */
static double step(const double *w, int64_t rows, int64_t cols, const double *y, double *h, double *z)
{
    double most = 0;
    blas_gemv(h, w, false, y, rows, cols);
    blas_gemv(z, w, true, h, rows, cols);
    for (int64_t j = 0; j < cols; j++) most = fmax(most, z[j] / y[j]);
    return most;
}

static double best_quotient(const double *w, int64_t rows, int64_t cols, double *y, double *h, double *z)
{
    double best = INFINITY;
    for (int64_t j = 0; j < cols; j++) y[j] = 1;
    for (int i = 0; i < STEPS; i++) {
        const double now = step(w, rows, cols, y, h, z);
        const bool settled = now >= best * (1 - 1e-9);
        best = fmin(best, now);
        if (settled && i > 8) break;
        double top = 0;
        for (int64_t j = 0; j < cols; j++) top = fmax(top, z[j]);
        if (!(top > 0)) break;
        for (int64_t j = 0; j < cols; j++) y[j] = fmax(z[j] / top, 1e-12);
    }
    return best;
}

taut_up up_norm_positive(const double *w, int64_t rows, int64_t cols)
{
    const int64_t len = rows * cols;
    const double top = range_max(w, len);
    for (int64_t i = 0; i < len; i++)
        if (!(w[i] >= 0)) return UP_NONE;
    if (top == 0 || !(top <= DBL_MAX)) return (taut_up){ top };
    if (rows > INT_MAX || cols > INT_MAX || top > 0x1p200) return UP_NONE;
    double *y = taut_malloc((size_t)(2 * cols + rows) * sizeof *y);
    if (!y) return UP_NONE;
    const taut_up found = { best_quotient(w, rows, cols, y, y + cols, y + cols + rows) };
    free(y);
    /* what underflows: 2^-1074 a product, cols of them in h, times rows entries of at most `top`, over y >= 1e-12 */
    const taut_up rounding = up_add((taut_up){ 1 }, up_gamma(rows + cols + 4));
    const taut_up lost = up_mul(up_mul(up_int(rows), up_int(cols + 1)), (taut_up){ fmax(top, 1) * 0x1p-1000 });
    return up_sqrt(up_add(up_mul(found, rounding), lost));
}
