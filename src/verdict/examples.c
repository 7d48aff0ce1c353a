#include "verdict/examples.h"

#include <math.h>
#include <stdlib.h>

#include "base/alloc.h"

struct taut_reader {
    taut_examples from;
    int64_t all; /* examples of the split */
    taut_slot slot[2];
    int turn;
};

static taut_status check_data(const taut_examples *x, const taut_model *m)
{
    const taut_task *k = &x->data->task;
    if (k->t != m->in.t || (k->tokens == 0) != (m->embed.rows == 0) || k->tokens > m->embed.rows ||
        (k->tokens == 0 && k->d != m->in.d))
        return taut_fail(TAUT_BAD_DATA, "these data are not of the kind that the model reads");
    if (k->reals || (k->answers > m->classes && !m->spec.headless)) /* features answer nothing */
        return taut_fail(TAUT_BAD_DATA, "the data has %lld classes, the model %lld", (long long)k->answers,
                         (long long)m->classes);
    return TAUT_OK;
}

static taut_status check_own(const taut_examples *x, const taut_model *m)
{
    if (!x->ids == !x->reals || !x->labels)
        return taut_fail(TAUT_BAD_CALL, "own examples are ids or reals, and their labels");
    if (x->reals && m->embed.rows > 0) /* nothing is proved of tokens longer than every embedding */
        return taut_fail(TAUT_BAD_CALL, "own examples of a text are ids: embeddings may lie outside the region");
    if (x->n < 1 || x->n > INT32_MAX) return taut_fail(TAUT_BAD_CALL, "%lld examples", (long long)x->n);
    if (x->t != m->in.t)
        return taut_fail(TAUT_BAD_CALL, "examples of %lld tokens: this model is proved for %lld", (long long)x->t,
                         (long long)m->in.t);
    for (int64_t i = 0; x->ids && i < x->n * x->t; i++)
        if (x->ids[i] < 0 || x->ids[i] >= m->embed.rows)
            return taut_fail(TAUT_BAD_DATA, "id %d is not in 0 .. %lld", x->ids[i], (long long)m->embed.rows - 1);
    for (int64_t i = 0; x->reals && i < x->n * x->t * x->d; i++) {
        if (x->reals[i] >= 0 && x->reals[i] <= 1) continue;
        return taut_fail(TAUT_BAD_DATA, "number %lld of the examples is %g, not in [0, 1]", (long long)i, x->reals[i]);
    }
    for (int64_t e = 0; e < x->n; e++)
        if (x->labels[e] < 0 || x->labels[e] >= m->classes)
            return taut_fail(TAUT_BAD_DATA, "label %d is not in 0 .. %lld", x->labels[e], (long long)m->classes - 1);
    return TAUT_OK;
}

taut_status taut_examples_settle(taut_examples *x, const taut_model *m)
{
    x->d = m->in.d;
    if (x->data && m->spec.arch == TAUT_ARCH_ENCODER && !m->spec.headless) {
        const int32_t own = taut_vocab_mask(x->data->vocab);
        x->hides = true;
        x->mask = own < 0 ? taut_vocab_size(x->data->vocab) : own;
    }
    if (!x->data) return check_own(x, m);
    x->t = m->in.t;
    const taut_status s = check_data(x, m);
    if (s) return s;
    if (taut_source_whole(x->data, TAUT_VALID) < 1)
        return taut_fail(TAUT_BAD_DATA, "the validation split has no example of %lld tokens", (long long)x->t);
    if (x->n > taut_source_whole(x->data, TAUT_VALID)) x->n = taut_source_whole(x->data, TAUT_VALID);
    return TAUT_OK;
}

taut_status taut_reader_open(taut_reader **out, const taut_examples *x)
{
    taut_reader *r = taut_calloc(1, sizeof *r);
    if (!r) return taut_no_memory("examples");
    r->from = *x;
    r->all = x->data ? taut_source_whole(x->data, TAUT_VALID) : x->n;
    bool done = true;
    for (int i = 0; i < 2 && x->data; i++) {
        taut_slot *s = &r->slot[i];
        const taut_task *k = &x->data->task;
        if (k->tokens) s->ids = taut_malloc((size_t)k->t * sizeof *s->ids);
        if (!k->tokens) s->reals = taut_malloc((size_t)(k->t * k->d) * sizeof *s->reals);
        s->target = taut_malloc((size_t)k->asked * sizeof *s->target);
        done = done && (s->ids || s->reals) && s->target;
    }
    if (!done) {
        taut_reader_free(r);
        return taut_no_memory("examples");
    }
    *out = r;
    return TAUT_OK;
}

void taut_reader_free(taut_reader *r)
{
    if (!r) return;
    for (int i = 0; i < 2; i++) {
        free(r->slot[i].ids);
        free(r->slot[i].reals);
        free(r->slot[i].target);
    }
    free(r);
}

taut_one taut_reader_get(taut_reader *r, int64_t index)
{
    const taut_examples *x = &r->from;
    if (!x->data) {
        const taut_input own = { x->ids ? x->ids + index * x->t : NULL,
                                 x->reals ? x->reals + index * x->t * x->d : NULL };
        return (taut_one){ own, x->labels[index], index };
    }
    const int64_t number = index * r->all / x->n;
    const taut_slot s = r->slot[r->turn ^= 1];
    x->data->ops->get(x->data, s, TAUT_VALID, number);
    if (x->hides) {
        int32_t *last = s.ids + x->t - 1;
        const int32_t hidden = *last;
        *last = x->mask;
        return (taut_one){ { s.ids, NULL }, hidden, number };
    }
    return (taut_one){ { s.ids, s.reals }, s.target[x->data->task.asked - 1], number };
}
