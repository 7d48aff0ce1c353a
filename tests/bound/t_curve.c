/* The slope constants are proved over the whole line by interval arithmetic.
 *
 * All smooth curves here have f'(-x) = 1 - f'(x) and f'(x) >= 0 for x >= 0, so sup f' over x >= 0 is hi and lo is
 * 1 - hi.  The proof for x >= 0: a sign function s (f'' up to a positive factor) changes sign at x*, found by
 * bisection; s > 0 on [x*-d, x*-t], s < 0 on [x*+t, x*+d] with a tiny t, so near x* the supremum lies in
 * [x*-t, x*+t], where an interval evaluation of f' is sharp; elsewhere on [0, 12] intervals alone show
 * f' < hi; beyond 12 a decreasing majorant does. */
#include "bound/curve.h"

#include "oracle.h"

enum { BITS = 256 };

typedef void (*arb_curve)(arb_t y, const arb_t x);

static void sigmoid(arb_t y, const arb_t x)
{
    arb_neg(y, x);
    arb_exp(y, y, BITS);
    arb_add_ui(y, y, 1, BITS);
    arb_inv(y, y, BITS);
}

static void silu_slope(arb_t y, const arb_t x) /* p (1 + x (1 - p)), p the sigmoid */
{
    arb_t p, q;
    arb_init(p), arb_init(q);
    sigmoid(p, x);
    arb_neg(q, x);
    sigmoid(q, q);
    arb_mul(q, q, x, BITS);
    arb_add_ui(q, q, 1, BITS);
    arb_mul(y, p, q, BITS);
    arb_clear(p), arb_clear(q);
}

static void silu_sign(arb_t y, const arb_t x) /* 2 - x tanh(x/2) */
{
    arb_t t;
    arb_init(t);
    arb_mul_2exp_si(t, x, -1);
    arb_tanh(t, t, BITS);
    arb_mul(t, t, x, BITS);
    arb_sub_ui(t, t, 2, BITS);
    arb_neg(y, t);
    arb_clear(t);
}

static void gelu_slope(arb_t y, const arb_t x) /* (1 + erf(x/sqrt 2))/2 + x exp(-x^2/2)/sqrt(2 pi) */
{
    arb_t r, e;
    arb_init(r), arb_init(e);
    arb_set_ui(r, 2), arb_sqrt(r, r, BITS), arb_div(r, x, r, BITS);
    arb_hypgeom_erf(e, r, BITS);
    arb_add_ui(e, e, 1, BITS), arb_mul_2exp_si(e, e, -1);
    arb_mul(r, r, r, BITS), arb_neg(r, r), arb_exp(r, r, BITS), arb_mul(r, r, x, BITS);
    arb_const_pi(y, BITS), arb_mul_2exp_si(y, y, 1), arb_sqrt(y, y, BITS), arb_div(r, r, y, BITS);
    arb_add(y, e, r, BITS);
    arb_clear(r), arb_clear(e);
}

static void gelu_sign(arb_t y, const arb_t x) /* 2 - x^2 */
{
    arb_mul(y, x, x, BITS);
    arb_sub_ui(y, y, 2, BITS);
    arb_neg(y, y);
}

/* g = k (x + c x^3), g1 = g', xg2 = x g''/2, with k = sqrt(2/pi), c = 0.044715 */
static void inner(arb_t g, arb_t g1, arb_t xg2, const arb_t x)
{
    arb_t k, c;
    arb_init(k), arb_init(c);
    arb_const_pi(k, BITS), arb_inv(k, k, BITS), arb_mul_2exp_si(k, k, 1), arb_sqrt(k, k, BITS);
    arb_set_str(c, "0.044715", BITS);
    arb_mul(c, c, x, BITS), arb_mul(c, c, x, BITS); /* c x^2 */
    arb_add_ui(g, c, 1, BITS), arb_mul(g, g, x, BITS), arb_mul(g, g, k, BITS);
    arb_mul_ui(xg2, c, 3, BITS), arb_mul(xg2, xg2, k, BITS);
    arb_add(g1, xg2, k, BITS);
    arb_clear(k), arb_clear(c);
}

static void gelu_tanh_slope(arb_t y, const arb_t x) /* (1+t)/2 + x g' (1-t^2)/2, t = tanh g */
{
    arb_t g, g1, g2, t;
    arb_init(g), arb_init(g1), arb_init(g2), arb_init(t);
    inner(g, g1, g2, x);
    arb_tanh(t, g, BITS);
    arb_mul(g, t, t, BITS), arb_sub_ui(g, g, 1, BITS), arb_neg(g, g);
    arb_mul(g, g, g1, BITS), arb_mul(g, g, x, BITS);
    arb_add(g, g, t, BITS), arb_add_ui(g, g, 1, BITS), arb_mul_2exp_si(y, g, -1);
    arb_clear(g), arb_clear(g1), arb_clear(g2), arb_clear(t);
}

static void gelu_tanh_sign(arb_t y, const arb_t x) /* g' + x g''/2 - x t g'^2 */
{
    arb_t g, g1, g2, t;
    arb_init(g), arb_init(g1), arb_init(g2), arb_init(t);
    inner(g, g1, g2, x);
    arb_tanh(t, g, BITS);
    arb_mul(t, t, x, BITS), arb_mul(t, t, g1, BITS), arb_mul(t, t, g1, BITS);
    arb_add(g1, g1, g2, BITS), arb_sub(y, g1, t, BITS);
    arb_clear(g), arb_clear(g1), arb_clear(g2), arb_clear(t);
}

static void set_interval(arb_t x, const arb_t lo, const arb_t hi) { arb_union(x, lo, hi, BITS); }

/* Is low <= f <= high all over [a, b]?  Subdivides; depth bounds the patience. */
static bool within(arb_curve f, const arb_t a, const arb_t b, double low, double high, int depth)
{
    arb_t x, y, m;
    arb_init(x), arb_init(y), arb_init(m);
    set_interval(x, a, b);
    f(y, x);
    bool ok = arb_low(y) >= low && arb_high(y) <= high;
    if (!ok && depth > 0) {
        arb_add(m, a, b, BITS), arb_mul_2exp_si(m, m, -1);
        arb_get_mid_arb(m, m);
        ok = within(f, a, m, low, high, depth - 1) && within(f, m, b, low, high, depth - 1);
    }
    arb_clear(x), arb_clear(y), arb_clear(m);
    return ok;
}

static void at_offset(arb_t y, const arb_t x, double d)
{
    arb_t t;
    arb_init(t);
    arb_set_d(t, d);
    arb_add(y, x, t, BITS);
    arb_get_mid_arb(y, y);
    arb_clear(t);
}

/* x* in [1, 3] to 120 bits, as an exact number nearby. */
static void find_root(arb_t root, arb_curve sign)
{
    arb_t a, b, m, y;
    arb_init(a), arb_init(b), arb_init(m), arb_init(y);
    arb_set_ui(a, 1), arb_set_ui(b, 3);
    for (int i = 0; i < 120; i++) {
        arb_add(m, a, b, BITS), arb_mul_2exp_si(m, m, -1);
        sign(y, m);
        arb_set(arb_is_positive(y) ? a : b, m);
    }
    arb_get_mid_arb(root, a);
    arb_clear(a), arb_clear(b), arb_clear(m), arb_clear(y);
}

static void prove(const char *name, taut_slopes s, arb_curve slope, arb_curve sign)
{
    const double near = 0.25, tiny = 0x1p-80, end = 12;
    arb_t root, a, b, c, d, zero, last, y;
    arb_init(root), arb_init(a), arb_init(b), arb_init(c), arb_init(d), arb_init(zero), arb_init(last), arb_init(y);
    find_root(root, sign);
    at_offset(a, root, -near), at_offset(b, root, -tiny), at_offset(c, root, tiny), at_offset(d, root, near);
    arb_set_d(last, end);
    CHECK(within(sign, a, b, 1e-300, INFINITY, 90), name);     /* f' rises up to x*-t */
    CHECK(within(sign, c, d, -INFINITY, -1e-300, 90), name);   /* and falls from x*+t */
    CHECK(within(slope, b, c, s.hi - 0x1p-51, s.hi, 0), name); /* sound, and tight to 2 ulp */
    CHECK(within(slope, zero, a, 0, s.hi, 40), name);
    CHECK(within(slope, d, last, 0, s.hi, 40), name);
    CHECK(s.lo == 1 - s.hi && s.lo + s.hi == 1, name);
    at_offset(a, zero, 0), slope(y, a);
    CHECK(arb_contains_si(y, 0) == 0 && arb_low(y) <= 0.5 && arb_high(y) >= 0.5, "f'(0) = 1/2");
    arb_clear(root), arb_clear(a), arb_clear(b), arb_clear(c), arb_clear(d), arb_clear(zero), arb_clear(last),
        arb_clear(y);
}

/* Beyond 12, f' <= 1 + m(x) with m decreasing: x phi(x), x exp(-x), and 2 x g' exp(-2g), whose logarithm has the
 * slope 1/x + g''/g' - 2g' <= 3/x - 1.5 < 0.  Their values at 12 leave room for any rounding. */
static void prove_tails(void)
{
    const double x = 12, g = 0.79 * (x + 0.0447 * x * x * x), g1 = 0.8 * (1 + 0.1342 * x * x);
    CHECK_LE(x * exp(-x * x / 2), 1e-3, "gelu beyond 12");
    CHECK_LE(x * exp(-x), 1e-3, "silu beyond 12");
    CHECK_LE(2 * x * g1 * exp(-2 * g), 1e-3, "gelu tanh beyond 12");
}

static double value(int f, double x)
{
    switch (f) {
    case 0:
        return x * 0.5 * erfc(-x * M_SQRT1_2);
    case 1:
        return 0.5 * x * (1 + tanh(sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
    case 2:
        return fmax(x, 0);
    case 3:
        return x / (1 + exp(-x));
    case 4:
        return tanh(x);
    case 6: /* ELU */
        return x > 0 ? x : expm1(x);
    default:
        return fabs(x);
    }
}

/* Secants of the double functions, which also says which function a constant is for. */
static void check_secants(int f, taut_slopes s)
{
    double least = INFINITY, most = -INFINITY;
    for (case_no = 0; case_no < effort(100000); case_no++) {
        const double x = 6 * rng_pm(), y = x + (rng_int(0, 1) ? 1e-3 : 4) * rng_pm(), d = x - y;
        if (fabs(d) < 1e-6) continue;
        const double slope = (value(f, x) - value(f, y)) / d, tol = 1e-14 / fabs(d);
        CHECK_LE(slope, s.hi + tol, "secant above");
        CHECK_LE(s.lo, slope + tol, "secant below");
        CHECK_LE(fabs(value(f, x)), fabs(x) * (1 + 1e-15), "|f(x)| <= |x|");
        least = fmin(least, slope), most = fmax(most, slope);
    }
    CHECK_LE(s.hi - 1e-3, most, "hi is attained");
    CHECK_LE(least, s.lo + 1e-3, "lo is attained");
    const double mid = slopes_mid(s), half = up_slopes_half(s).v;
    CHECK(mid - half <= s.lo && s.hi <= mid + half && half <= (s.hi - s.lo) / 2 + 1e-15, "middle and half width");
    CHECK(up_slopes_lip(s).v == fmax(fabs(s.lo), fabs(s.hi)), "the Lipschitz constant");
}

int main(void)
{
    test_begin();
    prove("gelu", slopes_gelu(), gelu_slope, gelu_sign);
    prove("gelu tanh", slopes_gelu_tanh(), gelu_tanh_slope, gelu_tanh_sign);
    prove("silu", slopes_silu(), silu_slope, silu_sign);
    prove_tails();
    const taut_slopes all[] = { slopes_gelu(), slopes_gelu_tanh(), slopes_relu(), slopes_silu(),
                                slopes_tanh(), slopes_abs(),       slopes_relu() };
    for (int f = 0; f < 7; f++) check_secants(f, all[f]);
    CHECK(all[2].lo == 0 && all[2].hi == 1 && all[4].lo == 0 && all[4].hi == 1, "relu and tanh");
    CHECK_NEAR(all[0].hi / 1.1289, 1.00000367187984, 1e-14, "T1 erf");
    CHECK_NEAR(all[1].hi / 1.1289, 1.00008244189811, 1e-14, "T1 tanh");
    flint_cleanup();
    return test_end("curve", "3 constants proved, %d secants", 7 * effort(100000));
}
