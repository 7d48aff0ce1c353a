/* The checker accepts true certificates of every architecture and nothing that was bent: each number lowered by 1e-6,
 * fields missing, doubled, renamed or of another kind, nodes dropped, doubled or swapped, files cut short or scribbled
 * on.  The certificates come from make.h, which shares no code with prover or checker. */
#include "check/case.h"

static const taut_model *now; /* that the certificate at hand is about */

/* Nobody but the solver knows what K steps of it predict. */
static bool unjudged(void) { return strstr(now->recipe, "attlip_steps = 2") != NULL; }
static bool is_number(const cJSON *j) { return cJSON_IsRaw(j) && j->valuestring[0] != '"'; }
static bool is_free(const char *key) /* may be lowered, left out or made infinite without making anything false */
{
    return strcmp(key, "room") == 0 || strcmp(key, "tool") == 0 || strcmp(key, "units") == 0 ||
           strcmp(key, "weights") == 0;
}
static void set_raw(cJSON *j, const char *text)
{
    free(j->valuestring);
    j->valuestring = strdup(text);
}

/* Around an example norm layers and perceptrons may prove more than its radius, which is of the constants of everywhere (t_bend:
 * of others). */
static bool is_steeper_elsewhere(const cJSON *j)
{
    bool found = cJSON_IsString(j) && (strcmp(j->valuestring, "layernorm") == 0 || strcmp(j->valuestring, "mlp") == 0);
    for (const cJSON *k = j->child; k && !found; k = k->next) found = is_steeper_elsewhere(k);
    return found;
}

/* Each number, one at a time: 1e-6 lower (a radius higher) is refused, and so is anything that is not a number. */
static void bend_numbers(cJSON *cert, cJSON *j, const char *key)
{
    static const char *const wrong[] = { "null",  "true", "\"nan\"", "\"-inf\"", "-1",
                                         "1e999", "[]",   "{}",      "\"1\"",    "-1e-300" };
    for (cJSON *k = j->child; k; k = k->next) bend_numbers(cert, k, k->string ? k->string : key);
    if (!is_number(j)) return;
    char text[64], *before = strdup(j->valuestring);
    const double v = strtod(before, NULL);
    const bool upward = strcmp(key, "radius") == 0 || strcmp(key, "margin") == 0;
    const bool id = strcmp(key, "ids") == 0 || strcmp(key, "predicted") == 0;
    const bool least = strcmp(key, "radius") == 0 && is_steeper_elsewhere(cert);
    const cJSON *defect = cJSON_GetObjectItem(cert, "defect"); /* a margin may be off by that */
    const double more = defect && strcmp(key, "margin") == 0 ? 2 * strtod(defect->valuestring, NULL) : 0;
    snprintf(text, sizeof text, "%.17g", upward ? v * (1 + 4e-6) + 1e-7 + more : v * (1 - 1e-6));
    set_raw(j, text);
    if (v != 0 && !is_free(key) && !least && !(upward && unjudged())) must(2, cert, "lowered", key);
    set_raw(j, wrong[rng_int(0, 9)]);
    if (strcmp(key, "units") != 0 && strcmp(key, "weights") != 0) must(2, cert, "not a number:", key);
    set_raw(j, id ? "1e300" : v == 0 ? "0.1" : "\"inf\"");
    checks += check_json(cert) == 1; /* may hold or not; must not crash */
    set_raw(j, before);
    free(before);
}

/* A copy of the certificate, and in it the twin of one of its parts. */
static cJSON *find_twin(const cJSON *a, cJSON *b, const cJSON *part)
{
    if (a == part) return b;
    cJSON *found = NULL, *l = b->child;
    for (const cJSON *k = a->child; k && !found; k = k->next, l = l->next) found = find_twin(k, l, part);
    return found;
}
static cJSON *clone(const cJSON *a) /* some cJSON_Duplicate leave lists that cannot be added to */
{
    if (!cJSON_IsArray(a) && !cJSON_IsObject(a)) return cJSON_Duplicate(a, false);
    cJSON *b = cJSON_IsArray(a) ? cJSON_CreateArray() : cJSON_CreateObject();
    for (const cJSON *k = a->child; k; k = k->next)
        if (k->string)
            cJSON_AddItemToObject(b, k->string, clone(k));
        else
            cJSON_AddItemToArray(b, clone(k));
    return b;
}
static cJSON *copy_with(const cJSON *cert, const cJSON *part, cJSON **twin)
{
    cJSON *copy = clone(cert);
    *twin = find_twin(cert, copy, part);
    return copy;
}
static void must_end(int want, cJSON *copy, const char *what, const char *detail)
{
    must(want, copy, what, detail);
    cJSON_Delete(copy);
}

/* Fields left out, there twice, unknown; words changed. */
static void bend_fields(const cJSON *cert, const cJSON *j)
{
    cJSON *twin, *copy;
    for (const cJSON *k = j->child; k; k = k->next) bend_fields(cert, k);
    if (!cJSON_IsObject(j) || cJSON_HasObjectItem(j, "sha256")) return;
    copy = copy_with(cert, j, &twin);
    cJSON_AddItemToObject(twin, "extra", exact(1));
    must_end(2, copy, "extra field", "");
    int i = 0;
    for (const cJSON *k = j->child; k; k = k->next, i++) {
        const char *key = k->string;
        const int want = strcmp(key, "format") == 0 ? 1 : 2;
        const bool zero = is_number(k) && strtod(k->valuestring, NULL) == 0;
        copy = copy_with(cert, j, &twin);
        cJSON_AddItemToObject(twin, key, clone(k));
        must_end(2, copy, "twice:", key);
        if (is_free(key) || zero || strcmp(key, "examples") == 0 || strcmp(key, "count") == 0 ||
            strcmp(key, "margin") == 0 || (strcmp(key, "predicted") == 0 && unjudged()))
            continue;
        copy = copy_with(cert, j, &twin);
        cJSON_DeleteItemFromArray(twin, i);
        must_end(want, copy, "left out:", key);
        if (!cJSON_IsString(k)) continue;
        copy = copy_with(cert, k, &twin);
        set_raw(twin, strcmp(k->valuestring, "linear") == 0 || rng_int(0, 1) ? "" : "linear");
        must_end(want, copy, "word:", key);
    }
}

/* Nodes dropped, doubled, swapped with the next. */
static void bend_nodes(const cJSON *cert, const cJSON *j)
{
    cJSON *twin, *copy;
    int i = 0;
    for (const cJSON *k = j->child; k; k = k->next, i++) {
        bend_nodes(cert, k);
        const char *rule = cJSON_GetStringValue(cJSON_GetObjectItem(k, "rule"));
        if (!cJSON_IsArray(j) || !rule || strcmp(rule, "family") == 0) continue; /* other families are as true */
        copy = copy_with(cert, j, &twin);
        cJSON_AddItemToArray(twin, clone(k));
        must_end(2, copy, "doubled", rule);
        copy = copy_with(cert, j, &twin);
        cJSON_DeleteItemFromArray(twin, i);
        if (strcmp(rule, "dropout") == 0)
            cJSON_Delete(copy);
        else
            must_end(2, copy, "dropped", rule);
        if (!k->next) continue;
        copy = copy_with(cert, j, &twin);
        cJSON *a = cJSON_GetArrayItem(twin, i), *fields = a->child;
        a->child = a->next->child;
        a->next->child = fields;
        must_end(2, copy, "swapped", rule);
    }
}

static void cut_short(const cJSON *cert)
{
    taut_checked r;
    char *text = cJSON_PrintUnformatted(cert);
    const size_t len = strlen(text);
    for (int i = 0; i < 40; i++) {
        char *part = strdup(text);
        part[rng_int(0, (int64_t)len - 1)] = 0;
        CHECK(check_text(part, &r) == 1, "a certificate cut short is none");
        free(part);
    }
    for (int i = 0; i < 200; i++) { /* scribbled on: it may hold only if what it says is still at least as weak */
        char *bad = strdup(text);
        for (int64_t k = rng_int(1, 3); k > 0; k--) bad[rng_int(0, (int64_t)len - 1)] = (char)rng_int(32, 126);
        if (check_text(bad, &r) == 0)
            CHECK_LE(strtod(strstr(text, "\"reach\":") + 8, NULL) * (1 - 1e-8), r.reach, "reach");
        free(bad);
    }
    free(text);
}

static void nested(void)
{
    taut_checked r;
    char *text = malloc(200001);
    for (int open = 0; open < 2; open++) {
        memset(text, open ? '{' : '[', 200000);
        for (int i = 0; open && i < 200000; i += 5) memcpy(text + i, "{\"a\":", 5);
        text[200000] = 0;
        CHECK(check_text(text, &r) == 1, "deep nesting is no certificate");
    }
    free(text);
}

int main(void)
{
    int models = effort(60), held = 0;
    case_begin();
    nested();
    for (case_no = 0; case_no < models; case_no++) {
        const bool flat = rng_int(0, 1);
        taut_model *m = random_model(case_no % 3 ? 0.7 : 0.2, "");
        cJSON *cert = certificate(m, flat, case_no % 4 ? 1 : 0);
        now = m;
        const int right = unjudged() && check_json(cert) == 3 ? 3 : 0;
        must(right, cert, "true", m->recipe);
        held += check_json(cert) == right;
        if (case_no % 4 == 1) bend_numbers(cert, cert, "");
        if (case_no % 8 == 2) bend_fields(cert, cert);
        if (case_no % 4 == 3) bend_nodes(cert, cert);
        if (case_no % 8 == 6) cut_short(cert);
        must(right, cert, "true again", "");
        cJSON_Delete(cert);
        taut_model_free(m);
    }
    case_end();
    return test_end("check", "%d of %d true certificates hold; %d checks", held, models, checks);
}
