/* Muon's orthogonalisation: every singular value of a matrix is sent near 1 by odd polynomials. */
#ifndef TAUT_TRAIN_MUON_H
#define TAUT_TRAIN_MUON_H
#include "kernels/kernels.h"

/* Names of the published polynomials, "a|b|c" in the order of their index. */
extern const char *const taut_muon_names;

/* `count` matrices (rows, cols), one behind the other, in place; work has room for count times taut_muon_work(rows, cols)
 * elements.  A zero matrix stays zero; none depends on the others. */
void taut_muon_orthogonalise(const taut_kernels *, taut_real *x, taut_real *work, int64_t count, int64_t rows,
                             int64_t cols, int polynomial);
int64_t taut_muon_work(int64_t rows, int64_t cols);
#endif
