/* X <- a X + b (X X^T) X + c (X X^T)^2 X, step by step, after X is divided by its Frobenius norm; on singular
 * values that is s <- a s + b s^3 + c s^5.  The Gram matrix is formed on the smaller side.
 *
 *     you6      six steps; never above 0.99933, and within [0.9956, 0.9993] for s in [0.002, 1]
 *     nanogpt5  five steps; up to 1.14502 (at s = 0.00407), within [0.978, 1.032] for s in [0.01, 1]
 *     classic5  five equal steps; up to 1.2024, within [0.682, 1.134] for s in [0.01, 1]
 * These ranges are of the polynomials in real arithmetic: nothing here is a certificate. */
#include "train/muon.h"

const char *const taut_muon_names = "you6|nanogpt5|classic5";

typedef struct {
    double a, b, c;
} quintic;

static const quintic you6[] = {
    { 3955. / 1024, -8306. / 1024, 5008. / 1024 }, { 3735. / 1024, -6681. / 1024, 3463. / 1024 },
    { 3799. / 1024, -6499. / 1024, 3211. / 1024 }, { 4019. / 1024, -6385. / 1024, 2906. / 1024 },
    { 2677. / 1024, -3029. / 1024, 1162. / 1024 }, { 2172. / 1024, -1833. / 1024, 682. / 1024 },
};
static const quintic nanogpt5[] = {
    { 4.0848, -6.8946, 2.9270 }, { 3.9505, -6.3029, 2.6377 }, { 3.7418, -5.5913, 2.3037 },
    { 2.8769, -3.1427, 1.2046 }, { 2.8366, -3.0525, 1.2012 },
};
static const quintic classic5[] = {
    { 3.4445, -4.7750, 2.0315 }, { 3.4445, -4.7750, 2.0315 }, { 3.4445, -4.7750, 2.0315 },
    { 3.4445, -4.7750, 2.0315 }, { 3.4445, -4.7750, 2.0315 },
};
static const struct {
    const quintic *step;
    int steps;
} polynomials[] = { { you6, 6 }, { nanogpt5, 5 }, { classic5, 5 } };

static int64_t smaller(int64_t a, int64_t b) { return a < b ? a : b; }

int64_t taut_muon_work(int64_t rows, int64_t cols)
{
    const int64_t side = smaller(rows, cols);
    return rows * cols + 2 * side * side + taut_sums_len(2);
}

void taut_muon_orthogonalise(const taut_kernels *k, taut_real *x, taut_real *work, int64_t count, int64_t rows,
                             int64_t cols, int polynomial)
{
    const int64_t side = smaller(rows, cols), len = count * rows * cols, square = count * side * side;
    const bool wide = rows <= cols;
    taut_span rest = { work, count * taut_muon_work(rows, cols), k->elem };
    taut_real *now = x, *next = taut_take(&rest, len);
    taut_real *gram = taut_take(&rest, square), *mix = taut_take(&rest, square);
    taut_make_units(k, taut_take_sums(&rest, 2 * count), x, count, rows * cols);
    for (int i = 0; i < polynomials[polynomial].steps; i++) {
        const quintic p = polynomials[polynomial].step[i];
        k->gemm_each(gram, gram, now, now, count, side, side, wide ? cols : rows, !wide, wide, 1, 0);
        k->gemm_each(mix, gram, gram, gram, count, side, side, side, false, false, p.c, p.b);
        k->gemm_each(next, now, wide ? mix : now, wide ? now : mix, count, rows, cols, side, false, false, 1, p.a);
        taut_real *before = now;
        now = next, next = before;
    }
    if (now != x) k->axpby(x, 1, now, 0, len);
}
