/* With T tokens of d numbers in and S of c out, and a constant L:
 *   RMS     |v|_RMS = |v| / sqrt(n) for n numbers, so L sqrt(d/c) for tokens and L sqrt(T d / (S c)) for flat
 *   flat from tokens   |dy| <= sqrt(S) max_t |dy_t| <= sqrt(S) L max_t |dx_t| <= sqrt(S) L |dx|
 *   tokens from flat   max_t |dy_t| <= |dy| <= L |dx| <= L sqrt(T) max_t |dx_t|
 * A proof in the other norm (certify --norm) knows more than that. */
#include "certify/units.h"

static taut_up up_root(double over, double under) { return up_sqrt(up_div(up_exact(over), lo_exact(under))); }

void taut_units(taut_unit unit[TAUT_UNITS], const taut_certificate *c)
{
    const taut_shape in = { 1, c->model->in.t, c->model->in.d }, out = taut_plan_of(c->model->root, in).out;
    const double t = (double)in.t, s = (double)out.t, wide = (double)in.d, classes = (double)out.d;
    const bool flat = c->norm == TAUT_NORM_FLAT;
    const taut_norm other = flat ? TAUT_NORM_TOKENS : TAUT_NORM_FLAT;
    const taut_up one = { 1 }, cross = flat ? up_root(t, 1) : up_root(s, 1);
    const taut_up tokens = up_root(wide, classes), all = up_root(t * wide, s * classes);
    unit[0] = (taut_unit){ c->norm, false, one, c->lip, "as proved" };
    unit[1] = (taut_unit){ c->norm, true, flat ? all : tokens, c->lip, "sqrt(numbers in / numbers out)" };
    unit[2] = (taut_unit){ other, false, cross, c->lip,
                           flat ? "sqrt(tokens in): together at most that much longer than the longest"
                                : "sqrt(tokens out): together at most that much longer than the longest" };
    unit[3] = (taut_unit){ other, true, up_mul(cross, flat ? tokens : all), c->lip, "both" };
    for (int i = 0; i < TAUT_UNITS; i++) unit[i].lip = up_mul(c->lip, unit[i].factor);
    unit[0].lip = c->lip;
}
