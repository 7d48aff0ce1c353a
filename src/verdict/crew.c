#include "verdict/crew.h"

#include <limits.h>
#include <omp.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/join.h"
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

/* Examples begin .. end-1. */
static void work(const taut_crew *w, taut_hand *hand, int64_t hands, int64_t begin, int64_t end, failure *first)
{
    atomic_llong done = 0;
#pragma omp parallel num_threads((int)hands)
    {
        const int me = omp_get_thread_num();
#pragma omp for schedule(dynamic)
        for (int64_t i = begin; i < end; i++) {
            if (i > first->index) continue;
            taut_status s = w->each(&hand[me], i, w->arg);
            const int64_t so_far = ++done;
            if (!s && me == 0 && begin + so_far < w->n) s = tell(w, begin + so_far);
            if (s) note(first, s, i);
        }
    }
}

static int64_t end_of(const taut_crew *w, int64_t piece)
{
    const int64_t end = (piece + 1) * w->shared->batch;
    return end < w->n ? end : w->n;
}

/* Pieces until all are there, whoever does them; then what was found about every one, as it is told. */
static taut_status work_shared(const taut_crew *w, taut_hand *hand, int64_t hands, failure *first)
{
    const taut_crew_shared *by = w->shared;
    const int64_t pieces = (w->n + by->batch - 1) / by->batch;
    taut_join j;
    int64_t piece = 0;
    taut_status s = taut_join_open(&j, by->folder, by->key, pieces);
    while (!s && !first->status) {
        s = taut_join_take(&j, &piece, w->told, w->told_arg);
        if (s || piece < 0) break;
        const int64_t begin = piece * by->batch;
        work(w, hand, hands, begin, end_of(w, piece), first);
        if (!first->status) s = taut_join_put(&j, by->tell(begin, end_of(w, piece) - begin, w->arg));
    }
    for (piece = 0; !s && !first->status && piece < pieces; piece++) {
        const int64_t begin = piece * by->batch;
        cJSON *o;
        s = taut_join_get(&j, piece, &o);
        if (!s && !by->hear(o, begin, end_of(w, piece) - begin, w->arg)) s = taut_join_damaged(&j, piece);
        cJSON_Delete(o);
    }
    taut_join_close(&j);
    return s;
}

void taut_crew_shared_free(taut_crew_shared *s)
{
    free(s->folder);
    free(s->key);
    s->folder = s->key = NULL;
}

static const char digit[] = "0123456789abcdef";

cJSON *taut_crew_bytes(const void *bytes, size_t len)
{
    const unsigned char *from = bytes;
    char text[256] = "";
    for (size_t i = 0; i < len && 2 * i + 2 < sizeof text; i++)
        text[2 * i] = digit[from[i] >> 4], text[2 * i + 1] = digit[from[i] & 15];
    return cJSON_CreateString(text);
}

bool taut_crew_read(void *bytes, size_t len, const cJSON *o)
{
    unsigned char *to = bytes;
    const char *text = cJSON_GetStringValue(o);
    if (!text || strlen(text) != 2 * len) return false;
    for (size_t i = 0; i < len; i++) {
        const char *high = strchr(digit, text[2 * i]), *low = strchr(digit, text[2 * i + 1]);
        if (!high || !low) return false;
        to[i] = (unsigned char)((high - digit) * 16 + (low - digit));
    }
    return true;
}

taut_status taut_crew_work(const taut_crew *w)
{
    failure first = { .index = LLONG_MAX };
    const int64_t hands = hands_for(w);
    taut_hand *hand = taut_calloc((size_t)hands, sizeof *hand);
    taut_status s = hand ? TAUT_OK : taut_no_memory("examples");
    for (int64_t i = 0; !s && i < hands; i++) s = equip(&hand[i], w);
    if (!s && w->shared)
        s = work_shared(w, hand, hands, &first);
    else if (!s)
        work(w, hand, hands, 0, w->n, &first);
    dismiss(hand, hands);
    if (first.status) s = taut_fail(first.status, "%s", first.line);
    return s ? s : tell(w, w->n);
}
