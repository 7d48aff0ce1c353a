/* The right class's lead: cpu against ref, the formula written again, and corners. */
#include "kernels/pair.h"

static void compare(int64_t rows, int64_t classes, double wanted, double least)
{
    pair x = pair_new(rows * classes, 1), apart = pair_new(classes * classes, 1), e = pair_new(rows * classes, 0);
    int32_t *target = calloc((size_t)rows + 1, sizeof *target);
    for (int64_t i = 0; i < apart.len; i++) apart.d[i] = i % (classes + 1) ? fabs(apart.d[i]) : 0;
    for (int64_t r = 0; r < rows; r++) target[r] = (int32_t)rng_int(0, (int)classes - 1);
    pair_sync(&apart);
    taut_index *there = table_index(cpu, target, rows);
    SAME_BITS(e, (ref->lead(R(&e), R(&x), R(&apart), (const taut_index *)target, rows, classes, wanted, least),
                  cpu->lead(e.f, x.f, apart.f, there, rows, classes, wanted, least)));
    pair_near(&e, NULL, by_table(0x1p-150, 0x1p-149), UNIT, "lead");
    for (int64_t i = 0; i < e.len; i++) {
        const int64_t t = target[i / classes], c = i % classes;
        const double full = wanted * apart.d[t * classes + c], ahead = x.d[i - c + t] - x.d[i];
        CHECK(e.d[i] >= least && e.d[i] <= 1, "a share");
        CHECK_NEAR(e.d[i] * full, fmin(full, fmax(least * full, ahead)), 1e-14 * (1 + full),
                   "the lead, within what is wanted");
        if (c == t) CHECK(e.d[i] == 1, "of itself");
    }
    cpu->release(there);
    free(target);
    pair_free(&x), pair_free(&apart), pair_free(&e);
}

/* Against itself and a twin 1, half of what is wanted, too little, more than enough, and NaN where a logit is NaN. */
static void corners(void)
{
    const double logits[] = { 1, 1, 0.5, 3, -9, NAN }, want[] = { 1, 1, 0.5, 0.01, 1, NAN };
    const int32_t first = 0;
    pair x = pair_new(6, 0), apart = pair_new(36, 0), e = pair_new(6, 1);
    memcpy(x.d, logits, sizeof logits);
    for (int c = 2; c < 6; c++) apart.d[c] = 2;
    pair_sync(&x), pair_sync(&apart);
    taut_index *there = table_index(cpu, &first, 1);
    ref->lead(R(&e), R(&x), R(&apart), (const taut_index *)&first, 1, 6, 0.5, 0.01);
    cpu->lead(e.f, x.f, apart.f, there, 1, 6, 0.5, 0.01);
    for (int c = 0; c < 6; c++) CHECK(e.d[c] == want[c] || (isnan(e.d[c]) && isnan(want[c])), "corners");
    pair_near(&e, NULL, 0, UNIT, "corners");
    cpu->release(there);
    pair_free(&x), pair_free(&apart), pair_free(&e);
}

int main(void)
{
    pair_begin();
    for (case_no = 0; case_no < effort(60); case_no++)
        compare(rng_int(0, case_no % 10 == 9 ? 2000 : 30), rng_int(1, 12), case_no % 5 ? exp(rng_pm()) : 0,
                case_no % 3 ? 0.01 : 1);
    corners();
    return test_end("lead", "worst error / promised = %.3f", worst);
}
