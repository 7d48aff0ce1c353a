/* Forecaster (Informer's shape): an encoder over `seq` rows, a decoder over `label` known rows and `ahead` rows of zeros that
 * asks it, all forecasts at once.  The decoder's m = label + ahead tokens come first in the input, the encoder's follow.
 *     embed   linear([neighbours in a circle, time features]) + sinusoid, each side its own
 *     enc     norm(blocks(e))                                                      of the encoder's tokens
 *     distil  halve(elu(norm(W [neighbours in a circle]))) between two blocks, if the recipe says so; Informer has a batch
 *             norm there: a layer whose answer to one example depends on the others is not a function of its input, so
 *             the model's own norm stands in its place (docs/modules/halve.md)
 *     dec     d = norm(d + attention(d)) causal,  d = norm(d + attention(d asks e)),  d = norm(d + mlp(d))
 *     body    the last `ahead` tokens of norm(d)
 * The decoder's own attention is softmax unless the kind that the recipe names has a causal form, and what it asks the encoder
 * with is softmax unless that has a cross form.  With attention_blocks = 0 neither side looks at its own tokens, and what
 * is left is how the decoder asks. */
#include <math.h>
#include <stdio.h>

#include "model/tree.h"

static taut_module *embed(const taut_model_spec *s, uint64_t id)
{
    const int64_t in = 3 * s->columns + s->marks;
    taut_list l = { .count = 0 };
    taut_list_add(&l, "near", taut_neighbours(s->columns));
    taut_list_add(&l, "value", taut_linear(s->width, in, s->bias, TAUT_INIT_NORMAL, 1 / sqrt((double)in)));
    taut_list_add(&l, "pos", taut_sinusoid(s->seq + s->label + s->ahead, s->width));
    if (s->dropout > 0) taut_list_add(&l, "drop", taut_dropout(s->dropout, id));
    return taut_list_sequence(&l);
}

taut_module *taut_tree_distil(const taut_model_spec *s)
{
    const int64_t in = 3 * s->width;
    taut_list l = { .count = 0 };
    taut_list_add(&l, "near", taut_neighbours(s->width));
    taut_list_add(&l, "conv", taut_linear(s->width, in, s->bias, TAUT_INIT_NORMAL, 1 / sqrt(3.0 * (double)in)));
    if (s->norm != TAUT_NORM_NONE) taut_list_add(&l, "norm", taut_tree_norm(s));
    taut_list_add(&l, "elu", taut_pointwise(TAUT_ELU, 1));
    taut_list_add(&l, "half", taut_halve());
    return taut_list_sequence(&l);
}

static taut_module *dropped(const taut_model_spec *s, taut_module *f, const char *name, uint64_t id)
{
    taut_list l = { .count = 0 };
    taut_list_add(&l, name, f);
    if (s->dropout > 0) taut_list_add(&l, "drop", taut_dropout(s->dropout, id));
    return taut_list_sequence(&l);
}

/* A residual and its norm, of the decoder's tokens alone. */
static taut_module *own(const taut_model_spec *s, int64_t m, taut_module *f, const char *name, uint64_t id)
{
    taut_list l = { .count = 0 };
    taut_list_add(&l, "", taut_mix(dropped(s, f, name, id), 1, 1));
    if (s->norm != TAUT_NORM_NONE) taut_list_add(&l, "norm", taut_tree_norm(s));
    return taut_parts(m, taut_list_sequence(&l), taut_scale(1));
}

static taut_module *layer(const taut_model_spec *s, int64_t m, uint64_t index)
{
    const uint64_t id = 1000 + 4 * index;
    taut_list l = { .count = 0 };
    if (s->attention_blocks > 0)
        taut_list_add(&l, "self", own(s, m, taut_tree_attention(s, true, 0, index), "attn", id));
    taut_list_add(&l, "cross",
                  taut_askers(m, dropped(s, taut_tree_attention(s, false, m, 500 + index), "attn", id + 1)));
    if (s->norm != TAUT_NORM_NONE) taut_list_add(&l, "norm", taut_parts(m, taut_tree_norm(s), taut_scale(1)));
    taut_list_add(&l, "mlp", own(s, m, taut_tree_mlp(s), "mlp", id + 2));
    return taut_list_sequence(&l);
}

static taut_module *encoder(const taut_model_spec *s)
{
    taut_list l = { .count = 0 };
    taut_list_add(&l, "block", taut_tree_blocks(s, false));
    if (s->norm != TAUT_NORM_NONE) taut_list_add(&l, "norm", taut_tree_norm(s));
    return taut_list_sequence(&l);
}

taut_module *taut_forecaster(const taut_model_spec *s)
{
    const int64_t m = s->label + s->ahead;
    taut_list l = { .count = 0 }, d = { .count = 0 };
    char name[12][12];
    for (int i = 0; i < (int)s->decoder_depth; i++) {
        snprintf(name[i], sizeof name[i], "%d", i);
        taut_list_add(&d, name[i], layer(s, m, (uint64_t)i));
    }
    taut_list_add(&l, "embed", taut_parts(m, embed(s, 998), embed(s, 999)));
    taut_list_add(&l, "enc", taut_parts(m, taut_scale(1), encoder(s)));
    taut_list_add(&l, "dec", taut_list_sequence(&d));
    taut_list_add(&l, "last", taut_tokens(s->label, s->ahead));
    if (s->norm != TAUT_NORM_NONE) taut_list_add(&l, "norm", taut_tree_norm(s));
    return taut_list_sequence(&l);
}
