/* A step gone mad may leave numbers whose squares are no floats.  No norm is above the Frobenius norm, so that is brought
 * into reach first. */
#include "train/constrain/hold.h"

double taut_reach(const taut_hold *h) { return 1e6 * (h->cap + 1) * sqrt((double)(h->rows * h->cols)); }

void taut_tame(const taut_kernels *k, taut_real *w, int64_t count, int64_t len, const double *reach, taut_sum *room)
{
    taut_sum *most = taut_sum_at(room, count);
    k->put_sum(most, reach, count);
    k->dot(room, w, len, w, len, count, len);
    k->sum_op(room, TAUT_SUM_ROOT, 1, room, NULL, count);
    k->sum_op(room, TAUT_SUM_DIV, 1, most, room, count);
    k->sum_op(room, TAUT_SUM_MIN, 1, room, NULL, count);
    k->axpby_by(w, len, (taut_factor){ 0, NULL }, NULL, 0, (taut_factor){ 1, room }, count, len);
}
