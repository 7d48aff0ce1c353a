/* The public header alone: certificates, their check, attacks held against them. */
#include "runs.h"

/* Bent, it is refuted: the first digit of the constant made smaller. */
static void bend(const taut_cert *c, const char *run)
{
    taut_check_facts k;
    char *json = NULL;
    must(taut_cert_json(c, &json), "json");
    char *at = strstr(json, "\"lip\"");
    CHECK(at != NULL, "a constant");
    char *digit = at ? strpbrk(at, "123456789") : NULL;
    if (digit && *digit > '1') --*digit;
    must(taut_check_certificate(&k, temp_text("bent.json", json), run), "check a bent one");
    CHECK(k.verdict == TAUT_REFUTED && strlen(k.why) > 0, "refuted with a reason");
    taut_string_free(json);
}

static void certificate(const char *run)
{
    taut_cert *c = NULL, *own = NULL;
    taut_cert_facts f;
    taut_prediction p, q;
    taut_layer_facts l;
    taut_check_facts k;
    double product = 1, x[4][4096];
    int32_t labels[4];
    must(taut_certify_file(&c, run, OPTIONS(taut_certify_options, .room = 1, .examples = 4)), "certify");
    must(taut_cert_look(c, &f), "look");
    CHECK(f.metric == TAUT_FLAT, "images are moved in l2 unless the caller or a target says otherwise");
    CHECK(isfinite(f.lip) && f.lip > 0 && f.examples == 4 && f.layers > 0 && f.room == 1, "what was proved");
    CHECK(isnan(f.reach), "of images no ball is claimed");
    for (int i = 0; i < f.layers; i++) {
        must(taut_cert_layer(c, i, &l), "a layer");
        product *= l.lip;
    }
    CHECK_NEAR(product, f.lip, 1e-6 * f.lip, "the layers make the constant");
    must(taut_cert_save(c, temp_path("c.json")), "save");
    must(taut_check_certificate(&k, temp_path("c.json"), run), "check");
    CHECK(k.verdict == TAUT_CONFIRMED && k.lip == f.lip && k.examples == 4, "confirmed");

    taut_net *net = NULL;
    taut_data *data = NULL;
    taut_data_facts d;
    must(taut_net_open(&net, run, NULL), "open");
    must(taut_data_open(&data, net, NULL), "data");
    must(taut_data_look(data, &d), "look");
    for (int i = 0; i < 4; i++) /* the same examples as the caller's own */
        must(taut_data_get(data, TAUT_VALID, i * d.count[TAUT_VALID] / 4,
                           &(taut_sample){ .reals = x[0] + i * d.width, .targets = &labels[i] }),
             "an example");
    must(taut_certify_file(&own, run,
                           OPTIONS(taut_certify_options, .metric = TAUT_FLAT, .room = 1, .local = 1,
                                   .inputs = &(taut_inputs){ .n = 4, .t = 1, .reals = x[0] }, .labels = labels)),
         "own examples");
    for (int i = 0; i < 4; i++) {
        must(taut_cert_example(c, i, &p), "a prediction");
        must(taut_cert_example(own, i, &q), "the same of one's own");
        CHECK(p.label == q.label && p.predicted == q.predicted && p.radius == q.radius, "the same examples");
        CHECK(isnan(p.local_lip) && q.local_lip <= f.lip && q.local_radius >= q.radius, "local is never worse");
    }
    bend(c, run);
    taut_cert_free(c), taut_cert_free(own);
    taut_data_free(data), taut_net_free(net);
}

static int count_calls(double done, void *arg)
{
    ++*(int *)arg;
    return !(done >= 0 && done <= 1);
}

static void attack(const char *run)
{
    taut_attacked *a = NULL;
    taut_attack_facts f;
    taut_attack_radius r;
    taut_attack_example e;
    int calls = 0, standing = 0;
    char *json = NULL;
    must(taut_attack_file(&a, run,
                          OPTIONS(taut_attack_options, .attacks = "fgsm,pgd", .norm = "L2", .eps = "0.1,1",
                                  .examples = 8, .steps = 5, .progress = count_calls, .arg = &calls)),
         "attack");
    must(taut_attacked_look(a, &f), "look");
    CHECK(f.examples == 8 && f.radii == 2 && f.attacks == 2 && f.certified && f.contradictions == 0 && calls > 0,
          "a result");
    for (int i = 0; i < 2; i++) {
        must(taut_attacked_at(a, i, &r), "a radius");
        CHECK(r.certified <= r.standing && r.standing <= f.right, "certified below attacked below clean");
        standing = 0;
        for (int64_t j = 0; j < 8; j++) {
            must(taut_attacked_one(a, i, j, &e), "an example");
            standing += e.label == e.predicted && !e.broken;
            CHECK(!e.broken || e.distance <= r.eps * (1 + 1e-9), "inside the ball");
            CHECK(!e.broken || e.distance >= e.radius * (1 - 1e-6), "outside what is certified");
        }
        CHECK(standing == r.standing, "the examples make the count");
    }
    must(taut_attacked_json(a, &json), "json");
    CHECK(strstr(json, "\"robustbench\"") != NULL, "all of it");
    taut_string_free(json);
    taut_attacked_free(a);
}

int main(void)
{
    test_begin();
    temp_begin();
    taut_threads_set(1);
    (void)text_set;
    train_images(temp_path("img"));
    char run[1100];
    snprintf(run, sizeof run, "%s", temp_path("img"));
    certificate(run);
    attack(run);
    const char *const runs[] = { run };
    must(taut_report_runs(temp_path("page.html"), NULL, runs, 1, NULL), "report");
    return test_end("proof", "certified, checked, attacked, reported");
}
