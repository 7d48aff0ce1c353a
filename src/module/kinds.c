/* THE LIST of attention kinds, and what is the same for all of them: reading keys, refusing what a kind cannot do. */
#include <stdio.h>
#include <string.h>

#include "base/config_list.h"
#include "module/kind.h"

#define KINDS(row)                                                                                                    \
    row(softmax) row(cosine) row(position) row(plash) row(clustered) row(l2) row(l2_free) row(attlip) row(probsparse) \
        row(window) row(cosformer) row(performer) row(nystrom)

#define DECLARE(name) extern const taut_attention_kind taut_kind_##name;
#define WORD(name)    "|" #name
#define ROW(name)     &taut_kind_##name,
KINDS(DECLARE)
static const taut_attention_kind *const kinds[] = { KINDS(ROW) };
const char *const taut_attention_names = &KINDS(WORD)[1];

const taut_attention_kind *taut_attention_kind_at(int index) { return kinds[index]; }

void taut_attention_choose(taut_attention_choice *c, const taut_attention_kind *kind)
{
    *c = (taut_attention_choice){ .kind = kind, .can = kind->can };
    for (const taut_key *k = kind->keys; k < kind->keys + kind->count; k++) {
        void *to = c->own.bytes + k->at;
        if (k->rare && k->type == TAUT_KEY_REAL) *(double *)to = k->def;
    }
}

bool taut_attention_owner(char *to, size_t room, const char *key)
{
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        for (const taut_key *k = kinds[i]->keys; k < kinds[i]->keys + kinds[i]->count; k++)
            if (strncmp(key, "model.", 6) == 0 && strcmp(key + 6, k->name) == 0) {
                snprintf(to, room, "model.attention = %s", kinds[i]->name);
                return true;
            }
    return false;
}

void taut_attention_read(taut_attention_choice *c, const taut_site *site, taut_config *cfg, bool rare)
{
    taut_config_ask_elsewhere(cfg, taut_attention_owner);
    for (const taut_key *k = c->kind->keys; k < c->kind->keys + c->kind->count; k++) {
        char key[64];
        void *to = c->own.bytes + k->at;
        const double def = k->def_at ? k->def_at(site) : k->def;
        snprintf(key, sizeof key, "model.%s", k->name);
        if (k->rare != rare || (rare && !taut_config_has(cfg, key))) continue;
        switch (k->type) {
        case TAUT_KEY_INT:
            *(int64_t *)to = taut_config_int(cfg, key, (int64_t)def, (int64_t)k->lo, (int64_t)k->hi);
            break;
        case TAUT_KEY_REAL:
            *(double *)to = taut_config_real(cfg, key, def, k->lo, k->hi);
            break;
        case TAUT_KEY_BOOL:
            *(bool *)to = taut_config_bool(cfg, key, def != 0);
            break;
        case TAUT_KEY_CHOICE:
            *(int *)to = taut_config_choice(cfg, key, k->words, (int)def);
            break;
        case TAUT_KEY_TEXT:
            *(const char **)to = taut_config_text(cfg, key, k->words);
            break;
        }
    }
}

static taut_status refuse(const taut_attention_kind *k, const char *what, const char *why)
{
    return taut_fail(TAUT_BAD_CONFIG, "model.attention = %s %s%s%s", k->name, what, why ? ": " : "", why ? why : "");
}

taut_status taut_attention_check(taut_attention_choice *c, const taut_site *site)
{
    static const char *const positions[] = { "wants model.positions = learned or none",
                                             "wants model.positions = learned, rope or none",
                                             "wants model.positions = learned, alibi or none" };
    const taut_attention_kind *k = c->kind;
    const bool rope = k->can & TAUT_CAN_ROPE, alibi = k->can & TAUT_CAN_ALIBI;
    if (site->causal && !(k->can & TAUT_CAN_CAUSAL))
        return refuse(k, "cannot be causal, use model.arch = encoder, classifier, vit or forecaster", k->not_causal);
    if ((site->rope && !rope) || (site->alibi && !alibi)) return refuse(k, positions[rope + 2 * alibi], k->not_placed);
    return k->check ? k->check(c, site) : TAUT_OK;
}

taut_module *taut_attention_build(const taut_attention_choice *c, const taut_site *site)
{
    const bool able = !(c->can & TAUT_IS_RESIDUAL) && (!site->causal || c->can & TAUT_CAN_CAUSAL) &&
                      (!site->queries || c->can & TAUT_CAN_CROSS);
    return able ? c->kind->build(c, site) : taut_kind_softmax.build(c, site);
}
