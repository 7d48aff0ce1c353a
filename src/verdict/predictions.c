#include "verdict/predictions.h"

#include <math.h>
#include <stdlib.h>

#include "base/alloc.h"

enum { PAIRS = 24 }; /* so many first examples make pairs */

/* What is made of one example, until all are there. */
typedef struct {
    cJSON *json;     /* NULL: nobody could check it */
    const char *why; /* it has no answer; NULL: it has one */
    double pair;     /* of it and the one before */
} part;
typedef struct {
    taut_predictions *out;
    const taut_certificate *c;
    const taut_examples *from;
    part *part;
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
    *e = m->spec.headless ? look(h->pass, now.x) : taut_example_certify(j->c, h->pass, now.x, now.target, h->logits);
    h->pass->run.watch = NULL;
    if (e->predicted < 0 && !m->spec.headless) j->part[i].why = log.why ? log.why : "a number that is not finite";
    taut_status s = j->out->local ? taut_local_certify(&j->out->local[i], j->c, h->pass, e, h->logits) : TAUT_OK;
    if (isfinite(e->margin)) /* nobody can check what NaN or infinity predicts */
        j->part[i].json = taut_example_json(e, now.x, m->embed.rows ? j->from->t : j->from->t * j->from->d);
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
        if (p[i].why && out->silent++ == 0) out->why = p[i].why;
        out->pair = fmax(out->pair, p[i].pair);
    }
}

taut_status taut_predictions_make(taut_predictions *out, taut_certificate *c, const taut_examples *from, bool local,
                                  taut_told told, void *arg)
{
    *out = (taut_predictions){ .example = taut_calloc((size_t)from->n, sizeof *out->example),
                               .local = local ? taut_calloc((size_t)from->n, sizeof *out->local) : NULL,
                               .count = from->n };
    job j = { out, c, from, taut_calloc((size_t)from->n, sizeof *j.part) };
    const taut_crew crew = { c, from, from->n, predict, &j, told, arg };
    taut_status s = j.part && out->example && (out->local || !local) ? taut_crew_work(&crew)
                                                                     : taut_no_memory("examples");
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

double taut_predictions_accuracy(const taut_predictions *p, double r)
{
    int64_t good = 0;
    for (int64_t i = 0; i < p->count; i++) {
        const taut_example *e = &p->example[i];
        good += e->predicted == e->target && (r == 0 || e->radius.v >= r);
    }
    return (double)good / (double)p->count;
}
