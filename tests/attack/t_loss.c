/* Losses against values worked out by hand, their gradients against differences, and what takes their place with few
 * classes. */
#include "attack/loss.h"

#include "harness.h"

/* z = 5 3 2 -1, label 0:  DLR = -(5-3)/(5-2) = -2/3.  Label 2: -(2-5)/(5-2) = 1.  Targeted from 0 to 3: -(5+1)/(5-(2-1)/2) =
 * -6/4.5.  From 1 to 0: -(3-5)/4.5.  CE of label 1: ln(e^2 + 1 + e^-1 + e^-4). */
static void by_hand(void)
{
    const double z[] = { 5, 3, 2, -1 }, shuffled[] = { -1, 2, 5, 3 };
    CHECK_NEAR(taut_loss_at(NULL, TAUT_LOSS_DLR, z, 4, 0, 0), -2. / 3, 1e-11, "DLR of the right class");
    CHECK_NEAR(taut_loss_at(NULL, TAUT_LOSS_DLR, z, 4, 2, 0), 1, 1e-11, "DLR of a wrong class");
    CHECK_NEAR(taut_loss_at(NULL, TAUT_LOSS_DLR, shuffled, 4, 2, 0), -2. / 3, 1e-11, "in any order");
    CHECK_NEAR(taut_loss_at(NULL, TAUT_LOSS_DLR_T, z, 4, 0, 3), -6 / 4.5, 1e-11, "targeted DLR");
    CHECK_NEAR(taut_loss_at(NULL, TAUT_LOSS_DLR_T, z, 4, 1, 0), 2 / 4.5, 1e-11, "targeted DLR, already there");
    CHECK_NEAR(taut_loss_at(NULL, TAUT_LOSS_DLR_T, shuffled, 4, 2, 0), -6 / 4.5, 1e-11, "in any order");
    CHECK_NEAR(taut_loss_at(NULL, TAUT_LOSS_MARGIN, z, 4, 0, 0), -2, 1e-15, "margin");
    CHECK_NEAR(taut_loss_at(NULL, TAUT_LOSS_MARGIN, z, 2, 1, 0), 2, 1e-15, "margin of two classes");
    CHECK_NEAR(taut_loss_at(NULL, TAUT_LOSS_CE, z, 4, 1, 0), log(exp(2) + 1 + exp(-1) + exp(-4)), 1e-14, "CE");
    const double far[] = { 1000, 0, -1000 };
    CHECK_NEAR(taut_loss_at(NULL, TAUT_LOSS_CE, far, 3, 2, 0), 2000, 1e-9, "CE does not overflow");
    const double bad[] = { 1, NAN, 0 };
    CHECK(isnan(taut_loss_at(NULL, TAUT_LOSS_CE, bad, 3, 1, 0)), "NaN stays");
}

static double gradients(void)
{
    double worst = 0;
    for (case_no = 0; case_no < effort(200); case_no++) {
        const taut_loss kind = (taut_loss)rng_int(0, 3);
        const int64_t n = rng_int(kind == TAUT_LOSS_DLR_T ? 4 : kind == TAUT_LOSS_DLR ? 3 : 2, 12);
        const int32_t label = (int32_t)rng_int(0, n - 1), wrong = (int32_t)((label + rng_int(1, n - 1)) % n);
        double z[12], w[12], plain, h = 1e-6;
        fill(z, n);
        plain = taut_loss_at(w, kind, z, n, label, wrong);
        CHECK(plain == taut_loss_at(NULL, kind, z, n, label, wrong), "the same value without a gradient");
        for (int64_t i = 0; i < n; i++) {
            const double at = z[i];
            z[i] = at + h;
            const double up = taut_loss_at(NULL, kind, z, n, label, wrong);
            z[i] = at - h;
            const double down = taut_loss_at(NULL, kind, z, n, label, wrong);
            z[i] = at;
            double near = 1, size = 0;
            for (int64_t a = 0; a < n; a++) {
                size = fmax(size, fabs(w[a]));
                for (int64_t b = 0; b < a; b++) near = fmin(near, fabs(z[a] - z[b]));
            }
            if (near < 1e-3) continue; /* a kink of the sorting is near, or the quotient is too steep for differences */
            const double error = fabs((up - down) / (2 * h) - w[i]) / (1 + size);
            CHECK_LE(error, 1e-5, "gradient"); /* h^2 times a third derivative of at most 1e7 */
            worst = fmax(worst, error);
        }
    }
    return worst;
}

int main(void)
{
    test_begin();
    by_hand();
    const double worst = gradients();
    CHECK(taut_loss_for(TAUT_LOSS_DLR_T, 4) == TAUT_LOSS_DLR_T && taut_loss_for(TAUT_LOSS_DLR_T, 3) == TAUT_LOSS_DLR &&
              taut_loss_for(TAUT_LOSS_DLR_T, 2) == TAUT_LOSS_MARGIN &&
              taut_loss_for(TAUT_LOSS_DLR, 2) == TAUT_LOSS_MARGIN,
          "few classes");
    return test_end("loss", "worst gradient error %.1e", worst);
}
