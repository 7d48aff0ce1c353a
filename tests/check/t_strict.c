/* What is no JSON by RFC 8259, has a key twice, a key or a word that nobody knows, or an object for a list, is refused, in a
 * certificate, in a model's header and in the tree of its metadata; what JSON allows is read.  Every case is one change of a
 * certificate, or of a model with the certificate's hash renewed, that otherwise holds. */
#include "base/float32.h"
#include "base/json.h"
#include "base/sha256.h"
#include "certify/build.h"
#include "certify/example.h"
#include "check/check.h"
#include "temp.h"

static char *model_path, *cert_path, *cert_text;
static int cases;

/* 0 holds, 1 not a certificate, 2 refused, 3 neither */
static int judge(const char *text, size_t len)
{
    taut_checked r;
    temp_put("cert.json", text, len);
    cases++;
    if (taut_check_files(&r, cert_path, model_path)) return 1;
    return r.holds && r.unknown == 0 ? 0 : r.foreign ? 3 : 2;
}

/* A copy with the first `from` replaced; the caller frees. */
static char *swapped(const char *text, const char *from, const char *to)
{
    const char *at = strstr(text, from);
    char *copy = malloc(strlen(text) + strlen(to) + 1);
    CHECK(at != NULL, from);
    if (!at) at = text, from = "";
    sprintf(copy, "%.*s%s%s", (int)(at - text), text, to, at + strlen(from));
    return copy;
}

static void expect(int want, const char *from, const char *to)
{
    char *text = swapped(cert_text, from, to);
    CHECK(judge(text, strlen(text)) == want, to);
    free(text);
}

/* A stored model of a text with a perceptron and two heads, its certificate with one example, as text. */
static void set_up(void)
{
    taut_certificate c;
    taut_pass *pass;
    int32_t ids[] = { 1, 2, 3 };
    double logits[8];
    taut_model *m = blank_model("[model]\nwidth = 4\ndepth = 1\nheads = 2\nmlp = 4\ncontext = 3\nnorm = none\n"
                                "activation = relu\npositions = none\n",
                                5, false);
    for (int64_t i = 0; i < m->slab; i++) ((double *)m->values)[i] = taut_float32(0.6 * rng_pm());
    must(taut_model_save(m, model_path));
    taut_model_free(m);
    must(taut_certify(&c, model_path, TAUT_NORM_FLAT, 0.5));
    must(taut_pass_create(&pass, c.model, 1, 3, false));
    const taut_input x = { ids, NULL };
    const taut_example e = taut_example_certify(&c, pass, x, 1, logits);
    cJSON_AddItemToArray(cJSON_AddArrayToObject(c.json, "examples"), taut_example_json(&e, x, 3));
    CHECK(e.radius.v > 0, "a certified example");
    cert_text = taut_json_text(c.json, false);
    taut_pass_free(pass);
    taut_certificate_free(&c);
}

static void grammar(void)
{
    static const char *const room[] = { "00.5",  "+0.5",  ".5",  "5.",  "0x1",      "1e",  "1e+",
                                        "0.5.0", "-",     "NaN", "nan", "Infinity", "inf", "0,5",
                                        "0.5f",  "'0.5'", "",    "tru", "nulll",    "1 2", "0.5/**/" };
    static const char *const tool[] = { "\t",    "\x01",    "\xff",           "\xc0\xaf", "\xed\xa0\x80", "\\x",
                                        "\\u12", "\\ud800", "\\ud800\\u0041", "\\udc00",  "\\u0000",      "\"" };
    static const char *const end[] = { "}}", "}{}", "} x", "}\x01", ",}", "}\xef\xbb\xbf", "};", "" };
    for (size_t i = 0; i < sizeof room / sizeof *room; i++) {
        char to[64];
        snprintf(to, sizeof to, "\"room\":%s,", room[i]);
        expect(1, "\"room\":0.5,", to);
    }
    for (size_t i = 0; i < sizeof tool / sizeof *tool; i++) {
        char to[64];
        snprintf(to, sizeof to, "\"tool\":\"%s", tool[i]);
        expect(1, "\"tool\":\"", to);
    }
    for (size_t i = 0; i < sizeof end / sizeof *end; i++) {
        char *text = malloc(strlen(cert_text) + 8);
        sprintf(text, "%.*s%s", (int)strlen(cert_text) - 1, cert_text, end[i]);
        CHECK(judge(text, strlen(text)) == 1, end[i]);
        free(text);
    }
    CHECK(judge(cert_text, strlen(cert_text) + 1) == 1, "a NUL at the end");
    expect(1, "{", "\xef\xbb\xbf{");
    expect(1, "\"ids\":[1,", "\"ids\":[,1,");
    expect(1, "2,3]", "2,3,]");
    expect(1, "\"room\":", "room:");
    expect(1, "\"room\":", "\"room\"=");
    expect(1, "{", "/* a proof */{");
}

static void depth(void)
{
    char text[1200] = "";
    for (int open = 99; open <= 101; open++) { /* the object around it is one more */
        char *to = text + sprintf(text, "\"tool\":");
        for (int i = 0; i < open; i++) to += sprintf(to, "[");
        for (int i = 0; i < open; i++) to += sprintf(to, "]");
        sprintf(to, ",\"tool_was\":");
        expect(open < 100 ? 2 : 1, "\"tool\":", text);
    }
}

static void allowed(void)
{
    expect(0, "{", " \t\r\n{ ");
    expect(0, "\"room\":0.5,", "\"room\" :\n5e-1 ,");
    expect(0, "\"room\":0.5,", "\"room\":0.05E+1,");
    expect(0, "\"sha256\"", "\"\\u0073ha256\"");
    expect(0, "\"tool\":\"", "\"tool\":\"\xc3\xa9 \\ud83d\\ude00 \\n ");
    expect(0, "\"version\":3", "\"version\":3.0");
}

/* In every object: a key twice, and one that nobody knows. */
static void keys(void)
{
    static const char *const object[] = { "{\"model\":",           "{\"bytes\":",    "\"region\":{",
                                          "\"proof\":{",           "\"of\":[{",      "{\"rule\":\"head\",",
                                          "{\"rule\":\"family\",", "\"examples\":[{" };
    static const char *const again[] = { "\"lip\":1,",        "\"sha256\":\"0\",",
                                         "\"room\":0.5,",     "\"rule\":\"sequence\",",
                                         "\"out\":1e9,",      "\"index\":0,",
                                         "\"out_norm\":1e9,", "\"radius\":0," };
    for (size_t i = 0; i < sizeof object / sizeof *object; i++)
        for (int twice = 0; twice < 2; twice++) {
            char to[96];
            const int brace = (int)(strchr(object[i], '{') - object[i]) + 1;
            snprintf(to, sizeof to, "%.*s%s%s", brace, object[i], twice ? again[i] : "\"more\":1,", object[i] + brace);
            expect(2, object[i], to);
        }
    expect(2, "\"room\":0.5,", "\"room\":0.5,\"r\\u006fom\":0.25,");
}

static void words(void)
{
    static const char *const change[][2] = {
        { "\"scope\":\"mix\"", "\"scope\":\"all\"" },
        { "\"scope\":\"mix\"", "\"scope\":\"\"" },
        { "\"scope\":\"mix\"", "\"scope\":1" },
        { "\"norm\":\"flat\"", "\"norm\":\"Flat\"" },
        { "\"norm\":\"flat\"", "\"norm\":\"\"" },
        { "\"verdict\":\"certified\"", "\"verdict\":\"sure\"" },
        { "\"rule\":\"sequence\"", "\"rule\":\"\"" },
        { "\"rule\":\"head\"", "\"rule\":\"Head\"" },
        { "\"room\":0.5", "\"room\":\"0.5\"" },
        { "\"room\":0.5", "\"room\":true" },
        { "\"room\":0.5", "\"room\":\"infinity\"" },
        { "\"room\":0.5", "\"room\":1e999" },
        { "\"room\":0.5", "\"room\":-0.5" },
        { "\"version\":3", "\"version\":3.5" },
        { "\"version\":3", "\"version\":\"3\"" },
        { "\"weights\":[1,1]", "\"weights\":{\"a\":1,\"b\":1}" },
        { "\"ids\":[1,2,3]", "\"ids\":{\"a\":1,\"b\":2,\"c\":3}" },
        { "\"ids\":[1,2,3]", "\"ids\":[1,2,3.5]" },
        { "\"ids\":[1,2,3]", "\"ids\":\"123\"" },
        { "\"rule\":\"head\",", "\"name\":\"\",\"rule\":\"head\"," },
    };
    for (size_t i = 0; i < sizeof change / sizeof *change; i++) expect(2, change[i][0], change[i][1]);
    expect(1, "taut-certificate", "taut certificate");
    expect(3, "\"version\":3", "\"version\":4");
    expect(2, "\"taut " TAUT_VERSION "\"", "7");
    expect(2, "\"taut " TAUT_VERSION "\"", "[]");
    char *list = strstr(cert_text, "\"of\":[");
    char *text = strdup(cert_text);
    memcpy(text + (list - cert_text), "\"of\":{", 6);
    CHECK(judge(text, strlen(text)) == 1, "a list that ends as an object");
    free(text);
}

/* The model with its header changed and `tail` bytes more or less, and the certificate about it. */
static void model_with(int want, const char *from, const char *to, int tail)
{
    size_t len;
    char hex[65], *file = temp_get(model_path, &len), head[64];
    uint64_t size, bytes;
    memcpy(&size, file, 8);
    char *header = strndup(file + 8, size), *other = swapped(header, from, to);
    const uint64_t now = strlen(other);
    char *made = calloc(1, len + strlen(to) + 64);
    memcpy(made, &now, 8);
    memcpy(made + 8, other, now);
    memcpy(made + 8 + now, file + 8 + size, len - 8 - size);
    temp_put("model.safetensors", made, (size_t)((int64_t)(now + len - size) + tail));
    must(taut_sha256_file(hex, &bytes, model_path));
    cJSON *cert = cJSON_Parse(cert_text), *about = cJSON_GetObjectItem(cert, "model");
    cJSON_ReplaceItemInObject(about, "sha256", cJSON_CreateString(hex));
    cJSON_ReplaceItemInObject(about, "bytes", cJSON_CreateNumber((double)bytes));
    char *text = taut_json_text(cert, false);
    snprintf(head, sizeof head, "%.60s", to);
    CHECK(judge(text, strlen(text)) == want, head);
    temp_put("model.safetensors", file, len);
    cJSON_Delete(cert);
    free(text), free(made), free(other), free(header), free(file);
}

static void model_expect(int want, const char *from, const char *to) { model_with(want, from, to, 0); }

static void models(void)
{
    model_with(0, "{", "{ ", 0);
    model_with(2, "{", "{ ", 4); /* bytes that no tensor has */
    model_with(2, "{", "{ ", -4);
    model_with(2, "\"data_offsets\":[0,", "\"data_offsets\":[4,", 0); /* of another size */
    model_expect(0, "{", " {");
    model_expect(2, "{", "x{");
    model_expect(2, "{\"", "{\"head.weight\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]},\"");
    model_expect(2, "\"dtype\":\"F32\"", "\"dtype\":\"F32\",\"more\":1");
    model_expect(2, "\"dtype\":\"F32\"", "\"dtype\":\"F32\",\"dtype\":\"F16\"");
    model_expect(2, "\"data_offsets\":[0,", "\"data_offsets\":[00,");
    model_expect(2, "\"taut.tree\":", "\"taut.tree\":\"{}\",\"taut.tree\":");
    model_expect(2, "\"taut.tree\":", "\"more\":1,\"taut.tree\":");
    model_expect(0, "\"taut.tree\":", "\"more\":\"1\",\"taut.tree\":");
    model_expect(2, "{\\\"version\\\":4,", "{\\\"version\\\":04,");
    model_expect(2, "{\\\"version\\\":4,", "{\\\"version\\\":4,\\\"version\\\":2,");
    model_expect(2, "{\\\"version\\\":4,", "{\\\"version\\\":4,\\\"more\\\":2,");
    model_expect(2, "\\\"rule\\\":\\\"linear\\\"", "\\\"rule\\\":\\\"linear\\\",\\\"rule\\\":\\\"linear\\\"");
    model_expect(0, "{\\\"version\\\":4,", "{ \\\"version\\\":4,");
}

int main(void)
{
    test_begin();
    temp_begin();
    model_path = strdup(temp_path("model.safetensors"));
    cert_path = strdup(temp_path("cert.json"));
    set_up();
    CHECK(judge(cert_text, strlen(cert_text)) == 0, "as it is");
    grammar();
    depth();
    allowed();
    keys();
    words();
    models();
    free(model_path), free(cert_path), free(cert_text);
    return test_end("strict", "%d texts", cases);
}
