/* Encoder (BERT, RoBERTa): blocks that see both ways, then the transform of a masked-token head.
 *     body(x) = norm(act(W blocks(x + pos) + b))          (norm = none: without it)
 * or, with model.transform = false, the blocks alone, as nn.TransformerEncoder has them, with model.final_norm a norm behind
 * them.  With model.head = none that is the output: the features of every token, their mean, or the first one's (model.pool). */
#include "model/tree.h"

taut_module *taut_encoder(const taut_model_spec *s)
{
    taut_list l = { .count = 0 };
    taut_tree_begin(&l, s);
    taut_list_add(&l, "block", taut_tree_blocks(s, false));
    if (s->final_norm) taut_list_add(&l, "norm", taut_tree_norm(s));
    if (s->pool == TAUT_POOL_MEAN) taut_list_add(&l, "pool", taut_pool_mean_any());
    if (s->pool == TAUT_POOL_FIRST) taut_list_add(&l, "pool", taut_pool_first());
    if (s->bare_head || s->headless) return taut_list_sequence(&l);
    taut_list_add(&l, "transform", taut_linear(s->width, s->width, s->bias, s->init, s->init_std));
    taut_list_add(&l, "transform_act", taut_tree_activation(s));
    if (s->norm != TAUT_NORM_NONE) taut_list_add(&l, "transform_norm", taut_tree_norm(s));
    return taut_list_sequence(&l);
}
