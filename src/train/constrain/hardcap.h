/* Halves of a spectral clip, given the sign M of W: what hardcap.c and clip.c share. */
#ifndef TAUT_TRAIN_CONSTRAIN_HARDCAP_H
#define TAUT_TRAIN_CONSTRAIN_HARDCAP_H
#include "train/constrain/odd.h"

/* W <- (edge M + W -+ sign(edge I - M W^T) (edge M - W)) / 2: singular values s become min(s, edge) or, with
 * `raise`, max(s, edge).  edge is a spectral norm, not RMS. */
void odd_fold(const taut_kernels *, taut_real *w, const taut_real *sign, int64_t rows, int64_t cols, double edge,
              bool raise, taut_span work);
#endif
