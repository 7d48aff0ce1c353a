/* A text as token ids, split once into a training part and a validation part, and examples from either. */
#ifndef TAUT_DATA_TEXT_H
#define TAUT_DATA_TEXT_H
#include <stdbool.h>

#include "data/source.h"

typedef struct taut_text {
    int32_t *ids;
    int64_t len, train_len; /* ids[0 .. train_len) train, the rest validate */
    taut_vocab *vocab;
} taut_text;

/* source: "brackets" is built in (builtin_length characters from seed), "none" is refused, all else is found as data.
 * tokens: "bytes" takes any file that is not empty; "chars" wants UTF-8 without NUL; all else but "words" is a tokenizer's
 * folder, found as data.  A given vocabulary is copied and used instead of tokens, so that a model reads the text as it was
 * trained to.
 * The first int((1 - val_fraction) * len) ids train; val_fraction is from 0 to 1. */
taut_status taut_text_open(taut_text **out, const char *source, const char *tokens, double val_fraction,
                           const taut_vocab *given, int64_t builtin_length, uint64_t seed) TAUT_MUST_USE;
void taut_text_free(taut_text *text);

int64_t taut_text_split_len(const taut_text *text, taut_split split);
/* Both splits must hold context + 1 ids. */
taut_status taut_text_check(const taut_text *text, int64_t context) TAUT_MUST_USE;

/* Examples first .. first+count-1 of the endless stream named by key, each context ids long: x, and y which
 * is x shifted by one.  A pure function of (key, index).  The split must hold context + 1 ids. */
void taut_text_sample(const taut_text *text, taut_split split, int64_t context, uint64_t key, int64_t first,
                      int64_t count, int32_t *x, int32_t *y);

/* Windows at stride context cover the whole split: every id but the first is a target exactly once.  The
 * last window may be partial: x is padded with 0, y with -1.  0 windows if the split has fewer than 2 ids. */
int64_t taut_text_windows(const taut_text *text, taut_split split, int64_t context);
/* The window that starts at a token of the split: number i starts at i * context. */
void taut_text_at(const taut_text *text, taut_split split, int64_t context, int64_t start, int32_t *x, int32_t *y);

/* source_text.c: its windows as examples; a mask_rate above 0 asks for hidden tokens, 0 for the next ones.  Owns the text
 * from the call on, even if it fails. */
taut_status taut_source_text(taut_source **out, taut_text *text, int64_t context, double mask_rate) TAUT_MUST_USE;
/* Of such a source of next tokens: a split becomes its first `windows` windows, one at every token, as far as it goes.
 * False: it is another source. */
bool taut_source_slide(taut_source *, int64_t windows);
#endif
