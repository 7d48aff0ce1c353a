/* Rotary positions: cpu against ref; a turn keeps lengths, its inverse is its adjoint, positions add up. */
#include "kernels/pair.h"

int main(void)
{
    pair_begin();
    for (case_no = 0; case_no < effort(80); case_no++) {
        const int64_t t = rng_int(1, case_no % 9 ? 12 : 300), rows = case_no % 3 ? t * rng_int(0, 3) : rng_int(0, 30);
        const int64_t heads = rng_int(1, 4), dh = rng_int(1, case_no % 7 ? 20 : 200), len = rows * heads * dh;
        const int64_t half = dh / 2;
        const double base = case_no % 2 ? 10000 : 1 + 100 * rng_unit();
        pair x = pair_new(len, 1), y = pair_new(len, 0), back = pair_new(len, 0), u = pair_new(len, 1);
        double *tol = doubles(len);
        SAME_BITS(y, (ref->rope(R(&y), R(&x), rows, t, heads, dh, base, 1),
                      cpu->rope(y.f, x.f, rows, t, heads, dh, base, 1)));
        for (int64_t i = 0; i < len; i++) {
            const int64_t at = i % dh, twin = at < half ? i + half : at < 2 * half ? i - half : i;
            tol[i] = promise_rope(promised, t) * (fabs(x.d[i]) + fabs(x.d[twin]));
        }
        pair_near(&y, tol, 0, 0, "rope");
        CHECK_NEAR(norm(y.d, len), norm(x.d, len), 1e-12 * (1 + norm(x.d, len)), "a turn keeps lengths");
        ref->rope(R(&back), R(&u), rows, t, heads, dh, base, -1);
        CHECK_NEAR(dot(y.d, u.d, len), dot(x.d, back.d, len), 1e-12 * (double)(1 + len), "sign -1 is the adjoint");
        ref->rope(R(&back), R(&y), rows, t, heads, dh, base, -1);
        for (int64_t i = 0; i < len; i++) CHECK_NEAR(back.d[i], x.d[i], 1e-12, "sign -1 is the inverse");
        ref->rope(R(&x), R(&x), rows, t, heads, dh, base, 1);
        cpu->rope(x.f, x.f, rows, t, heads, dh, base, 1);
        pair_same(&x, &y, "in place");
        if (dh > 3 && rows > 1) { /* pair 1 of row 1 turns by base^(-2/dh) */
            const double a = u.d[heads * dh + 1], b = u.d[heads * dh + 1 + half], w = pow(base, -2.0 / (double)dh);
            ref->rope(R(&y), R(&u), rows, t, heads, dh, base, 1);
            CHECK_NEAR(y.d[heads * dh + 1], t == 1 ? a : cos(w) * a - sin(w) * b, 1e-14, "the angle");
            u.d[1] = NAN;
            pair_sync(&u);
            ref->rope(R(&y), R(&u), rows, t, heads, dh, base, 1);
            cpu->rope(y.f, u.f, rows, t, heads, dh, base, 1);
            CHECK(isnan(y.d[1]) && isnan(y.d[1 + half]) && !isnan(y.d[0]), "poison keeps to its pair");
            pair_near(&y, NULL, 1e-6, 0, "rope with NaN");
        }
        pair_free(&x);
        pair_free(&y);
        pair_free(&back);
        pair_free(&u);
        free(tol);
    }
    return test_end("rope", "worst error / promised = %.3f", worst);
}
