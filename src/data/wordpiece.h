/* WordPiece as BERT uses it: words, then for each the longest pieces from its front, "##" before those inside a word.
 * A word that has no pieces, or over 100 characters, is [UNK].  Decoding gives words back, not the text they came from. */
#ifndef TAUT_DATA_WORDPIECE_H
#define TAUT_DATA_WORDPIECE_H
#include <stdbool.h>

#include "data/strings.h"

/* Control characters go; Chinese characters and punctuation are words by themselves; with `lower`, accents go and letters
 * become small.  Words are UTF-8, each behind a newline; the caller frees.  Bytes that are no UTF-8: error. */
taut_status taut_wordpiece_words(char **words, const char *text, size_t len, bool lower) TAUT_MUST_USE;
/* *ids is at least one long; the caller frees. */
taut_status taut_wordpiece_encode(int32_t **ids, int64_t *count, const taut_strings *tokens, const char *text,
                                  size_t len, bool lower) TAUT_MUST_USE;
/* Appends one token to a text of `used` bytes, a space before it unless it is inside a word; returns how many bytes.  dst has
 * room for the token's own length and one more. */
size_t taut_wordpiece_spell(char *dst, bool first, const taut_strings *tokens, int32_t id);
#endif
