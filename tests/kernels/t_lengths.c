/* Lengths over tokens: cpu against ref, derivatives against differences, adjoint, zeros and poison. */
#include "kernels/pair.h"

static void compare(int64_t n, int64_t t, int64_t d)
{
    const double few = (double)(t + 4) * 0x1p-51;
    pair x = pair_new(n * t * d, 1), tx = pair_new(x.len, 1), gx = pair_new(x.len, 0);
    pair y = pair_new(n * d, 0), ty = pair_new(n * d, 0), gy = pair_new(n * d, 1), z = pair_new(n * d, 0);
    double *tol = doubles(n * d);
    SAME_BITS(y, (ref->lengths(R(&y), R(&x), n, t, d), cpu->lengths(y.f, x.f, n, t, d)));
    pair_near(&y, NULL, 0, promise_tokens(promised, t), "lengths");
    memcpy(z.d, y.d, (size_t)y.len * sizeof *y.d);
    pair_sync(&z); /* the same lengths for both */
    SAME_BITS(
        ty, (ref->lengths_jvp(R(&ty), R(&tx), R(&x), R(&z), n, t, d), cpu->lengths_jvp(ty.f, tx.f, x.f, z.f, n, t, d)));
    for (int64_t i = 0; i < n * d; i++) tol[i] = few * (double)(t + 1) / fmax(z.d[i], 1e-300);
    pair_near(&ty, tol, 0, 2 * UNIT, "lengths_jvp");
    SAME_BITS(
        gx, (ref->lengths_vjp(R(&gx), R(&gy), R(&x), R(&z), n, t, d), cpu->lengths_vjp(gx.f, gy.f, x.f, z.f, n, t, d)));
    pair_near(&gx, NULL, 0x1p-149, 2 * UNIT, "lengths_vjp");
    CHECK_NEAR(dot(ty.d, gy.d, ty.len), dot(tx.d, gx.d, tx.len), 1e-12 * (double)(1 + x.len), "adjoint lengths");
    pair_free(&x), pair_free(&tx), pair_free(&gx), pair_free(&y), pair_free(&ty), pair_free(&gy), pair_free(&z);
    free(tol);
}

/* (3, 4) has length 5, and its slope along (1, 0) is 3/5; a column of zeros has slope 0; NaN stays in its column. */
static void corners(void)
{
    const double columns[] = { 3, 0, NAN, 4, 0, 1 }, along[] = { 1, 1, 1, 0, 1, 1 };
    pair x = pair_new(6, 0), t = pair_new(6, 0), y = pair_new(3, 1), ty = pair_new(3, 1), gx = pair_new(6, 1);
    memcpy(x.d, columns, sizeof columns), memcpy(t.d, along, sizeof along);
    pair_sync(&x), pair_sync(&t);
    ref->lengths(R(&y), R(&x), 1, 2, 3), cpu->lengths(y.f, x.f, 1, 2, 3);
    CHECK(y.d[0] == 5 && y.d[1] == 0 && isnan(y.d[2]), "lengths of columns");
    pair_near(&y, NULL, 0, 2 * UNIT, "corners");
    ref->lengths_jvp(R(&ty), R(&t), R(&x), R(&y), 1, 2, 3), cpu->lengths_jvp(ty.f, t.f, x.f, y.f, 1, 2, 3);
    CHECK(fabs(ty.d[0] - 0.6) < 1e-15 && ty.d[1] == 0 && isnan(ty.d[2]), "slopes of columns");
    pair_near(&ty, NULL, 0, 2 * UNIT, "corners of jvp");
    ref->lengths_vjp(R(&gx), R(&t), R(&x), R(&y), 1, 2, 3), cpu->lengths_vjp(gx.f, t.f, x.f, y.f, 1, 2, 3);
    CHECK(fabs(gx.d[3] - 0.8) < 1e-15 && gx.d[1] == 0 && gx.d[4] == 0 && isnan(gx.d[5]), "gradients of columns");
    pair_near(&gx, NULL, 0, 2 * UNIT, "corners of vjp");
    pair_free(&x), pair_free(&t), pair_free(&y), pair_free(&ty), pair_free(&gx);
}

int main(void)
{
    pair_begin();
    for (case_no = 0; case_no < effort(60); case_no++) {
        const int large = case_no % 10 == 9;
        compare(rng_int(0, large ? 40 : 4), rng_int(1, large ? 200 : 9), rng_int(0, large ? 70 : 40));
    }
    compare(2, 1000, 1); /* as margins use it */
    corners();
    return test_end("lengths", "worst error / promised = %.3f", worst);
}
