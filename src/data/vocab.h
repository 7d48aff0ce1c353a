/* Text to token ids and back.  bytes: 256 ids, any file.  chars: one id for each distinct UTF-8 code point
 * of a text, in code point order; NUL is no character.  bpe: GPT-2's and RoBERTa's pieces, any file (bpe.h).
 * wordpiece: BERT's pieces of words, UTF-8 (wordpiece.h).  No kind reads special tokens in a text, or adds any
 * (taut_vocab_ends). */
#ifndef TAUT_DATA_VOCAB_H
#define TAUT_DATA_VOCAB_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

typedef struct taut_vocab taut_vocab;

taut_status taut_vocab_bytes(taut_vocab **out) TAUT_MUST_USE;
taut_status taut_vocab_chars(taut_vocab **out, const char *text, size_t len) TAUT_MUST_USE;
/* words.c: [PAD], [UNK] and at most `most` - 2 words of the texts that occur twice or more, the most frequent first: small
 * letters, signs by themselves, as a wordpiece vocabulary without pieces of words. */
taut_status taut_vocab_words(taut_vocab **out, char *const *text, int64_t count, int32_t most) TAUT_MUST_USE;
taut_status taut_vocab_copy(taut_vocab **out, const taut_vocab *vocab) TAUT_MUST_USE;
void taut_vocab_free(taut_vocab *vocab);

int32_t taut_vocab_size(const taut_vocab *vocab);
const char *taut_vocab_kind(const taut_vocab *vocab); /* "bytes", "chars", "bpe", "wordpiece", "wordpiece-cased" */
int32_t taut_vocab_mask(const taut_vocab *vocab);     /* the id that hides a token ([MASK], <mask>); -1: none */
int32_t taut_vocab_pad(const taut_vocab *vocab);      /* the id that fills a short text ([PAD], <pad>); -1: none */

/* The ids that stand before and behind a text ([CLS] and [SEP], <s> and </s>); false: it has none. */
bool taut_vocab_ends(const taut_vocab *vocab, int32_t *first, int32_t *last);

/* tokenizer.c: the files of a pretrained tokenizer in a folder: vocab.json and merges.txt (or encoder.json and vocab.bpe,
 * the same under older names): bpe; vocab.txt: wordpiece, cased if tokenizer_config.json says do_lower_case = false. */
taut_status taut_vocab_open(taut_vocab **out, const char *folder) TAUT_MUST_USE;
/* The same, of a folder that is found as data. */
taut_status taut_vocab_find(taut_vocab **out, const char *name) TAUT_MUST_USE;

/* *ids is at least one long; the caller frees.  The error names the first unknown character and its byte. */
taut_status taut_vocab_encode(int32_t **ids, int64_t *count, const taut_vocab *vocab, const char *text,
                              size_t len) TAUT_MUST_USE;
/* *text has a closing NUL that len does not count; the caller frees.  An id outside the vocabulary: error.
 * wordpiece: words with spaces between them, which need not be the text they came from. */
taut_status taut_vocab_decode(char **text, size_t *len, const taut_vocab *vocab, const int32_t *ids,
                              int64_t count) TAUT_MUST_USE;

/* A string for a model's file: "bytes"; "chars:" and ranges of code points in hex ("chars:a,20-7e,e9"); "bpe:" and
 * what taut_bpe_parse reads, from the next line on; "wordpiece:" or "wordpiece-cased:" and a token a line.
 * The caller frees; NULL: out of memory.  parse refuses everything else. */
char *taut_vocab_print(const taut_vocab *vocab);
taut_status taut_vocab_parse(taut_vocab **out, const char *printed) TAUT_MUST_USE;
#endif
