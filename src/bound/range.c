/* The bits of |w| are in the order of the numbers, with infinity and then NaN behind them: the largest of them says all, and
 * integers, unlike doubles, may be compared many at a time. */
#include "bound/range.h"

#include <string.h>

#include "base/clones.h"

TAUT_CLONES static int64_t most_bits(const double *w, int64_t len)
{
    int64_t most = 0;
    for (int64_t i = 0; i < len; i++) {
        int64_t bits;
        memcpy(&bits, &w[i], sizeof bits);
        bits &= INT64_MAX;
        most = bits > most ? bits : most;
    }
    return most;
}

/* A parallel region costs a call of the system even if its `if` says no, and most of what comes here is short. */
double range_max(const double *w, int64_t len)
{
    enum { PIECE = RANGE_SHARED / 8 };
    int64_t most = 0;
    double largest;
    if (len < RANGE_SHARED) {
        most = most_bits(w, len);
    } else {
#pragma omp parallel for reduction(max : most)
        for (int64_t at = 0; at < len; at += PIECE) {
            const int64_t here = most_bits(w + at, len - at < PIECE ? len - at : PIECE);
            most = here > most ? here : most;
        }
    }
    memcpy(&largest, &most, sizeof largest);
    return largest <= DBL_MAX ? largest : INFINITY;
}
