/* How far a table of floats strays from x - 2 V^T R f(V x + b), R a diagonal matrix with entries of one sign: h = V x + b,
 * a = f(h), R a and V^T (R a), one after the other.  All is measured with |R|^1/2, and then V^T R a is as long as
 * ||R^1/2 V|| |R^1/2 a| at most. */
#ifndef TAUT_MODULE_STRAYS_POTENTIAL_H
#define TAUT_MODULE_STRAYS_POTENTIAL_H
#include "bound/curve.h"
#include "module/strays.h"

typedef struct {
    int64_t width, hidden;
    taut_curve curve;
    taut_slopes slopes;
    taut_up norm, frobenius; /* of R^1/2 V */
    taut_up plain;           /* the Frobenius norm of V */
    taut_up bias;            /* |R^1/2 b| */
    taut_up root;            /* no entry of R^1/2 is larger */
    taut_up delta;           /* R is off by so much of itself */
    taut_up most;            /* no |h_i| is larger */
} taut_strays_potential;

static inline taut_up strays_potential(taut_ask in, const taut_strays_potential *p)
{
    const taut_up x = strays_in(in), two = { 2 };
    const taut_up h = up_add(up_mul(p->norm, x), up_mul(strays_root(in), p->bias)); /* |R^1/2 h| */
    const taut_up sums = up_mul((taut_up){ promise_product(in.table, p->width) }, up_mul(p->frobenius, x));
    const taut_up result = up_mul((taut_up){ promise_product_result(in.table) }, up_mul(p->norm, x));
    const taut_up made = up_add(sums, result), rows = { promise_rows(in.table) };
    const taut_up largest = up_mul(up_mul(up_add((taut_up){ 1 }, up_mul(p->root, p->root)), two), up_add(p->most, x));
    const taut_up least = strays_sum(in, UP_ZERO, largest, p->width + p->hidden + 64, (double)p->hidden);
    const taut_up eh = up_add(up_add(made, up_mul(rows, up_add(h, made))), up_mul(p->root, least));
    const taut_up farthest = up_mul(p->most, (taut_up){ 1.01 + 2 * promise_product(in.table, p->width) });
    const taut_up curve = up_mul((taut_up){ promise_curve(in.table, p->curve, farthest.v) }, up_add(h, eh));
    const taut_up ea = up_add(up_add(up_mul(up_slopes_lip(p->slopes), eh), curve), up_mul(p->root, least));
    const taut_up a = up_add(h, ea), off = up_add(p->delta, up_add(rows, up_mul(p->delta, rows)));
    const taut_up ew = up_add(ea, up_mul(off, a)), w = up_add(a, ew); /* R a, measured with R^-1/2 */
    const taut_up mass = up_add(x, up_mul(two, up_mul(p->frobenius, w))),
                  y = up_add(x, up_mul(two, up_mul(p->norm, w)));
    const taut_up last = up_add(up_mul((taut_up){ promise_product(in.table, p->hidden) }, mass),
                                up_mul((taut_up){ promise_product_result(in.table) }, y));
    const taut_up carried = up_add(up_mul(p->norm, ew), up_mul(p->plain, least));
    return strays_sum(in, up_add(up_mul(two, carried), last), mass, p->hidden, (double)p->width);
}
#endif
