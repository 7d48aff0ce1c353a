/* ViT: patches of an image as tokens, blocks that see both ways, one token read out: the first, the mean, or all of them side
 * by side.
 *     body(x) = pool(norm(blocks([cls, W patches(x) + b] + pos)))      (norm if final_norm; cls if class_token)
 * with hidden layers behind it if asked (model.head_hidden).
 * With model.mlp_block = fold positions follow an activation, here and in every block: f(W patches(x) + b) + pos; with
 * model.first_fold = false the first block reads W patches(x) + b.
 * A distilled one (DeiT) has a second token: [cls, dist, W patches(x) + b]. */
#include "model/tree.h"

taut_module *taut_vit(const taut_model_spec *s)
{
    const taut_pixels_spec *i = &s->image;
    const double small = s->init == TAUT_INIT_NORMAL ? s->init_std : 0.02;
    taut_list l = { .count = 0 };
    taut_list_add(&l, "pixels", taut_pixels_module(i));
    taut_list_add(&l, "patch", taut_linear(s->width, i->patch * i->patch * i->channels, s->bias, s->init, s->init_std));
    if (s->distilled) taut_list_add(&l, "dist", taut_prefix(s->width, small));
    if (s->class_token) taut_list_add(&l, "cls", taut_prefix(s->width, small));
    if (s->mlp_block != TAUT_BLOCK_FOLD)
        taut_tree_begin(&l, s);
    else if (!s->bare_patches)
        taut_tree_fold(&l, s);
    taut_list_add(&l, "block", taut_tree_blocks(s, false));
    taut_tree_pool(&l, s);
    return taut_list_sequence(&l);
}
