/* Certificates as taut certify writes them, of every architecture, those of texts and images with examples: confirmed as
 * they are; refused when any one of their numbers is lowered by a thousandth or by half (of an example: raised), when any
 * node loses its rule, and for a file of which one bit was flipped. */
#include "certify/local.h"
#include "check/kinds.h"
#include "check/verdict.h"

static int tried, refused, certified, larger;
static bool loose; /* rounding is not bounded, and what comes out is stated as large as it can make it */

static bool confirmed(const cJSON *cert)
{
    const taut_checked r = verdict(cert);
    if (!r.holds) fprintf(stderr, "%s\n", r.why);
    return r.holds && r.unknown == 0;
}

static void must_refuse(const cJSON *cert, const char *what)
{
    const bool bad = !verdict(cert).holds;
    tried++, refused += bad;
    CHECK(bad, what);
}

/* Choices, not bounds: any of them is as true.  A radius with another input may be. */
static bool is_choice(const char *key)
{
    static const char *const free_keys[] = { "weights", "units", "room", "rows", "ids", "pixels", "tolerance" };
    bool found = false;
    for (size_t i = 0; i < sizeof free_keys / sizeof *free_keys; i++) found = found || strcmp(key, free_keys[i]) == 0;
    return found;
}

static bool is_upward(const char *key) { return strcmp(key, "radius") == 0 || strcmp(key, "margin") == 0; }

/* Random inputs, whatever the model makes of them. */
static void add_examples(taut_certificate *c)
{
    taut_pass *pass;
    int32_t ids[8];
    double pixels[16], logits[16];
    const bool images = c->model->embed.rows == 0;
    const int64_t count = images ? c->model->in.d : c->tokens;
    cJSON *list = cJSON_AddArrayToObject(c->json, "examples");
    must(taut_near_state(c));
    must(taut_pass_create(&pass, c->model, 1, c->tokens, false));
    for (int e = 0; e < 2; e++) {
        for (int64_t i = 0; i < count && !images; i++) ids[i] = (int32_t)rng_int(0, 10);
        for (int64_t i = 0; i < count && images; i++) pixels[i] = rng_unit();
        const taut_input x = images ? (taut_input){ NULL, pixels } : (taut_input){ ids, NULL };
        taut_example one = taut_example_certify(c, pass, x, 1, logits);
        taut_local near;
        if (one.margin < 0.02) continue; /* so near a tie the checker's own rounding may leave it open */
        must(taut_local_certify(&near, c, pass, &one, logits));
        larger += near.told.v > 1.1 * one.radius.v;
        cJSON_AddItemToArray(list,
                             taut_near_json(&one, &near, x, count)); /* the largest radius that is confirmed, almost */
        certified += near.told.v > 0;
    }
    taut_pass_free(pass);
}

static const char LIP_AROUND[] = "lip of an example";

static void bend(const cJSON *cert, cJSON *j, const char *key)
{
    const bool example = cJSON_GetObjectItem(j, "predicted") != NULL;
    for (cJSON *k = j->child; k; k = k->next)
        bend(cert, k, example && strcmp(k->string, "lip") == 0 ? LIP_AROUND : k->string ? k->string : key);
    if (cJSON_IsNumber(j) && j->valuedouble != 0 && !is_choice(key)) {
        const bool up = is_upward(key); /* a radius has some room for rounding and for solvers */
        const double part = strcmp(key, LIP_AROUND) == 0 ? 0.05 : 1e-3; /* around an example rounding is let grow */
        const double v = j->valuedouble, less[] = { up ? 1.5 * v + 1e-3 : v * (1 - part), up ? 3 * v + 1 : v / 2 };
        for (int i = loose && strcmp(key, "out") == 0; i < 2; i++) {
            j->valuedouble = less[i];
            must_refuse(cert, key);
        }
        j->valuedouble = v;
    }
    if (cJSON_IsString(j) && (strcmp(key, "lip") == 0 || strcmp(key, LIP_AROUND) == 0)) {
        char *word = j->valuestring;
        j->type = cJSON_Number, j->valuestring = NULL, j->valuedouble = 1e200;
        must_refuse(cert, key);
        j->type = cJSON_String, j->valuestring = word;
    }
    if (strcmp(key, "rule") == 0 && cJSON_IsString(j)) {
        char *word = j->valuestring;
        j->valuestring = strdup(strcmp(word, "scale") == 0 ? "linear" : "scale");
        must_refuse(cert, "rule");
        free(j->valuestring);
        j->valuestring = word;
    }
}

/* Of a runtime that may be off by half of what an answer is ahead, no radius is proved. */
static void worse_runtime(cJSON *cert)
{
    const cJSON *one;
    cJSON *had = cJSON_DetachItemFromObject(cert, "tolerance");
    CHECK(confirmed(cert), "for f itself the same radii hold");
    cJSON_ArrayForEach(one, cJSON_GetObjectItem(cert, "examples"))
    {
        if (!(cJSON_GetObjectItem(one, "radius")->valuedouble > 0)) continue;
        cJSON *off = cJSON_AddNumberToObject(cert, "tolerance", 0.51 * cJSON_GetObjectItem(one, "margin")->valuedouble);
        must_refuse(cert, "a larger tolerance");
        off->valuedouble = INFINITY;
        must_refuse(cert, "an infinite one");
        cJSON_SetNumberValue(off, -1);
        must_refuse(cert, "one below 0");
        cJSON_DeleteItemFromObject(cert, "tolerance");
    }
    if (had) cJSON_AddItemToObject(cert, "tolerance", had);
}

/* Where the network jumps nothing is said of its examples, but a radius is refused; what else they say is not bent. */
static void only_infinite(taut_certificate *c)
{
    cJSON *one;
    cJSON_ArrayForEach(one, cJSON_GetObjectItem(c->json, "examples"))
    {
        cJSON_SetNumberValue(cJSON_GetObjectItem(one, "radius"), 1e-9);
        cJSON_SetValuestring(cJSON_GetObjectItem(one, "verdict"), "certified");
        must_refuse(c->json, "a radius");
    }
    cJSON_DeleteItemFromObject(c->json, "examples");
}

static void flip(const cJSON *cert)
{
    static char bytes[1 << 17];
    FILE *f = fopen(model_path, "rb");
    const size_t len = f ? fread(bytes, 1, sizeof bytes, f) : 0;
    if (!f || len == 0 || len == sizeof bytes) abort();
    fclose(f);
    for (int i = 0; i < 3; i++) {
        const size_t at = len - 1 - (size_t)rng_int(0, 400);
        bytes[at] = (char)(bytes[at] ^ (1 << rng_int(0, 7)));
        temp_put("model.safetensors", bytes, len);
        must_refuse(cert, "a flipped bit");
    }
}

int main(void)
{
    test_begin();
    temp_begin();
    model_path = strdup(temp_path("model.safetensors"));
    cert_path = strdup(temp_path("cert.json"));
    for (case_no = 0; case_no < KINDS * (effort(2) < 2 ? 1 : 2); case_no++) {
        const char *text = kinds[case_no % KINDS];
        const bool images = is_image(case_no % KINDS), series = is_series(case_no % KINDS);
        taut_certificate c;
        save_kind(case_no % KINDS, model_path);
        must(taut_certify_rows(&c, model_path, case_no / KINDS ? TAUT_NORM_FLAT : TAUT_NORM_TOKENS, 0.25,
                               series ? 2 : INFINITY));
        if (case_no % 2) must(taut_certificate_tolerate(&c, 1e-3));
        const bool jumps = is_jumping(case_no % KINDS);
        if (!series && (images || !strstr(text, "encoder"))) add_examples(&c);
        CHECK(isfinite(c.lip.v) == !jumps && confirmed(c.json), text);
        if (jumps) only_infinite(&c);
        loose = jumps;
        bend(c.json, c.json, "");
        worse_runtime(c.json);
        flip(c.json);
        taut_certificate_free(&c);
    }
    free(model_path), free(cert_path);
    CHECK(larger >= 4, "what holds around examples");
    return test_end(
        "bend",
        "%d architectures, %d certified examples, %d of them by what holds around them, %d mutations, %d refused",
        KINDS, certified, larger, tried, refused);
}
