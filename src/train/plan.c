/* Caps are RMS->RMS norms s_q .. s_out, x the largest RMS of a token, d the width, H heads, c the output factor.
 *     a = scale d s_q s_k x^2                                   how far a logit may be from 0
 *     attention  Lip <= c s_o s_v (sqrt(H + a^2) + a),  RoPE: c s_o s_v (sqrt H + 2 a);    |y| <= c sqrt(H) s_o s_v x
 *     MLP        Lip <= slope factor s_in s_out,  slope the steepest of the activation;    |y| <= factor s_in s_out x
 *     residual   keep + mix times either.
 * sqrt(H) stays because heads may look at different tokens.  The constant wants x where it is taken, so both
 * recursions run together.  Every number rounds up; keep, mix, scale, out and factor are the floats that the model
 * is built with. */
#include "train/plan.h"
#include "base/float32.h"

#include <math.h>
#include <stdio.h>

#include "base/number.h"
#include "bound/arithmetic.h"
#include "module/curves.h"
#include "module/leaf.h"

static double alpha_of(const taut_budget *b) { return b->alpha > 0 ? b->alpha : 0.5 / (double)b->depth; }

static taut_up up_float(double x) { return up_exact(taut_float32(x)); }

/* keep v + mix gain v */
static taut_up up_residual(const taut_budget *b, taut_up v, taut_up gain)
{
    const double alpha = alpha_of(b);
    return up_mul(v, up_add(up_float(1 - alpha), up_mul(up_float(alpha), gain)));
}

static void attention(const taut_budget *b, taut_budget_bound *n, taut_up cap)
{
    const taut_up qk = up_mul(up_exact(b->qk), cap), heads = up_int(b->heads), square = up_mul(n->size, n->size);
    const taut_up a = up_mul(up_mul(up_mul(up_float(b->scale), up_int(b->width)), up_mul(qk, qk)), square);
    const taut_up mixed = up_mul(up_float(b->out), up_mul(cap, cap));
    const taut_up spread = b->rope ? up_add(up_sqrt(heads), a) : up_sqrt(up_add(heads, up_mul(a, a)));
    n->lip = up_residual(b, n->lip, up_mul(mixed, up_add(spread, a)));
    n->size = up_residual(b, n->size, up_mul(mixed, up_sqrt(heads)));
}

static void mlp(const taut_budget *b, taut_budget_bound *n, taut_up cap)
{
    const taut_up gain = up_mul(up_float(b->factor), up_mul(cap, cap));
    n->lip = up_residual(b, n->lip, up_mul(gain, up_slopes_lip(taut_curve_slopes(b->curve))));
    n->size = up_residual(b, n->size, gain);
}

taut_budget_bound up_budget(const taut_budget *b, double cap)
{
    taut_budget_bound n = { .lip = { 1 }, .size = up_exact(b->size) };
    for (int64_t i = 0; i < b->depth; i++) {
        attention(b, &n, up_exact(cap));
        mlp(b, &n, up_exact(cap));
    }
    n.lip = up_mul(n.lip, up_mul(up_exact(b->head), up_float(b->logit)));
    return n;
}

/* ---- solving ---- */

typedef double (*constant)(const taut_budget *, double cap);

static double lip_of(const taut_budget *b, double cap) { return up_budget(b, cap).lip.v; }

/* All of them grow with the cap. */
static double largest_cap(constant f, const taut_budget *b, double target)
{
    double lo = 0, hi = 1e6;
    if (!(f(b, lo) <= target)) return NAN;
    for (int i = 0; i < 200; i++) {
        const double cap = lo + 0.5 * (hi - lo);
        if (f(b, cap) <= target)
            lo = cap;
        else
            hi = cap;
    }
    return lo;
}

double est_budget_cap(const taut_budget *b, double target) { return largest_cap(lip_of, b, target); }
double printed_cap(taut_printed f, const taut_budget *b, double target) { return largest_cap(f, b, target); }

taut_status taut_budget_solve(double *cap, const taut_budget *b, double target)
{
    const taut_status s = taut_arithmetic_test();
    if (s) return s;
    const double goal = target * (1 - 1e-6), exact = largest_cap(lip_of, b, goal), floor_ = lip_of(b, 0);
    if (!(exact > 0))
        return taut_fail(
            TAUT_BAD_CONFIG,
            "a constant of %g cannot be met: with every matrix of the blocks at 0 the residual stream and the "
            "head alone have %.4g (lower the cap of the head or the scale of the logits)",
            target, floor_);
    const double digit = pow(10, floor(log10(exact)) - 5);
    double down = floor(exact / digit);
    do {
        char text[32];
        snprintf(text, sizeof text, "%.6g", down-- * digit);
        taut_number_real(cap, text); /* the double that the recipe will read */
    } while (!(lip_of(b, *cap) <= goal));
    return TAUT_OK;
}

/* ---- as printed ---- */

/* One block, as a pair (constant, RMS), with the attention's constant given. */
static void printed_block(const taut_budget *b, double cap, double attention, double *lip, double *x)
{
    const double a = alpha_of(b), mlp = cap * cap / 1.1289;
    *lip *= (1 - a + a * attention) * (1 - a + a * mlp);
    *x *= (1 - a + a * b->out * cap * cap) * (1 - a + a * mlp);
}

double printed_by_code(const taut_budget *b, double cap)
{
    const double tau = b->scale * (double)b->width / (double)b->heads, qk = b->qk * cap;
    double lip = 1, x = b->size;
    for (int64_t i = 0; i < b->depth; i++)
        printed_block(b, cap, b->out * cap * (cap + 2 * cap * qk * qk * x * x) * tau, &lip, &x);
    return lip * b->head * b->logit;
}

double printed_by_theorem(const taut_budget *b, double cap)
{
    const double qk = b->qk * cap;
    double lip = 1, x = b->size;
    for (int64_t i = 0; i < b->depth; i++)
        printed_block(b, cap, b->out * cap * fmax(1, cap * qk * x * x) * (2 * qk + cap), &lip, &x);
    return lip * b->head * b->logit;
}
