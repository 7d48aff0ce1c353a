/* Projection to cap times the matrices with orthonormal rows or columns, by Muon's six-step polynomial, which never
 * exceeds 0.99934: singular values above 0.002 of the Frobenius norm land in [0.9955, 0.9994] cap. */
#include "train/constrain/odd.h"
#include "train/muon.h"

void taut_stiefel(taut_hold h)
{
    taut_real *room = taut_take(&h.work, taut_muon_work(h.rows, h.cols));
    taut_muon_orthogonalise(h.k, h.w, room, 1, h.rows, h.cols, 0);
    h.k->axpby(h.w, h.cap * hold_unit(&h), h.w, 0, h.rows * h.cols);
}
