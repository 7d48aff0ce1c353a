/* The alarm: silent where the certificate holds, and it rings when a certificate is falsified, with a file that shows the
 * contradiction again.  Campaigns: an interrupted one goes on to the same end; a state of another is refused. */
#include "attack/alarm.h"
#include "base/alloc.h"
#include "certify/example.h"
#include "models.h"
#include "temp.h"

enum { N = 20 };
static int successes, inside;

typedef struct {
    taut_watch watch;
    int64_t parts, stop; /* end after so many parts; 0: never */
    const char *state;
} observer;

static taut_status seen(void *arg, const taut_campaign_part *p)
{
    observer *o = arg;
    taut_status s = taut_watch_part(&o->watch, p);
    for (int64_t e = 0; e < p->count; e++) successes += p->broken[e];
    if (!s && o->state) s = taut_campaign_save(o->watch.c, "a model", o->watch.alarms, o->state);
    if (!s && ++o->parts == o->stop) s = taut_fail(TAUT_BAD_FILE, "stopped");
    return s;
}

typedef struct {
    taut_model *m;
    taut_target t, ref;
    taut_certificate cert;
    field f;
    double radius[N];
    int32_t predicted[N];
} scene;

static void scene_open(scene *s)
{
    taut_pass *pass = NULL;
    double logits[8];
    const char *path = temp_path("model.safetensors");
    s->m = make_model(mlp_recipe, "cpu", 1);
    must(taut_model_save(s->m, path));
    must(taut_certify(&s->cert, path, TAUT_NORM_FLAT, 10));
    must(taut_network_open(&s->t, s->m));
    must(taut_network_open(&s->ref, s->cert.model));
    must(taut_pass_create(&pass, s->cert.model, 1, 1, false));
    field_open(&s->f, &s->t, N);
    model_inputs(&s->t, s->f.x, N, 0);
    field_label(&s->f);
    for (int e = 0; e < N; e++) {
        const taut_example x = taut_example_certify(&s->cert, pass, (taut_input){ NULL, s->f.x + e * s->t.dim },
                                                    s->f.label[e], logits);
        s->radius[e] = x.radius.v, s->predicted[e] = x.predicted;
    }
    taut_pass_free(pass);
}

static void scene_close(scene *s)
{
    field_close(&s->f);
    taut_network_close(&s->ref);
    taut_network_close(&s->t);
    taut_certificate_free(&s->cert);
    taut_model_free(s->m);
}

static void campaign(taut_campaign *c, const scene *s)
{
    must(taut_campaign_open(c, "pgd,fab-t", TAUT_BALL_L2, "0.2,1", true, (taut_profile_options){ .steps = 10 }, 5, N));
    CHECK(s->t.dim == 60, "set up");
}

static taut_status go(taut_campaign *c, scene *s, observer *o)
{
    o->watch = (taut_watch){ .c = c,
                             .ref = &s->ref,
                             .radius = s->radius,
                             .predicted = s->predicted,
                             .label = s->f.label,
                             .model = "abc",
                             .folder = temp_dir,
                             .alarms = o->watch.alarms };
    return taut_campaign_run(c, &s->t, s->f.x, s->f.z, s->f.label, 6, seen, o);
}

static taut_alarm looked(taut_target *t, const double *x, const double *y, int32_t predicted, double radius,
                         double slack)
{
    taut_alarm a = TAUT_ALARM_QUIET;
    must(taut_alarm_check(&a, t, x, y, predicted, radius, slack));
    return a;
}

/* Honest certificates are never beaten; ten times as large ones are, and the file shows it. */
static void falsified(scene *s)
{
    taut_campaign c;
    observer o = { .parts = 0 };
    campaign(&c, s);
    must(go(&c, s, &o));
    CHECK(o.watch.alarms == 0 && successes > 0 && temp_count() == 1, "a true certificate is not beaten");
    CHECK(taut_campaign_clean(&c) == N && taut_campaign_worst(&c, 1) <= taut_campaign_worst(&c, 0), "counts");
    CHECK(taut_campaign_left(&c, 1, 0, 0) >= taut_campaign_worst(&c, 1), "the worst case is the worst");
    taut_campaign_close(&c);
    for (int e = 0; e < N; e++) inside += s->radius[e] > 0, s->radius[e] = 10;
    o = (observer){ .parts = 0 };
    campaign(&c, s);
    must(go(&c, s, &o));
    CHECK(o.watch.alarms > 0, "a falsified certificate rings");
    CHECK(temp_count() == 1 + (int)o.watch.alarms, "a reproducer each");
    taut_reproducer r;
    must(taut_reproducer_load(&r, o.watch.saved));
    CHECK(r.dim == s->t.dim && r.radius == 10 && strcmp(r.model, "abc") == 0 && strcmp(r.norm, "L2") == 0,
          "what it tells");
    CHECK(memcmp(r.x, s->f.x + r.example * r.dim, (size_t)r.dim * 8) == 0, "the very input");
    CHECK_NEAR(taut_alarm_distance(r.x, r.adv, r.dim), r.distance, 0, "the distance");
    CHECK(looked(&s->ref, r.x, r.adv, r.predicted, r.radius, 1e-9) == TAUT_ALARM_RINGS, "and again");
    CHECK(looked(&s->ref, r.x, r.adv, r.predicted, r.distance, 1e-9) == TAUT_ALARM_QUIET, "not on the sphere");
    CHECK(looked(&s->ref, r.x, r.x, r.predicted, 1, 1e-9) == TAUT_ALARM_ROUNDING, "the class did not change");
    taut_reproducer_free(&r);
    taut_campaign_close(&c);
    CHECK(taut_reproducer_load(&r, temp_path("model.safetensors")) == TAUT_BAD_FILE, "a model is no reproducer");
}

/* Another class rings, no class at all does not: a network may abstain. */
static void abstains(void)
{
    net m = net_make(4, 0, 2);
    taut_target t = net_target(&m, false, NET_BATCH);
    const double x[4] = { 0 }, y[4] = { 0.1, 0, 0, 0 };
    m.c[0] = 9, m.c[1] = 0;
    CHECK(looked(&t, x, y, 1, 1, 1) == TAUT_ALARM_RINGS, "another class");
    CHECK(looked(&t, x, y, 1, 1, 100) == TAUT_ALARM_ROUNDING, "another class, within rounding");
    CHECK(looked(&t, x, y, 0, 1, 1) == TAUT_ALARM_ROUNDING, "the same class");
    taut_alarm a;
    taut_alloc_fail_at(1);
    CHECK(taut_alarm_check(&a, &t, x, y, 1, 1, 1) == TAUT_NO_MEMORY, "no memory is a status");
    taut_alloc_fail_at(0);
    m.c[1] = NAN;
    CHECK(looked(&t, x, y, 1, 1, 1) == TAUT_ALARM_ROUNDING, "no class");
    taut_target_done(&t);
    net_free(&m);
}

static void resumed(scene *s)
{
    taut_campaign whole, half, other;
    const char *path = temp_path("state.json");
    int64_t alarms = 0;
    observer o = { .parts = 0 };
    for (int e = 0; e < N; e++) s->radius[e] = 0;
    campaign(&whole, s);
    must(go(&whole, s, &o));
    for (int stop = 1; stop < 16; stop += 5) {
        o = (observer){ .stop = stop, .state = path };
        campaign(&half, s);
        CHECK(go(&half, s, &o) == TAUT_BAD_FILE, "interrupted");
        taut_campaign_close(&half);
        campaign(&half, s);
        must(taut_campaign_load(&half, "a model", &alarms, path));
        o = (observer){ .state = path };
        must(go(&half, s, &o));
        CHECK(o.parts == 16 - stop, "what was done is not done again");
        CHECK(memcmp(half.by, whole.by, 4 * N) == 0, "the same end");
        CHECK(memcmp(half.distance, whole.distance, 4 * N * 8) == 0, "the same distances");
        taut_campaign_close(&half);
    }
    must(taut_campaign_open(&other, "pgd,fab-t", TAUT_BALL_L2, "0.2,1", true, (taut_profile_options){ .steps = 11 }, 5,
                            N));
    CHECK(taut_campaign_load(&other, "a model", &alarms, path) == TAUT_BAD_FILE, "another number of steps");
    taut_campaign_close(&other);
    campaign(&other, s);
    CHECK(taut_campaign_load(&other, "another model", &alarms, path) == TAUT_BAD_FILE, "another model");
    CHECK(taut_campaign_load(&other, "a model", &alarms, temp_text("no.json", "{}")) == TAUT_BAD_FILE, "no state");
    CHECK(taut_campaign_load(&other, "a model", &alarms, temp_text("no.json", "[1")) == TAUT_BAD_FILE, "no JSON");
    taut_campaign_close(&other);
    taut_campaign_close(&whole);
}

int main(void)
{
    test_begin();
    temp_begin();
    scene s = { 0 };
    scene_open(&s);
    falsified(&s);
    resumed(&s);
    abstains();
    taut_campaign c;
    CHECK(taut_campaign_open(&c, "pgd,nothing", TAUT_BALL_L2, "1", true, (taut_profile_options){ 0 }, 1, 3),
          "a bad name");
    CHECK(taut_campaign_open(&c, "pgd", TAUT_BALL_L2, "-1", true, (taut_profile_options){ 0 }, 1, 3), "a bad radius");
    scene_close(&s);
    CHECK(inside == N, "all were certified");
    return test_end("alarm", "%d successes held against %d certificates", successes, inside);
}
