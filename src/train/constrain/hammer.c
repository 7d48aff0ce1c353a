/* Spectral hammer:  W <- W + (cap - s1) u v^T.  The published map: it also lifts s1 up to cap, and it says nothing
 * about the second singular value, so it does not bound the norm. */
#include "train/constrain/odd.h"

void taut_hammer(taut_hold h)
{
    taut_real *u, *v;
    const double top = est_hold_top(&h, &u, &v);
    h.k->gemm(h.w, u, v, h.rows, h.cols, 1, false, true, (h.cap - top) * hold_unit(&h), 1);
}
