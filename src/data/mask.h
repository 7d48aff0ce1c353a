/* The masked-token objective (BERT): some tokens are hidden and asked for. */
#ifndef TAUT_DATA_MASK_H
#define TAUT_DATA_MASK_H
#include <stdint.h>

/* Each token is chosen with probability rate.  y = its id where chosen, else -1.  In x, of the chosen 80 %
 * become mask_id, 10 % a random id below vocab, 10 % stay.  Token i depends on (key, first + i) only.
 * x is changed in place; y is only written.  Padding is the caller's: pass the count of real tokens. */
void taut_mask_tokens(int32_t *x, int32_t *y, int64_t count, uint64_t key, int64_t first, double rate, int32_t mask_id,
                      int32_t vocab);
#endif
