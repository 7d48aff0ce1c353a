/* "How Smooth Is Attention?", figure 1: how the slope of an attention layer grows with the length of the input, on text and on
 * tokens made to be steep, with the exponent fitted and its interval.  BERT and GPT-2 shapes with random weights, and a small GPT
 * trained here; the pretrained models of the paper are not among our data. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/net.h"
#include "base/alloc.h"
#include "cli/cli.h"
#include "data/text.h"
#include "measure/fit.h"
#include "measure/scatter.h"
#include "papers/net.h"
#include "papers/paper.h"

static const char trained_recipe[] = "[model]\ndepth = 3\nheads = 4\ncontext = 128\n"
                                     "[train]\nbatch = 16\nlr = 0.002\nwarmup = 50\nweight_decay = 0.1\n";

typedef struct {
    const char *model, *text; /* model NULL: the trained one */
    int layer;
    const char *published;
} column;
static const column columns[] = {
    { "bert-base", "alice/carroll-alice.txt", 0, "1/4, 1/2 (pretrained)" },
    { "gpt2", "ag_news/test.csv", 6, "1/4, 1/2" },
    { NULL, "alice/carroll-alice.txt", 2, "1/4, 1/2 (others)" },
};

static taut_status train(const char *run, const paper_options *o)
{
    const char *const line[] = { o->small ? "model.width=64" : "model.width=128",
                                 o->small ? "train.steps=300" : "train.steps=3000",
                                 o->tiny ? "data.source=brackets" : "data.source=alice/carroll-alice.txt" };
    return paper_net_train(o, run, trained_recipe, line, 3);
}

static taut_growth fit(const taut_scatter_point *p, int64_t count, double *radius)
{
    double *n = taut_malloc((size_t)(2 * count + 1) * sizeof *n), *y = n ? n + count : NULL;
    taut_growth g = { NAN, NAN, NAN, NAN, 0 };
    *radius = 0;
    if (!n) return g;
    for (int64_t i = 0; i < count; i++)
        n[i] = (double)p[i].n, y[i] = p[i].value, *radius += p[i].radius / (double)count;
    g = taut_growth_fit(n, y, count);
    free(n);
    return g;
}

static void add_row(cJSON *rows, const column *c, const char *kind, const taut_growth *g, double radius)
{
    cJSON *row = cJSON_CreateArray();
    cJSON_AddItemToArray(row, cJSON_CreateString(c->model ? c->model : "trained"));
    cJSON_AddItemToArray(row, cJSON_CreateNumber(c->layer));
    cJSON_AddItemToArray(row, cJSON_CreateString(kind));
    const double numbers[] = { (double)g->points, radius, g->factor, g->exponent, g->low, g->high };
    for (int i = 0; i < 6; i++) cJSON_AddItemToArray(row, cJSON_CreateNumber(numbers[i]));
    cJSON_AddItemToArray(row, cJSON_CreateString(strcmp(kind, "text") == 0 ? "1/4" : "1/2"));
    cJSON_AddItemToArray(rows, row);
}

static taut_status measure(cJSON *rows, const column *c, taut_net *m, const paper_options *o)
{
    const taut_slope_options slope = { TAUT_SLOPE_LANCZOS, 40, 1e-3, 1 };
    taut_scatter_options text = { 2,     100,      o->small ? 14 : 2, o->small ? 4 : 10, c->layer, TAUT_MAP_ATTENTION,
                                  slope, cli_show, "measuring" };
    taut_scatter_options made = { 4,     100,      o->small ? 12 : 4, 1, c->layer, TAUT_MAP_ATTENTION,
                                  slope, cli_show, "measuring" };
    const int64_t most = taut_scatter_count(&text, false) + taut_scatter_count(&made, true);
    taut_scatter_point *p = taut_calloc((size_t)most, sizeof *p);
    taut_text *ids = NULL;
    taut_growth g;
    double radius, gap;
    taut_status s = p ? taut_text_open(&ids, paper_source(o, c->text, o->tiny ? "brackets" : c->text), "bytes", 0,
                                       m->vocab, o->tiny ? 4000 : 0, 1)
                      : taut_no_memory("points");
    if (!s) s = taut_scatter_text(p, m->model, ids->ids, ids->len, &text);
    if (!s) g = fit(p, taut_scatter_count(&text, false), &radius), add_row(rows, c, "text", &g, radius);
    if (!s) s = taut_scatter_adversarial(p, &gap, m->model, &(taut_scatter_attack){ 0, 1000, false, 1 }, &made);
    if (!s) g = fit(p, taut_scatter_count(&made, true), &radius), add_row(rows, c, "adversarial", &g, radius);
    taut_text_free(ids);
    free(p);
    return s;
}

cJSON *paper_castin_fig1(const paper_options *o)
{
    static const char *const names[] = { "model",  "layer",    "data", "points", "radius",
                                         "factor", "exponent", "low",  "high",   "published" };
    char run[4096];
    cJSON *table = paper_table(
        "castin figure 1: slope of an attention layer (with W_O) ~ factor n^exponent, 95 % interval", names, 10,
        (paper_words){
            .published = "the last column: exponents of pretrained BERT and of GPT-2 with random weights.",
            .ours =
                "gpt2 and bert-base with random weights (seed 1), trained is a small GPT trained here (seed 1); text: "
                "sequences of 2 to 100 tokens that do not overlap; adversarial: two clusters of radius 1000, general "
                "construction, head 0.",
            .why =
                "Random weights attend almost evenly, which gives exponents near 0 without a mask and near 0.09 with "
                "one; training makes them steeper; the pretrained BERT is not among our data "
                "(papers/castin/README.md)." });
    cJSON *rows = cJSON_GetObjectItem(table, "rows");
    taut_status s = TAUT_OK;
    snprintf(run, sizeof run, "%s/trained", o->out);
    for (size_t i = o->tiny ? 2 : 0; !s && i < sizeof columns / sizeof *columns; i++) {
        const column *c = &columns[i];
        taut_net *m = NULL;
        if (!c->model) s = train(run, o);
        if (!s) s = taut_net_open(&m, c->model ? c->model : run, NULL);
        if (s) break;
        s = measure(rows, c, m, o);
        taut_net_free(m);
    }
    if (!s) return table;
    cJSON_Delete(table);
    return NULL;
}
