/* Every function of the public header with NULL, wrong sizes and numbers out of range: a status and one line, no crash. */
#include "runs.h"

static int calls;
static void refused(taut_status s, const char *what)
{
    calls++;
    CHECK(s != TAUT_OK, what);
    CHECK(strlen(taut_last_error()) > 0 && !strchr(taut_last_error(), '\n'), what);
}

static void bad_models(taut_net *net)
{
    taut_net *out = NULL;
    taut_net_facts nf;
    taut_tensor_facts tf;
    char *text = NULL;
    double y[4096] = { 0 };
    int32_t ids[4] = { 0 }, *got = NULL;
    int64_t count;
    const taut_inputs x = { .n = 1, .t = 1, .ids = ids }, none = { .n = 1, .t = 1 };
    refused(taut_net_open(NULL, "x", NULL), "out");
    refused(taut_net_open(&out, NULL, NULL), "model");
    refused(taut_net_create(&out, NULL, NULL, 0, NULL), "recipe");
    refused(taut_net_create(&out, "recipes/tiny.ini", NULL, 3, NULL), "overrides");
    refused(taut_net_create(&out, "recipes/tiny.ini", (const char *[]){ NULL }, 1, NULL), "an override");
    refused(taut_net_save(NULL, "x"), "net"), refused(taut_net_save(net, NULL), "path");
    refused(taut_net_look(NULL, &nf), "net"), refused(taut_net_look(net, NULL), "out");
    refused(taut_net_json(NULL, &text), "net"), refused(taut_net_json(net, NULL), "out");
    refused(taut_net_tensor(NULL, 0, &tf), "net"), refused(taut_net_tensor(net, -1, &tf), "below 0");
    refused(taut_net_tensor(net, 1 << 20, &tf), "too many");
    refused(taut_net_read(net, "nobody", y, 1), "no such tensor"),
        refused(taut_net_read(net, "embed.weight", y, 1), "size");
    refused(taut_net_write(net, NULL, y, 1), "name"), refused(taut_net_write(net, "embed.weight", NULL, 1), "numbers");
    refused(taut_net_logits(NULL, y, &x), "net"), refused(taut_net_logits(net, NULL, &x), "y");
    refused(taut_net_logits(net, y, NULL), "x"), refused(taut_net_logits(net, y, &none), "neither ids nor reals");
    refused(taut_net_logits(net, y, &(taut_inputs){ .n = 0, .t = 1, .ids = ids }), "no inputs");
    refused(taut_net_logits(net, y, &(taut_inputs){ .n = 1, .t = 1000, .ids = ids }), "too long");
    refused(taut_net_logits(net, y, &(taut_inputs){ .n = INT64_MAX, .t = 16, .ids = ids }), "too many");
    refused(taut_net_logits(net, y, &(taut_inputs){ .n = 1, .t = 1, .ids = (int32_t[]){ -1 } }), "id -1");
    refused(taut_net_logits(net, y, &(taut_inputs){ .n = 1, .t = 1, .ids = (int32_t[]){ 1 << 30 } }), "id 2^30");
    y[3] = NAN;
    refused(taut_net_logits(net, y, &(taut_inputs){ .n = 1, .t = 1, .reals = y }), "NaN");
    refused(taut_net_vjp(net, NULL, y, &x), "gx"), refused(taut_net_jvp(net, y, NULL, &x), "tx");
    refused(taut_net_grad(net, y, NULL, NULL, &x), "labels");
    refused(taut_net_grad(net, y, NULL, (int32_t[]){ 1 << 20 }, &x), "a label");
    refused(taut_net_embed(net, y, &none), "ids");
    refused(taut_net_encode(net, &got, &count, NULL), "text"), refused(taut_net_decode(net, &text, ids, -1), "count");
    refused(taut_net_decode(net, &text, (int32_t[]){ 1 << 30 }, 1), "an id");
}

static void bad_checkpoints(taut_net *net)
{
    taut_net *out = NULL;
    char *text = NULL;
    double y[64];
    const char *const texts[] = { "a", NULL };
    const taut_open_options maps = { sizeof maps, .maps = 1 }, sets = { sizeof sets, .set = texts + 1, .sets = 1 },
                            less = { sizeof less, .map = texts, .maps = -1 },
                            odd = { sizeof odd, .map = texts, .maps = 1 };
    const taut_features_options none = { sizeof none, .pool = "max" };
    refused(taut_net_open(&out, "tests/golden/hf_gpt2", &maps), "maps without a list");
    refused(taut_net_open(&out, "tests/golden/hf_gpt2", &sets), "a setting that is NULL");
    refused(taut_net_open(&out, "tests/golden/hf_gpt2", &less), "-1 maps");
    refused(taut_net_open(&out, "tests/golden/hf_gpt2", &odd), "a map without =");
    refused(taut_checkpoint_json(NULL, "x", NULL), "json"),
        refused(taut_checkpoint_json(&text, NULL, NULL), "checkpoint");
    refused(taut_checkpoint_json(&text, "x", &maps), "maps without a list");
    refused(taut_net_features(NULL, y, NULL, texts, 1, NULL), "net");
    refused(taut_net_features(net, NULL, NULL, texts, 1, NULL), "y"),
        refused(taut_net_features(net, y, NULL, NULL, 1, NULL), "texts");
    refused(taut_net_features(net, y, NULL, texts, -1, NULL), "count"),
        refused(taut_net_features(net, y, NULL, texts, 1, &none), "pool");
    refused(taut_net_features(net, y, NULL, texts, 1, NULL), "no encoder");
}

static void bad_work(taut_net *net)
{
    taut_data *data = NULL;
    taut_data_facts df;
    taut_score score;
    taut_result r;
    taut_cert *cert = NULL;
    taut_cert_facts cf;
    taut_prediction p;
    taut_layer_facts lf;
    taut_check_facts kf;
    taut_attacked *a = NULL;
    taut_attack_facts af;
    taut_attack_radius ar;
    taut_attack_example ae;
    char *text = NULL;
    refused(taut_data_open(&data, NULL, NULL), "net"), refused(taut_data_open(&data, net, "nowhere at all"), "no data");
    refused(taut_data_look(NULL, &df), "data"), refused(taut_net_score(net, &score, NULL, TAUT_VALID, 0), "data");
    refused(taut_train_recipe(NULL, "r", "x", NULL), "out"), refused(taut_train_recipe(&r, NULL, "x", NULL), "recipe");
    refused(taut_train_recipe(&r, "recipes/tiny.ini", NULL, NULL), "run");
    refused(taut_certify_file(&cert, NULL, NULL), "model"),
        refused(taut_certify_file(&cert, "nowhere", NULL), "no file");
    refused(taut_cert_look(NULL, &cf), "cert"), refused(taut_cert_example(NULL, 0, &p), "cert");
    refused(taut_cert_swaps(NULL, 0, &(taut_swap_facts){ 0 }), "cert");
    refused(taut_cert_layer(NULL, 0, &lf), "cert"), refused(taut_cert_json(NULL, &text), "cert");
    refused(taut_cert_save(NULL, "x"), "cert"), refused(taut_check_certificate(&kf, "nowhere", "nowhere"), "no file");
    refused(taut_check_certificate(NULL, "a", "b"), "out"), refused(taut_attack_file(&a, "nowhere", NULL), "no file");
    refused(taut_attack_file(NULL, "x", NULL), "out"), refused(taut_attacked_look(NULL, &af), "attacked");
    refused(taut_attacked_at(NULL, 0, &ar), "attacked"), refused(taut_attacked_one(NULL, 0, 0, &ae), "attacked");
    refused(taut_attacked_json(NULL, &text), "attacked"), refused(taut_attack_replay(&text, "nowhere", "x"), "no file");
    refused(taut_report_runs("x.html", NULL, NULL, 1, NULL), "runs");
    refused(taut_report_runs("x.html", NULL, (const char *[]){ "nowhere" }, 1, NULL), "no folder");
    taut_net_free(NULL), taut_data_free(NULL), taut_cert_free(NULL), taut_attacked_free(NULL);
    taut_string_free(NULL), taut_ids_free(NULL);
}

/* The functions that answer with JSON: each with NULL, no file, options too small, of another version, out of range and NaN. */
#define ANSWERS(function, type, run)                                                        \
    do {                                                                                    \
        struct {                                                                            \
            type o;                                                                         \
            int more;                                                                       \
        } newer = { { .size = sizeof newer }, 1 };                                          \
        char *json = (char *)"left over";                                                   \
        refused(function(NULL, run, NULL), #function ": json");                             \
        refused(function(&json, NULL, NULL), #function ": model");                          \
        CHECK(json == NULL, #function ": a failed call leaves NULL");                       \
        refused(function(&json, "nowhere at all", NULL), #function ": no file");            \
        refused(function(&json, run, &(type){ .size = 0 }), #function ": size 0");          \
        refused(function(&json, run, &(type){ .size = 5 }), #function ": size 5");          \
        refused(function(&json, run, &(type){ .size = 12 }), #function ": half a pointer"); \
        refused(function(&json, run, &newer.o), #function ": an option that nobody knows"); \
        CHECK(json == NULL, #function ": still NULL");                                      \
    } while (0)

static void answers(const char *run)
{
    char *json = NULL;
    ANSWERS(taut_describe_file, taut_describe_options, run);
    ANSWERS(taut_evaluate_file, taut_evaluate_options, run);
    ANSWERS(taut_measure_file, taut_measure_options, run);
    ANSWERS(taut_forecast_file, taut_forecast_options, run);
    refused(taut_forecast_file(&json, run, NULL), "a forecast of a text");
    refused(taut_forecast_file(&json, run, OPTIONS(taut_forecast_options, .noise = NAN)), "noise NaN");
    refused(taut_forecast_file(&json, run, OPTIONS(taut_forecast_options, .noise = -1)), "noise below 0");
    ANSWERS(taut_predict_file, taut_predict_options, run);
    refused(taut_predict_file(&json, run, NULL), "no file to predict");
    refused(taut_predict_file(&json, run, OPTIONS(taut_predict_options, .file = &run, .files = -1)), "-1 files");
    refused(taut_predict_file(&json, run, OPTIONS(taut_predict_options, .files = 1)), "a list that is NULL");
    refused(taut_predict_file(&json, run, OPTIONS(taut_predict_options, .file = (const char *[]){ NULL }, .files = 1)),
            "a file that is NULL");
    refused(taut_predict_file(&json, run, OPTIONS(taut_predict_options, .file = &run, .files = 1, .room = NAN)),
            "room");
    refused(taut_predict_file(&json, run, OPTIONS(taut_predict_options, .file = &run, .files = 1, .metric = 7)),
            "norm");
    refused(taut_predict_file(&json, run, OPTIONS(taut_predict_options, .file = &run, .files = 1)), "classes of a gpt");
    refused(taut_describe_file(&json, run, OPTIONS(taut_describe_options, .recipe = "nowhere.ini")), "no recipe");
    refused(taut_evaluate_file(&json, run, OPTIONS(taut_evaluate_options, .split = "third")), "a split");
    refused(taut_evaluate_file(&json, run, OPTIONS(taut_evaluate_options, .split = "test")), "no test split");
    refused(taut_evaluate_file(&json, run, OPTIONS(taut_evaluate_options, .kernels = "gpu")), "kernels");
    refused(taut_evaluate_file(&json, run, OPTIONS(taut_evaluate_options, .data = "nowhere at all")), "no data");
    refused(taut_evaluate_file(&json, run, OPTIONS(taut_evaluate_options, .examples = -1)), "examples");
    refused(taut_evaluate_file(&json, run, OPTIONS(taut_evaluate_options, .slide = -1)), "slide");
    refused(taut_evaluate_file(&json, run, OPTIONS(taut_evaluate_options, .batch = 65)), "batch");
    refused(taut_evaluate_file(&json, run, OPTIONS(taut_evaluate_options, .noise = NAN)), "noise NaN");
    refused(taut_evaluate_file(&json, run, OPTIONS(taut_evaluate_options, .noise = 1)), "noise on a text");
    refused(taut_evaluate_file(&json, run, OPTIONS(taut_evaluate_options, .page = "x.html")), "a page of a text");
    refused(taut_recipe_json(NULL, "recipes/tiny.ini", NULL), "json");
    refused(taut_recipe_json(&json, "recipes/tiny.ini", &(taut_recipe_options){ .size = 5 }), "size 5");
    refused(taut_recipe_json(&json, "nowhere.ini", NULL), "no such recipe");
    refused(taut_recipe_json(&json, "recipes/tiny.ini", OPTIONS(taut_recipe_options, .count = 1)), "no override");
    refused(taut_check_json(NULL, "a", "b"), "json"), refused(taut_check_json(&json, NULL, "b"), "cert");
    refused(taut_check_json(&json, "a", NULL), "model"), refused(taut_check_json(&json, "nowhere", run), "no file");
    refused(taut_cert_report(NULL, &json), "cert"), refused(taut_build_json(NULL, NULL), "json");
    refused(taut_build_json(&json, "gpu"), "kernels nobody has");
    const taut_status device = taut_build_json(&json, "cuda");
    CHECK(device == TAUT_DEVICE || device == TAUT_OK, "a device, if there is one");
    if (device == TAUT_OK) taut_string_free(json), json = NULL;
    refused(taut_run_json(NULL, run), "json"), refused(taut_run_json(&json, NULL), "run");
    refused(taut_run_json(&json, "nowhere at all"), "no folder");
    refused(taut_report_page(NULL, NULL, &run, 1, NULL), "page");
    refused(taut_report_page(NULL, "x.html", NULL, 1, NULL), "runs");
    refused(taut_report_page(NULL, "x.html", &run, 0, NULL), "no run");
    refused(taut_report_page(NULL, "x.html", &run, -1, NULL), "fewer than none");
    refused(taut_report_page(NULL, "x.html", (const char *[]){ NULL }, 1, NULL), "a run that is NULL");
    refused(taut_report_page(NULL, "x.html", &run, 1, &(taut_page_options){ .size = 2 }), "size 2");
}

static void bad_measurements(const char *run)
{
    char *json = NULL;
    const taut_measure_options bad[] = { { .what = (taut_measurement)9 },
                                         { .kernels = "gpu" },
                                         { .data = "nowhere at all" },
                                         { .tokens = -1 },
                                         { .tokens = 17 },
                                         { .from = -1 },
                                         { .from = INT64_MAX },
                                         { .one_layer = 1, .layer = -1 },
                                         { .one_layer = 1, .layer = 1 },
                                         { .map = "bear" },
                                         { .ball = NAN },
                                         { .ball = -1 },
                                         { .method = "magic" },
                                         { .steps = -1 },
                                         { .steps = 129 },
                                         { .tolerance = NAN },
                                         { .tolerance = 2 },
                                         { .samples = -1 },
                                         { .csv = "nowhere/at/all.csv" },
                                         { .what = TAUT_MEASURE_LENGTHS, .lengths = { 5, 4, 1 } },
                                         { .what = TAUT_MEASURE_LENGTHS, .lengths = { 1, 4, 0 } },
                                         { .what = TAUT_MEASURE_LENGTHS, .lengths = { INT64_MIN, INT64_MAX, 1 } },
                                         { .what = TAUT_MEASURE_LENGTHS, .lengths = { 2, 99, 1 } },
                                         { .what = TAUT_MEASURE_LENGTHS, .lengths = { 2, 4, 1 }, .samples = 5000 },
                                         { .what = TAUT_MEASURE_LENGTHS, .lengths = { 2, 4, 1 }, .head = 2 },
                                         { .what = TAUT_MEASURE_LENGTHS, .adversarial = 1, .radius = NAN },
                                         { .what = TAUT_MEASURE_LENGTHS, .adversarial = 1, .map = "block" },
                                         { .what = TAUT_MEASURE_MAPS, .tokens = 17 },
                                         { .what = TAUT_MEASURE_MAPS, .from = INT64_MAX },
                                         { .what = TAUT_MEASURE_NETWORK, .data = "nowhere at all" },
                                         { .what = TAUT_MEASURE_DEVIATION } };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        taut_measure_options o = bad[i];
        char what[32];
        o.size = sizeof o;
        snprintf(what, sizeof what, "measurement %zu", i);
        refused(taut_measure_file(&json, run, &o), what);
    }
}

static void bad_plans(void)
{
    char *json = NULL;
    const taut_plan_options bad[] = { { .target = 0 },
                                      { .target = NAN },
                                      { .target = -1 },
                                      { .target = INFINITY },
                                      { .target = 0.1 }, /* below what the residuals alone have */
                                      { .target = 2, .depth = -1 },
                                      { .target = 2, .depth = 129 },
                                      { .target = 2, .width = 10, .heads = 3 },
                                      { .target = 2, .heads = INT64_MAX },
                                      { .target = 2, .mlp = INT64_MIN },
                                      { .target = 2, .vocab = -1 },
                                      { .target = 2, .units = "l2" },
                                      { .target = 2, .units = "ell" },
                                      { .target = 2, .attention = "inv" },
                                      { .target = 2, .activation = "step" },
                                      { .target = 2, .out = NAN },
                                      { .target = 2, .factor = -1 },
                                      { .target = 2, .alpha = 2 },
                                      { .target = 2, .embed = NAN },
                                      { .target = 2, .position = INFINITY },
                                      { .target = 2, .qk = -1 },
                                      { .target = 2, .head = 1e30 },
                                      { .target = 2, .logit = NAN } };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        taut_plan_options o = bad[i];
        char what[32];
        o.size = sizeof o;
        snprintf(what, sizeof what, "plan %zu", i);
        refused(taut_plan_caps(&json, &o), what);
    }
    refused(taut_plan_caps(&json, NULL), "no target"), refused(taut_plan_caps(NULL, NULL), "json");
    refused(taut_plan_caps(&json, &(taut_plan_options){ .size = 4, .target = 2 }), "size 4");
    refused(taut_plan_table(NULL), "json");
}

static void bad_texts(taut_net *net)
{
    char *text = NULL, *json = NULL;
    size_t len = 0;
    refused(taut_net_continue(NULL, &text, &len, &json, NULL), "net");
    refused(taut_net_continue(net, &text, NULL, &json, NULL), "bytes without a length");
    refused(taut_net_continue(net, &text, &len, &json, &(taut_continue_options){ .size = 1 }), "size 1");
    const taut_continue_options bad[] = { { .length = -1 },         { .length = INT64_MAX }, { .temperature = NAN },
                                          { .temperature = -1 },    { .temperature = 1e9 },  { .top_k = -1 },
                                          { .prompt = "\xff\xfe" }, { .prompt = "" } };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        taut_continue_options o = bad[i];
        char what[32];
        o.size = sizeof o;
        snprintf(what, sizeof what, "text %zu", i);
        refused(taut_net_continue(net, &text, &len, &json, &o), what);
        CHECK(!text && !json, what);
    }
    must(taut_net_continue(net, NULL, NULL, NULL, OPTIONS(taut_continue_options, .length = 1)), "nothing wanted");
}

/* Those without a status: NULL is answered, and changes nothing. */
static void bad_words(void)
{
    int64_t whole = 7;
    double real = 7;
    char text[32];
    const char *const list[] = { "eggs", NULL, "ham" };
    CHECK(!taut_number_int(NULL, "1") && !taut_number_int(&whole, NULL) && !taut_number_int(&whole, "1x"), "int");
    CHECK(!taut_number_real(NULL, "1") && !taut_number_real(&real, NULL) && !taut_number_real(&real, "nan"), "real");
    CHECK(whole == 7 && real == 7, "left alone");
    CHECK(!taut_number_print(NULL, 1) && !taut_number_up(NULL, 1) && !taut_number_down(NULL, 1), "nowhere to print");
    CHECK(strlen(taut_number_print(text, NAN)) > 0 && strlen(taut_number_print(text, -INFINITY)) > 0, "no number");
    CHECK(!taut_nearest(NULL, list, 3) && !taut_nearest("egg", NULL, 3) && !taut_nearest("egg", list, -3), "nearest");
    CHECK(taut_nearest("hem", list, 3) == list[2], "past a hole in the list");
}

/* Of radii for a runtime that is off. */
static void runtimes(const char *run)
{
    taut_cert *cert = NULL;
    refused(taut_certify_file(&cert, run, OPTIONS(taut_certify_options, .tolerance = 1)), "tolerance of nothing");
    refused(taut_certify_file(&cert, run, OPTIONS(taut_certify_options, .runs_on = "cpu")), "runs_on of nothing");
    refused(taut_certify_file(&cert, run, OPTIONS(taut_certify_options, .runs_on = "gpu", .examples = 1)),
            "runs_on what");
    refused(
        taut_certify_file(&cert, run, OPTIONS(taut_certify_options, .runs_on = "cpu", .examples = 1, .tolerance = 1)),
        "runs_on and a tolerance");
    refused(taut_certify_file(&cert, run, OPTIONS(taut_certify_options, .tolerance = NAN, .examples = 1)),
            "tolerance NaN");
    refused(taut_certify_file(&cert, run, OPTIONS(taut_certify_options, .tolerance = -1, .examples = 1)), "below 0");
}

static void options(const char *run)
{
    taut_net *net = NULL;
    taut_cert *cert = NULL;
    taut_attacked *a = NULL;
    struct {
        taut_open_options o;
        int more;
    } newer = { { .size = sizeof newer }, 0 };
    refused(taut_net_open(&net, run, &(taut_open_options){ .kernels = "ref" }), "size 0");
    refused(taut_net_open(&net, run, &(taut_open_options){ .size = 3 }), "size 3");
    refused(taut_net_open(&net, run, &(taut_open_options){ .size = SIZE_MAX }), "a size nobody has");
    must(taut_net_open(&net, run, &(taut_open_options){ .size = sizeof(size_t) }), "an older caller");
    taut_net_free(net);
    must(taut_net_open(&net, run, &newer.o), "a newer caller who asks for nothing new");
    taut_net_free(net);
    newer.more = 1;
    refused(taut_net_open(&net, run, &newer.o), "and one who does");
    CHECK(net == NULL, "a failed open leaves NULL");
    refused(taut_net_open(&net, run, OPTIONS(taut_open_options, .kernels = "gpu")), "kernels nobody has");
    refused(taut_certify_file(&cert, run, OPTIONS(taut_certify_options, .metric = (taut_metric)7)), "a metric");
    refused(taut_certify_file(&cert, run, OPTIONS(taut_certify_options, .room = NAN)), "room NaN");
    refused(taut_certify_file(&cert, run, OPTIONS(taut_certify_options, .room = -1)), "room below 0");
    refused(taut_certify_file(&cert, run, OPTIONS(taut_certify_options, .local = 1)), "local of nothing");
    refused(taut_certify_file(&cert, run, OPTIONS(taut_certify_options, .rows = 2)), "rows of a text");
    refused(taut_certify_file(&cert, run, OPTIONS(taut_certify_options, .swaps = 1)), "swaps of nothing");
    refused(taut_certify_file(&cert, run, OPTIONS(taut_certify_options, .swaps = -1, .examples = 1)), "swaps below 0");
    refused(taut_certify_file(&cert, run, OPTIONS(taut_certify_options, .swaps = 17, .examples = 1)), "17 swaps");
    refused(taut_certify_file(&cert, run, OPTIONS(taut_certify_options, .swaps = 1, .tries = -1, .examples = 1)),
            "tries");
    refused(taut_certify_file(&cert, run,
                              OPTIONS(taut_certify_options, .inputs = &(taut_inputs){ .n = 1, .t = 1, .ids = &calls })),
            "own inputs without labels");
    const double far[16 * 16] = { 1e6 };
    const int32_t label = 0;
    refused(taut_certify_file(&cert, run,
                              OPTIONS(taut_certify_options, .inputs = &(taut_inputs){ .n = 1, .t = 16, .reals = far },
                                      .labels = &label)),
            "embeddings that may lie outside the region");
    refused(taut_attack_file(&a, run, OPTIONS(taut_attack_options, .norm = "L7", .eps = "1")), "a norm");
    refused(taut_attack_file(&a, run, OPTIONS(taut_attack_options, .eps = "-1")), "eps");
    refused(taut_attack_file(&a, run, OPTIONS(taut_attack_options, .examples = 1)), "no eps for a text");
    refused(taut_attack_file(&a, run, OPTIONS(taut_attack_options, .eps = "1", .attacks = "apdg")), "an attack");
    refused(taut_attack_file(&a, run, OPTIONS(taut_attack_options, .steps = -1, .eps = "1")), "steps");
}

int main(void)
{
    taut_net *net = NULL;
    taut_data *data = NULL;
    taut_sample sample = { 0 };
    test_begin();
    temp_begin();
    taut_threads_set(1);
    (void)image_set;
    train_text(temp_path("a"));
    char run[1100];
    snprintf(run, sizeof run, "%s", temp_path("a"));
    must(taut_net_open(&net, run, NULL), "open");
    bad_models(net);
    bad_checkpoints(net);
    bad_work(net);
    bad_texts(net);
    bad_words();
    bad_plans();
    answers(run);
    bad_measurements(run);
    options(run);
    runtimes(run);
    must(taut_data_open(&data, net, NULL), "data");
    refused(taut_data_get(data, TAUT_VALID, -1, &sample), "example -1");
    refused(taut_data_get(data, TAUT_VALID, INT64_MAX, &sample), "an example far out");
    refused(taut_data_get(data, (taut_split)9, 0, &sample), "a split");
    refused(taut_data_get(data, TAUT_VALID, 0, NULL), "nowhere to put it");
    taut_data_free(data);
    taut_net_free(net);
    return test_end("bad calls", "%d refused", calls);
}
