/* A text as examples.  next: every token asks for the one behind it.  masked: some tokens are hidden and asked for;
 * validation windows are masked the same way for every model. */
#include <stdlib.h>

#include "base/alloc.h"
#include "base/rng.h"
#include "data/mask.h"
#include "data/text.h"

typedef struct {
    taut_source base;
    taut_text *text;
    double mask_rate; /* 0: next tokens */
    int64_t slide;    /* windows, one at every token; 0: windows side by side */
} source;

/* Hides tokens of example number `id`. */
static void hide(const source *s, taut_slot to, uint64_t key, int64_t id)
{
    const int64_t t = s->base.task.t;
    const int32_t vocab = taut_vocab_size(s->text->vocab), own = taut_vocab_mask(s->text->vocab);
    if (s->mask_rate > 0)
        taut_mask_tokens(to.ids, to.target, t, key, id * t, s->mask_rate, own < 0 ? vocab : own, vocab);
}

static int64_t text_count(const taut_source *base, taut_split split)
{
    const source *s = (const source *)base;
    const int64_t whole = taut_text_split_len(s->text, split) - base->task.t;
    if (s->slide) return whole < 0 ? 0 : whole < s->slide ? whole : s->slide;
    if (s->mask_rate > 0)
        return taut_text_split_len(s->text, split) / base->task.t; /* whole ones: every token is seen */
    return taut_text_windows(s->text, split, base->task.t);
}

static void text_get(const taut_source *base, taut_slot to, taut_split split, int64_t index)
{
    const source *s = (const source *)base;
    taut_text_at(s->text, split, base->task.t, s->slide ? index : index * base->task.t, to.ids, to.target);
    hide(s, to, taut_rng_key(0, TAUT_RNG_MASK, 1), index); /* free of the seed: every model gets the same questions */
}

static void text_draw(const taut_source *base, taut_slot to, uint64_t seed, int64_t number)
{
    const source *s = (const source *)base;
    const uint64_t key = taut_rng_key(seed, TAUT_RNG_BATCH, 0);
    taut_text_sample(s->text, TAUT_TRAIN, base->task.t, key, number, 1, to.ids, to.target);
    hide(s, to, taut_rng_key(seed, TAUT_RNG_MASK, 0), number);
}

static void text_free(taut_source *base)
{
    taut_text_free(((source *)base)->text);
    free(base);
}

static const taut_source_ops text_ops = { text_count, text_get, text_draw, text_free };

taut_status taut_source_text(taut_source **out, taut_text *text, int64_t context, double mask_rate)
{
    source *s = taut_calloc(1, sizeof *s);
    if (!s) {
        taut_text_free(text);
        return taut_no_memory("a text");
    }
    const int64_t vocab = taut_vocab_size(text->vocab),
                  tokens = vocab + (mask_rate > 0 && taut_vocab_mask(text->vocab) < 0);
    *s = (source){ { &text_ops, { tokens, context, 0, context, tokens, false, 0 }, text->vocab }, text, mask_rate, 0 };
    *out = &s->base;
    return TAUT_OK;
}

bool taut_source_slide(taut_source *base, int64_t windows)
{
    source *s = (source *)base;
    if (base->ops != &text_ops || s->mask_rate > 0) return false;
    s->slide = windows;
    return true;
}
