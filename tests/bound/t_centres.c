/* Centres: three clouds are found, the radius is at most twice the best one, Lloyd never makes it worse, few points. */
#include "bound/centres.h"
#include "harness.h"

static double cost(const double *centre, const double *x, int n, int d, int m, double *radius)
{
    double sum = 0;
    *radius = 0;
    for (int i = 0; i < n; i++) {
        double best = INFINITY;
        for (int j = 0; j < m; j++) {
            double far = 0;
            for (int c = 0; c < d; c++) far += (x[i * d + c] - centre[j * d + c]) * (x[i * d + c] - centre[j * d + c]);
            best = fmin(best, far);
        }
        sum += best;
        *radius = fmax(*radius, sqrt(best));
    }
    return sum;
}

static void clouds(void)
{
    enum { N = 60, D = 2, M = 3 };
    double x[N * D], centre[M * D], radius;
    for (int i = 0; i < N; i++)
        for (int c = 0; c < D; c++) x[i * D + c] = 10 * (i % 3 == c) + 0.5 * rng_pm();
    CHECK(est_centres(centre, x, N, D, M, 0) == TAUT_OK, "memory");
    cost(centre, x, N, D, M, &radius);
    CHECK_LE(radius, 2 * sqrt(0.5), "one centre a cloud");
    CHECK(est_centres(centre, x, N, D, M, 3) == TAUT_OK, "memory");
    cost(centre, x, N, D, M, &radius);
    CHECK_LE(radius, 1.5 * sqrt(0.5), "in its middle");
}

static void better(void)
{
    enum { N = 30, D = 3, M = 5 };
    double x[N * D], centre[M * D], radius, last = INFINITY;
    fill(x, N * D);
    for (int steps = 0; steps < 5; steps++) {
        CHECK(est_centres(centre, x, N, D, M, steps) == TAUT_OK, "memory");
        const double now = cost(centre, x, N, D, M, &radius);
        CHECK_LE(now, last * (1 + 1e-12), "Lloyd never makes it worse");
        last = now;
    }
}

static void few(void)
{
    const double x[] = { 1, 2 };
    double centre[4] = { 7, 7, 7, 7 };
    CHECK(est_centres(centre, x, 2, 1, 4, 2) == TAUT_OK, "memory");
    for (int j = 0; j < 4; j++) CHECK(centre[j] == 1 || centre[j] == 2, "points serve again");
    double kept[4];
    memcpy(kept, centre, sizeof kept);
    CHECK(est_centres(centre, x, 0, 1, 4, 2) == TAUT_OK && memcmp(centre, kept, sizeof kept) == 0,
          "no points: nothing moves");
}

int main(void)
{
    test_begin();
    for (case_no = 0; case_no < effort(50); case_no++) {
        clouds();
        better();
    }
    few();
    return test_end("centres", "k-center and Lloyd");
}
