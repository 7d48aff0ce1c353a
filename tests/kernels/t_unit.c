/* Rows on the sphere: cpu against ref, both sides of the floor, the slope against differences, poison. */
#include "kernels/pair.h"

static void compare(int64_t rows, int64_t d, double floor, double size)
{
    const double factor = pow(10, 2 * rng_pm());
    pair x = pair_new(rows * d, size), t = pair_new(rows * d, 1), y = pair_new(rows * d, 0);
    double *tol = doubles(rows * d);
    SAME_BITS(y,
              (ref->unit_rows(R(&y), R(&x), rows, d, floor, factor), cpu->unit_rows(y.f, x.f, rows, d, floor, factor)));
    pair_near(&y, NULL, 0x1p-149, 2 * UNIT, "unit_rows");
    SAME_BITS(y, (ref->unit_rows_slope(R(&y), R(&t), R(&x), rows, d, floor, factor),
                  cpu->unit_rows_slope(y.f, t.f, x.f, rows, d, floor, factor)));
    for (int64_t r = 0; r < rows; r++)
        for (int64_t c = 0; c < d; c++)
            tol[r * d + c] = (double)(d + 8) * 0x1p-50 * factor * norm(t.d + r * d, d) /
                             fmax(norm(x.d + r * d, d), floor);
    pair_near(&y, tol, 0x1p-149, 2 * UNIT, "unit_rows_slope");
    pair_free(&x), pair_free(&t), pair_free(&y);
    free(tol);
}

static void derivative(int64_t d, double floor)
{
    double x[8] = { 0 }, t[8] = { 0 }, y[8], up[8], down[8], hi[8], lo[8];
    fill(x, d), fill(t, d);
    if (fabs(norm(x, d) - floor) < 1e-3) return; /* the kink */
    for (int64_t c = 0; c < d; c++) up[c] = x[c] + 1e-6 * t[c], down[c] = x[c] - 1e-6 * t[c];
    ref->unit_rows_slope((taut_real *)y, (taut_real *)t, (taut_real *)x, 1, d, floor, 3);
    ref->unit_rows((taut_real *)hi, (taut_real *)up, 1, d, floor, 3);
    ref->unit_rows((taut_real *)lo, (taut_real *)down, 1, d, floor, 3);
    for (int64_t c = 0; c < d; c++)
        CHECK_NEAR((hi[c] - lo[c]) / 2e-6, y[c], 1e-7 * (1 + 1 / norm(x, d) / norm(x, d)) / fmax(norm(x, d), floor),
                   "slope");
}

static void corners(void)
{
    pair x = pair_new(6, 0), y = pair_new(6, 1);
    x.d[0] = NAN, x.d[3] = 0.5;
    pair_sync(&x);
    ref->unit_rows(R(&y), R(&x), 3, 2, 1, 2);
    cpu->unit_rows(y.f, x.f, 3, 2, 1, 2);
    CHECK(isnan(y.d[0]) && isnan(y.d[1]) && y.d[3] == 1 && y.d[5] == 0, "poison keeps to its row, 0 stays 0");
    pair_near(&y, NULL, 0, 2 * UNIT, "corners");
    pair_free(&x), pair_free(&y);
}

static void in_place(void)
{
    pair x = pair_new(60, 1), all = pair_copy(&x), y = pair_new(60, 0);
    ref->unit_rows(R(&x), R(&x), 6, 10, 3.3, 3.3); /* no row is that long */
    cpu->unit_rows(x.f, x.f, 6, 10, 3.3, 3.3);
    pair_same(&x, &all, "shorter rows keep their bits");
    ref->unit_rows(R(&y), R(&x), 6, 10, 0.5, 0.7);
    cpu->unit_rows(y.f, x.f, 6, 10, 0.5, 0.7);
    ref->unit_rows(R(&x), R(&x), 6, 10, 0.5, 0.7);
    cpu->unit_rows(x.f, x.f, 6, 10, 0.5, 0.7);
    pair_same(&x, &y, "in place");
    pair_free(&x), pair_free(&all), pair_free(&y);
}

int main(void)
{
    pair_begin();
    for (case_no = 0; case_no < effort(80); case_no++) {
        compare(rng_int(0, case_no % 6 ? 5 : 300), rng_int(1, 60), pow(10, 2 * rng_pm()), pow(10, 2 * rng_pm()));
        derivative(rng_int(1, 8), rng_unit());
    }
    corners();
    in_place();
    return test_end("unit", "worst error / promised = %.3f", worst);
}
