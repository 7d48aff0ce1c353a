/* The gradient of a loss that turns from what is right by far: cpu against ref, ref against differences of the loss itself, a
 * power of 1, and corners. */
#include "kernels/pair.h"

static double loss(const double *x, int64_t t, int64_t classes, double power)
{
    double sum = 0;
    for (int64_t c = 0; c < classes; c++) sum += exp(x[c]);
    const double p = exp(x[t]) / sum;
    return pow(1 - p, power) * -log(p);
}

/* Where g is the gradient of -ln p, y is that of (1 - p)^power times it. */
static void slopes(pair *x, const pair *y, const int32_t *target, int64_t classes, double power)
{
    for (int64_t i = 0; i < x->len; i++) {
        double *row = x->d + i / classes * classes;
        const int64_t t = target[i / classes];
        const double kept = x->d[i], step = 1e-6;
        x->d[i] = kept + step;
        const double up = loss(row, t, classes, power);
        x->d[i] = kept - step;
        const double down = loss(row, t, classes, power);
        x->d[i] = kept;
        /* rounding of the loss over a step, and a step's square times a third derivative, which grows as power^3 */
        CHECK_NEAR((up - down) / (2 * step), y->d[i], 1e-8 * (1 + power), "a slope of the loss");
    }
}

static void both(pair *y, const pair *g, const pair *x, const int32_t *target, taut_index *there, int64_t rows,
                 int64_t classes, double power)
{
    ref->focus(R(y), R(g), R(x), (const taut_index *)target, rows, classes, power);
    cpu->focus(y->f, g->f, x->f, there, rows, classes, power);
}

/* Into g's place and into x's. */
static void in_place(const pair *x, const pair *g, const int32_t *target, taut_index *there, int64_t rows,
                     int64_t classes, double power)
{
    pair y = pair_new(x->len, 0), over_g = pair_copy(g), over_x = pair_copy(x);
    both(&y, g, x, target, there, rows, classes, power);
    both(&over_g, &over_g, x, target, there, rows, classes, power);
    both(&over_x, g, &over_x, target, there, rows, classes, power);
    pair_same(&y, &over_g, "in the place of g");
    pair_same(&y, &over_x, "in the place of x");
    pair_free(&y), pair_free(&over_g), pair_free(&over_x);
}

static void compare(int64_t rows, int64_t classes, double size, double power)
{
    pair x = pair_new(rows * classes, size), g = pair_new(rows * classes, 1), y = pair_new(rows * classes, 0);
    int32_t *target = calloc((size_t)rows + 1, sizeof *target);
    double *slack = doubles(rows * classes), lost[2] = { 0, 0 };
    for (int64_t r = 0; r < rows; r++) target[r] = (int32_t)rng_int(0, (int)classes - 1);
    for (int64_t i = 0; i < g.len; i++)
        slack[i] = 0x1p-48 * (1 + power) * (1 + log((double)classes) + size) * fabs(g.d[i]);
    taut_index *there = table_index(cpu, target, rows);
    SAME_BITS(y, (ref->focus(R(&y), R(&g), R(&x), (const taut_index *)target, rows, classes, power),
                  cpu->focus(y.f, g.f, x.f, there, rows, classes, power)));
    pair_near(&y, slack, by_table(0x1p-150, 0x1p-149), UNIT, "focus");
    ref->cross_entropy(R(&g), (taut_sum *)lost, R(&x), (const taut_index *)target, rows, classes, 1);
    ref->focus(R(&y), R(&g), R(&x), (const taut_index *)target, rows, classes, power);
    if (size < 3 && power <= 5) slopes(&x, &y, target, classes, power);
    pair_sync(&g);
    in_place(&x, &g, target, there, rows, classes, power);
    cpu->release(there);
    free(target), free(slack);
    pair_free(&x), pair_free(&g), pair_free(&y);
}

/* Right beyond doubt: nothing; wrong beyond doubt: all; NaN where a logit of any class or the gradient is NaN. */
static void corners(void)
{
    enum { ROWS = 5, LEN = 3 * ROWS };
    const double logits[LEN] = { 900, -900, 0, -900, 900, 0, NAN, 1, 2, 2, 1, NAN, 900, -900, 0 };
    const double want[LEN] = { 0, 0, 0, 1, 1, 1, NAN, NAN, NAN, NAN, NAN, NAN, 0, NAN, 0 };
    const int32_t first[ROWS] = { 0 };
    for (int power = 1; power < 4; power++) {
        pair x = pair_new(LEN, 0), g = pair_new(LEN, 0), y = pair_new(LEN, 1);
        memcpy(x.d, logits, sizeof logits);
        for (int i = 0; i < LEN; i++) g.d[i] = i == LEN - 2 ? NAN : 1;
        pair_sync(&x), pair_sync(&g);
        taut_index *there = table_index(cpu, first, ROWS);
        both(&y, &g, &x, first, there, ROWS, 3, power);
        for (int i = 0; i < LEN; i++) CHECK(y.d[i] == want[i] || (isnan(y.d[i]) && isnan(want[i])), "corners");
        pair_near(&y, NULL, 0, UNIT, "corners");
        cpu->release(there);
        pair_free(&x), pair_free(&g), pair_free(&y);
    }
}

int main(void)
{
    pair_begin();
    for (case_no = 0; case_no < effort(60); case_no++) {
        const double most = case_no % 5 ? 5 : 100, power = case_no % 3 ? 1 + (most - 1) * fabs(rng_pm()) : 1;
        compare(rng_int(0, case_no % 10 == 9 ? 1000 : 30), rng_int(1, case_no % 7 ? 12 : 64), case_no % 4 ? 1 : 30,
                power);
    }
    corners();
    return test_end("focus", "worst error / promised = %.3f", worst);
}
