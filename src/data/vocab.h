/* Text to token ids and back.  bytes: 256 ids, any file.  chars: one id for each distinct UTF-8 code point
 * of a text, in code point order; NUL is no character. */
#ifndef TAUT_DATA_VOCAB_H
#define TAUT_DATA_VOCAB_H
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

typedef struct taut_vocab taut_vocab;

taut_status taut_vocab_bytes(taut_vocab **out) TAUT_MUST_USE;
taut_status taut_vocab_chars(taut_vocab **out, const char *text, size_t len) TAUT_MUST_USE;
taut_status taut_vocab_copy(taut_vocab **out, const taut_vocab *vocab) TAUT_MUST_USE;
void taut_vocab_free(taut_vocab *vocab);

int32_t taut_vocab_size(const taut_vocab *vocab);
const char *taut_vocab_kind(const taut_vocab *vocab); /* "bytes" or "chars" */

/* *ids is at least one long; the caller frees.  The error names the first unknown character and its byte. */
taut_status taut_vocab_encode(int32_t **ids, int64_t *count, const taut_vocab *vocab, const char *text,
                              size_t len) TAUT_MUST_USE;
/* *text has a closing NUL that len does not count; the caller frees.  An id outside the vocabulary: error. */
taut_status taut_vocab_decode(char **text, size_t *len, const taut_vocab *vocab, const int32_t *ids,
                              int64_t count) TAUT_MUST_USE;
/* The bytes of one id, no NUL; returns how many, 0 for an id outside the vocabulary. */
int taut_vocab_spell(char dst[4], const taut_vocab *vocab, int32_t id);

/* A compact ASCII string for a model's file: "bytes", or "chars:" and ranges of code points in hex
 * ("chars:a,20-7e,e9").  The caller frees; NULL: out of memory.  parse refuses everything else. */
char *taut_vocab_print(const taut_vocab *vocab);
taut_status taut_vocab_parse(taut_vocab **out, const char *printed) TAUT_MUST_USE;
#endif
