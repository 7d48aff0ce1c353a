#include "measure/sheet.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/file.h"
#include "bound/ledger.h"

static cJSON *begin(const taut_sheet *a)
{
    cJSON *o = cJSON_CreateObject();
    cJSON_AddStringToObject(o, "model", a->model);
    cJSON_AddStringToObject(o, "text", a->source);
    cJSON_AddStringToObject(o, "map", taut_map_names[a->map]);
    cJSON_AddStringToObject(o, "norm", "flat");
    if (a->ball > 0) cJSON_AddNumberToObject(o, "ball_radius", a->ball);
    return o;
}

/* Which formulas of papers there are, in their order, and on which side of the slope each is meant to be. */
static void add_formulas(cJSON *o, const taut_layer_measure *m, int count)
{
    static const char *const sides[] = { "above", "below", "other layer" };
    cJSON *list = cJSON_AddArrayToObject(o, "formulas");
    for (int i = 0; count && m[0].head && i < TAUT_PUBLISHED; i++) {
        const taut_published *p = &m[0].head[0].published[i];
        if (!p->name) continue;
        cJSON *one = cJSON_CreateObject();
        cJSON_AddStringToObject(one, "name", p->name);
        cJSON_AddStringToObject(one, "side", sides[p->side]);
        cJSON_AddItemToArray(list, one);
    }
}

static cJSON *head_json(const taut_head_measure *h)
{
    cJSON *o = cJSON_CreateObject(), *p = NULL;
    cJSON_AddNumberToObject(o, "lower", h->lower);
    cJSON_AddNumberToObject(o, "upper", h->upper);
    if (h->exact < INFINITY) cJSON_AddNumberToObject(o, "exact", h->exact);
    for (int i = 0; i < TAUT_PUBLISHED; i++) {
        if (!h->published[i].name || isnan(h->published[i].value)) continue;
        if (!p) p = cJSON_AddObjectToObject(o, "published");
        cJSON_AddNumberToObject(p, h->published[i].name, h->published[i].value);
    }
    return o;
}

cJSON *taut_sheet_layers(const taut_sheet *a, const taut_layer_measure *m, int count)
{
    cJSON *o = begin(a), *list = cJSON_AddArrayToObject(o, "layers");
    for (int l = 0; l < count; l++) {
        cJSON *row = cJSON_CreateObject();
        cJSON_AddNumberToObject(row, "layer", m[l].layer);
        cJSON_AddNumberToObject(row, "tokens", (double)m[l].tokens);
        cJSON_AddNumberToObject(row, "radius", m[l].radius);
        cJSON_AddNumberToObject(row, "longest", m[l].longest);
        cJSON_AddNumberToObject(row, "lower", m[l].lower);
        cJSON_AddNumberToObject(row, "found", m[l].slope.value);
        cJSON_AddNumberToObject(row, "residual", m[l].slope.residual);
        cJSON_AddNumberToObject(row, "steps", m[l].slope.steps);
        cJSON_AddNumberToObject(row, "probabilistic", m[l].probable);
        cJSON_AddItemToObject(row, "upper", up_json(m[l].upper));
        cJSON_AddNumberToObject(row, "gap", m[l].lower > 0 ? m[l].upper.v / m[l].lower : NAN);
        cJSON_AddBoolToObject(row, "converged", m[l].slope.residual <= a->tolerance);
        if (a->ball > 0) cJSON_AddNumberToObject(row, "ball_lower", m[l].ball_lower);
        if (a->ball > 0) cJSON_AddItemToObject(row, "ball", up_json(m[l].ball));
        cJSON *parts = cJSON_AddObjectToObject(row, "attention");
        cJSON_AddItemToObject(parts, "triangle", up_json(m[l].parts.triangle));
        cJSON_AddItemToObject(parts, "concave", up_json(m[l].parts.concave));
        cJSON_AddItemToObject(parts, "split", up_json(m[l].parts.split));
        cJSON_AddItemToObject(parts, "heads", up_json(m[l].parts.block));
        cJSON_AddItemToObject(parts, "tokens_norm", up_json(m[l].parts.tokens));
        cJSON *heads = m[l].head ? cJSON_AddArrayToObject(row, "heads") : NULL;
        for (int64_t h = 0; m[l].head && h < m[l].heads; h++) cJSON_AddItemToArray(heads, head_json(&m[l].head[h]));
        cJSON_AddItemToArray(list, row);
    }
    add_formulas(o, m, count);
    return o;
}

/* A growing text. */
typedef struct {
    char *text;
    size_t len, room;
} table;

static bool add(table *t, const char *line)
{
    const size_t n = strlen(line);
    if (t->len + n + 1 > t->room) {
        char *more = taut_realloc(t->text, 2 * (t->len + n) + 256);
        if (!more) return false;
        t->text = more, t->room = 2 * (t->len + n) + 256;
    }
    memcpy(t->text + t->len, line, n + 1);
    t->len += n;
    return true;
}

static taut_status store(table *t, const char *path, bool whole)
{
    const taut_status s = whole ? taut_file_write(path, t->text, t->len) : taut_no_memory(path);
    free(t->text);
    return s;
}

/* ,number; empty for NaN: there is none. */
static bool add_number(table *t, double v)
{
    char cell[32];
    snprintf(cell, sizeof cell, isnan(v) ? "," : ",%.17g", v);
    return add(t, cell);
}

/* ,"text" with its quotes doubled */
static bool add_text(table *t, const char *text)
{
    bool whole = add(t, ",\"");
    for (; whole && *text; text++) whole = add(t, *text == '"' ? "\"\"" : (char[]){ *text, '\0' });
    return whole && add(t, "\"");
}

/* ,map,"text" and what papers print, if anything (NULL: an empty cell each) */
static bool add_end(table *t, const taut_sheet *a, taut_map map, const taut_head_measure *h, bool papers)
{
    bool whole = add(t, ",") && add(t, taut_map_names[map]) && add_text(t, a->source);
    for (int i = 0; papers && whole && i < TAUT_PUBLISHED; i++) whole = add_number(t, h ? h->published[i].value : NAN);
    return whole && add(t, "\n");
}

static bool add_layer(table *t, const taut_sheet *a, const taut_layer_measure *m, bool papers)
{
    char line[96];
    snprintf(line, sizeof line, "%d,,%lld,%.9g", m->layer, (long long)m->tokens, m->radius);
    bool whole = add(t, line) && add_number(t, m->lower) && add_number(t, m->slope.residual) &&
                 add_number(t, m->upper.v) && add_number(t, NAN) && add_end(t, a, m->map, NULL, papers);
    for (int64_t h = 0; whole && m->head && h < m->heads; h++) {
        const taut_head_measure *head = &m->head[h];
        snprintf(line, sizeof line, "%d,%lld,%lld,%.9g", m->layer, (long long)h, (long long)m->tokens, m->radius);
        whole = add(t, line) && add_number(t, head->lower) && add_number(t, NAN) && add_number(t, head->upper) &&
                add_number(t, head->exact < INFINITY ? head->exact : NAN) && add_end(t, a, TAUT_MAP_BARE, head, papers);
    }
    return whole;
}

taut_status taut_sheet_layers_csv(const char *path, const taut_sheet *a, const taut_layer_measure *m, int count)
{
    table t = { NULL, 0, 0 };
    const bool papers = count > 0 && m[0].head;
    bool whole = add(&t, "layer,head,tokens,radius,lower,residual,upper,exact,map,text");
    for (int i = 0; papers && whole && i < TAUT_PUBLISHED; i++)
        whole = add(&t, ",") && add(&t, m[0].head[0].published[i].name);
    whole = whole && add(&t, "\n");
    for (int l = 0; whole && l < count; l++) whole = add_layer(&t, a, &m[l], papers);
    return store(&t, path, whole);
}

cJSON *taut_sheet_lengths(const taut_sheet *a, const taut_lengths *s)
{
    cJSON *o = begin(a), *list;
    cJSON_AddNumberToObject(o, "layer", s->layer);
    cJSON_AddBoolToObject(o, "adversarial", s->adversarial);
    if (s->adversarial) {
        cJSON_AddNumberToObject(o, "head", (double)s->head);
        cJSON_AddNumberToObject(o, "gap", s->gap);
    }
    cJSON_AddNumberToObject(o, "exponent", s->growth.exponent);
    cJSON_AddNumberToObject(o, "exponent_low", s->growth.low);
    cJSON_AddNumberToObject(o, "exponent_high", s->growth.high);
    cJSON_AddNumberToObject(o, "factor", s->growth.factor);
    list = cJSON_AddArrayToObject(o, "points");
    for (int64_t i = 0; i < s->count; i++) {
        const double row[] = { (double)s->point[i].n, s->point[i].value, s->point[i].radius };
        cJSON_AddItemToArray(list, cJSON_CreateDoubleArray(row, 3));
    }
    return o;
}

taut_status taut_sheet_lengths_csv(const char *path, const taut_sheet *a, const taut_lengths *s)
{
    table t = { NULL, 0, 0 };
    char line[128];
    bool whole = add(&t, "tokens,slope,radius,layer,map,text\n");
    for (int64_t i = 0; i < s->count; i++) {
        snprintf(line, sizeof line, "%lld,%.9g,%.9g,%d", (long long)s->point[i].n, s->point[i].value,
                 s->point[i].radius, s->layer);
        whole = whole && add(&t, line) && add_end(&t, a, a->map, NULL, false);
    }
    return store(&t, path, whole);
}
