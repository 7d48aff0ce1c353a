/* docs/certificate.md is all that a third checker has: every key, rule and other word of every certificate that taut certify
 * writes, and of every tree that a model's file has, stands there as a word. */
#include "base/json.h"
#include "certify/example.h"
#include "check/kinds.h"
#include "temp.h"

static char *page;
static int words;

static bool in_word(char c) { return c == '_' || (c >= '0' && c <= '9') || ((c | 32) >= 'a' && (c | 32) <= 'z'); }

static bool on_the_page(const char *word)
{
    const size_t len = strlen(word);
    for (const char *p = page; (p = strstr(p, word)); p++)
        if ((p == page || !in_word(p[-1])) && !in_word(p[len])) return true;
    return false;
}

static void look(const char *word)
{
    words++;
    CHECK(on_the_page(word), word);
}

static void look_at_all(const cJSON *json)
{
    for (const cJSON *k = json->child; k; k = k->next) {
        const char *key = k->string;
        if (key) look(key);
        if (cJSON_IsString(k) && key && strcmp(key, "name") && strcmp(key, "tool") && strcmp(key, "sha256") &&
            strcmp(key, "reason"))
            look(k->valuestring);
        look_at_all(k);
    }
}

static void add_example(taut_certificate *c)
{
    taut_pass *pass;
    double pixels[16] = { 0 }, logits[16];
    int32_t ids[8] = { 0 };
    const bool images = taut_model_sees(c->model);
    const taut_input x = images ? (taut_input){ NULL, pixels } : (taut_input){ ids, NULL };
    must(taut_pass_create(&pass, c->model, 1, c->tokens, false));
    const taut_example e = taut_example_certify(c, pass, x, 0, logits);
    cJSON *list = cJSON_AddArrayToObject(c->json, "examples");
    cJSON_AddItemToArray(list, taut_example_json(&e, x, images ? c->model->in.d : c->tokens));
    taut_pass_free(pass);
}

int main(void)
{
    size_t len;
    test_begin();
    temp_begin();
    page = temp_get("docs/certificate.md", &len);
    if (!page) return test_skip("docs/certificate.md is not here");
    CHECK(!on_the_page("nonsense") && !on_the_page("ertificat"), "words that are not there");
    for (case_no = 0; case_no < 2 * KINDS; case_no++) {
        taut_certificate c;
        const int kind = case_no % KINDS;
        const char *path = temp_path("model.safetensors");
        save_kind(kind, path);
        must(taut_certify_rows(&c, path, (taut_norm)(case_no / KINDS), 0.25, is_series(kind) ? 2 : INFINITY));
        if (!is_series(kind) && !strstr(kinds[kind], "encoder")) add_example(&c);
        look_at_all(c.json);
        char *text = taut_model_tree(c.model);
        cJSON *tree = cJSON_Parse(text);
        look_at_all(tree);
        cJSON_Delete(tree);
        free(text);
        taut_certificate_free(&c);
    }
    free(page);
    return test_end("page", "%d architectures, %d words", KINDS, words);
}
