/* Spectral weight decay:  W <- W - lambda s1 u v^T.  (Plain weight decay is the optimiser's.)  lambda is not
 * multiplied by the learning rate, as in the paper. */
#include "train/constrain/odd.h"

void taut_spectral_decay(taut_hold h, double lambda)
{
    taut_real *u, *v;
    const double top = est_hold_top(&h, &u, &v) * hold_unit(&h);
    h.k->gemm(h.w, u, v, h.rows, h.cols, 1, false, true, -lambda * top, 1);
}
