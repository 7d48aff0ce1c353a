/* Labelled texts as examples: ids of one length, and a class. */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/rng.h"
#include "data/labelled.h"

typedef struct {
    taut_source base;
    taut_vocab *vocab;
    int64_t count[2];
    int32_t *ids[2], *label[2]; /* (count, t), (count) */
} source;

static int64_t labelled_count(const taut_source *base, taut_split split)
{
    return ((const source *)base)->count[split];
}

static void labelled_get(const taut_source *base, taut_slot to, taut_split split, int64_t index)
{
    const source *s = (const source *)base;
    const int64_t t = base->task.t;
    memcpy(to.ids, s->ids[split] + index * t, (size_t)t * sizeof *to.ids);
    *to.target = s->label[split][index];
}

static void labelled_draw(const taut_source *base, taut_slot to, uint64_t seed, int64_t number)
{
    const int64_t all = ((const source *)base)->count[TAUT_TRAIN];
    const uint64_t order = taut_rng_key(seed, TAUT_RNG_BATCH, (uint64_t)(number / all)); /* another one every epoch */
    labelled_get(base, to, TAUT_TRAIN, (int64_t)taut_rng_place(order, (uint64_t)(number % all), (uint64_t)all));
}

static void labelled_free(taut_source *base)
{
    source *s = (source *)base;
    for (int i = 0; i < 2; i++) {
        free(s->ids[i]);
        free(s->label[i]);
    }
    taut_vocab_free(s->vocab);
    free(s);
}

static const taut_source_ops labelled_ops = { labelled_count, labelled_get, labelled_draw, labelled_free };

/* What fills a text behind its end. */
static int32_t filler(const taut_vocab *v)
{
    const int32_t own = taut_vocab_pad(v);
    return own < 0 ? taut_vocab_size(v) : own;
}

taut_status taut_labelled_encode(int32_t *to, int64_t t, int64_t *all, const taut_vocab *v, const char *text)
{
    int32_t *ids;
    int64_t count;
    const int32_t pad = filler(v);
    const taut_status s = taut_vocab_encode(&ids, &count, v, text, strlen(text));
    if (s) return s;
    for (int64_t i = 0; i < t; i++) to[i] = i < count ? ids[i] : pad;
    if (all) *all = count;
    free(ids);
    return TAUT_OK;
}

static taut_status fill(source *s, const taut_labelled *from)
{
    const int64_t t = s->base.task.t;
    for (int i = 0; i < 2; i++) {
        const int64_t count = s->count[i] = from->count[i];
        if (count > (INT64_MAX >> 8) / t) return taut_no_memory("texts as ids");
        s->ids[i] = taut_malloc((size_t)(count * t) * sizeof *s->ids[i]);
        s->label[i] = taut_malloc((size_t)count * sizeof *s->label[i]);
        if (!s->ids[i] || !s->label[i]) return taut_no_memory("texts as ids");
        memcpy(s->label[i], from->label[i], (size_t)count * sizeof *s->label[i]);
        for (int64_t k = 0; k < count; k++) {
            const taut_status status = taut_labelled_encode(s->ids[i] + k * t, t, NULL, s->vocab, from->text[i][k]);
            if (status) return status;
        }
    }
    return TAUT_OK;
}

taut_status taut_source_labelled(taut_source **out, const taut_labelled *from, taut_vocab *vocab, int64_t context)
{
    source *s = taut_calloc(1, sizeof *s);
    if (!s) {
        taut_vocab_free(vocab);
        return taut_no_memory("texts");
    }
    const int32_t size = taut_vocab_size(vocab);
    *s = (source){ .vocab = vocab };
    s->base = (taut_source){
        &labelled_ops,
        { .tokens = size + (filler(vocab) == size), .t = context, .asked = 1, .answers = from->classes },
        vocab
    };
    const taut_status status = fill(s, from);
    if (status)
        labelled_free(&s->base);
    else
        *out = &s->base;
    return status;
}
