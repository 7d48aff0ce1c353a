/* The learning rate's factor at the first step, in the warm-up, after it and at the end, for every kind; type1 by epochs. */
#include "train/schedule.h"

#include "harness.h"

static const double PI = 3.14159265358979323846;

static double at(taut_schedule_kind kind, int64_t steps, int64_t warmup, double final, int64_t step)
{
    const taut_train_spec t = { .schedule = kind, .steps = steps, .warmup = warmup, .lr_final = final };
    return taut_schedule(&t, step);
}

static void warm_up(taut_schedule_kind kind)
{
    for (int64_t s = 0; s < 10; s++) CHECK_NEAR(at(kind, 100, 10, 0.1, s), (double)(s + 1) / 10, 1e-15, "warm-up");
    CHECK_NEAR(at(kind, 100, 10, 0.1, 10), 1, 0, "full rate right after the warm-up");
    CHECK_NEAR(at(kind, 100, 0, 0.1, 0), 1, 0, "no warm-up: full rate at once");
    CHECK_NEAR(at(kind, 100, 1, 0.1, 0), 1, 0, "a warm-up of one step is none");
    CHECK_NEAR(at(kind, 4, 4, 0.1, 3), 1, 0, "nothing but warm-up");
    CHECK_NEAR(at(kind, 4, 100, 0.1, 3), 0.04, 1e-15, "a warm-up longer than the run");
    CHECK_NEAR(at(kind, 1, 0, 0.1, 0), 1, 0, "a run of one step");
}

/* Never up again after the warm-up, and always from lr_final to 1. */
static void falls(taut_schedule_kind kind, double final)
{
    double last = 1;
    for (int64_t s = 10; s < 100; s++) {
        const double now = at(kind, 100, 10, final, s);
        CHECK_LE(now, last + 1e-15, "falls");
        CHECK_LE(final, now + 1e-15, "stays above lr_final");
        last = now;
    }
}

/* Epochs of ten steps: two at the full rate, then half of it for each one more. */
static void by_epochs(void)
{
    const taut_train_spec t = { .schedule = TAUT_TYPE1, .steps = 60, .epoch = 10 };
    for (int64_t s = 0; s < 60; s++)
        CHECK_NEAR(taut_schedule(&t, s), s < 20 ? 1 : pow(0.5, (double)(s / 10 - 1)), 0, "type1");
    const taut_train_spec warm = { .schedule = TAUT_TYPE1, .steps = 60, .epoch = 10, .warmup = 4 };
    CHECK_NEAR(taut_schedule(&warm, 1), 0.5, 0, "type1, warming up");
}

int main(void)
{
    test_begin();
    by_epochs();
    for (int kind = TAUT_CONSTANT; kind <= TAUT_COSINE; kind++) {
        warm_up((taut_schedule_kind)kind);
        falls((taut_schedule_kind)kind, 0);
        falls((taut_schedule_kind)kind, 0.1);
    }
    CHECK_NEAR(at(TAUT_CONSTANT, 100, 10, 0.1, 99), 1, 0, "constant ends at 1");
    for (int i = 0; i < 2; i++) {
        const double f = i ? 0.2 : 0; /* the last of 90 steps is one ninetieth before the end */
        CHECK_NEAR(at(TAUT_LINEAR, 100, 10, f, 55), (1 + f) / 2, 1e-15, "linear, half way");
        CHECK_NEAR(at(TAUT_LINEAR, 100, 10, f, 99), f + (1 - f) / 90, 1e-15, "linear, last step");
        CHECK_NEAR(at(TAUT_LINEAR, 100, 10, f, 100), f, 1e-15, "linear, the end");
        CHECK_NEAR(at(TAUT_COSINE, 100, 10, f, 55), (1 + f) / 2, 1e-15, "cosine, half way");
        CHECK_NEAR(at(TAUT_COSINE, 100, 10, f, 40), f + (1 - f) * 0.75, 1e-15, "cosine, a third: cos 60 degrees");
        CHECK_NEAR(at(TAUT_COSINE, 100, 10, f, 99), f + (1 - f) * (1 - cos(PI / 90)) / 2, 1e-15, "cosine, last step");
        CHECK_NEAR(at(TAUT_COSINE, 100, 10, f, 100), f, 1e-15, "cosine, the end");
    }
    return test_end("schedule", "constant, linear, cosine, type1");
}
