/* The published schedules: APGD's checkpoints, Square's shares and windows, the members of each profile. */
#include "attack/profile.h"
#include "targets.h"

/* After which steps of how many the step size is looked at. */
static int looks(int64_t *at, int room, int64_t steps)
{
    int count = 0;
    int64_t window = taut_apgd_window(TAUT_BALL_LINF, 0, steps);
    for (int64_t step = window; step <= steps && count < room; step += window) {
        at[count++] = step;
        window = taut_apgd_window(TAUT_BALL_LINF, window, steps);
    }
    return count;
}

static void checkpoints(void)
{
    static const int64_t want[] = { 22, 41, 57, 70, 80, 87, 93, 99 };
    int64_t at[32];
    const int count = looks(at, 32, 100);
    CHECK(count == 8 && memcmp(at, want, sizeof want) == 0, "22 41 57 70 80 87 93 99 of 100");
    CHECK(looks(at, 32, 10) == 9 && at[0] == 2 && at[1] == 3 && at[8] == 10, "10 steps: 2, then every one");
    CHECK(looks(at, 32, 1) == 1 && at[0] == 1, "one step");
}

static void shares(void)
{
    static const int64_t last[] = { 10, 50, 200, 500, 1000, 2000, 4000, 6000, 8000 };
    double p = 0.8;
    for (int i = 0; i < 9; i++) {
        CHECK(taut_square_share(last[i], 5000, false) == p, "before a border");
        CHECK(taut_square_share(last[i] + 1, 5000, false) == p / 2, "behind it");
        p /= 2;
    }
    CHECK(taut_square_share(0, 5000, false) == 0.8, "the first query");
    CHECK(taut_square_share(25, 5000, true) == 0.4 && taut_square_share(4999, 5000, true) == 0.8 / 512, "stretched");
}

static void windows(void)
{
    int64_t high, wide;
    taut_square_window(&high, &wide, 0.8, 32, 32, TAUT_BALL_LINF);
    CHECK(high == 29 && wide == 29, "round(sqrt(0.8 * 1024)) = 29");
    taut_square_window(&high, &wide, 0.4, 32, 32, TAUT_BALL_L2);
    CHECK(high == 21 && wide == 21, "20 is even");
    taut_square_window(&high, &wide, 0.8 / 512, 32, 32, TAUT_BALL_LINF);
    CHECK(high == 1 && wide == 1, "at least 1");
    taut_square_window(&high, &wide, 0.8 / 512, 32, 32, TAUT_BALL_L1);
    CHECK(high == 3 && wide == 3, "at least 3");
    taut_square_window(&high, &wide, 0.4, 1, 100, TAUT_BALL_LINF);
    CHECK(high == 1 && wide == 40, "a row of numbers");
    taut_square_window(&high, &wide, 0.4, 100, 2, TAUT_BALL_L2);
    CHECK(high == 40 && wide == 2, "a narrow image");
    taut_square_window(&high, &wide, 0.8, 1, 1, TAUT_BALL_L2);
    CHECK(high == 1 && wide == 1, "one pixel");
}

static void members(void)
{
    const taut_profile_options none = { 0 };
    taut_profile p;
    must(taut_profile_find(&p, "aa-standard", TAUT_BALL_LINF, none));
    CHECK(p.attacks == 4 && p.attack[0].steps == 100 && p.attack[0].restarts == 1 && p.attack[1].targets == 9 &&
              p.attack[2].kind == TAUT_FAB && p.attack[2].targets == 9 && p.attack[3].steps == 5000 &&
              !p.attack[3].rescale,
          "standard");
    must(taut_profile_find(&p, "aa-standard", TAUT_BALL_L1, none));
    CHECK(p.attack[0].restarts == 5 && p.attack[0].shrink && p.attack[1].targets == 5 && p.attack[1].shrink &&
              p.attack[2].targets == 9,
          "standard, L1");
    must(taut_profile_find(&p, "aa-plus", TAUT_BALL_L2, none));
    CHECK(p.attacks == 6 && p.attack[0].restarts == 5 && p.attack[1].restarts == 5 &&
              p.attack[1].loss == TAUT_LOSS_DLR && p.attack[2].restarts == 5 && !p.attack[2].targets &&
              p.attack[5].targets == 9,
          "plus");
    must(taut_profile_find(&p, "aa-rand", TAUT_BALL_L2, none));
    CHECK(p.attacks == 2 && p.attack[0].draws == 20 && p.attack[1].draws == 20, "rand");
    must(taut_profile_find(&p, "ta-10", TAUT_BALL_LINF, none));
    CHECK(p.attacks == 4 && p.attack[0].steps == 10 && p.attack[1].targets >= 99 && p.attack[2].steps == 10 &&
              p.attack[3].rescale,
          "ta-10");
    must(taut_profile_find(&p, "pgd", TAUT_BALL_LINF, (taut_profile_options){ .steps = 10, .restarts = 3 }));
    CHECK(p.attack[0].steps == 10 && p.attack[0].restarts == 3 && p.attack[0].step == 0.25, "pgd with options");
    CHECK(taut_profile_find(&p, "aa-standart", TAUT_BALL_L2, none) && strstr(taut_last_error(), "aa-standard"),
          "nearest");
}

int main(void)
{
    test_begin();
    checkpoints();
    shares();
    windows();
    members();
    return test_end("schedule", "checkpoints, shares, windows, profiles");
}
