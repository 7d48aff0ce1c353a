/* Spectral hard cap by the published table: four quintics on W / cap, without normalisation.  Approximates min(1, s)
 * within 0.034 on [0, 2], peak 1.0109 at s = 1.185, slope 0.9512 at 0: not a cap, and weights shrink even where no
 * step is taken.  The table turns over behind s = 3.5, so a norm above 2 cap is scaled down to that first; this is
 * our only change. */
#include "train/constrain/odd.h"

static const odd_quintic table[] = {
    { 0.805032, 0.206361, -0.019763 },
    { 0.649867, 0.162935, -0.011150 },
    { 1.810259, -0.200265, 0.008251 },
    { 1.004384, -0.183490, 0.014413 },
};

void taut_hardcap_table(taut_hold h)
{
    const int64_t len = h.rows * h.cols;
    const double top = est_hold_norm(h), unit = h.cap * hold_unit(&h);
    const double first = top > 2 * h.cap ? 2 * h.cap / top : 1;
    h.k->axpby(h.w, first / unit, h.w, 0, len);
    for (int i = 0; i < 4; i++) odd_step(h.k, h.w, h.rows, h.cols, table[i], h.work);
    h.k->axpby(h.w, unit, h.w, 0, len);
}
