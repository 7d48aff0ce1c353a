/* The kinds of attention: every key is on its kind's page with the words of the table, takes its default, refuses what is out
 * of range and is unknown to all other kinds; what a kind cannot do is refused in one line; where a forecaster asks for more
 * than a kind can, softmax attention stands. */
#include "harness.h"
#include "keys.h"
#include "model/tree.h"

static char page[1 << 18];

static void open_page(const char *name)
{
    char path[256];
    snprintf(path, sizeof path, "docs/modules/%s.md", name);
    FILE *f = fopen(path, "r");
    CHECK(f, path);
    page[fread(page, 1, sizeof page - 1, f)] = 0;
    fclose(f);
}

/* "| `key` | ... | help" on one line of the page */
static bool on_page(const taut_key *k)
{
    char start[80];
    snprintf(start, sizeof start, "\n| `%s` |", k->name);
    const char *line = strstr(page, start), *end = line ? strchr(line + 1, '\n') : NULL,
               *help = line ? strstr(line, k->help) : NULL;
    return help && end && help < end;
}

static taut_status read_with(taut_model_spec *s, const char *kind, const char *arch, const char *more)
{
    taut_config *cfg = NULL;
    char text[1024];
    snprintf(text, sizeof text, "[model]\narch = %s\nattention = %s\nnorm_place = post\nwidth = 8\nheads = 2\n%s", arch,
             kind, more);
    if (taut_config_parse(&cfg, text, "test")) exit(1);
    const taut_status model = taut_model_spec_read(s, cfg), keys = taut_config_finish(cfg);
    taut_config_free(cfg);
    return keys ? keys : model;
}

static const char *home(const taut_attention_kind *k) { return k->can & TAUT_IS_FORECAST ? "forecaster" : "encoder"; }
static bool told(const char *words) { return strstr(taut_last_error(), words); }

static void check_key(const taut_attention_kind *kind, const taut_key *k)
{
    taut_model_spec s;
    char more[128];
    const size_t size[] = { sizeof(int64_t), sizeof(double), sizeof(bool), sizeof(int), sizeof(char *) };
    CHECK_LE((double)(k->at + size[k->type]), (double)sizeof s.attention.own, "a key lies inside the choice");
    CHECK(on_page(k), k->name);
    CHECK(read_with(&s, kind->name, home(kind), "") == TAUT_OK, taut_last_error());
    if (k->type != TAUT_KEY_TEXT && !k->def_at) CHECK_NEAR(k->def, key_of(&s, k->name), 0, k->name);
    if (k->type == TAUT_KEY_INT || k->type == TAUT_KEY_REAL) {
        const double outside[] = { k->lo - 1, k->hi * 2 };
        for (int i = 0; i < 2; i++) {
            snprintf(more, sizeof more, "%s = %.17g\n", k->name, outside[i]);
            CHECK(read_with(&s, kind->name, home(kind), more) == TAUT_BAD_CONFIG && told(k->name), more);
        }
    } else if (k->type == TAUT_KEY_CHOICE || k->type == TAUT_KEY_BOOL) {
        snprintf(more, sizeof more, "%s = nonsense\n", k->name);
        CHECK(read_with(&s, kind->name, home(kind), more) == TAUT_BAD_CONFIG && told(k->name), more);
    }
    snprintf(more, sizeof more, "%s = 1\n", k->name);
    CHECK(read_with(&s, strcmp(kind->name, "softmax") ? "softmax" : "cosine", "encoder", more) == TAUT_BAD_CONFIG &&
              told("unknown key"),
          more);
}

/* Builds where the table says that it can, refuses with the kind's name where not. */
static void check_able(const taut_attention_kind *kind, const char *arch, const char *more, unsigned flag)
{
    taut_model_spec s;
    const taut_status status = read_with(&s, kind->name, arch, more);
    CHECK((status == TAUT_OK) == ((kind->can & flag) != 0), kind->name);
    if (status) CHECK(told("model.attention"), taut_last_error());
}

/* What stands in a forecaster's decoder, by the names of its weights. */
static void check_decoder(const taut_attention_kind *kind)
{
    taut_model_spec s;
    CHECK(read_with(&s, kind->name, "forecaster", "seq = 8\nahead = 2\n") == TAUT_OK, taut_last_error());
    taut_module *own = taut_tree_attention(&s, true, 0, 0), *asks = taut_tree_attention(&s, false, 6, 500);
    const bool softmax = kind == taut_attention_kind_at(0);
    CHECK(own && taut_is_attention(own) == (softmax || !(kind->can & TAUT_CAN_CAUSAL)), kind->name);
    CHECK(asks && taut_is_attention(asks) == (softmax || !(kind->can & TAUT_CAN_CROSS)), kind->name);
    taut_module_free(own);
    taut_module_free(asks);
}

int main(void)
{
    int kinds = 0, keys = 0;
    for (const char *name = taut_attention_names; name; name = strchr(name, '|') ? strchr(name, '|') + 1 : NULL) {
        const taut_attention_kind *k = taut_attention_kind_at(kinds++);
        CHECK(strncmp(name, k->name, strlen(k->name)) == 0 && (name[strlen(k->name)] == '|' || !name[strlen(k->name)]),
              name);
        open_page(k->page);
        for (int i = 0; i < k->count; i++, keys++) check_key(k, &k->keys[i]);
        check_decoder(k);
        if (k->can & TAUT_IS_FORECAST) continue;
        check_able(k, "gpt", "", TAUT_CAN_CAUSAL);
        check_able(k, "encoder", "positions = rope\n", TAUT_CAN_ROPE);
        check_able(k, "encoder", "positions = alibi\n", TAUT_CAN_ALIBI);
        check_able(k, "encoder", "attention_factor = 2\n", TAUT_CAN_SCALE);
    }
    taut_model_spec s;
    CHECK(read_with(&s, "position", "vit", "image_height = 8\npatch = 3\n") == TAUT_BAD_CONFIG && told("model.patch"),
          "the image is refused first: without it the number of tokens is not known");
    CHECK(kinds >= 9 && keys >= 30, "kinds and keys");
    char said[64];
    snprintf(said, sizeof said, "%d kinds of attention, %d keys", kinds, keys);
    return test_end("kinds", "%s", said);
}
