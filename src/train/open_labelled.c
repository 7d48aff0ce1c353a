/* Labelled texts for a recipe: what they say of themselves, and the source of their examples. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "data/labelled.h"
#include "train/recipe.h"

static taut_labelled_spec spec_of(const taut_data_spec *d)
{
    return (taut_labelled_spec){ d->source, d->label, d->text, d->class_names, d->length, d->val_fraction, d->seed };
}

/* The number of classes and their names become keys, so that the model's file holds them. */
taut_status taut_labelled_defaults(taut_config *cfg)
{
    taut_data_spec d;
    taut_labelled *texts = NULL;
    char number[32];
    taut_status s = taut_recipe_give(cfg, "data.source", "animals");
    if (!s) s = taut_recipe_give(cfg, "data.tokens", "words");
    if (!s && strcmp(taut_config_text(cfg, "data.source", "brackets"), "animals") == 0)
        s = taut_recipe_give(cfg, "data.length", "6000");
    if (s || (taut_config_has(cfg, "model.classes") && taut_config_has(cfg, "data.class_names"))) return s;
    taut_data_spec_read(&d, cfg);
    const taut_labelled_spec spec = spec_of(&d);
    s = taut_labelled_open(&texts, &spec);
    if (s) return s;
    snprintf(number, sizeof number, "%lld", (long long)texts->classes);
    s = taut_recipe_give(cfg, "model.classes", number);
    if (!s) s = taut_recipe_give(cfg, "data.class_names", texts->names);
    if (s == TAUT_BAD_CONFIG)
        s = taut_fail(TAUT_BAD_DATA, "%s: the names of its classes cannot stand in a recipe", d.source);
    taut_labelled_free(texts);
    return s;
}

/* All texts, of both splits, side by side; the caller frees. */
static char *all_texts(const taut_labelled *t)
{
    size_t size = 1;
    for (int i = 0; i < 2; i++)
        for (int64_t k = 0; k < t->count[i]; k++) size += strlen(t->text[i][k]);
    char *all = taut_malloc(size), *p = all;
    if (all) *all = 0;
    for (int i = 0; i < 2 && all; i++)
        for (int64_t k = 0; k < t->count[i]; k++) {
            const size_t len = strlen(t->text[i][k]);
            memcpy(p, t->text[i][k], len + 1);
            p += len;
        }
    return all;
}

static taut_status choose_vocab(taut_vocab **out, const taut_labelled *t, const taut_data_spec *d,
                                const taut_vocab *given)
{
    if (given) return taut_vocab_copy(out, given);
    if (t->count[TAUT_TRAIN] == 0) return taut_recipe_nothing(d);
    if (strcmp(d->tokens, "bytes") == 0) return taut_vocab_bytes(out);
    if (strcmp(d->tokens, "words") == 0)
        return taut_vocab_words(out, t->text[TAUT_TRAIN], t->count[TAUT_TRAIN], (int32_t)d->words);
    if (strcmp(d->tokens, "chars") != 0) return taut_vocab_find(out, d->tokens);
    char *all = all_texts(t);
    const taut_status s = all ? taut_vocab_chars(out, all, strlen(all)) : taut_no_memory("texts");
    free(all);
    return s;
}

taut_status taut_labelled_source(taut_source **out, const taut_data_spec *d, const taut_model_spec *m,
                                 const taut_vocab *given)
{
    taut_labelled *texts = NULL;
    taut_vocab *vocab = NULL;
    const taut_labelled_spec spec = spec_of(d);
    taut_status s = taut_labelled_open(&texts, &spec);
    if (s) return s;
    if (texts->classes > m->classes)
        s = taut_fail(TAUT_BAD_DATA, "%s: texts in %lld classes; the model has %lld", d->source,
                      (long long)texts->classes, (long long)m->classes);
    if (!s) s = choose_vocab(&vocab, texts, d, given);
    if (!s) s = taut_source_labelled(out, texts, vocab, m->context);
    if (s == TAUT_BAD_DATA) s = taut_fail(s, "%s: %s", d->source, taut_last_error());
    taut_labelled_free(texts);
    return s;
}
