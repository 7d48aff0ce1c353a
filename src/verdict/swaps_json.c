/* What was proved and found of swaps, as JSON: all texts together, then each. */
#include <stdlib.h>

#include "base/utf8.h"
#include "bound/ledger.h"
#include "verdict/swaps.h"

/* A token as people read it; nothing where it cannot stand in JSON. */
static void add_token(cJSON *o, const char *key, const taut_vocab *v, int32_t id)
{
    char *text = NULL;
    size_t len = 0;
    if (!v || id >= taut_vocab_size(v) || taut_vocab_decode(&text, &len, v, &id, 1)) return;
    if (len && taut_utf8_check(text, len) == len) cJSON_AddStringToObject(o, key, text);
    free(text);
}

static cJSON *swap_json(const taut_swap *s, const taut_vocab *v)
{
    cJSON *o = cJSON_CreateObject();
    cJSON_AddNumberToObject(o, "place", (double)s->place);
    cJSON_AddNumberToObject(o, "from", s->from);
    cJSON_AddNumberToObject(o, "to", s->to);
    add_token(o, "from_text", v, s->from);
    add_token(o, "to_text", v, s->to);
    cJSON_AddItemToObject(o, "distance", up_json((taut_up){ s->distance }));
    return o;
}

static cJSON *one_json(const taut_swapped *s, int64_t most, const taut_vocab *v)
{
    cJSON *o = cJSON_CreateObject(), *safe = cJSON_AddArrayToObject(o, "covered");
    cJSON_AddItemToObject(o, "radius", up_json((taut_up){ s->radius.v }));
    for (int64_t k = 0; k < most; k++) cJSON_AddItemToArray(safe, cJSON_CreateNumber((double)s->safe[k]));
    if (s->nearest.place >= 0) cJSON_AddItemToObject(o, "nearest", swap_json(&s->nearest, v));
    cJSON_AddNumberToObject(o, "tried", (double)s->tried);
    cJSON_AddNumberToObject(o, "held", (double)s->held);
    cJSON_AddNumberToObject(o, "turned", (double)s->turned);
    cJSON *by = s->turned ? cJSON_AddArrayToObject(o, "by") : NULL;
    for (int64_t i = 0; i < s->turned; i++) cJSON_AddItemToArray(by, swap_json(&s->by[i], v));
    cJSON_AddNumberToObject(o, "beaten", (double)s->beaten);
    return o;
}

/* A row per number of swaps at once: how many are covered, how many texts were turned by as many or fewer. */
static void add_rows(cJSON *o, const taut_swaps *s)
{
    cJSON *list = cJSON_AddArrayToObject(o, "at_once");
    for (int64_t k = 0; k < s->most; k++) {
        double covered = 0, share = 0, turned = 0;
        for (int64_t i = 0; i < s->count; i++) {
            covered += (double)s->of[i].safe[k];
            share += s->of[i].share[k];
            turned += s->of[i].turned > 0 && s->of[i].turned <= k + 1;
        }
        cJSON *row = cJSON_CreateObject();
        cJSON_AddNumberToObject(row, "swaps", (double)(k + 1));
        cJSON_AddNumberToObject(row, "covered", covered / ((double)s->all * (double)s->count));
        cJSON_AddNumberToObject(row, "ways", share / (double)s->count);
        cJSON_AddNumberToObject(row, "turned", turned / (double)s->count);
        cJSON_AddItemToArray(list, row);
    }
}

cJSON *taut_swaps_json(const taut_swaps *s, const taut_certificate *c)
{
    taut_vocab *v = NULL;
    cJSON *o = cJSON_CreateObject();
    int64_t near = -1, tried = 0, held = 0;
    if (taut_vocab_parse(&v, c->model->vocab)) v = NULL; /* then tokens are numbers */
    cJSON_AddNumberToObject(o, "texts", (double)s->count);
    cJSON_AddNumberToObject(o, "all", (double)s->all);
    add_rows(o, s);
    for (int64_t i = 0; i < s->count; i++) {
        const taut_swapped *t = &s->of[i];
        tried += t->tried, held += t->held;
        if (t->nearest.place >= 0 && (near < 0 || t->nearest.distance < s->of[near].nearest.distance)) near = i;
    }
    if (near >= 0) {
        cJSON *nearest = swap_json(&s->of[near].nearest, v);
        cJSON_AddNumberToObject(nearest, "example", (double)near);
        cJSON_AddItemToObject(o, "nearest", nearest);
    }
    cJSON_AddNumberToObject(o, "tried", (double)tried);
    cJSON_AddNumberToObject(o, "held", (double)held);
    cJSON_AddNumberToObject(o, "contradictions", (double)taut_swaps_beaten(s));
    cJSON *list = cJSON_AddArrayToObject(o, "each");
    for (int64_t i = 0; i < s->count; i++) cJSON_AddItemToArray(list, one_json(&s->of[i], s->most, v));
    taut_vocab_free(v);
    return o;
}
