/* model.arch = mlp: layers on the pixels of an image.
 *     body(x) = f(W_k ... f(W_1 n(x) + b_1) ... + b_k),   n the normalisation of each channel, f the activation */
#include <stdio.h>

#include "model/tree.h"

taut_module *taut_layers(const taut_model_spec *s)
{
    char name[2 * TAUT_LAYERS][16];
    const char *names[2 * TAUT_LAYERS];
    taut_module *row[2 * TAUT_LAYERS];
    int64_t from = s->image.height * s->image.width * s->image.channels;
    for (int i = 0; i < (int)s->depth; i++) {
        snprintf(name[2 * i], sizeof name[0], "%d", i);
        snprintf(name[2 * i + 1], sizeof name[0], "act%d", i);
        row[2 * i] = taut_linear(s->hidden[i], from, s->bias, s->init, s->init_std);
        row[2 * i + 1] = taut_tree_activation(s);
        from = s->hidden[i];
    }
    for (int i = 0; i < 2 * (int)s->depth; i++) names[i] = name[i];
    taut_list l = { .count = 0 };
    taut_list_add(&l, "pixels", taut_pixels_module(&s->image));
    taut_list_add(&l, "layer", taut_sequence(2 * (int)s->depth, names, row));
    return taut_list_sequence(&l);
}
