/* Pixels to patches and back: cpu against ref, adjoint, and by hand on one small image. */
#include "base/float32.h"
#include "kernels/pair.h"

static void by_hand(void)
{
    /* 2 x 4 pixels of 1 channel in patches of 2 x 2: 0 1 | 2 3 over 4 5 | 6 7 */
    const taut_pixels p = {
        .n = 1, .height = 2, .width = 4, .channels = 1, .ph = 2, .pw = 2, .scale = { 2 }, .shift = { 1 }
    };
    static const double want[] = { 1, 3, 9, 11, 5, 7, 13, 15 };
    double x[8], y[8], back[8];
    for (int i = 0; i < 8; i++) x[i] = i;
    ref->pixels((taut_real *)y, (const taut_real *)x, &p, true);
    for (int i = 0; i < 8; i++) CHECK(y[i] == want[i], "the patches by rows");
    ref->pixels((taut_real *)y, (const taut_real *)x, &p, false);
    ref->pixels_vjp((taut_real *)back, (const taut_real *)y, &p);
    for (int i = 0; i < 8; i++) CHECK(back[i] == 4 * x[i], "and back");
}

int main(void)
{
    pair_begin();
    by_hand();
    for (case_no = 0; case_no < effort(80); case_no++) {
        const int64_t large = case_no % 8 == 7 ? 6 : 1;
        taut_pixels p = { .n = rng_int(0, 3), .channels = rng_int(1, 4), .ph = rng_int(1, 4), .pw = rng_int(1, 4) };
        p.height = p.ph * rng_int(1, 4 * large), p.width = p.pw * rng_int(1, 4 * large);
        for (int c = 0; c < 4; c++) p.scale[c] = taut_float32(3 * rng_pm()), p.shift[c] = taut_float32(rng_pm());
        const int64_t len = p.n * p.height * p.width * p.channels;
        pair x = pair_new(len, 1), y = pair_new(len, 1), g = pair_new(len, 1), gy = pair_new(len, 1);
        if (case_no % 5 == 4 && len > 0) x.d[len / 2] = NAN, pair_sync(&x);
        SAME_BITS(y, (ref->pixels(R(&y), R(&x), &p, true), cpu->pixels(y.f, x.f, &p, true)));
        pair_near(&y, NULL, 4 * promise_rows(promised), 0, "pixels"); /* |scale x| + |shift| <= 4 */
        SAME_BITS(g, (ref->pixels_vjp(R(&g), R(&gy), &p), cpu->pixels_vjp(g.f, gy.f, &p)));
        pair_near(&g, NULL, 0, 2 * UNIT, "pixels_vjp");
        if (case_no % 5 != 4) {
            ref->pixels(R(&y), R(&x), &p, false);
            CHECK_NEAR(dot(y.d, gy.d, len), dot(x.d, g.d, len), 1e-12 * (double)(1 + len), "adjoint");
        }
        pair_free(&x), pair_free(&y), pair_free(&g), pair_free(&gy);
    }
    return test_end("pixels", "worst error / promised = %.3f", worst);
}
