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
    double y[4096];
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
    bad_work(net);
    options(run);
    must(taut_data_open(&data, net, NULL), "data");
    refused(taut_data_get(data, TAUT_VALID, -1, &sample), "example -1");
    refused(taut_data_get(data, TAUT_VALID, INT64_MAX, &sample), "an example far out");
    refused(taut_data_get(data, (taut_split)9, 0, &sample), "a split");
    refused(taut_data_get(data, TAUT_VALID, 0, NULL), "nowhere to put it");
    taut_data_free(data);
    taut_net_free(net);
    return test_end("bad calls", "%d refused", calls);
}
