/* Opening a text and cutting examples from it. */
#include "data/text.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/check.h"
#include "base/file.h"
#include "base/rng.h"
#include "data/brackets.h"
#include "data/find.h"

static taut_status load_builtin(char **chars, size_t *len, int64_t length, uint64_t seed)
{
    if (length < 1) return taut_fail(TAUT_BAD_DATA, "brackets: a text of %" PRId64 " characters is empty", length);
    *len = (size_t)length;
    *chars = taut_malloc(*len);
    if (!*chars) return taut_no_memory("brackets");
    taut_brackets_fill(*chars, *len, seed);
    return TAUT_OK;
}

static taut_status load_file(char **chars, size_t *len, const char *source)
{
    char *path;
    taut_status status = taut_data_find(&path, source);
    if (status) return status;
    status = taut_file_read(chars, len, path);
    if (!status && *len == 0) status = taut_fail(TAUT_BAD_DATA, "%s: the file is empty", path);
    free(path);
    return status;
}

static taut_status choose_vocab(taut_vocab **out, const char *tokens, const taut_vocab *given, bool builtin,
                                const char *chars, size_t len)
{
    if (given) return taut_vocab_copy(out, given);
    if (strcmp(tokens, "bytes") == 0) return taut_vocab_bytes(out);
    if (strcmp(tokens, "words") == 0)
        return taut_fail(TAUT_BAD_CONFIG, "tokens \"%s\" is neither bytes nor chars, as a text wants it", tokens);
    if (strcmp(tokens, "chars") != 0) return taut_vocab_find(out, tokens);
    /* a short built-in text may lack a character; the model trained on it should still read a longer one */
    if (builtin) return taut_vocab_chars(out, taut_brackets_alphabet(), strlen(taut_brackets_alphabet()));
    return taut_vocab_chars(out, chars, len);
}

taut_status taut_text_open(taut_text **out, const char *source, const char *tokens, double val_fraction,
                           const taut_vocab *given, int64_t builtin_length, uint64_t seed)
{
    *out = NULL;
    if (!(val_fraction >= 0 && val_fraction <= 1))
        return taut_fail(TAUT_BAD_CONFIG, "a validation part of %g is not from 0 to 1", val_fraction);
    if (strcmp(source, "none") == 0)
        return taut_fail(TAUT_BAD_DATA, "this model names no text of its own: give one, as --data NAME");
    const bool builtin = strcmp(source, "brackets") == 0;
    char *chars = NULL;
    size_t len = 0;
    taut_text *text = taut_calloc(1, sizeof *text);
    if (!text) return taut_no_memory(source);
    taut_status status = builtin ? load_builtin(&chars, &len, builtin_length, seed) : load_file(&chars, &len, source);
    if (status) goto done;
    status = choose_vocab(&text->vocab, tokens, given, builtin, chars, len);
    if (!status) status = taut_vocab_encode(&text->ids, &text->len, text->vocab, chars, len);
    if (!status && text->len > 0 && (size_t)text->len < len) { /* pieces of many characters: ids took room for each */
        int32_t *fewer = taut_realloc(text->ids, (size_t)text->len * sizeof *fewer);
        if (fewer) text->ids = fewer;
    }
    if (status == TAUT_BAD_DATA) status = taut_fail(status, "%s: %s", source, taut_last_error());
    text->train_len = (int64_t)((1 - val_fraction) * (double)text->len);
done:
    free(chars);
    if (status)
        taut_text_free(text);
    else
        *out = text;
    return status;
}

void taut_text_free(taut_text *text)
{
    if (!text) return;
    free(text->ids);
    taut_vocab_free(text->vocab);
    free(text);
}

int64_t taut_text_split_len(const taut_text *text, taut_split split)
{
    return split == TAUT_TRAIN ? text->train_len : text->len - text->train_len;
}

static const int32_t *split_ids(const taut_text *text, taut_split split)
{
    return split == TAUT_TRAIN ? text->ids : text->ids + text->train_len;
}

taut_status taut_text_check(const taut_text *text, int64_t context)
{
    for (int i = 0; i < 2; i++) {
        const int64_t have = taut_text_split_len(text, i ? TAUT_VALID : TAUT_TRAIN);
        if (have <= context)
            return taut_fail(TAUT_BAD_DATA,
                             "the text is too short: its %s part has %" PRId64 " tokens, and a context of %" PRId64
                             " needs at least %" PRId64,
                             i ? "validation" : "training", have, context, context + 1);
    }
    return TAUT_OK;
}

void taut_text_sample(const taut_text *text, taut_split split, int64_t context, uint64_t key, int64_t first,
                      int64_t count, int32_t *x, int32_t *y)
{
    const int64_t starts = taut_text_split_len(text, split) - context;
    TAUT_CHECK(context > 0 && starts > 0, "taut_text_check comes before taut_text_sample");
    const size_t size = (size_t)context * sizeof *x;
    for (int64_t i = 0; i < count; i++) {
        const int32_t *from = split_ids(text, split) + taut_rng_below(key, (uint64_t)(first + i), (uint64_t)starts);
        memcpy(x + i * context, from, size);
        memcpy(y + i * context, from + 1, size);
    }
}

int64_t taut_text_windows(const taut_text *text, taut_split split, int64_t context)
{
    const int64_t targets = taut_text_split_len(text, split) - 1;
    TAUT_CHECK(context > 0, "a context has at least one token");
    return targets > 0 ? (targets - 1) / context + 1 : 0;
}

void taut_text_at(const taut_text *text, taut_split split, int64_t context, int64_t start, int32_t *x, int32_t *y)
{
    const int64_t left = taut_text_split_len(text, split) - 1 - start;
    const int64_t whole = left < context ? left : context;
    const int32_t *from = split_ids(text, split) + start;
    memcpy(x, from, (size_t)whole * sizeof *x);
    memcpy(y, from + 1, (size_t)whole * sizeof *y);
    for (int64_t i = whole; i < context; i++) {
        x[i] = 0;
        y[i] = -1;
    }
}
