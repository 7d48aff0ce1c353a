/* Rows, column sums and token means: cpu against ref, and each sum is the adjoint of its spread. */
#include "kernels/pair.h"

typedef struct {
    int64_t rows, cols, period;
    pair x, y, p;
} rows_case;

/* p += sum_rows(x), with the promise: two roundings of the result, and the double sums. */
static void sums(rows_case *c)
{
    pair p0 = pair_copy(&c->p), one = pair_new(c->cols, 1), one0 = pair_copy(&one);
    pair plain = pair_new(c->cols, 1), plain0 = pair_copy(&plain);
    double *tol = doubles(c->p.len), *dots = doubles(c->cols), *alone = doubles(c->cols);
    const double tiny = ((double)c->rows + 4) * 0x1p-52;
    for (int64_t r = 0; r < c->rows; r++)
        for (int64_t k = 0; k < c->cols; k++) {
            tol[r % c->period * c->cols + k] += tiny * fabs(c->x.d[r * c->cols + k]);
            dots[k] += tiny * fabs(c->x.d[r * c->cols + k] * c->y.d[r * c->cols + k]);
            alone[k] += tiny * fabs(c->x.d[r * c->cols + k]);
        }
    SAME_BITS(c->p, (memcpy(c->p.d, p0.d, (size_t)p0.len * sizeof(double)), pair_sync(&c->p),
                     ref->sum_rows(R(&c->p), R(&c->x), c->rows, c->cols, c->period),
                     cpu->sum_rows(c->p.f, c->x.f, c->rows, c->cols, c->period)));
    pair_near(&c->p, tol, 1e-300, promise_rows(promised), "sum_rows");
    SAME_BITS(one, (memcpy(one.d, one0.d, (size_t)one.len * sizeof(double)), pair_sync(&one),
                    ref->dot_rows(R(&one), NULL, R(&c->x), R(&c->y), c->rows, c->cols),
                    cpu->dot_rows(one.f, NULL, c->x.f, c->y.f, c->rows, c->cols)));
    pair_near(&one, dots, 1e-300, promise_rows(promised), "dot_rows");
    SAME_BITS(plain, (memcpy(one.d, one0.d, (size_t)one.len * sizeof(double)), pair_sync(&one),
                      memcpy(plain.d, plain0.d, (size_t)plain.len * sizeof(double)), pair_sync(&plain),
                      ref->dot_rows(R(&one), R(&plain), R(&c->x), R(&c->y), c->rows, c->cols),
                      cpu->dot_rows(one.f, plain.f, c->x.f, c->y.f, c->rows, c->cols)));
    pair_near(&one, dots, 1e-300, promise_rows(promised), "dot_rows with sums");
    pair_near(&plain, alone, 1e-300, promise_rows(promised), "the sums of dot_rows");
    pair_free(&p0);
    pair_free(&one);
    pair_free(&one0);
    pair_free(&plain);
    pair_free(&plain0);
    free(tol);
    free(dots);
    free(alone);
}

static void products(rows_case *c)
{
    pair z = pair_new(c->x.len, 1), x0 = pair_copy(&c->x);
    SAME_BITS(z, (ref->add_rows(R(&z), R(&c->x), R(&c->p), c->rows, c->cols, c->period),
                  cpu->add_rows(z.f, c->x.f, c->p.f, c->rows, c->cols, c->period)));
    pair_near(&z, NULL, 0, promise_rows(promised), "add_rows");
    ref->add_rows(R(&c->x), R(&c->x), R(&c->p), c->rows, c->cols, c->period);
    cpu->add_rows(c->x.f, c->x.f, c->p.f, c->rows, c->cols, c->period);
    pair_same(&c->x, &z, "add_rows in place");
    SAME_BITS(z, (ref->mul_rows(R(&z), R(&x0), R(&c->p), c->rows, c->cols),
                  cpu->mul_rows(z.f, x0.f, c->p.f, c->rows, c->cols)));
    pair_near(&z, NULL, 0, promise_rows(promised), "mul_rows");
    ref->mul_rows(R(&x0), R(&x0), R(&c->p), c->rows, c->cols);
    cpu->mul_rows(x0.f, x0.f, c->p.f, c->rows, c->cols);
    pair_same(&x0, &z, "mul_rows in place");
    pair_free(&z);
    pair_free(&x0);
}

/* Copy a window of columns out of a wider matrix, and leave its neighbours alone. */
static void copies(int64_t rows, int64_t cols)
{
    const int64_t wide = cols + rng_int(0, 5), at = wide - cols;
    pair x = pair_new(rows * cols, 1), y = pair_new(rows * wide, 1), before = pair_copy(&y);
    if (rows > 0) {
        SAME_BITS(y, (ref->copy_rows((taut_real *)(y.d + at), wide, R(&x), cols, rows, cols),
                      cpu->copy_rows(taut_at(cpu, y.f, at), wide, x.f, cols, rows, cols)));
        pair_near(&y, NULL, 0, 0, "copy_rows");
    }
    for (int64_t i = 0; i < y.len; i++)
        CHECK(y.d[i] == (i % wide >= at ? x.d[i / wide * cols + i % wide - at] : before.d[i]), "copy_rows stays in");
    pair_free(&x);
    pair_free(&y);
    pair_free(&before);
}

static void means(int64_t n, int64_t t, int64_t d)
{
    pair x = pair_new(n * t * d, 1), y = pair_new(n * d, 1), gx = pair_new(x.len, 1), gy = pair_new(y.len, 1);
    SAME_BITS(y, (ref->mean_tokens(R(&y), R(&x), n, t, d), cpu->mean_tokens(y.f, x.f, n, t, d)));
    pair_near(&y, NULL, promise_tokens(promised, t) - promise_rows(promised), promise_rows(promised), "mean_tokens");
    SAME_BITS(gx, (ref->spread_tokens(R(&gx), R(&gy), n, t, d), cpu->spread_tokens(gx.f, gy.f, n, t, d)));
    pair_near(&gx, NULL, 0, promise_rows(promised), "spread_tokens");
    CHECK_NEAR(dot(y.d, gy.d, y.len), dot(x.d, gx.d, x.len), 1e-12 * (double)(1 + x.len), "adjoint means");
    if (x.len > 0) {
        x.d[x.len - 1] = NAN;
        pair_sync(&x);
        ref->mean_tokens(R(&y), R(&x), n, t, d);
        cpu->mean_tokens(y.f, x.f, n, t, d);
        CHECK(isnan(y.d[y.len - 1]), "a mean with NaN");
        pair_near(&y, NULL, promise_tokens(promised, t) - promise_rows(promised), promise_rows(promised),
                  "mean_tokens with NaN");
    }
    pair_free(&x);
    pair_free(&y);
    pair_free(&gx);
    pair_free(&gy);
}

int main(void)
{
    pair_begin();
    for (case_no = 0; case_no < effort(60); case_no++) {
        const int large = case_no % 10 == 9;
        pair_shift = case_no % 3 == 1;
        const int tall = case_no % 20 == 19; /* columns that a device cuts into many slabs */
        rows_case c = { .rows = rng_int(0, tall ? 2500 : large ? 700 : 20), .cols = rng_int(0, large ? 150 : 40) };
        c.period = case_no % 3 == 0 ? 1 : rng_int(1, 9);
        c.x = pair_new(c.rows * c.cols, 1);
        c.y = pair_new(c.rows * c.cols, 1);
        c.p = pair_new(c.period * c.cols, 1);
        if (case_no % 5 == 4 && c.x.len > 0) {
            c.x.d[c.x.len / 2] = case_no % 2 ? NAN : INFINITY;
            pair_sync(&c.x);
        }
        sums(&c);
        pair_sync(&c.p);
        products(&c);
        pair_free(&c.x);
        pair_free(&c.y);
        pair_free(&c.p);
        copies(rng_int(0, large ? 300 : 9), rng_int(1, large ? 90 : 30));
        means(rng_int(0, 4), rng_int(1, tall ? 1500 : large ? 90 : 9), rng_int(0, large ? 99 : 35));
    }
    return test_end("rows", "worst error / promised = %.3f", worst);
}
