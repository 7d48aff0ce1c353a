/* Spectral normalisation of the weight itself:  W <- W / max(1, s1/cap). */
#include "train/constrain/hold.h"

void taut_normalise(taut_hold h)
{
    const double top = est_hold_norm(h);
    if (top > h.cap) h.k->axpby(h.w, h.cap / top, h.w, 0, h.rows * h.cols);
}
