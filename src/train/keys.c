/* A key is known because somebody asks for it.  So every architecture with every kind of attention is asked, as if its
 * recipe named all keys, and what they ask for is noted: who, for what, with which default. */
#include "train/keys.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/config_list.h"
#include "module/kind.h"
#include "train/recipe.h"

#define KEY(key, meaning) { key, meaning },
static const char *const meanings[][2] = {
#include "train/keys.def"
};
enum { MEANINGS = sizeof meanings / sizeof *meanings, MOST = 256, NAMES = 32, WANTS = 4 };

typedef struct {
    taut_config_want what;
    unsigned archs;
} want;

typedef struct {
    char key[64], def[64];
    want want[WANTS]; /* what may stand there, where not all architectures agree */
    int wants;
    bool depends;          /* its default is not always the same */
    unsigned archs, kinds; /* a bit for each that asks for it */
} fact;

typedef struct {
    fact fact[MOST];
    int count;
} facts;

/* The words of "gpt|encoder|..."; returns how many. */
static int words_of(char room[512], const char *list, const char *word[NAMES])
{
    int count = 0;
    snprintf(room, 512, "%s", list);
    for (char *p = room; p && count < NAMES; p = strchr(p, '|') ? strchr(p, '|') + 1 : NULL) word[count++] = p;
    for (char *p = room; *p; p++)
        if (*p == '|') *p = 0;
    return count;
}

static void note_want(fact *f, const taut_config_want *what, unsigned archs)
{
    int i = 0;
    while (i < f->wants && strcmp(f->want[i].what.what, what->what) != 0) i++;
    if (i == WANTS) return;
    if (i == f->wants) f->want[f->wants++] = (want){ .what = *what };
    f->want[i].archs |= archs;
}

static void note(facts *all, const taut_config *cfg, unsigned archs, int kind)
{
    taut_config_want what;
    const char *def, *key;
    for (int i = 0; (key = taut_config_wanted(cfg, i, &def, &what)); i++) {
        int at = 0;
        while (at < all->count && strcmp(all->fact[at].key, key) != 0) at++;
        fact *f = &all->fact[at];
        if (at == MOST) return;
        if (at == all->count) {
            *f = (fact){ .wants = 0 };
            snprintf(f->key, sizeof f->key, "%s", key);
            snprintf(f->def, sizeof f->def, "%s", def ? def : "");
            all->count++;
        }
        note_want(f, &what, archs);
        f->depends |= strcmp(f->def, def ? def : "") != 0;
        f->archs |= archs, f->kinds |= 1u << kind;
    }
}

/* One recipe that names every key; what it refuses does not matter, only what it asks for. */
static taut_status ask(facts *all, const char *arch, const char *kind, const char *more, int a, int k)
{
    char text[256];
    taut_config *cfg = NULL;
    snprintf(text, sizeof text, "[model]\narch = %s\nattention = %s\n%s", arch, kind, more);
    const taut_status s = taut_config_parse(&cfg, text, "all keys");
    if (s) return s;
    taut_config_list(cfg);
    taut_recipe unused = { 0 };
    const taut_status refused = taut_recipe_ask(&unused, cfg);
    const bool able = strcmp(arch, "gpt") != 0 ||
                      taut_attention_kind_at(k)->can & TAUT_CAN_CAUSAL; /* a gpt is causal */
    note(all, cfg, able ? 1u << a : 0, k);
    taut_config_free(cfg);
    return refused == TAUT_NO_MEMORY ? refused : TAUT_OK;
}

static const char *meaning_of(const char *key, int kinds)
{
    for (int i = 0; i < MEANINGS; i++)
        if (strcmp(meanings[i][0], key) == 0) return meanings[i][1];
    for (int i = 0; i < kinds; i++) {
        const taut_attention_kind *kind = taut_attention_kind_at(i);
        for (int j = 0; j < kind->count; j++)
            if (strncmp(key, "model.", 6) == 0 && strcmp(kind->keys[j].name, key + 6) == 0) return kind->keys[j].help;
    }
    return "";
}

/* "gpt, encoder" for the bits of a mask; nothing where all are set. */
static void name_bits(char *text, size_t room, const char *before, unsigned bits, const char *const *name, int count)
{
    if (bits == (1u << count) - 1) return;
    size_t len = strlen(text);
    len += (size_t)snprintf(text + len, room - len, "%s%s", len ? "; " : "", before);
    for (int i = 0, first = 1; i < count && len < room; i++)
        if (bits >> i & 1)
            len += (size_t)snprintf(text + len, room - len, "%s%s", first ? "" : ", ", name[i]), first = 0;
}

/* "one of a, b (model.arch = vit); one of c, d (model.arch = mlp)", without the architectures where all agree. */
static void print_wants(char *text, size_t room, const fact *f, const char *const *arch, int archs)
{
    size_t len = 0;
    for (int i = 0; i < f->wants && len < room; i++) {
        char of[256] = "";
        if (f->wants > 1) name_bits(of, sizeof of, "model.arch = ", f->want[i].archs, arch, archs);
        len += (size_t)snprintf(text + len, room - len, "%s%s%s%s%s", i ? "; " : "", f->want[i].what.what,
                                *of ? " (" : "", of, *of ? ")" : "");
    }
}

bool taut_key_elsewhere(char *to, size_t room, const char *key)
{
    if (taut_attention_owner(to, room, key)) return true;
    if (!*meaning_of(key, 0)) return false;
    snprintf(to, room, "other settings (taut recipe says which)");
    return true;
}

static cJSON *describe(const fact *f, const char *const *arch, int archs, const char *const *kind, int kinds)
{
    char users[512] = "", wants[WANTS * 512] = "";
    cJSON *o = cJSON_CreateObject();
    name_bits(users, sizeof users, "model.arch = ", f->archs, arch, archs);
    name_bits(users, sizeof users, "model.attention = ", f->kinds, kind, kinds);
    cJSON_AddStringToObject(o, "key", f->key);
    print_wants(wants, sizeof wants, f, arch, archs);
    cJSON_AddStringToObject(o, "type", f->want[0].what.type);
    cJSON_AddStringToObject(o, "wants", wants);
    cJSON_AddStringToObject(o, "default", f->def);
    cJSON_AddBoolToObject(o, "depends", f->depends);
    cJSON_AddStringToObject(o, "meaning", meaning_of(f->key, kinds));
    cJSON_AddStringToObject(o, "used_by", users);
    return o;
}

taut_status taut_recipe_keys(cJSON **out)
{
    static const char *const more[] = { "", "[train]\noptimiser = muon\nschedule = type1\npenalty = jasmin\n",
                                        "[train]\npenalty = specformer\nloss = margin\n" };
    static const char *const sections[] = { "data.", "model.", "train.", "constrain." };
    char room[2][512];
    const char *arch[NAMES], *kind[NAMES];
    const int archs = words_of(room[0], taut_arch_names, arch), kinds = words_of(room[1], taut_attention_names, kind);
    facts *all = taut_calloc(1, sizeof *all);
    taut_status s = all ? TAUT_OK : taut_no_memory("the keys");
    for (int i = 0; !s && i < archs * kinds * 3; i++)
        s = ask(all, arch[i / 3 / kinds], kind[i / 3 % kinds], more[i % 3], i / 3 / kinds, i / 3 % kinds);
    *out = s ? NULL : cJSON_CreateArray();
    for (int section = 0; !s && section < 4; section++)
        for (int i = 0; i < all->count; i++)
            if (strncmp(all->fact[i].key, sections[section], strlen(sections[section])) == 0)
                cJSON_AddItemToArray(*out, describe(&all->fact[i], arch, archs, kind, kinds));
    free(all);
    return s;
}
