/* up = a certified norm of W, F = a certified Frobenius norm,  c = limit / (up + 2^-24 F) (1 - 2^-50).
 *     |fl32(x) - x| <= 2^-24 |x| / (1 + 2^-24)  for normal floats, which leaves room for the rounding of c x; so
 *     W' = fl32(c W)  has  ||W'|| <= c (||W|| + 2^-24 F) <= limit,  the last factor covering the roundings in c.
 * The certified norm of W' may still lie a little above its norm: it is asked for, and where it is above the limit,
 * the limit is lowered by that excess. */
#include "train/constrain/rescale.h"
#include "base/float32.h"

#include <math.h>
#include <string.h>

taut_up up_rescale(double *w, int64_t rows, int64_t cols, double limit)
{
    const int64_t len = rows * cols;
    const taut_up least = up_mul((taut_up){ 0x1p-99 }, up_sqrt(up_int(len)));
    taut_up norm = up_norm(w, rows, cols);
    double goal = limit;
    for (int i = 0; i < 8 && norm.v > limit && norm.v < INFINITY && goal >= least.v; i++) {
        const taut_up lost = up_mul((taut_up){ 0x1p-24 }, up_norm_frobenius(w, len));
        const double c = goal / up_add(norm, lost).v * (1 - 0x1p-50);
        for (int64_t j = 0; j < len; j++) w[j] = taut_float32(c * w[j]);
        norm = up_norm(w, rows, cols);
        if (norm.v > limit) goal = limit * (limit / norm.v);
    }
    if (norm.v <= limit || !(norm.v < INFINITY)) return norm;
    memset(w, 0, (size_t)len * sizeof *w);
    return UP_ZERO;
}
