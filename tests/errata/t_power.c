/* Power iteration as a bound of a matrix's norm: it is always below the truth, so a weight divided by it is still
 * too large. Two iterations (a published recipe), 30, and one iteration plus a flat 1e-3 (a library's normaliser). */
#include "base/float32.h"
#include "bound/norm.h"
#include "harness.h"

static double gauss(void) { return sqrt(-2 * log(1 - rng_unit())) * cos(6.283185307179586 * rng_unit()); }

static double printed_power(const double *w, int64_t rows, int64_t cols, int steps)
{
    double *x = doubles(cols), *y = doubles(rows), size = 0;
    for (int64_t c = 0; c < cols; c++) x[c] = gauss();
    for (int i = 0; i < steps; i++) {
        const double unit = norm(x, cols);
        for (int64_t c = 0; c < cols; c++) x[c] /= unit;
        for (int64_t r = 0; r < rows; r++) y[r] = dot(w + r * cols, x, cols);
        size = norm(y, rows);
        memset(x, 0, (size_t)cols * 8);
        for (int64_t r = 0; r < rows; r++)
            for (int64_t c = 0; c < cols; c++) x[c] += w[r * cols + c] * y[r];
    }
    free(x), free(y);
    return size;
}

int main(void)
{
    test_begin();
    const int64_t n = 192;
    const int steps[] = { 2, 30, 1 };
    double *w = doubles(n * n), share[3] = { 1, 1, 1 };
    for (case_no = 0; case_no < effort(10); case_no++) {
        for (int64_t i = 0; i < n * n; i++) w[i] = taut_float32(gauss() / sqrt((double)n));
        const double exact = est_norm(w, n, n), ours = up_norm(w, n, n).v; /* Lanczos: from below as well */
        CHECK_LE(exact, ours, "ours holds");
        CHECK_LE(ours, exact * (1 + 1e-6), "and is close");
        for (int k = 0; k < 3; k++) {
            const double printed = printed_power(w, n, n, steps[k]) + (k == 2 ? 1e-3 : 0);
            CHECK(printed < exact, "power iteration is no bound");
            share[k] = fmin(share[k], printed / exact);
        }
    }
    free(w);
    CHECK_LE(share[0], 0.9, "two iterations miss a tenth");
    CHECK_LE(share[1], 0.999, "thirty still miss a thousandth");
    return test_end("power", "printed / norm: 2 steps %.3f, 30 steps %.4f, 1 step + 1e-3 %.3f", share[0], share[1],
                    share[2]);
}
