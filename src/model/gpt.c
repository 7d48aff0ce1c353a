/* GPT: causal blocks over token embeddings.
 *     body(x) = norm(blocks(x + pos))          (norm only when it stands before the branches) */
#include "model/tree.h"

taut_module *taut_gpt(const taut_model_spec *s)
{
    taut_list l = { .count = 0 };
    taut_tree_begin(&l, s);
    taut_list_add(&l, "block", taut_tree_blocks(s, true));
    if (s->norm != TAUT_NORM_NONE && s->place == TAUT_PLACE_PRE) taut_list_add(&l, "norm", taut_tree_norm(s));
    return taut_list_sequence(&l);
}
