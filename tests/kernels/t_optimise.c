/* SGD and AdamW steps: cpu against ref. */
#include "kernels/pair.h"

static void restore(pair *to, const pair *from)
{
    memcpy(to->d, from->d, (size_t)to->len * sizeof(double));
    pair_sync(to);
}

static void sgd_case(int64_t len)
{
    const double lr = rng_unit(), b = rng_unit(), decay = 0.1 * rng_unit();
    pair w = pair_new(len, 1), m = pair_new(len, 1), g = pair_new(len, 1), w0 = pair_copy(&w), m0 = pair_copy(&m);
    double *tol_w = doubles(len), *tol_m = doubles(len);
    SAME_BITS(w, (restore(&w, &w0), restore(&m, &m0), ref->sgd(R(&w), R(&m), R(&g), len, lr, b, decay),
                  cpu->sgd(w.f, m.f, g.f, len, lr, b, decay)));
    for (int64_t i = 0; i < len; i++) {
        tol_m[i] = 3 * UNIT * (fabs(b * m0.d[i]) + fabs(g.d[i]));
        tol_w[i] = 3 * UNIT * fabs(w0.d[i]) + 10 * UNIT * lr * fabs(m.d[i]) + lr * tol_m[i];
    }
    pair_near(&m, tol_m, 0, 0, "sgd m");
    pair_near(&w, tol_w, 0, 0, "sgd w");
    pair_free(&w);
    pair_free(&m);
    pair_free(&g);
    pair_free(&w0);
    pair_free(&m0);
    free(tol_w);
    free(tol_m);
}

static void adamw_case(int64_t len)
{
    const int step = (int)rng_int(1, 50);
    const taut_adam s = { .lr = 0.1 * rng_unit(),
                          .b1 = 0.9,
                          .b2 = 0.95 + 0.049 * rng_unit(),
                          .eps = 1e-8,
                          .decay = 0.1 * rng_unit(),
                          .c1 = 1 - pow(0.9, step),
                          .c2 = 1 - pow(0.97, step) };
    pair w = pair_new(len, 1), m = pair_new(len, 1), v = pair_new(len, 1), g = pair_new(len, 1);
    for (int64_t i = 0; i < len; i++) v.d[i] = v.d[i] * v.d[i];
    pair_sync(&v);
    pair w0 = pair_copy(&w), m0 = pair_copy(&m), v0 = pair_copy(&v);
    double *tol_w = doubles(len), *tol_m = doubles(len);
    SAME_BITS(w, (restore(&w, &w0), restore(&m, &m0), restore(&v, &v0), ref->adamw(R(&w), R(&m), R(&v), R(&g), len, &s),
                  cpu->adamw(w.f, m.f, v.f, g.f, len, &s)));
    for (int64_t i = 0; i < len; i++) {
        const double root = sqrt(v.d[i] / s.c2) + s.eps, step_size = s.lr * fabs(m.d[i]) / s.c1 / root;
        tol_m[i] = 3 * UNIT * (fabs(s.b1 * m0.d[i]) + fabs((1 - s.b1) * g.d[i]));
        tol_w[i] = 3 * UNIT * fabs(w0.d[i]) + (10 + 1.5) * UNIT * step_size + s.lr / s.c1 / root * tol_m[i];
    }
    pair_near(&m, tol_m, 0, 0, "adamw m");
    pair_near(&v, NULL, 0x1p-126, 3 * UNIT, "adamw v");
    pair_near(&w, tol_w, 0, 0, "adamw w");
    pair_free(&w);
    pair_free(&m);
    pair_free(&v);
    pair_free(&g);
    pair_free(&w0);
    pair_free(&m0);
    pair_free(&v0);
    free(tol_w);
    free(tol_m);
}

/* The first step of AdamW moves every weight by lr, whatever the gradient's size. */
static void first_step(void)
{
    double w[2] = { 1, 1 }, m[2] = { 0 }, v[2] = { 0 };
    const double g[2] = { 1e-3, -50 };
    const taut_adam s = { .lr = 0.1, .b1 = 0.9, .b2 = 0.99, .eps = 0, .decay = 0, .c1 = 1 - 0.9, .c2 = 1 - 0.99 };
    ref->adamw((taut_real *)w, (taut_real *)m, (taut_real *)v, (const taut_real *)g, 2, &s);
    CHECK_NEAR(w[0], 0.9, 1e-14, "first step down");
    CHECK_NEAR(w[1], 1.1, 1e-14, "first step up");
}

static void poison(void)
{
    pair w = pair_new(2, 1), m = pair_new(2, 1), v = pair_new(2, 0), g = pair_new(2, 1);
    const taut_adam s = { .lr = 0.1, .b1 = 0.9, .b2 = 0.99, .eps = 1e-8, .decay = 0, .c1 = 1, .c2 = 1 };
    g.d[0] = NAN;
    pair_sync(&g);
    ref->adamw(R(&w), R(&m), R(&v), R(&g), 2, &s);
    cpu->adamw(w.f, m.f, v.f, g.f, 2, &s);
    CHECK(isnan(w.d[0]) && isnan(m.d[0]) && isnan(v.d[0]) && !isnan(w.d[1]), "NaN shows");
    pair_near(&w, NULL, 1e-5, 0, "adamw with NaN");
    pair_free(&w);
    pair_free(&m);
    pair_free(&v);
    pair_free(&g);
}

int main(void)
{
    pair_begin();
    for (case_no = 0; case_no < effort(60); case_no++) {
        const int64_t len = rng_int(0, case_no % 6 ? 70 : 30000);
        sgd_case(len);
        adamw_case(len);
    }
    first_step();
    poison();
    return test_end("optimise", "worst error / promised = %.3f", worst);
}
