/* The length of the shortest move inside a box that changes w.x by c, found by search: the oracle of planes and of linear
 * classifiers. */
#ifndef ATTACK_SHORTEST_H
#define ATTACK_SHORTEST_H
#include "targets.h"

enum { MOST = 256 };

/* |d| of the shortest d with w.d = c, entries between 0 and r (w, c >= 0): by bisection on what a length can reach. */
static inline double reach(taut_ball_kind kind, double len, const double *w, const double *r, int64_t n)
{
    double sum = 0, left = len;
    if (kind == TAUT_BALL_LINF)
        for (int64_t i = 0; i < n; i++) sum += w[i] * fmin(len, r[i]);
    if (kind == TAUT_BALL_L1) { /* the largest weights first, found one at a time */
        bool used[MOST] = { false };
        for (int64_t k = 0; k < n && left > 0; k++) {
            int64_t best = -1;
            for (int64_t i = 0; i < n; i++)
                if (!used[i] && (best < 0 || w[i] > w[best])) best = i;
            const double go = fmin(left, r[best]);
            used[best] = true, sum += w[best] * go, left -= go;
        }
    }
    if (kind == TAUT_BALL_L2) { /* d_i = min(l w_i, r_i) with l such that |d| = len */
        double low = 0, high = 1e9, l;
        while ((l = (low + high) / 2) > low && l < high) { /* until there is no number in between */
            double size = 0;
            for (int64_t i = 0; i < n; i++) size += fmin(l * w[i], r[i]) * fmin(l * w[i], r[i]);
            if (size > len * len)
                high = l;
            else
                low = l;
        }
        for (int64_t i = 0; i < n; i++) sum += w[i] * fmin(low * w[i], r[i]);
    }
    return sum;
}

static inline double shortest(taut_ball_kind kind, double c, const double *w, const double *r, int64_t n)
{
    double low = 0, high = 1e3, len;
    while ((len = (low + high) / 2) > low && len < high) {
        if (reach(kind, len, w, r, n) < c)
            low = len;
        else
            high = len;
    }
    return high;
}
#endif
