#include "verdict/predictions.h"

#include <math.h>
#include <stdlib.h>

#include "base/alloc.h"

enum { PAIRS = 24 }; /* so many first examples make pairs */

/* Features predict nothing: the example is only gone through, for what holds near it. */
static taut_example look(taut_pass *pass, taut_input x)
{
    pass->run.phase = (taut_phase){ .kind = TAUT_PHASE_PROVE };
    taut_pass_read(pass, x, 1);
    return (taut_example){ .target = -1, .predicted = -1, .margin = NAN };
}

static taut_status make(taut_predictions *out, taut_certificate *c, const taut_examples *from, taut_reader *reader,
                        taut_pass *pass, double *logits, taut_told told, void *arg)
{
    const int64_t numbers = c->model->embed.rows ? from->t : from->t * from->d; /* ids, or pixels */
    cJSON *list = cJSON_AddArrayToObject(c->json, "examples");
    const bool featured = c->model->spec.headless;
    taut_one before = { 0 };
    for (int64_t i = 0; i < from->n; i++) {
        const taut_one now = taut_reader_get(reader, i);
        taut_solves log = { 0 };
        const taut_watcher watch = { .solved = taut_solves_add, .arg = &log };
        pass->run.watch = &watch;
        taut_example *e = &out->example[out->count++];
        *e = featured ? look(pass, now.x) : taut_example_certify(c, pass, now.x, now.target, logits);
        pass->run.watch = NULL;
        if (e->predicted < 0 && !featured && out->silent++ == 0)
            out->why = log.why ? log.why : "a number that is not finite";
        taut_status s = out->local ? taut_local_certify(&out->local[i], c, pass, e, logits) : TAUT_OK;
        if (isfinite(e->margin)) /* nobody can check what NaN or infinity predicts */
            cJSON_AddItemToArray(list, taut_example_json(e, now.x, numbers));
        if (!s && i > 0 && i < PAIRS) s = taut_pair_ratio(&out->pair, c, pass, before.x, now.x);
        if (s) return s;
        before = now;
        if (told && told((double)(i + 1) / (double)from->n, arg)) return taut_fail(TAUT_BAD_CALL, "stopped");
    }
    return TAUT_OK;
}

taut_status taut_predictions_make(taut_predictions *out, taut_certificate *c, const taut_examples *from, bool local,
                                  taut_told told, void *arg)
{
    taut_reader *reader = NULL;
    taut_pass *pass = NULL;
    *out = (taut_predictions){ .example = taut_calloc((size_t)from->n, sizeof *out->example),
                               .local = local ? taut_calloc((size_t)from->n, sizeof *out->local) : NULL };
    double *logits = taut_malloc((size_t)c->model->classes * sizeof *logits);
    taut_status s = logits && out->example && (out->local || !local) ? taut_reader_open(&reader, from)
                                                                     : taut_no_memory("examples");
    if (!s) s = taut_pass_create(&pass, c->model, 1, from->t, false);
    if (!s) s = make(out, c, from, reader, pass, logits, told, arg);
    taut_pass_free(pass);
    taut_reader_free(reader);
    free(logits);
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
