/* The six-step polynomial of Muon leaves [0.9955, 0.9994] of what is above 0.002 of the Frobenius norm.  A second
 * pass goes further down, as the first multiplies small singular values by up to 1137.  Then one Newton-Schulz step
 * of third order, (15 s - 10 s^3 + 3 s^5)/8: an error e becomes 2.5 e^3 < 3e-7. */
#include "train/constrain/odd.h"
#include "train/muon.h"

enum { YOU6 = 0 }; /* its place in taut_muon_names */

void odd_sign(const taut_kernels *k, taut_real *x, int64_t rows, int64_t cols, int passes, taut_span work)
{
    taut_span area = work;
    taut_real *room = taut_take(&area, taut_muon_work(rows, cols));
    for (int i = 0; i < passes; i++) taut_muon_orthogonalise(k, x, room, 1, rows, cols, YOU6);
    odd_step(k, x, rows, cols, (odd_quintic){ 15. / 8, -10. / 8, 3. / 8 }, work);
}
