/* Orthogonal matrices by Bjorck and Cayley, on ref and cpu: orthonormal, the nearest, idempotent; the retraction is
 * what its definition says and agrees with the move to first order; linear's certified norm of the result is 1. */
#include "train/constrain/orthogonal.h"

#include "bound/norm.h"
#include "harness.h"
#include "train/constrain/hold.h"

static const taut_kernels *k;
static double worst;

static taut_real *put(const double *x, int64_t len)
{
    taut_real *r = taut_reals(k, len);
    k->put(r, x, len);
    return r;
}

/* max |X^T X - I| on the smaller side */
static double defect(const double *x, int64_t rows, int64_t cols)
{
    const bool wide = rows < cols;
    const int64_t side = wide ? rows : cols, len = wide ? cols : rows, step = wide ? 1 : cols, next = wide ? cols : 1;
    double most = 0;
    for (int64_t i = 0; i < side; i++)
        for (int64_t j = 0; j < side; j++) {
            double s = i == j ? -1 : 0;
            for (int64_t l = 0; l < len; l++) s += x[i * next + l * step] * x[j * next + l * step];
            most = fmax(most, fabs(s));
        }
    return most;
}

static void bjorck(double *y, const double *x, int64_t rows, int64_t cols, int steps)
{
    taut_real *r = put(x, rows * cols), *work = taut_reals(k, taut_hold_work(rows, cols));
    taut_bjorck(k, r, work, rows, cols, steps);
    k->get(y, r, rows * cols);
    k->release(r), k->release(work);
}

static void check_bjorck(int64_t rows, int64_t cols, double tol)
{
    const int64_t len = rows * cols;
    double *x = doubles(len), *y = doubles(len), *z = doubles(len);
    const double size = pow(10, 3 * rng_pm());
    for (int64_t i = 0; i < len; i++) x[i] = size * ((i / cols == i % cols ? 2 : 0) + rng_pm() / sqrt((double)cols));
    bjorck(y, x, rows, cols, 40);
    const double off = defect(y, rows, cols);
    CHECK_LE(off, tol, "Bjorck: orthonormal");
    if (k->elem == 4) worst = fmax(worst, off);
    CHECK_NEAR(up_norm(y, rows, cols).v, 1, tol + 1e-9, "the certified norm of what is stored");
    bjorck(z, y, rows, cols, TAUT_BJORCK_STEPS);
    for (int64_t i = 0; i < len; i++) CHECK_NEAR(z[i], y[i], tol, "Bjorck: an orthogonal matrix stays");
    const int64_t side = rows < cols ? rows : cols; /* nearest: X Q^T (or Q^T X) is symmetric */
    for (int64_t i = 0; i < side; i++)
        for (int64_t j = 0; j < i; j++) {
            double a = 0, b = 0;
            for (int64_t l = 0; l < (rows < cols ? cols : rows); l++) {
                const int64_t p = rows < cols ? i * cols + l : l * cols + i,
                              q = rows < cols ? j * cols + l : l * cols + j;
                a += x[p] * y[q], b += x[q] * y[p];
            }
            CHECK_NEAR(a, b, 20 * tol * size * (double)side, "Bjorck: the nearest orthogonal matrix");
        }
    free(x), free(y), free(z);
}

static bool cayley(double *y, const double *x, const double *before, int64_t rows, int64_t cols)
{
    taut_real *r = put(x, rows * cols), *b = put(before, rows * cols);
    double *work = doubles(taut_cayley_work(rows, cols));
    const bool done = taut_cayley(k, r, b, work, rows, cols);
    k->get(y, r, rows * cols);
    k->release(r), k->release(b);
    free(work);
    return done;
}

static void check_cayley(int64_t rows, int64_t cols, double tol)
{
    const int64_t len = rows * cols;
    double *x = doubles(len), *y = doubles(len), *z = doubles(len);
    for (int64_t i = 0; i < len; i++) x[i] = (i / cols == i % cols ? 2 : 0) + rng_pm() / sqrt((double)cols);
    bjorck(y, x, rows, cols, 40);
    CHECK(cayley(z, y, y, rows, cols), "Cayley: solved");
    for (int64_t i = 0; i < len; i++) CHECK_NEAR(z[i], y[i], tol, "Cayley: no move");
    const double size = pow(10, 2 * rng_pm());
    for (int64_t i = 0; i < len; i++) x[i] = y[i] + size * rng_pm();
    CHECK(cayley(z, x, y, rows, cols), "Cayley: solved");
    CHECK_LE(defect(z, rows, cols), 4 * tol, "Cayley: orthonormal, however long the move");
    free(x), free(y), free(z);
}

/* ref: a small move along a rotation is followed to first order. */
static void check_first_order(int64_t n, int64_t m)
{
    const double h = 1e-5;
    double *x = doubles(n * m), *w = doubles(n * m), *z = doubles(n * m), *s = doubles(n * n);
    fill(x, n * m), fill(s, n * n);
    bjorck(w, x, n, m, 60);
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < m; j++) {
            double turn = 0;
            for (int64_t l = 0; l < n; l++) turn += (s[i * n + l] - s[l * n + i]) * w[l * m + j];
            x[i * m + j] = w[i * m + j] + h * turn;
        }
    CHECK(cayley(z, x, w, n, m), "Cayley: solved");
    if (defect(w, n, m) < 1e-10)
        for (int64_t i = 0; i < n * m; i++) CHECK_NEAR(z[i], x[i], 100 * h * h * (double)n, "Cayley: first order");
    free(x), free(w), free(z), free(s);
}

/* y (n, m) = w + sign A w/2, A = P D W^T - W D^T P as it is defined, d = P D */
static void half_turn(double *y, const double *w, const double *at, const double *d, double sign, int64_t n, int64_t m)
{
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < m; j++) {
            double sum = 0;
            for (int64_t l = 0; l < n; l++)
                for (int64_t c = 0; c < m; c++)
                    sum += (d[i * m + c] * at[l * m + c] - at[i * m + c] * d[l * m + c]) * w[l * m + j];
            y[i * m + j] = w[i * m + j] + sign * sum / 2;
        }
}

/* ref: the Cayley transform to the letter, (I - A/2) W' = (I + A/2) W, for moves of any length. */
static void check_definition(int64_t n, int64_t m)
{
    double *x = doubles(n * m), *w = doubles(n * m), *z = doubles(n * m), *d = doubles(n * m), *left = doubles(n * m);
    fill(x, n * m);
    bjorck(w, x, n, m, 60);
    const double size = pow(10, rng_pm()), close = 1e-10 * (1 + size) * (double)(n * m);
    for (int64_t i = 0; i < n * m; i++) x[i] = w[i] + size * rng_pm();
    CHECK(cayley(z, x, w, n, m), "Cayley: solved");
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < m; j++) {
            d[i * m + j] = x[i * m + j] - w[i * m + j];
            for (int64_t l = 0; l < n; l++)
                for (int64_t c = 0; c < m; c++)
                    d[i * m + j] -= w[i * m + c] * w[l * m + c] * (x[l * m + j] - w[l * m + j]) / 2;
        }
    half_turn(left, z, w, d, -1, n, m);
    half_turn(x, w, w, d, 1, n, m);
    if (defect(w, n, m) < 1e-10)
        for (int64_t i = 0; i < n * m; i++) CHECK_NEAR(left[i], x[i], close, "Cayley: by its definition");
    free(x), free(w), free(z), free(d), free(left);
}

static void check_corners(void)
{
    static const double zero[6] = { 0 }, bad[4] = { 1, NAN, 0, 1 }, tall[6] = { 1, 0, 0, 1, 0, 0 };
    double y[6];
    bjorck(y, zero, 2, 3, 12);
    CHECK(memcmp(y, zero, sizeof y) == 0, "Bjorck of 0 is 0");
    CHECK(!cayley(y, bad, tall, 2, 2) && y[0] == 1 && isnan(y[1]), "NaN in a move: as it was");
    static const double one[1] = { -3 };
    bjorck(y, one, 1, 1, 12);
    CHECK_NEAR(y[0], -1, 1e-6, "one number");
}

int main(void)
{
    test_begin();
    for (int backend = 0; backend < 2; backend++) {
        k = taut_kernels_find(backend ? "cpu" : "ref");
        const double tol = backend ? 2e-6 : 1e-12;
        for (case_no = 0; case_no < effort(30); case_no++) {
            const int64_t n = rng_int(1, case_no % 5 ? 12 : 60), m = rng_int(1, n);
            check_bjorck(case_no % 2 ? n : m, case_no % 2 ? m : n, tol);
            check_cayley(case_no % 2 ? n : m, case_no % 2 ? m : n, 5 * tol);
            if (!backend) check_first_order(n < 12 ? n : 12, m < 12 ? m : 12);
            if (!backend) check_definition(n < 12 ? n : 12, m < 12 ? m : 12);
        }
        check_corners();
    }
    return test_end("orthogonal", "worst |Q^T Q - I| on cpu = %.2g", worst);
}
