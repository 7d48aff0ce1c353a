/* Who listens to whom (measure.json's maps, from taut measure --maps): every head's weights, a row for each token that asks. */
#include <stdio.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "report/cells.h"
#include "report/run.h"

enum { LAYERS = 24, HEADS = 16, TOKENS = 64 };

typedef struct {
    double *shade; /* (layers, heads, tokens, tokens) */
    taut_tile tile[LAYERS * HEADS];
    char title[LAYERS * HEADS][48], row[LAYERS][24], col[HEADS][24];
    const char *row_name[LAYERS], *col_name[HEADS], *head[TOKENS + 3];
    char token[TOKENS][16];
    taut_cells cells;
    int layers, heads, tokens;
    bool broken;
} maps;

static void take_head(maps *m, const cJSON *map, int layer, int head)
{
    const int n = m->tokens, at = layer * m->heads + head;
    double *shade = m->shade + (size_t)at * (size_t)(n * n);
    if (cJSON_GetArraySize(map) != n * n) {
        m->broken = true;
        return;
    }
    int i = 0;
    const cJSON *v;
    cJSON_ArrayForEach(v, map)
    {
        if (i % n == 0) taut_cells_add(&m->cells, "%d", layer), taut_cells_add(&m->cells, "%d", head);
        if (i % n == 0) taut_cells_add(&m->cells, "%d", i / n);
        shade[i++] = cJSON_IsNumber(v) ? v->valuedouble : 0;
        taut_cells_number(&m->cells, "%.3g", shade[i - 1]);
    }
    snprintf(m->title[at], sizeof m->title[at], "layer %d, head %d", layer, head);
    m->tile[at] = (taut_tile){ .title = m->title[at], .rows = n, .cols = n, .shade = shade };
}

static bool take(maps *m, const cJSON *list)
{
    const cJSON *first = cJSON_GetArrayItem(list, 0), *map = cJSON_GetArrayItem(first, 0);
    const int numbers = cJSON_GetArraySize(map);
    m->layers = cJSON_GetArraySize(list);
    m->heads = cJSON_GetArraySize(first);
    while (m->tokens * m->tokens < numbers && m->tokens <= TOKENS) m->tokens++;
    if (m->layers < 1 || m->heads < 1 || m->tokens < 1 || m->layers > LAYERS || m->heads > HEADS || m->tokens > TOKENS)
        return false;
    m->shade = taut_calloc((size_t)(m->layers * m->heads * m->tokens * m->tokens), sizeof *m->shade);
    for (int l = 0; m->shade && l < m->layers; l++) {
        snprintf(m->row[l], sizeof m->row[l], "layer %d", l);
        m->row_name[l] = m->row[l];
        for (int h = 0; h < m->heads; h++) take_head(m, cJSON_GetArrayItem(cJSON_GetArrayItem(list, l), h), l, h);
    }
    for (int h = 0; h < m->heads; h++) {
        snprintf(m->col[h], sizeof m->col[h], m->heads <= 8 ? "head %d" : "%d", h);
        m->col_name[h] = m->col[h];
    }
    m->head[0] = "layer", m->head[1] = "head", m->head[2] = "token";
    for (int i = 0; i < m->tokens; i++) {
        snprintf(m->token[i], sizeof m->token[i], "to %d", i);
        m->head[3 + i] = m->token[i];
    }
    return m->shade != NULL && !m->broken;
}

void taut_report_maps(taut_page *p, const cJSON *list, const char *run)
{
    char name[96];
    maps *m = taut_calloc(1, sizeof *m);
    if (cJSON_GetArraySize(list) < 1 || !m) {
        p->text.failed |= !m;
        free(m);
        return;
    }
    snprintf(name, sizeof name, "%.60s-attention", run);
    if (!take(m, list))
        taut_page_say(p, "The attention maps in measure.json cannot be shown.");
    else if (!m->cells.failed)
        taut_page_tiles(
            p, name, "Who listens to whom",
            "Attention at one input: a square a head, a row for each token that asks, from the first down; the "
            "stronger the colour, the more of the token in that column it takes.",
            &(taut_tiles){ m->layers, m->heads, m->row_name, m->col_name, m->tile },
            &(taut_table){ m->layers * m->heads * m->tokens, m->tokens + 3, m->head,
                           (const char *const *)m->cells.word });
    p->text.failed |= m->cells.failed;
    taut_cells_free(&m->cells);
    free(m->shade);
    free(m);
}
