/* Classifier of texts: blocks that see both ways, and the mean of all tokens read out, or the first (model.pool).
 *     body(x) = pool(norm(blocks(x + pos)))               (norm if final_norm)
 * with hidden layers behind it if asked (model.head_hidden).  Padding is tokens like all others: it is part of the mean. */
#include "model/tree.h"

taut_module *taut_classifier(const taut_model_spec *s)
{
    taut_list l = { .count = 0 };
    taut_tree_begin(&l, s);
    taut_list_add(&l, "block", taut_tree_blocks(s, false));
    taut_tree_pool(&l, s);
    return taut_list_sequence(&l);
}
