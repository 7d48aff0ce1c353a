/* taut_predict_file: one image or text is the same input in every form that it may have, and its radius is the certificate's. */
#include <cjson/cJSON.h>
#include <sys/stat.h>
#include <taut.h>

#include "api/runs.h"
#include "data/shapes.h"
#include "pictures.h"

enum { N = 6, SIDE = TAUT_SHAPES_SIDE, C = TAUT_SHAPES_CHANNELS, LEN = SIDE * SIDE * C };
static uint8_t pixels[N][LEN];
static double reals[N][LEN];
static int32_t labels[N];
static char run[1024]; /* of the model that is asked */

static const char *named(const char *name)
{
    snprintf(run, sizeof run, "%s", temp_path(name));
    return run;
}

static taut_status ask(cJSON **out, const char *const *file, int files, const taut_predict_options *more)
{
    char *json = NULL;
    taut_predict_options o = *more;
    o.size = sizeof o;
    o.file = file;
    o.files = files;
    const taut_status s = taut_predict_file(&json, run, &o);
    CHECK(s || json, "an answer has text");
    *out = json ? cJSON_Parse(json) : NULL;
    taut_string_free(json);
    return s;
}

static cJSON *predict(const char *const *file, int files, const taut_predict_options *more)
{
    cJSON *o;
    must(ask(&o, file, files, more), file[0]);
    return o;
}
static cJSON *predict_one(const char *file) { return predict(&file, 1, &(taut_predict_options){ 0 }); }

static void refused(const char *file, const taut_predict_options *more, const char *says)
{
    cJSON *o;
    const taut_status s = ask(&o, &file, 1, more);
    CHECK(s && !o && strstr(taut_last_error(), says), says);
    if (!s || !strstr(taut_last_error(), says)) fprintf(stderr, "%s: %s\n", file, taut_last_error());
    cJSON_Delete(o);
}

static const cJSON *row(const cJSON *o, int i) { return cJSON_GetArrayItem(cJSON_GetObjectItem(o, "predictions"), i); }
static double number(const cJSON *o, const char *key) { return cJSON_GetNumberValue(cJSON_GetObjectItem(o, key)); }

/* The same rows, apart from where they come from. */
static bool same_row(const cJSON *a, const cJSON *b)
{
    static const char *const keys[] = { "class", "predicted", "probability", "probabilities", "radius", "verdict" };
    bool same = true;
    for (int k = 0; k < 6; k++) {
        const cJSON *x = cJSON_GetObjectItem(a, keys[k]), *y = cJSON_GetObjectItem(b, keys[k]);
        same = same && x && y && cJSON_Compare(x, y, true);
    }
    return same;
}
static void same_answers(const cJSON *a, cJSON *b, int count, const char *what)
{
    bool same = cJSON_GetArraySize(cJSON_GetObjectItem(b, "predictions")) == count;
    for (int i = 0; i < count; i++) same = same && same_row(row(a, i), row(b, i));
    CHECK(same, what);
    cJSON_Delete(b);
}

static void take_images(void)
{
    taut_net *net = NULL;
    taut_data *data = NULL;
    must(taut_net_open(&net, run, NULL), "open");
    must(taut_data_open(&data, net, NULL), "data");
    for (int i = 0; i < N; i++) {
        must(taut_data_get(data, TAUT_VALID, i, &(taut_sample){ .reals = reals[i], .targets = &labels[i] }), "get");
        for (int k = 0; k < LEN; k++) pixels[i][k] = (uint8_t)lrint(255 * reals[i][k]);
    }
    taut_data_free(data);
    taut_net_free(net);
}

/* Radii and classes as the certificate of the same inputs has them. */
static void as_certified(const cJSON *o, taut_metric metric, double room)
{
    taut_cert *c = NULL;
    taut_prediction p;
    bool same = true, summed = true;
    const taut_inputs x = { .reals = reals[0], .n = N, .t = 1 };
    must(taut_certify_file(
             &c, run, OPTIONS(taut_certify_options, .metric = metric, .room = room, .inputs = &x, .labels = labels)),
         "certify");
    for (int i = 0; i < N; i++) {
        const cJSON *r = row(o, i), *share;
        double sum = 0;
        must(taut_cert_example(c, i, &p), "an example");
        const double radius = number(r, "radius");
        same = same && number(r, "predicted") == p.predicted && radius > 0 && radius == p.radius;
        cJSON_ArrayForEach(share, cJSON_GetObjectItem(r, "probabilities"))
        {
            sum += share->valuedouble;
            summed = summed && share->valuedouble <= number(r, "probability");
        }
        summed = summed && fabs(sum - 1) < 1e-12;
    }
    CHECK(same, "radii and classes are the certificate's");
    CHECK(summed, "probabilities add up to 1, and the class has the largest");
    taut_cert_free(c);
}

static void write_pictures(made *one)
{
    static uint8_t twice[2 * SIDE][2 * SIDE][C];
    char name[64];
    mkdir(temp_path("pics"), 0777);
    mkdir(temp_path("pics/b"), 0777);
    mkdir(temp_path("twice"), 0777);
    temp_text("pics/notes.txt", "not a picture");
    temp_text("pics/.hidden.png", "nor this");
    for (int i = 0; i < N; i++) {
        make_png(one, pixels[i], SIDE, SIDE, PNG_FORMAT_RGB);
        snprintf(name, sizeof name, i < 2 ? "pics/a%d.png" : "pics/b/%d.PNG", i);
        temp_put(name, one->bytes, one->len);
        for (int y = 0; y < 2 * SIDE; y++)
            for (int x = 0; x < 2 * SIDE; x++) memcpy(twice[y][x], pixels[i] + (y / 2 * SIDE + x / 2) * C, C);
        make_png(one, twice, 2 * SIDE, 2 * SIDE, PNG_FORMAT_RGB);
        snprintf(name, sizeof name, "twice/%d.png", i);
        temp_put(name, one->bytes, one->len);
    }
    if (symlink("..", temp_path("pics/loop"))) abort();
}

static void images(void)
{
    static const char *const member[] = { "x_test.npy" };
    static made one, zip;
    static float shares[N][LEN];
    char shape[64];
    train_images(named("image"));
    take_images();
    write_pictures(&one);
    cJSON *all = predict_one(temp_path("pics"));
    as_certified(all, TAUT_OWN, 1);
    CHECK(strcmp(cJSON_GetStringValue(cJSON_GetArrayItem(cJSON_GetObjectItem(all, "classes"), 0)), "disc") == 0,
          "names of classes");
    const char *file = cJSON_GetStringValue(cJSON_GetObjectItem(row(all, 2), "file"));
    CHECK(strstr(file, "pics/b/2.PNG") != NULL, "where each comes from");
    snprintf(shape, sizeof shape, "(%d, %d, %d, %d)", N, SIDE, SIDE, C);
    make_npy(&one, "|u1", shape, pixels, sizeof pixels);
    same_answers(all, predict_one(temp_put("x.npy", one.bytes, one.len)), N, "an array of bytes");
    for (int i = 0; i < N; i++)
        for (int k = 0; k < LEN; k++) shares[i][k] = pixels[i][k] / 255.0F;
    make_npy(&one, "<f4", shape, shares, sizeof shares);
    make_zip(&zip, member, &one, 1, true);
    same_answers(all, predict_one(temp_put("set.npz", zip.bytes, zip.len)), N, "reals in a zip file");
    const char *folder = temp_path("twice");
    same_answers(all, predict(&folder, 1, &(taut_predict_options){ .resize = 1 }), N, "twice as large, resized");
    const char *const both[] = { temp_path("pics/a0.png"), temp_path("pics/b") };
    cJSON *two = predict(both, 2, &(taut_predict_options){ .room = 0.001, .metric = TAUT_TOKENS });
    CHECK(cJSON_GetArraySize(cJSON_GetObjectItem(two, "predictions")) == 5, "several files");
    CHECK(number(row(two, 0), "radius") <= 0.001, "no radius is above the room");
    cJSON_Delete(two);
    cJSON_Delete(all);

    const taut_predict_options none = { 0 };
    refused(temp_path("twice"), &none, "--resize");
    refused(temp_path("pics/notes.txt"), &none, "notes.txt");
    refused(temp_path("nowhere.png"), &none, "nowhere.png");
    mkdir(temp_path("empty"), 0777);
    refused(temp_path("empty"), &none, "neither .png");
    refused(temp_path("x.npy"), &(taut_predict_options){ .text = "text" }, "for classifiers of texts");
    make_npy(&one, "|u1", "(2, 16, 16)", pixels, 512);
    refused(temp_put("grey.npy", one.bytes, one.len), &(taut_predict_options){ .resize = 1 }, "channels");
    make_npy(&one, "|u1", "(0, 16, 16, 3)", pixels, 0);
    refused(temp_put("none.npy", one.bytes, one.len), &(taut_predict_options){ .resize = 1 }, "none.npy");
    make_zip(&zip, (const char *const[]){ "z.npy" }, &one, 1, false);
    refused(temp_put("other.npz", zip.bytes, zip.len), &none, "no array x");
}

static void texts(void)
{
    static const char *const set[] = { "data.length=300", "train.steps=4", "train.eval_every=4",
                                       "train.checkpoint_every=4" };
    taut_result r;
    must(taut_train_recipe(&r, "recipes/classifier-animals.ini", named("text"),
                           OPTIONS(taut_train_options, .overrides = set, .count = 4, .overwrite = 1)),
         "train a classifier");
    cJSON *lines = predict_one(temp_text("a.txt", "\xEF\xBB\xBFthe cat\r\n\n  \nthe \"big\" dog, and a cow\n"
                                                  "a a a a a a a a a a a a a a a a a a a a a a a a a a a a a a a a a"));
    CHECK(number(row(lines, 1), "line") == 4, "blank lines are left out, and counted");
    CHECK(!cJSON_IsTrue(cJSON_GetObjectItem(row(lines, 0), "cut")) &&
              cJSON_IsTrue(cJSON_GetObjectItem(row(lines, 2), "cut")),
          "what is longer than the context is cut, and said so");
    CHECK(number(row(lines, 0), "radius") > 0, "something is proved");
    same_answers(lines, predict_one(temp_text("a.csv", "id,Text\n1,the cat\n2,\"the \"\"big\"\" dog, and a cow\"\n")),
                 2, "a table with a header");
    same_answers(lines, predict_one(temp_text("b.csv", "the cat\n\"the \"\"big\"\" dog, and a cow\"\n")), 2,
                 "a column alone");
    same_answers(lines, predict_one(temp_text("c.csv", "text\nthe cat\n\"the \"\"big\"\" dog, and a cow\"\n")), 2,
                 "a column alone, with its name");
    const char *tsv = temp_text("a.tsv", "one\tid\ttwo\nthe\t1\tcat\nthe \"big\"\t2\tdog, and a cow\n");
    same_answers(lines, predict(&tsv, 1, &(taut_predict_options){ .text = "one,two" }), 2, "columns by name");
    cJSON_Delete(lines);

    const taut_predict_options none = { 0 };
    refused(temp_path("a.tsv"), &none, "--text NAME");
    refused(temp_path("a.tsv"), &(taut_predict_options){ .text = "three" }, "no such column");
    refused(temp_path("a.txt"), &(taut_predict_options){ .text = "one" }, "columns are those of");
    refused(temp_path("a.txt"), &(taut_predict_options){ .resize = 1 }, "for image models");
    refused(temp_text("empty.txt", " \n\n"), &none, "no text");
    refused(temp_put("nul.txt", "a\0b", 3), &none, "NUL");
    refused(temp_text("latin.txt", "caf\xE9"), &none, "UTF-8");
    refused(temp_text("ragged.csv", "text,n\na,1\nb\n"), &none, "line 3 has 1 cells");
}

/* The columns that a classifier was trained on are those of tables; a file of lines has none. */
static void lines_of_columns(void)
{
    char source[1200];
    snprintf(
        source, sizeof source, "data.source=%s",
        temp_text("train.csv", "kind,what\na,the cat\nb,the dog\na,a cat\nb,a dog\na,cat\nb,dog\na,cats\nb,dogs\n"));
    const char *const set[] = { source,          "data.label=kind",      "data.text=what",
                                "model.width=8", "model.context=8",      "train.steps=2",
                                "train.batch=2", "data.val_fraction=0.5" };
    taut_result r;
    must(taut_train_recipe(&r, "recipes/classifier-animals.ini", named("text"),
                           OPTIONS(taut_train_options, .overrides = set, .count = 8, .overwrite = 1)),
         "train on columns");
    cJSON *lines = predict_one(temp_text("b.txt", "the cat\nthe dog\n"));
    same_answers(lines, predict_one(temp_text("d.csv", "id,what\n1,the cat\n2,the dog\n")), 2, "lines, and the column");
    cJSON_Delete(lines);
}

int main(void)
{
    test_begin();
    temp_begin();
    images();
    texts();
    lines_of_columns();
    train_text(named("gpt"));
    refused(temp_text("line.txt", "a"), &(taut_predict_options){ 0 }, "not by a gpt");
    return test_end("predict", "every form of an input is the same input");
}
