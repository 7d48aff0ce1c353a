/* The shortest move d with w.d = c inside a box.  Turning signs so that c >= 0 and every entry of w is >= 0, with r_i the
 * room that entry i has in its direction:
 *     Linf   d_i = min(l, r_i)         with the l where  f(l) = sum w_i min(l, r_i) = c
 *     L2     d_i = min(l w_i, r_i)     with the l where  f(l) = sum w_i min(l w_i, r_i) = c
 *     L1     whole rooms in the order of w, the largest first, until c is reached.
 * And L1's furthest: whole rooms in the same order until the length is spent, each at the price 1 and not at its weight.
 * f is concave and piecewise linear, so Newton from l = 0 climbs to the root without passing it, in finitely many steps.
 * If all room together is not enough (or w is 0) d fills it. */
#include <math.h>
#include <stdlib.h>

#include "attack/ball.h"

static double room(taut_ball b, double x, double sign) { return sign > 0 ? b.hi - x : x - b.lo; }

static void newton(taut_ball_kind kind, double *d, const double *w, const double *r, double c, int64_t n)
{
    double l = 0;
    for (int it = 0; it < 200; it++) {
        double f = 0, slope = 0;
        for (int64_t i = 0; i < n; i++) {
            const double a = fabs(w[i]), way = kind == TAUT_BALL_LINF ? 1 : a;
            const bool full = !(l * way < r[i]);
            f += full ? (r[i] > 0 ? a * r[i] : 0) : a * l * way;
            slope += full ? 0 : a * way;
        }
        if (!(f < c) || !(slope > 0)) break;
        const double next = l + (c - f) / slope;
        if (!(next > l)) break;
        l = next;
    }
    for (int64_t i = 0; i < n; i++) {
        const double a = fabs(w[i]), way = a == 0 ? 0 : kind == TAUT_BALL_LINF ? 1 : a;
        d[i] = way == 0 ? 0 : fmin(l * way, r[i]);
    }
}

typedef struct {
    double weight;
    int64_t at;
} entry;

static int by_weight(const void *a, const void *b)
{
    const entry *x = a, *y = b;
    if (x->weight != y->weight) return x->weight < y->weight ? 1 : -1;
    return (x->at > y->at) - (x->at < y->at);
}

/* Spends c on rooms, the largest weight first; what a unit of room costs is its weight, or flat: 1. */
static void greedy(double *d, const double *w, const double *r, double c, bool flat, entry *order, int64_t n)
{
    for (int64_t i = 0; i < n; i++) order[i] = (entry){ fabs(w[i]), i };
    for (int64_t i = 0; i < n; i++) d[i] = 0;
    qsort(order, (size_t)n, sizeof *order, by_weight);
    for (int64_t k = 0; k < n && c > 0 && order[k].weight > 0; k++) {
        const int64_t i = order[k].at;
        const double price = flat ? 1 : order[k].weight;
        d[i] = fmin(c / price, r[i]);
        c -= price * d[i];
    }
}

void taut_plane_move(taut_ball b, double *d, const double *x, const double *w, double c, double *work, int64_t n)
{
    double *r = work;
    const double turn = c < 0 ? -1 : 1;
    for (int64_t i = 0; i < n; i++) r[i] = room(b, x[i], turn * w[i]);
    if (b.kind == TAUT_BALL_L1)
        greedy(d, w, r, turn * c, false, (entry *)(work + n), n);
    else
        newton(b.kind, d, w, r, turn * c, n);
    for (int64_t i = 0; i < n; i++) d[i] = copysign(d[i], turn * w[i]);
}

void taut_plane_far(taut_ball b, double *d, const double *x, const double *w, double most, double *work, int64_t n)
{
    double *r = work;
    for (int64_t i = 0; i < n; i++) r[i] = fmin(room(b, x[i], w[i]), most);
    greedy(d, w, r, b.eps, true, (entry *)(work + n), n);
    for (int64_t i = 0; i < n; i++) d[i] = copysign(d[i], w[i]);
}
