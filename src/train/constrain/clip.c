/* Spectral clip to [lo, cap], as max(s, lo) followed by min(s, cap), which share one matrix sign; and spectrally
 * clipped weight decay, (1 - lambda) W + lambda hardcap(W), which leaves singular values below cap alone.
 * Directions in which W is zero have no sign and stay zero.  Errors as in hardcap.c. */
#include "train/constrain/hardcap.h"

void taut_clip(taut_hold h, double lo)
{
    const int64_t len = h.rows * h.cols;
    const double unit = hold_unit(&h);
    taut_real *sign = taut_take(&h.work, len);
    h.k->axpby(sign, 1, h.w, 0, len);
    odd_sign(h.k, sign, h.rows, h.cols, 2, h.work);
    odd_fold(h.k, h.w, sign, h.rows, h.cols, lo * unit, true, h.work);
    odd_fold(h.k, h.w, sign, h.rows, h.cols, h.cap * unit, false, h.work);
}

void taut_clipped_decay(taut_hold h, double lambda)
{
    const int64_t len = h.rows * h.cols;
    taut_real *before = taut_take(&h.work, len);
    h.k->axpby(before, 1, h.w, 0, len);
    taut_hardcap(h);
    h.k->axpby(h.w, 1 - lambda, before, lambda, len);
}
