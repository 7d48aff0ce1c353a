/* Normalisation: cpu against ref, the slope is symmetric and the derivative, and a vector worked out by hand. */
#include "kernels/pair.h"

static const double tiny = 0x1p-52;

static double largest(const double *x, int64_t d)
{
    double max = 0;
    for (int64_t c = 0; c < d; c++) max = fmax(max, fabs(x[c]));
    return max;
}

static void forward_case(pair *z, pair *rstd, const pair *x, int64_t rows, int64_t d, bool centre, double eps)
{
    double *tol = doubles(z->len), *tol_r = doubles(rows);
    SAME_BITS(*z, (ref->normalise(R(z), R(rstd), NULL, R(x), rows, d, centre, eps),
                   cpu->normalise(z->f, rstd->f, NULL, x->f, rows, d, centre, eps)));
    for (int64_t r = 0; r < rows; r++) {
        const double off = promise_normalise_sums(d) * largest(x->d + r * d, d) * rstd->d[r];
        tol_r[r] = rstd->d[r] * (promise_normalise(promised) + off);
        for (int64_t c = 0; c < d; c++)
            tol[r * d + c] = promise_normalise(promised) * fabs(z->d[r * d + c]) + off * (1 + fabs(z->d[r * d + c]));
    }
    pair_near(z, tol, 0, 0, "normalise");
    pair_near(rstd, tol_r, 0, 0, "rstd");
    pair own = pair_copy(x);
    ref->normalise(R(&own), R(rstd), NULL, R(&own), rows, d, centre, eps);
    cpu->normalise(own.f, rstd->f, NULL, own.f, rows, d, centre, eps);
    pair_same(&own, z, "in place");
    pair_free(&own);
    free(tol);
    free(tol_r);
}

/* What is asked for besides, with a bias and without: z keeps its bits. */
static void scaled_case(const pair *z, pair *rstd, const pair *x, int64_t rows, int64_t d, bool centre, double eps)
{
    pair y = pair_new(z->len, 0), own = pair_copy(x), gain = pair_new(d, 2), bias = pair_new(d, 1);
    double *tol = doubles(z->len);
    for (int shifted = 0; shifted < 2; shifted++) {
        const taut_scaled exact = { R(&y), R(&gain), shifted ? R(&bias) : NULL };
        const taut_scaled fast = { y.f, gain.f, shifted ? bias.f : NULL };
        SAME_BITS(y, (ref->normalise(R(&own), R(rstd), &exact, R(x), rows, d, centre, eps),
                      cpu->normalise(own.f, rstd->f, &fast, x->f, rows, d, centre, eps)));
        pair_same(&own, z, "normalise beside what is scaled");
        for (int64_t i = 0; i < z->len; i++) {
            const double scaled = gain.d[i % d] * z->d[i], shift = shifted ? bias.d[i % d] : 0;
            const double off = promise_normalise_sums(d) * largest(x->d + i / d * d, d) * rstd->d[i / d];
            CHECK_NEAR(y.d[i], scaled + shift, 1e-15 * (fabs(scaled) + fabs(shift)), "gain and bias");
            tol[i] = 2 * UNIT * (fabs(scaled) + fabs(shift)) +
                     fabs(gain.d[i % d]) * (promise_normalise(promised) * fabs(z->d[i]) + off * (1 + fabs(z->d[i])));
        }
        pair_near(&y, tol, 0, 0, "scaled");
    }
    pair_free(&y), pair_free(&own), pair_free(&gain), pair_free(&bias);
    free(tol);
}

static void slope_case(const pair *z, const pair *rstd, int64_t rows, int64_t d, bool centre)
{
    pair t = pair_new(z->len, 1), u = pair_new(z->len, 1), y = pair_new(z->len, 0), w = pair_new(z->len, 0);
    pair gain = pair_new(d, 1), scaled = pair_copy(&t);
    double *tol = doubles(z->len);
    SAME_BITS(y, (ref->normalise_slope(R(&y), R(&t), NULL, R(z), R(rstd), rows, d, centre),
                  cpu->normalise_slope(y.f, t.f, NULL, z->f, rstd->f, rows, d, centre)));
    for (int64_t i = 0; i < z->len; i++) {
        const double zmax = largest(z->d + i / d * d, d); /* |t|, |gain| <= 1 */
        tol[i] = 2 * UNIT * fabs(y.d[i]) + (double)(d + 4) * tiny * rstd->d[i / d] * (2 + zmax * zmax);
    }
    pair_near(&y, tol, 0, 0, "slope");
    ref->normalise_slope(R(&w), R(&u), NULL, R(z), R(rstd), rows, d, centre);
    CHECK_NEAR(dot(y.d, u.d, y.len), dot(w.d, t.d, y.len), 1e-12 * (1 + norm(w.d, w.len) * norm(t.d, t.len)),
               "slope is symmetric");
    for (int64_t i = 0; i < z->len; i++) scaled.d[i] *= gain.d[i % d];
    ref->normalise_slope(R(&u), R(&t), R(&gain), R(z), R(rstd), rows, d, centre);
    cpu->normalise_slope(u.f, t.f, gain.f, z->f, rstd->f, rows, d, centre);
    ref->normalise_slope(R(&w), R(&scaled), NULL, R(z), R(rstd), rows, d, centre);
    for (int64_t i = 0; i < z->len; i++) {
        const double zmax = largest(z->d + i / d * d, d),
                     sums = (double)(d + 4) * tiny * rstd->d[i / d] * (2 + zmax * zmax);
        CHECK_NEAR(u.d[i], w.d[i], sums, "slope of gain t");
        tol[i] = 2 * UNIT * fabs(u.d[i]) + sums;
    }
    pair_near(&u, tol, 0, 0, "slope of gain t");
    ref->normalise_slope(R(&t), R(&t), NULL, R(z), R(rstd), rows, d, centre);
    cpu->normalise_slope(t.f, t.f, NULL, z->f, rstd->f, rows, d, centre);
    pair_same(&t, &y, "slope in place");
    pair_free(&t), pair_free(&u), pair_free(&y), pair_free(&w), pair_free(&gain), pair_free(&scaled);
    free(tol);
}

static void centre_case(const pair *x, int64_t rows, int64_t d)
{
    pair y = pair_new(x->len, 0), z = pair_copy(x);
    double *tol = doubles(x->len);
    SAME_BITS(y, (ref->centre_rows(R(&y), R(x), rows, d), cpu->centre_rows(y.f, x->f, rows, d)));
    for (int64_t i = 0; i < x->len; i++)
        tol[i] = promise_normalise(promised) * fabs(y.d[i]) + promise_normalise_sums(d) * largest(x->d + i / d * d, d);
    pair_near(&y, tol, 0, 0, "centre_rows");
    ref->centre_rows(R(&z), R(&z), rows, d);
    cpu->centre_rows(z.f, z.f, rows, d);
    pair_same(&z, &y, "centre_rows in place");
    pair_free(&y);
    pair_free(&z);
    free(tol);
}

/* d/dh normalise(x + h t) at h = 0, by central differences of ref. */
static void derivative(int64_t d, bool centre)
{
    const double h = 1e-6, eps = 0.1;
    double *x = doubles(6 * d), *t = x + d, *z = x + 2 * d, *up = x + 3 * d, *down = x + 4 * d, *y = x + 5 * d;
    double rstd, unused;
    fill(x, 2 * d);
    ref->normalise((taut_real *)z, (taut_real *)&rstd, NULL, (taut_real *)x, 1, d, centre, eps);
    ref->normalise_slope((taut_real *)y, (taut_real *)t, NULL, (taut_real *)z, (taut_real *)&rstd, 1, d, centre);
    for (int64_t c = 0; c < d; c++) x[c] += h * t[c];
    ref->normalise((taut_real *)up, (taut_real *)&unused, NULL, (taut_real *)x, 1, d, centre, eps);
    for (int64_t c = 0; c < d; c++) x[c] -= 2 * h * t[c];
    ref->normalise((taut_real *)down, (taut_real *)&unused, NULL, (taut_real *)x, 1, d, centre, eps);
    for (int64_t c = 0; c < d; c++) CHECK_NEAR(y[c], (up[c] - down[c]) / (2 * h), 1e-7, "slope is the derivative");
    free(x);
}

static void vector_t7(void)
{
    const double x[] = { 1, 2, 4 }, g[] = { 1, -2, .5 }, want[] = { -1.06904153, .53452077, .66815096 };
    double z[3], rstd;
    ref->normalise((taut_real *)z, (taut_real *)&rstd, NULL, (const taut_real *)x, 1, 3, true, 1e-5);
    for (int c = 0; c < 3; c++) CHECK_NEAR(z[c] * g[c], want[c], 1e-8, "T7");
}

int main(void)
{
    pair_begin();
    for (case_no = 0; case_no < effort(80); case_no++) {
        const int64_t rows = rng_int(0, case_no % 9 ? 6 : 90);
        const int64_t d = rng_int(1, case_no % 9 ? 70 : 300) *
                          (case_no % 4 < 2 ? 4 : 1); /* a device reads fours at once */
        const bool centre = case_no % 2;
        pair_shift = case_no % 5 == 1;
        pair x = pair_new(rows * d, pow(10, 3 * rng_pm())), z = pair_new(x.len, 0), rstd = pair_new(rows, 0);
        const double shift = case_no % 3 == 0 ? 1000 * rng_pm() : 0;
        for (int64_t i = 0; i < x.len; i++) x.d[i] += shift;
        pair_sync(&x);
        centre_case(&x, rows, d);
        const double eps = pow(10, -3 - 3 * rng_unit());
        forward_case(&z, &rstd, &x, rows, d, centre, eps);
        scaled_case(&z, &rstd, &x, rows, d, centre, eps);
        pair_sync(&z);
        pair_sync(&rstd);
        slope_case(&z, &rstd, rows, d, centre);
        if (rows > 1) {
            x.d[d / 2] = case_no % 4 < 2 ? NAN : INFINITY;
            pair_sync(&x);
            ref->normalise(R(&z), R(&rstd), NULL, R(&x), rows, d, centre, 1e-5);
            cpu->normalise(z.f, rstd.f, NULL, x.f, rows, d, centre, 1e-5);
            CHECK(isnan(z.d[d / 2]) && !isnan(z.d[d]), "poison keeps to its row");
            pair_near(&z, NULL, 1e-6, 2 * UNIT, "normalise with poison");
        }
        pair_free(&x);
        pair_free(&z);
        pair_free(&rstd);
        derivative(rng_int(1, 9), centre);
    }
    vector_t7();
    return test_end("normalise", "worst error / promised = %.3f", worst);
}
