/* Few classes, one input, no gradient, randomness, probabilities, NaN, a radius as people write it, memory that runs out. */
#include "attack/eps.h"
#include "attack/warn.h"
#include "base/alloc.h"
#include "targets.h"

static bool said(const taut_warnings *w, const char *what)
{
    for (int i = 0; i < w->count; i++)
        if (strstr(w->line[i], what)) return true;
    return false;
}

static void warn(taut_warnings *w, net *m, const char *name, int64_t n)
{
    taut_target t = net_target(m, true, NET_BATCH);
    taut_profile p;
    double x[8 * 16];
    int32_t label[8] = { 0 };
    for (int i = 0; i < 8 * 16; i++) x[i] = rng_unit();
    *w = (taut_warnings){ .count = 0 };
    must(taut_profile_find(&p, name, TAUT_BALL_LINF, (taut_profile_options){ 0 }));
    must(taut_warn_before(w, &t, &p, x, label, n, 1));
    taut_target_done(&t);
}

static void warnings(void)
{
    taut_warnings w;
    net m = net_make(16, 8, 10);
    for (int j = 0; j < 8; j++) m.b[j] = 9; /* every unit is on */
    warn(&w, &m, "aa-standard", 8);
    CHECK(w.count == 0, "a plain model gives no warning");
    m.noise = 0.1;
    warn(&w, &m, "aa-standard", 8);
    CHECK(said(&w, "vary") && w.count == 1, "randomness");
    m.noise = 0;
    for (int j = 0; j < 8; j++) m.b[j] = -100; /* every unit is off */
    warn(&w, &m, "aa-standard", 8);
    CHECK(said(&w, "8 of 8 inputs have gradient 0"), "zero gradients");
    for (int c = 0; c < 10; c++) m.c[c] = 0.1;
    warn(&w, &m, "pgd", 1);
    CHECK(said(&w, "probabilities"), "probabilities");
    net_free(&m);
    for (int64_t classes = 2; classes <= 3; classes++) {
        m = net_make(16, 8, classes);
        warn(&w, &m, "aa-standard", 8);
        CHECK(said(&w, classes == 2 ? "margin loss" : "DLR loss"), "the loss that takes the place");
        CHECK(said(&w, classes == 2 ? "1 targets" : "2 targets"), "fewer targets");
        net_free(&m);
    }
    const taut_profile p = { "aa", { { .kind = TAUT_APGD }, { .kind = TAUT_SQUARE } }, 2 };
    w.count = 0;
    taut_warn_after(&w, &p, (int64_t[]){ 50, 0 }, 1000);
    CHECK(w.count == 0, "Square found nothing new");
    taut_warn_after(&w, &p, (int64_t[]){ 50, 3 }, 1000);
    CHECK(said(&w, "0.30 points"), "Square found more");
}

/* Two and three classes, one input, one entry: every profile runs, in every norm it has. */
static void few(void)
{
    static const char *const names[] = { "fgsm", "pgd", "aa-standard", "aa-plus", "aa-rand", "ta-10" };
    int broken = 0;
    for (case_no = 0; case_no < 36; case_no++) {
        net m = net_make(case_no / 18 ? 1 : 16, 6, 2 + case_no % 2);
        taut_target t = net_target(&m, true, NET_BATCH);
        const taut_ball_kind kind = (taut_ball_kind)(case_no % 3);
        field f;
        taut_profile p;
        field_open(&f, &t, 1);
        fill(f.x, m.dim);
        for (int64_t i = 0; i < m.dim; i++) f.x[i] = fabs(f.x[i]);
        field_label(&f);
        f.h.ball = (taut_ball){ kind, 0.8, 0, 1 };
        must(taut_profile_find(&p, names[case_no % 6], kind, (taut_profile_options){ .steps = 10, .queries = 50 }));
        broken += (int)field_attack(&f, &p);
        field_close(&f);
        taut_target_done(&t);
        net_free(&m);
    }
    CHECK(broken > 0, "some are broken");
    net m = net_make(4, 0, 1);
    taut_target t = { .dim = 4, .classes = 1, .batch = 1, .lo = 0, .hi = 1, .arg = &m };
    CHECK(taut_target_ready(&t) == TAUT_BAD_CONFIG, "one class cannot be attacked");
    net_free(&m);
}

/* Without a gradient attacks end, break nothing and count what they saw; Square, which needs none, does break. */
static void flat(void)
{
    net m = net_make(16, 16, 2);
    memset(m.w, 0, 16 * 16 * 8), memset(m.v, 0, 32 * 8);
    for (int j = 0; j < 16; j++) m.w[j * 16 + j] = 1, m.b[j] = -0.6, m.v[16 + j] = 1;
    m.c[0] = 0.5, m.c[1] = 0; /* class 1 when the entries rise above 0.6 by 0.5 together; below, nothing is felt */
    taut_target t = net_target(&m, true, NET_BATCH);
    field f;
    taut_profile p;
    t.channels = 1, t.height = t.width = 4;
    field_open(&f, &t, 2);
    for (int i = 0; i < 32; i++) f.x[i] = 0.5;
    field_label(&f);
    f.h.ball = (taut_ball){ TAUT_BALL_LINF, 0.09, 0, 1 };
    must(taut_profile_find(&p, "apgd-ce", TAUT_BALL_LINF, (taut_profile_options){ 0 }));
    CHECK(field_attack(&f, &p) == 0 && f.h.still == 2, "nothing is felt in the ball");
    f.h.ball.eps = 0.3;
    must(taut_profile_find(&p, "square", TAUT_BALL_LINF, (taut_profile_options){ 0 }));
    CHECK(field_attack(&f, &p) == 2, "Square needs no gradient");
    const double nan[] = { 1, NAN, 0 }, tie[] = { 1, 3, 3 };
    CHECK(taut_argmax(nan, 3) == -1 && taut_argmax(tie, 3) == 1, "NaN is no class, a tie goes to the first");
    field_close(&f);
    taut_target_done(&t);
    net_free(&m);
}

/* A randomised classifier: 20 draws a gradient. */
static void randomised(void)
{
    net m = net_make(16, 0, 4);
    m.noise = 0.01;
    taut_target t = net_target(&m, false, NET_BATCH);
    field f;
    taut_profile p;
    field_open(&f, &t, 4);
    fill(f.x, 64);
    field_label(&f);
    f.h.ball = (taut_ball){ TAUT_BALL_L2, 3, t.lo, t.hi };
    must(taut_profile_find(&p, "aa-rand", TAUT_BALL_L2, (taut_profile_options){ .steps = 5 }));
    t.forwards = 0;
    CHECK(field_attack(&f, &p) > 0, "broken through the noise");
    CHECK(t.forwards % 20 == 0 && t.forwards > 0, "20 passes a gradient");
    field_close(&f);
    taut_target_done(&t);
    net_free(&m);
}

static void radii(void)
{
    taut_eps e;
    must(taut_eps_parse(&e, "8/255", TAUT_BALL_LINF, true));
    CHECK(e.count == 1 && e.value[0] == 8. / 255 && strcmp(e.text[0], "8/255") == 0, "8/255");
    must(taut_eps_parse(&e, "0.03,2/255,1", TAUT_BALL_LINF, true));
    CHECK(e.count == 3 && e.value[0] == 0.03 && e.value[2] == 1, "a list");
    must(taut_eps_parse(&e, "12", TAUT_BALL_L1, true));
    CHECK(e.value[0] == 12, "an L1 radius may be above 1");
    must(taut_eps_parse(&e, "8", TAUT_BALL_LINF, false));
    static const char *const bad[] = { "8", "-0.1", "0", "-8/255", "x", "", "0.1,", "nan", "inf", "1/0" };
    for (case_no = 0; case_no < 10; case_no++)
        CHECK(taut_eps_parse(&e, bad[case_no], TAUT_BALL_LINF, true) == TAUT_BAD_CONFIG, bad[case_no]);
    CHECK(taut_eps_parse(&e, "8", TAUT_BALL_LINF, true) && strstr(taut_last_error(), "8/255"), "a forgotten /255");
}

static void memory(void)
{
    net m = net_make(16, 8, 4);
    taut_target t = net_target(&m, true, NET_BATCH);
    field f;
    taut_profile p;
    field_open(&f, &t, 3);
    field_label(&f);
    f.h.ball = (taut_ball){ TAUT_BALL_L2, 0.1, 0, 1 };
    must(taut_profile_find(&p, "apgd-ce", TAUT_BALL_L2, (taut_profile_options){ 0 }));
    taut_alloc_fail_at(1);
    CHECK(taut_attack_run(&f.h, &p.attack[0]) == TAUT_NO_MEMORY, "no memory for the attack");
    taut_target again = t;
    taut_alloc_fail_at(1);
    CHECK(taut_target_ready(&again) == TAUT_NO_MEMORY, "no memory for the target");
    taut_warnings w = { .count = 0 };
    taut_alloc_fail_at(1);
    CHECK(taut_warn_before(&w, &t, &p, f.x, f.label, 3, 1) == TAUT_NO_MEMORY, "no memory for the warnings");
    taut_alloc_fail_at(0);
    field_close(&f);
    taut_target_done(&t);
    net_free(&m);
}

static taut_status broken(void *arg)
{
    (void)arg;
    return TAUT_DEVICE;
}

/* A network that fails on the way: the attack says so, whatever it found. */
static void failure(void)
{
    net m = net_make(16, 8, 4);
    taut_target t = net_target(&m, true, NET_BATCH);
    field f;
    taut_profile p;
    field_open(&f, &t, 3);
    field_label(&f);
    f.h.ball = (taut_ball){ TAUT_BALL_L2, 0.1, 0, 1 };
    must(taut_profile_find(&p, "apgd-ce", TAUT_BALL_L2, (taut_profile_options){ 0 }));
    must(taut_attack_run(&f.h, &p.attack[0]));
    t.status = broken;
    CHECK(taut_attack_run(&f.h, &p.attack[0]) == TAUT_DEVICE, "an attack on what failed");
    field_close(&f);
    taut_target_done(&t);
    net_free(&m);
}

int main(void)
{
    test_begin();
    warnings();
    few();
    flat();
    randomised();
    radii();
    memory();
    failure();
    return test_end("corners", "warnings, few classes, no gradient, randomness, radii, memory, a network that fails");
}
