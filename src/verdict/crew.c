#include "verdict/crew.h"

#include <limits.h>
#include <omp.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/memory.h"

/* What ended the work: the failure of the earliest example that failed.  An error's line belongs to its thread. */
typedef struct {
    atomic_llong index; /* LLONG_MAX: none failed */
    taut_status status;
    char line[1024];
} failure;

static int64_t hands_for(const taut_crew *w)
{
    const taut_model *m = w->c->model;
    const double each = ((double)taut_pass_len(m, 1, w->c->tokens, false) + (double)m->classes) * sizeof(double);
    const double room = taut_memory_available() / 2 / each;
    const int64_t threads = taut_threads(), most = room < (double)threads ? (int64_t)room : threads;
    return most < 1 || w->n < threads ? 1 : most;
}

static taut_status equip(taut_hand *h, const taut_crew *w)
{
    h->logits = taut_malloc((size_t)w->c->model->classes * sizeof *h->logits);
    taut_status s = h->logits ? TAUT_OK : taut_no_memory("logits");
    if (!s && w->from) s = taut_reader_open(&h->reader, w->from);
    return s ? s : taut_pass_create(&h->pass, w->c->model, 1, w->c->tokens, false);
}

static void dismiss(taut_hand *hand, int64_t hands)
{
    for (int64_t i = 0; hand && i < hands; i++) {
        taut_pass_free(hand[i].pass);
        taut_reader_free(hand[i].reader);
        free(hand[i].logits);
    }
    free(hand);
}

static taut_status tell(const taut_crew *w, int64_t done)
{
    const bool stop = w->told && w->told((double)done / (double)w->n, w->told_arg);
    return stop ? taut_fail(TAUT_BAD_CALL, "stopped") : TAUT_OK;
}

static void note(failure *first, taut_status s, int64_t index)
{
#pragma omp critical(taut_crew_failure)
    if (index < first->index) {
        first->index = index;
        first->status = s;
        snprintf(first->line, sizeof first->line, "%s", taut_last_error());
    }
}

static void work(const taut_crew *w, taut_hand *hand, int64_t hands, failure *first)
{
    atomic_llong done = 0;
#pragma omp parallel num_threads((int)hands)
    {
        const int me = omp_get_thread_num();
#pragma omp for schedule(dynamic)
        for (int64_t i = 0; i < w->n; i++) {
            if (i > first->index) continue;
            taut_status s = w->each(&hand[me], i, w->arg);
            const int64_t so_far = ++done;
            if (!s && me == 0 && so_far < w->n) s = tell(w, so_far);
            if (s) note(first, s, i);
        }
    }
}

taut_status taut_crew_work(const taut_crew *w)
{
    failure first = { .index = LLONG_MAX };
    const int64_t hands = hands_for(w);
    taut_hand *hand = taut_calloc((size_t)hands, sizeof *hand);
    taut_status s = hand ? TAUT_OK : taut_no_memory("examples");
    for (int64_t i = 0; !s && i < hands; i++) s = equip(&hand[i], w);
    if (!s) work(w, hand, hands, &first);
    dismiss(hand, hands);
    if (first.status) s = taut_fail(first.status, "%s", first.line);
    return s ? s : tell(w, w->n);
}
