#include "verdict/predictions.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/json.h"
#include "base/sha256.h"

enum { PAIRS = 24 }; /* so many first examples make pairs */

/* What is made of one example, until all are there. */
typedef struct {
    cJSON *json;   /* NULL: nobody could check it */
    char why[160]; /* it has no answer; "": it has one */
    double pair;   /* of it and the one before */
} part;
typedef struct {
    taut_predictions *out;
    const taut_certificate *c;
    const taut_examples *from;
    part *part;
    const taut_ahead *ahead;
} job;

/* Features predict nothing: the example is only gone through, for what holds near it. */
static taut_example look(taut_pass *pass, taut_input x)
{
    pass->run.phase = (taut_phase){ .kind = TAUT_PHASE_PROVE };
    taut_pass_read(pass, x, 1);
    return (taut_example){ .target = -1, .predicted = -1, .margin = NAN };
}

static taut_status predict(taut_hand *h, int64_t i, void *arg)
{
    const job *j = arg;
    const taut_model *m = j->c->model;
    const taut_one now = taut_reader_get(h->reader, i);
    taut_solves log = { 0 };
    const taut_watcher watch = { .solved = taut_solves_add, .arg = &log };
    h->pass->run.watch = &watch;
    taut_example *e = &j->out->example[i];
    if (m->spec.headless)
        *e = look(h->pass, now.x);
    else if (j->ahead && j->ahead->logits) {
        *e = taut_example_judge(j->c, j->ahead->logits + i * m->classes, m->classes, now.target, j->ahead->round);
        if (e->predicted >= 0)
            e->margin = fmax(e->margin - 2 * j->ahead->round.v, 0); /* whoever computes it again finds no less */
    } else
        *e = taut_example_certify(j->c, h->pass, now.x, now.target, h->logits);
    h->pass->run.watch = NULL;
    if (e->predicted < 0 && !m->spec.headless)
        snprintf(j->part[i].why, sizeof j->part[i].why, "%s", log.why ? log.why : "a number that is not finite");
    taut_status s = j->out->local ? taut_local_certify(&j->out->local[i], j->c, h->pass, e, h->logits) : TAUT_OK;
    const int64_t count = m->embed.rows ? j->from->t : j->from->t * j->from->d;
    if (isfinite(e->margin) && !s) /* nobody can check what NaN or infinity predicts */
        j->part[i].json = j->out->local ? taut_near_json(e, &j->out->local[i], now.x, count)
                                        : taut_example_json(e, now.x, count);
    if (!s && i > 0 && i < PAIRS)
        s = taut_pair_ratio(&j->part[i].pair, j->c, h->pass, taut_reader_get(h->reader, i - 1).x, now.x);
    return s;
}

/* In the order of the examples. */
static void gather(taut_predictions *out, part *p, cJSON *list)
{
    for (int64_t i = 0; i < out->count; i++) {
        if (p[i].json) cJSON_AddItemToArray(list, p[i].json);
        p[i].json = NULL;
        if (*p[i].why && out->silent++ == 0) memcpy(out->why, p[i].why, sizeof out->why);
        out->pair = fmax(out->pair, p[i].pair);
    }
}

/* What was found about some examples, for other processes. */
static cJSON *tell(int64_t first, int64_t count, void *arg)
{
    const job *j = arg;
    cJSON *list = cJSON_CreateArray();
    for (int64_t i = first; i < first + count; i++) {
        const part *p = &j->part[i];
        cJSON *o = cJSON_CreateObject();
        cJSON_AddItemToObject(o, "example", taut_crew_bytes(&j->out->example[i], sizeof j->out->example[i]));
        if (j->out->local)
            cJSON_AddItemToObject(o, "local", taut_crew_bytes(&j->out->local[i], sizeof j->out->local[i]));
        cJSON_AddItemToObject(o, "pair", taut_crew_bytes(&p->pair, sizeof p->pair));
        cJSON_AddStringToObject(o, "why", p->why);
        if (p->json) cJSON_AddItemToObject(o, "json", cJSON_Duplicate(p->json, true));
        cJSON_AddItemToArray(list, o);
    }
    return list;
}

static bool hear(const cJSON *list, int64_t first, int64_t count, void *arg)
{
    const job *j = arg;
    const cJSON *o = list->child;
    int64_t i = first;
    for (; i < first + count && o; i++, o = o->next) {
        part *p = &j->part[i];
        const char *why = cJSON_GetStringValue(cJSON_GetObjectItem(o, "why"));
        const cJSON *json = cJSON_GetObjectItem(o, "json");
        bool good = taut_crew_read(&j->out->example[i], sizeof j->out->example[i], cJSON_GetObjectItem(o, "example")) &&
                    taut_crew_read(&p->pair, sizeof p->pair, cJSON_GetObjectItem(o, "pair"));
        if (good && j->out->local)
            good = taut_crew_read(&j->out->local[i], sizeof j->out->local[i], cJSON_GetObjectItem(o, "local"));
        if (!good || !why) return false;
        snprintf(p->why, sizeof p->why, "%s", why);
        cJSON_Delete(p->json);
        p->json = json ? cJSON_Duplicate(json, true) : NULL;
    }
    return i == first + count && !o;
}

/* The whole proof so far, and every example: what decides the results. */
static taut_status name_work(taut_crew_shared *out, const taut_certificate *c, const taut_examples *from, bool local,
                             const char *join)
{
    char proof[65], data[65], text[256];
    taut_sha256 h;
    taut_reader *reader = NULL;
    char *json = taut_json_text(c->json, false);
    taut_status s = json ? taut_reader_open(&reader, from) : taut_no_memory("a certificate");
    *out = (taut_crew_shared){ .batch = 16, .tell = tell, .hear = hear };
    taut_sha256_begin(&h);
    if (json) taut_sha256_add(&h, json, strlen(json));
    taut_sha256_end(&h, proof);
    taut_sha256_begin(&h);
    for (int64_t i = 0; !s && i < from->n; i++) {
        const taut_one one = taut_reader_get(reader, i);
        if (one.x.ids) taut_sha256_add(&h, one.x.ids, (size_t)from->t * sizeof *one.x.ids);
        if (one.x.reals) taut_sha256_add(&h, one.x.reals, (size_t)(from->t * from->d) * sizeof *one.x.reals);
        taut_sha256_add(&h, &one.target, sizeof one.target);
    }
    taut_sha256_end(&h, data);
    taut_reader_free(reader);
    free(json);
    snprintf(text, sizeof text, "{\"proof\":\"%s\",\"examples\":\"%s\",\"local\":%s}", proof, data,
             local ? "true" : "false");
    out->folder = taut_strdup(join), out->key = taut_strdup(text);
    return !s && (!out->folder || !out->key) ? taut_no_memory("a certificate") : s;
}

taut_status taut_predictions_make(taut_predictions *out, taut_certificate *c, const taut_examples *from,
                                  const taut_predictions_way *way, taut_told told, void *arg)
{
    const bool local = way->local;
    const char *join = way->join;
    taut_crew_shared shared = { .folder = NULL };
    *out = (taut_predictions){ .example = taut_calloc((size_t)from->n, sizeof *out->example),
                               .local = local ? taut_calloc((size_t)from->n, sizeof *out->local) : NULL,
                               .count = from->n };
    job j = { out, c, from, taut_calloc((size_t)from->n, sizeof *j.part), way->ahead };
    const taut_crew crew = { c, from, from->n, predict, &j, told, arg, join ? &shared : NULL };
    taut_status s = j.part && out->example && (out->local || !local) ? TAUT_OK : taut_no_memory("examples");
    if (!s && local) s = taut_near_state(c);
    if (!s && join) s = name_work(&shared, c, from, local, join);
    if (!s) s = taut_crew_work(&crew);
    taut_crew_shared_free(&shared);
    cJSON *list = s ? NULL : cJSON_AddArrayToObject(c->json, "examples");
    if (!s && !list) s = taut_no_memory("examples");
    if (!s) gather(out, j.part, list);
    for (int64_t i = 0; j.part && i < from->n; i++) cJSON_Delete(j.part[i].json);
    free(j.part);
    if (s) taut_predictions_free(out);
    return s;
}

void taut_predictions_free(taut_predictions *p)
{
    free(p->example);
    free(p->local);
    *p = (taut_predictions){ 0 };
}

static double accuracy(const taut_predictions *p, double r, bool exact)
{
    int64_t good = 0;
    for (int64_t i = 0; i < p->count; i++) {
        const taut_example *e = &p->example[i];
        good += e->predicted == e->target && (r == 0 || (exact ? e->exact : e->radius).v >= r);
    }
    return (double)good / (double)p->count;
}

double taut_predictions_accuracy(const taut_predictions *p, double r) { return accuracy(p, r, false); }

double taut_predictions_exact(const taut_predictions *p, double r) { return accuracy(p, r, true); }
