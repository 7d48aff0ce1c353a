/* The public header alone: what it promises of the functions that answer with JSON. */
#include <cjson/cJSON.h>

#include "runs.h"

static cJSON *parsed(char *json)
{
    cJSON *o = cJSON_Parse(json);
    CHECK(cJSON_IsObject(o), "one JSON object");
    taut_string_free(json);
    return o;
}
static double number(const cJSON *o, const char *key) { return cJSON_GetNumberValue(cJSON_GetObjectItem(o, key)); }
static const char *word(const cJSON *o, const char *key)
{
    const char *w = cJSON_GetStringValue(cJSON_GetObjectItem(o, key));
    return w ? w : "";
}
static cJSON *run_of(const char *folder)
{
    char *json = NULL;
    must(taut_run_json(&json, folder), "run");
    return parsed(json);
}

/* describe: what the handle says too; its bounds are those of certificates. */
static void describes(const char *run)
{
    char *json = NULL;
    taut_net *net = NULL;
    taut_net_facts f;
    taut_cert *cert = NULL;
    taut_cert_facts c;
    must(taut_describe_file(&json, run, OPTIONS(taut_describe_options, .bound = 1)), "describe");
    cJSON *o = parsed(json);
    must(taut_net_open(&net, run, NULL), "open");
    must(taut_net_look(net, &f), "look");
    CHECK(strcmp(word(o, "arch"), "gpt") == 0 && number(o, "weights") == (double)f.weights, "what it is");
    CHECK(cJSON_GetArraySize(cJSON_GetObjectItem(o, "tensors")) == f.tensors, "its tensors");
    for (int flat = 0; flat < 2; flat++) {
        must(taut_certify_file(&cert, run, OPTIONS(taut_certify_options, .metric = flat ? TAUT_FLAT : TAUT_TOKENS)),
             "certify");
        must(taut_cert_look(cert, &c), "look");
        CHECK_NEAR(number(o, flat ? "bound_flat" : "bound_tokens"), c.lip, 1e-6 * c.lip, "the certificate's constant");
        taut_cert_free(cert);
    }
    CHECK(strstr(word(o, "about"), "16 tokens") != NULL, "and what it is about");
    cJSON_Delete(o);
    must(taut_describe_file(&json, run, NULL), "describe without a proof");
    o = parsed(json);
    CHECK(!cJSON_GetObjectItem(o, "bound_flat"), "nothing is proved that nobody asked for");
    cJSON_Delete(o);
    must(taut_build_json(&json, NULL), "build");
    o = parsed(json);
    CHECK(strcmp(word(o, "version"), TAUT_VERSION) == 0 && strncmp(word(o, "kernels"), "cpu", 3) == 0, "this library");
    cJSON_Delete(o);
    taut_net_free(net);
}

/* The same seed the same text, another seed another; the likeliest tokens are those of the logits. */
static void continues(const char *run)
{
    taut_net *net = NULL;
    taut_net_facts f;
    char *a = NULL, *b = NULL, *json = NULL;
    size_t n = 0, m = 0;
    int32_t *ids = NULL;
    int64_t count = 0;
    must(taut_net_open(&net, run, OPTIONS(taut_open_options, .kernels = "ref")), "open");
    must(taut_net_look(net, &f), "look");
    must(taut_net_continue(net, &a, &n, &json, NULL), "continue");
    must(taut_net_continue(net, &b, &m, NULL, OPTIONS(taut_continue_options, .seed = 1, .temperature = 0.8)), "again");
    cJSON *o = parsed(json);
    CHECK(n == m && memcmp(a, b, n) == 0 && strcmp(word(o, "text"), a) == 0, "the defaults are what they say");
    CHECK(number(o, "tokens") == 201, "200 tokens behind a prompt of one");
    cJSON_Delete(o);
    taut_string_free(b);
    must(taut_net_continue(net, &b, &m, NULL, OPTIONS(taut_continue_options, .seed = 2)), "another seed");
    CHECK(n != m || memcmp(a, b, n) != 0, "another text");
    taut_string_free(a), taut_string_free(b);
    must(taut_net_continue(net, &a, &n, NULL,
                           OPTIONS(taut_continue_options, .prompt = "((", .length = 5, .likeliest = 1)),
         "the likeliest");
    must(taut_net_encode(net, &ids, &count, a), "encode");
    CHECK(count == 7 && strncmp(a, "((", 2) == 0, "prompt and continuation");
    double *y = doubles(6 * f.classes);
    must(taut_net_logits(net, y, &(taut_inputs){ .n = 1, .t = 6, .ids = ids }), "logits");
    for (int64_t at = 2; at < 7 && count == 7; at++) {
        const double *row = y + (at - 1) * f.classes;
        for (int64_t c = 0; c < f.classes; c++) CHECK(row[c] <= row[ids[at]], "no token is likelier");
    }
    must(taut_net_continue(net, &b, &m, NULL, OPTIONS(taut_continue_options, .prompt = "((", .length = 5, .top_k = 1)),
         "among one");
    CHECK(m == n && memcmp(a, b, n) == 0, "the likeliest of one is that");
    taut_string_free(a), taut_string_free(b), taut_ids_free(ids), taut_net_free(net);
    free(y);
}

/* evaluate: the score of the handle; of a forecaster, what is proved is above what was found. */
static void evaluates(const char *text, const char *waves)
{
    char *json = NULL;
    taut_net *net = NULL;
    taut_data *data = NULL;
    taut_score score;
    must(taut_net_open(&net, text, NULL), "open");
    must(taut_data_open(&data, net, NULL), "data");
    must(taut_net_score(net, &score, data, TAUT_VALID, 0), "score");
    must(taut_evaluate_file(&json, text, NULL), "evaluate");
    cJSON *o = parsed(json);
    CHECK(number(o, "loss") == score.loss && number(o, "accuracy") == score.accuracy, "one loss");
    CHECK(strcmp(word(o, "split"), "validation") == 0 && number(o, "targets") == (double)score.targets, "of one split");
    cJSON_Delete(o);
    taut_data_free(data), taut_net_free(net);
    must(taut_evaluate_file(&json, waves,
                            OPTIONS(taut_evaluate_options, .split = "test", .examples = 2, .noise = 0.01,
                                    .page = temp_path("forecast.html"))),
         "noise");
    o = parsed(json);
    CHECK(number(o, "windows") == 2 && number(o, "mse") > 0, "two windows");
    CHECK(number(o, "moves") > 0 && number(o, "found") > 0 && number(o, "found") <= number(o, "moves"),
          "found, proved");
    CHECK(cJSON_IsFalse(cJSON_GetObjectItem(o, "contradiction")), "no contradiction");
    CHECK(cJSON_GetArraySize(cJSON_GetObjectItem(o, "columns")) > 0, "a forecast");
    size_t len = 0;
    char *page = temp_get(temp_path("forecast.html"), &len);
    CHECK(page && strstr(page, "<svg"), "drawn");
    free(page);
    cJSON_Delete(o);
}

/* The report of a certificate agrees with its facts; the check says in JSON what it says as a struct. */
static void reports(const char *run)
{
    taut_cert *cert = NULL;
    taut_cert_facts c;
    taut_check_facts k;
    char *json = NULL;
    must(taut_certify_file(&cert, run, OPTIONS(taut_certify_options, .room = 0.5, .examples = 4)), "certify");
    must(taut_cert_look(cert, &c), "look");
    must(taut_cert_report(cert, &json), "report");
    cJSON *o = parsed(json);
    const cJSON *falls = cJSON_GetObjectItem(o, "waterfall");
    CHECK(number(o, "lip") == c.lip && number(o, "n_ex") == 4 && cJSON_GetArraySize(falls) == c.layers, "its numbers");
    CHECK_NEAR(number(cJSON_GetArrayItem(falls, c.layers - 1), "so_far"), c.lip, 1e-6 * c.lip, "the layers make it");
    double before = 1;
    const cJSON *row;
    cJSON_ArrayForEach(row, cJSON_GetObjectItem(o, "certified_accuracy"))
    {
        CHECK(number(row, "radius") <= 0.5 && number(row, "accuracy") <= before, "further, fewer");
        before = number(row, "accuracy");
    }
    cJSON_Delete(o);
    must(taut_cert_save(cert, temp_path("c.json")), "save");
    must(taut_check_json(&json, temp_path("c.json"), run), "check");
    must(taut_check_certificate(&k, temp_path("c.json"), run), "check");
    o = parsed(json);
    CHECK(cJSON_IsTrue(cJSON_GetObjectItem(o, "holds")) && k.verdict == TAUT_CONFIRMED, "confirmed");
    CHECK(number(o, "lip") == k.lip && number(o, "numbers") == (double)k.numbers && *word(o, "about"), "the same");
    cJSON_Delete(o);
    taut_cert_free(cert);
}

/* Of images, how many stay where each of d numbers moves by so many levels of 255: those whose radius is above sqrt(d) times
 * that. */
static void levels(const char *run)
{
    enum { COUNT = 40 };
    taut_cert *cert = NULL;
    char *json = NULL;
    must(taut_certify_file(&cert, run, OPTIONS(taut_certify_options, .room = 1, .examples = COUNT)), "certify");
    must(taut_cert_report(cert, &json), "report");
    cJSON *o = parsed(json);
    const cJSON *row, *image = cJSON_GetObjectItem(o, "image");
    const double root = sqrt(number(image, "height") * number(image, "width") * number(image, "channels"));
    int rows = 0, some = 0;
    cJSON_ArrayForEach(row, cJSON_GetObjectItem(o, "linf_accuracy"))
    {
        const double least = root * number(row, "levels") / 255;
        int good = 0;
        for (int i = 0; i < COUNT; i++) {
            taut_prediction p;
            must(taut_cert_example(cert, i, &p), "an example");
            good += p.predicted == p.label && p.radius > least;
        }
        rows++, some += good;
        CHECK(number(row, "levels") == 1 << (rows - 1) && least <= 1, "1, 2, 4, ... as far as the room goes");
        CHECK(number(row, "l2") > least && number(row, "l2") < least * (1 + 1e-12), "its l2 norm");
        CHECK(number(row, "accuracy") == good / (double)COUNT, "counted");
    }
    CHECK(rows > 1 && some > 0, "some stay");
    cJSON_Delete(o);
    taut_cert_free(cert);
}

static int stop(double done, void *arg)
{
    ++*(int *)arg;
    return done >= 0;
}

/* What was found is never above what is proved, in every way of measuring. */
static void measures(const char *run)
{
    char *json = NULL;
    const cJSON *row, *v;
    int calls = 0;
    must(taut_measure_file(&json, run,
                           OPTIONS(taut_measure_options, .tokens = 8, .ball = 0.01, .csv = temp_path("m.csv"))),
         "layers");
    cJSON *o = parsed(json);
    CHECK(cJSON_GetArraySize(cJSON_GetObjectItem(o, "layers")) == 1, "its one layer");
    cJSON_ArrayForEach(row, cJSON_GetObjectItem(o, "layers"))
    {
        CHECK(number(row, "lower") > 0 && number(row, "lower") <= number(row, "upper"), "between");
        CHECK(number(row, "ball_lower") <= number(row, "ball") && number(row, "upper") <= number(row, "ball"),
              "on a ball");
        CHECK(number(row, "tokens") == 8 && cJSON_GetArraySize(cJSON_GetObjectItem(row, "heads")) == 2, "its heads");
    }
    cJSON_Delete(o);
    size_t len = 0;
    char *csv = temp_get(temp_path("m.csv"), &len);
    CHECK(csv && strncmp(csv, "layer,head,", 11) == 0, "a table");
    free(csv);
    must(taut_measure_file(
             &json, run,
             OPTIONS(taut_measure_options, .what = TAUT_MEASURE_LENGTHS, .lengths = { 4, 8, 2 }, .samples = 2)),
         "lengths");
    o = parsed(json);
    CHECK(cJSON_GetArraySize(cJSON_GetObjectItem(o, "points")) == 6, "two of three lengths");
    cJSON_Delete(o);
    must(taut_measure_file(&json, run, OPTIONS(taut_measure_options, .what = TAUT_MEASURE_NETWORK, .samples = 3)),
         "network");
    o = parsed(json);
    CHECK(number(o, "examples") == 3 && number(o, "max") <= number(o, "proved") && number(o, "min") > 0,
          "below the proof");
    CHECK(cJSON_IsFalse(cJSON_GetObjectItem(o, "contradiction")), "no contradiction");
    cJSON_Delete(o);
    must(taut_measure_file(&json, run, OPTIONS(taut_measure_options, .what = TAUT_MEASURE_MAPS, .tokens = 4)), "maps");
    o = parsed(json);
    const cJSON *map = cJSON_GetObjectItem(o, "maps")->child->child; /* of the first head: rows sum to 1 */
    double sum = 0;
    cJSON_ArrayForEach(v, map) sum += v->valuedouble;
    CHECK_NEAR(sum, 4, 16 * 0.5e-4 + 1e-9, "four rows of weights, to four digits");
    cJSON_Delete(o);
    CHECK(taut_measure_file(&json, run,
                            OPTIONS(taut_measure_options, .what = TAUT_MEASURE_NETWORK, .progress = stop,
                                    .arg = &calls)) == TAUT_BAD_CALL,
          "stopped");
    CHECK(calls == 1 && strcmp(taut_last_error(), "stopped") == 0 && !json, "by the callback, at once");
}

/* A network under the planned caps stays under the target: the recipe trains one, and its certificate says so. */
static void plans(void)
{
    char *json = NULL, run[1100];
    taut_result r;
    taut_cert *cert = NULL;
    must(taut_plan_caps(&json, OPTIONS(taut_plan_options, .target = 3, .depth = 1, .width = 16, .heads = 2, .mlp = 32)),
         "plan");
    cJSON *o = parsed(json);
    CHECK(number(o, "lipschitz") <= 3 && number(o, "lipschitz") > 2.9 && number(o, "cap") > 0, "just under the target");
    const char *set[] = { "model.context=16", "train.steps=4", "train.batch=2", "data.source=brackets",
                          "data.length=2000" };
    snprintf(run, sizeof run, "%s", temp_path("planned"));
    must(taut_train_recipe(&r, temp_text("plan.ini", word(o, "recipe")), run,
                           OPTIONS(taut_train_options, .overrides = set, .count = 5)),
         "train the plan");
    must(taut_certify_file(&cert, run, NULL), "certify");
    must(taut_cert_report(cert, &json), "report");
    cJSON *c = parsed(json);
    CHECK_LE(number(c, "lip_rms"), 3, "the target is kept");
    cJSON_Delete(c), cJSON_Delete(o);
    taut_cert_free(cert);
    must(taut_plan_caps(&json, OPTIONS(taut_plan_options, .target = 3, .position = -1)), "no positions");
    o = parsed(json);
    CHECK(number(o, "position") == 0 && strstr(word(o, "recipe"), "positions = none"), "below 0 is none");
    cJSON_Delete(o);
    must(taut_plan_table(&json), "table");
    o = parsed(json);
    CHECK(cJSON_GetArraySize(cJSON_GetObjectItem(o, "table")) > 2, "a table");
    cJSON_Delete(o);
}

static void folders(const char *run)
{
    int figures = 0, few = 0;
    cJSON *o = run_of(run);
    CHECK(cJSON_IsTrue(cJSON_GetObjectItem(o, "finished")) && cJSON_IsNull(cJSON_GetObjectItem(o, "lip")),
          "no certificate");
    CHECK(number(cJSON_GetObjectItem(o, "summary"), "steps") == 6, "its summary");
    cJSON_Delete(o);
    taut_cert *cert = NULL;
    char path[1200];
    snprintf(path, sizeof path, "%s/certificate.json", run);
    must(taut_certify_file(&cert, run, NULL), "certify");
    must(taut_cert_save(cert, path), "save");
    o = run_of(run);
    CHECK(number(o, "lip") > 0 && *word(o, "about"), "its certificate");
    cJSON_Delete(o);
    must(taut_report_page(&figures, temp_path("page.html"), &run, 1, NULL), "page");
    must(taut_report_page(&few, temp_path("few.html"), &run, 1, OPTIONS(taut_page_options, .frontier = 1)), "frontier");
    CHECK(figures > few, "all figures, or those of the frontier");
    train_text(run); /* the same weights: still its own; then others */
    taut_net *net = NULL;
    double w = 0.5;
    must(taut_net_open(&net, run, NULL), "open");
    taut_tensor_facts t;
    must(taut_net_tensor(net, 0, &t), "a tensor");
    double *all = doubles(t.rows * t.cols);
    all[0] = w;
    must(taut_net_write(net, t.name, all, t.rows * t.cols), "write");
    snprintf(path, sizeof path, "%s/model.safetensors", run);
    must(taut_net_save(net, path), "save");
    o = run_of(run);
    CHECK(cJSON_IsNull(cJSON_GetObjectItem(o, "lip")), "a certificate of another model is not its own");
    cJSON_Delete(o);
    taut_net_free(net), taut_cert_free(cert);
    free(all);
}

int main(void)
{
    static const char *const waves_set[] = { "train.steps=4",    "model.width=16",
                                             "model.mlp=32",     "train.eval_every=0",
                                             "data.length=1500", "model.norm=none",
                                             "model.depth=1",    "constrain.method=normalise",
                                             "constrain.cap=0.5" };
    char run[1100], waves[1100], images[1100];
    taut_result r;
    test_begin();
    temp_begin();
    taut_threads_set(1);
    snprintf(run, sizeof run, "%s", temp_path("a"));
    snprintf(waves, sizeof waves, "%s", temp_path("waves"));
    snprintf(images, sizeof images, "%s", temp_path("images"));
    train_text(run);
    train_images(images);
    must(taut_train_recipe(&r, "recipes/forecast-waves.ini", waves,
                           OPTIONS(taut_train_options, .overrides = waves_set, .count = 9)),
         "train a forecaster");
    describes(run);
    continues(run);
    evaluates(run, waves);
    reports(run);
    levels(images);
    measures(run);
    plans();
    folders(run);
    return test_end("answers", "described, continued, evaluated, measured, planned");
}
