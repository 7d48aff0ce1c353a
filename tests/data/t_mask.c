/* Masked tokens: the shares, the targets, and independence of how a batch is cut. */
#include "data/mask.h"

#include "base/rng.h"
#include "harness.h"

enum { COUNT = 100000, VOCAB = 50, MASK = 50 };

/* Six standard deviations of a share of n draws. */
static double six(double p, double n) { return 6 * sqrt(p * (1 - p) / n); }

int main(void)
{
    test_begin();
    static int32_t before[COUNT], x[COUNT], y[COUNT], x2[COUNT], y2[COUNT];
    const uint64_t key = taut_rng_key(seed, TAUT_RNG_MASK, 3);
    for (int i = 0; i < COUNT; i++) x[i] = x2[i] = before[i] = (int32_t)rng_int(0, VOCAB - 1);
    memset(y, 7, sizeof y);
    taut_mask_tokens(x, y, COUNT, key, 10, 0.15, MASK, VOCAB);
    int chosen = 0, masked = 0, changed = 0, replaced[VOCAB] = { 0 };
    for (int i = 0; i < COUNT; i++) {
        CHECK(y[i] == -1 || y[i] == before[i], "the target is the original");
        CHECK(y[i] != -1 || x[i] == before[i], "what is not asked for stays");
        CHECK(x[i] == MASK || (x[i] >= 0 && x[i] < VOCAB), "a token or the mask");
        chosen += y[i] >= 0;
        masked += x[i] == MASK;
        if (x[i] != MASK && x[i] != before[i]) {
            changed++;
            replaced[x[i]]++;
        }
    }
    CHECK_NEAR((double)chosen / COUNT, 0.15, six(0.15, COUNT), "15 % chosen");
    CHECK_NEAR((double)masked / chosen, 0.8, six(0.8, chosen), "of them 80 % masked");
    CHECK_NEAR((double)changed / chosen, 0.1 * (VOCAB - 1) / VOCAB, six(0.1, chosen), "10 % random");
    for (int i = 0; i < VOCAB; i++) CHECK(replaced[i] > 0, "any token may come in");
    for (int64_t first = 0, part; first < COUNT; first += part) {
        part = rng_int(0, 3000);
        if (part > COUNT - first) part = COUNT - first;
        taut_mask_tokens(x2 + first, y2 + first, part, key, 10 + first, 0.15, MASK, VOCAB);
    }
    CHECK(memcmp(x, x2, sizeof x) == 0 && memcmp(y, y2, sizeof y) == 0, "the same for any batch size");
    taut_mask_tokens(x, y, COUNT, key, 0, 0, MASK, VOCAB);
    for (int i = 0; i < COUNT; i++) CHECK(y[i] == -1 && x[i] == x2[i], "rate 0 asks for nothing");
    taut_mask_tokens(x, y, COUNT, key, 0, 1, MASK, VOCAB);
    for (int i = 0; i < COUNT; i++) CHECK(y[i] == x2[i], "rate 1 asks for everything");
    return test_end("mask", "%.2f %% chosen, %.2f %% of them masked", 100.0 * chosen / COUNT, 100.0 * masked / chosen);
}
