/* Training images made different every time: a pure function of (key), so the same for any batch size or resume. */
#ifndef TAUT_DATA_AUGMENT_H
#define TAUT_DATA_AUGMENT_H
#include "data/images.h"

/* Some images are two: x = share a + (1 - share) b (MixUp), or a box of b over a (CutMix), share then being what is left of
 * a.  The targets share alike. */
static inline bool taut_augment_mixes(const taut_augment *a) { return a->mixup > 0 || a->cutmix > 0; }

/* One image as numbers in [0, 1]: flipped, moved, turned, zoomed; then its colours; then a box erased.  Spared images are
 * flipped and moved only. */
void taut_augment_image(double *out, const uint8_t *pixels, taut_frame, const taut_augment *, uint64_t key);
/* Mixes b into a; returns a's share. */
double taut_augment_mix(double *a, const double *b, taut_frame, const taut_augment *, uint64_t key);
#endif
