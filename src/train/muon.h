/* Muon's orthogonalisation: every singular value of a matrix is sent near 1 by odd polynomials. */
#ifndef TAUT_TRAIN_MUON_H
#define TAUT_TRAIN_MUON_H
#include "kernels/kernels.h"

/* Names of the published polynomials, "a|b|c" in the order of their index. */
extern const char *const taut_muon_names;

/* x (rows, cols) in place; work has room for taut_muon_work(rows, cols) elements.  A zero matrix stays zero.
 */
void taut_muon_orthogonalise(const taut_kernels *, taut_real *x, taut_real *work, int64_t rows, int64_t cols,
                             int polynomial);
int64_t taut_muon_work(int64_t rows, int64_t cols);
#endif
