/* Caps on singular values by polynomials ("Training Transformers with Enforced Lipschitz Bounds"), on singular
 * values alone: Theorem 3.1 / B.1 (soft cap) fails for large steps, one of its conditions is reversed, and the
 * table called hard cap is not a cap.  Vector T5.  A weight's norm is therefore always proved from the weight
 * itself, never taken from a cap. */
#include "harness.h"

/* p2(p1(x)), p1 = x - a x^3, p2 = x + a x^3 */
static double soft_cap(double x, double a)
{
    const double y = x - a * x * x * x;
    return y + a * y * y * y;
}

/* the least a >= 0 with p(k) = top: with t = a k^2 it is 1 - 3t^2 + 3t^3 - t^4 = top/k, which falls in t */
static double printed_strength(double top, double k)
{
    double lo = 0, hi = 1;
    if (k <= top) return 0;
    for (int i = 0; i < 200; i++) {
        const double t = (lo + hi) / 2;
        if (1 - 3 * t * t + 3 * t * t * t - t * t * t * t > top / k)
            lo = t;
        else
            hi = t;
    }
    return hi / (k * k);
}

/* the least a with sup |p| <= top on [0, k]; NaN: there is none (k beyond 81/31 top) */
static double sound_strength(double top, double k)
{
    const double peak = 62. / 81; /* p is largest at 1/sqrt(3a), where it is peak/sqrt(3a) */
    if (k <= 81. / 62 * top) return printed_strength(top, k);
    return k <= 81. / 31 * top ? peak * peak / (3 * top * top) : NAN;
}

static double largest(double k, double a)
{
    double most = 0;
    for (int i = 0; i <= 200000; i++) {
        const double size = fabs(soft_cap(k * i / 200000., a));
        if (!(size <= most)) most = size;
    }
    return most;
}

/* "if top < 1/decay then k < top": k is what a step makes of top at most */
static bool printed_condition(double top, double decay) { return top < 1 / decay; }
static double after_step(double top, double decay, double lr) { return top * (1 - decay * lr) + lr; }

static void theorem(double k, double want)
{
    const double sup = largest(k, printed_strength(1, k)), sound = sound_strength(1, k);
    CHECK_NEAR(soft_cap(k, printed_strength(1, k)), 1, 1e-12, "the largest singular value is capped");
    CHECK_NEAR(sup, want, 5e-4, "but not a smaller one");
    CHECK(sup > 1, "so the cap is exceeded");
    if (!isnan(sound)) CHECK_LE(largest(k, sound), 1 + 1e-12, "the corrected strength caps all of them");
    printf("k = %g: %.4f; ", k, sup);
}

static void vector_t5(void)
{
    static const double t5[][3] = { { 1, 1.01, .05802510184971454 }, { 1, 1.02, .08110244591596384 },
                                    { 1, 1.1, .15886441915070834 },  { 2, 2.5, .04842174086839157 },
                                    { 8, 8.4, .001913114505278169 }, { 1, 2, .19529543260681803 } };
    for (int i = 0; i < 6; i++) CHECK_NEAR(sound_strength(t5[i][0], t5[i][1]), t5[i][2], 1e-15, "T5");
    CHECK(isnan(sound_strength(1, 2.7)), "T5: infeasible");
}

/* the published four steps a x + b x^3 + c x^5 */
static double printed_hard_cap(double x)
{
    static const double step[][3] = { { 0.805032, 0.206361, -0.019763 },
                                      { 0.649867, 0.162935, -0.011150 },
                                      { 1.810259, -0.200265, 0.008251 },
                                      { 1.004384, -0.183490, 0.014413 } };
    for (int i = 0; i < 4; i++) {
        const double x2 = x * x;
        x *= step[i][0] + x2 * (step[i][1] + x2 * step[i][2]);
    }
    return x;
}

/* the five steps behind "the update's norm is at most the learning rate" in the larger experiments */
static double printed_orthogonal(double x)
{
    static const double step[][3] = { { 4.0848, -6.8946, 2.9270 },
                                      { 3.9505, -6.3029, 2.6377 },
                                      { 3.7418, -5.5913, 2.3037 },
                                      { 2.8769, -3.1427, 1.2046 },
                                      { 2.8366, -3.0525, 1.2012 } };
    for (int i = 0; i < 5; i++) {
        const double x2 = x * x;
        x *= step[i][0] + x2 * (step[i][1] + x2 * step[i][2]);
    }
    return x;
}

static double peak(double (*f)(double), double end)
{
    double most = 0;
    for (int i = 0; i <= 400000; i++) {
        const double at = f(end * i / 400000.);
        if (!(at <= most)) most = at;
    }
    return most;
}

int main(void)
{
    test_begin();
    theorem(1.5, 1.0276), theorem(2, 1.1917), theorem(2.5, 1.3902), theorem(3, 1.5988), theorem(5, 2.461);
    vector_t5();
    CHECK(printed_condition(0.5, 1) && after_step(0.5, 1, 0.1) > 0.5, "top < 1/decay, and yet a step exceeds top");
    CHECK(!printed_condition(2, 1) && after_step(2, 1, 0.1) < 2, "top > 1/decay, and no step does");
    const double near = peak(printed_hard_cap, 1.1), far = peak(printed_hard_cap, 2),
                 update = peak(printed_orthogonal, 1);
    CHECK_NEAR(near, 1.0025, 1e-4, "hard cap on [0, 1.1]");
    CHECK_NEAR(far, 1.0109, 1e-4, "hard cap on [0, 2]");
    CHECK_NEAR(update, 1.14502, 1e-5, "the orthogonalised update");
    CHECK_LE(soft_cap(2.65, sound_strength(1, 2)), -1, "beyond 81/31 no strength works");
    return test_end("soft cap", "hard cap up to %.4f and %.4f, update up to %.5f", near, far, update);
}
