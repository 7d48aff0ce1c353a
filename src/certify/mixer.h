/* How far a layer of PLASH's mixer can carry a perturbation of its M tokens: as the paper prints it, and mended.
 * The layer is a = LN1(y + attention(y)), z = LN2(a + W2 relu(W1 a + b1) + b2), on (groups, width). */
#ifndef TAUT_CERTIFY_MIXER_H
#define TAUT_CERTIFY_MIXER_H
#include <stdint.h>

#include "bound/up.h"

enum { TAUT_MIXER_HEADS = 16 };
typedef struct {
    int64_t groups, width, heads, hidden;
    double eps;
    const double *wq, *wk, *wv, *wo, *w1, *b1, *w2, *b2, *g1, *be1, *g2, *be2; /* y = W x */
    double nq[TAUT_MIXER_HEADS], nk[TAUT_MIXER_HEADS], nv[TAUT_MIXER_HEADS];   /* norms of each head's part, proved */
    double no, n1, n2, gain1, gain2;                                           /* of wo, w1, w2; the largest |g| */
} taut_mixer_layer;

void taut_mixer_norms(taut_mixer_layer *);         /* fills in the norms from the weights */
int64_t taut_mixer_work(const taut_mixer_layer *); /* doubles in `work` below */

/* Mended: every y within r of `centre` (largest token) is within the answer of layer(centre), which `centre`
 * becomes.  Ball propagation with the sharp constant of LayerNorm. */
double taut_mixer_ball(const taut_mixer_layer *, double *centre, double r, double *work);

/* As printed (Theorem B.8): a "Lipschitz constant" on the segment from y0 to y1 made of its endpoints alone.
 * Not a bound: tests/certify/t_plash.c.  Both become what the layer makes of them. */
double taut_mixer_printed(const taut_mixer_layer *, double *y0, double *y1, double *work);

/* max over rows of |x_i|, x (rows, d) */
double taut_longest_row(const double *x, int64_t rows, int64_t d, int64_t stride);
#endif
