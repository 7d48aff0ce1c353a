/* Byte-level byte-pair encoding as GPT-2 and RoBERTa use it.  Every sequence of bytes has an encoding, and decoding gives
 * the bytes back; text that looks like a special token is text. */
#ifndef TAUT_DATA_BPE_H
#define TAUT_DATA_BPE_H
#include "data/strings.h"

typedef struct taut_bpe taut_bpe;

/* Printed: how many tokens, the tokens in the order of their ids, the merges ("a b"), the first learned first; each on a
 * line of its own. */
taut_status taut_bpe_parse(taut_bpe **out, const char *printed) TAUT_MUST_USE;
void taut_bpe_free(taut_bpe *);
const taut_strings *taut_bpe_tokens(const taut_bpe *);
/* ids has room for len of them.  Fails for a byte that the vocabulary lacks, and for lack of memory. */
taut_status taut_bpe_encode(int32_t *ids, int64_t *count, const taut_bpe *, const char *text, size_t len) TAUT_MUST_USE;
/* Appends the bytes of one token; returns how many.  dst has room for the token's own length. */
size_t taut_bpe_spell(char *dst, const taut_bpe *, int32_t id);

/* bpe_split.c: how many bytes the first word of text takes, by GPT-2's rule
 *     's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
 * A byte that is no UTF-8 counts as a sign.  0 for an empty text. */
size_t taut_bpe_word(const char *text, size_t len);
#endif
