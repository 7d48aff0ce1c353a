/* GPT: causal blocks over token embeddings, then a head that scores the next token.
 *     logits = logit_scale * W_head norm(blocks(x + pos))       (norm only when it stands before the
 * branches) */
#include "model/tree.h"

taut_module *taut_gpt(const taut_model_spec *s, taut_param *table)
{
    taut_list l = { .count = 0 };
    taut_tree_begin(&l, s);
    taut_list_add(&l, "block", taut_tree_blocks(s, true));
    if (s->norm != TAUT_NORM_NONE && s->place == TAUT_PLACE_PRE) taut_list_add(&l, "norm", taut_tree_norm(s));
    taut_list_add(&l, "head",
                  s->tied ? taut_linear_tied(table, false)
                          : taut_linear(table->rows, s->width, false, s->zero_out ? TAUT_INIT_ZERO : s->init,
                                        s->init_std));
    if (s->logit_scale != 1) taut_list_add(&l, "logits", taut_scale(s->logit_scale));
    return taut_list_sequence(&l);
}
