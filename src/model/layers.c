/* model.arch = mlp: layers on the pixels of an image.
 *     body(x) = f(W_k ... f(W_1 n(x) + b_1) ... + b_k),   n the normalisation of each channel, f the activation
 * Such layers may also stand behind the pool of a ViT or a classifier, with a curve of their own. */
#include <stdio.h>

#include "model/tree.h"

taut_module *taut_tree_layers(const taut_model_spec *s, int64_t from)
{
    char name[2 * TAUT_LAYERS][16];
    const char *names[2 * TAUT_LAYERS];
    taut_module *row[2 * TAUT_LAYERS];
    for (int i = 0; i < (int)s->layers; i++) {
        snprintf(name[2 * i], sizeof name[0], "%d", i);
        snprintf(name[2 * i + 1], sizeof name[0], "act%d", i);
        row[2 * i] = taut_linear(s->hidden[i], from, s->bias, s->init, s->init_std);
        row[2 * i + 1] = s->head_bends ? taut_pointwise(s->head_activation, s->activation_factor)
                                       : taut_tree_activation(s);
        from = s->hidden[i];
    }
    for (int i = 0; i < 2 * (int)s->layers; i++) names[i] = name[i];
    return taut_sequence(2 * (int)s->layers, names, row);
}

taut_module *taut_layers(const taut_model_spec *s)
{
    taut_list l = { .count = 0 };
    taut_list_add(&l, "pixels", taut_pixels_module(&s->image));
    taut_list_add(&l, "layer", taut_tree_layers(s, s->image.height * s->image.width * s->image.channels));
    return taut_list_sequence(&l);
}
