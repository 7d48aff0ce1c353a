/* How much probability one key can collect: the C of attention's flat constant. */
#ifndef TAUT_BOUND_COUNT_H
#define TAUT_BOUND_COUNT_H
#include "bound/attention.h"

/* Head h's content logits differ by at most `range` within a row, its position logits by `slope` a key. */
typedef struct {
    taut_up range, slope;
} taut_spread;

taut_up up_alibi_slope(int64_t head, int64_t heads); /* 2^(-8 (head+1) / heads) */

/* C >= sum_i max_h P^h_ij for every key j, where rows see no fewer keys than w->keys_min says. */
taut_up up_count(const taut_attention_weights *w, const taut_spread *heads, int64_t count);
#endif
