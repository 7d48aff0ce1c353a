/* Stage II of PLASH: what the representatives [kt, vt] become, as a sequence of modules with their own answers.
 *     z = mixer(sketch(psi([kt, vt])))
 * psi: a linear map and a GELU, where there are features; the mixer: `mixers` layers of a post-norm encoder.  Without
 * mixers it is what they read. */
#include <stdio.h>

#include "module/leaf.h"

/* A layer of the mixer: y = LN(x + attention(x)), then LN(y + mlp(y)) */
static taut_module *mixer_layer(const taut_plash_spec *p)
{
    const int64_t heads = p->mixer_heads ? p->mixer_heads : p->heads;
    const double scale = 1 / sqrt((double)p->width / (double)heads);
    taut_module *attention = taut_attention(&(taut_attention_spec){ .width = p->width,
                                                                    .heads = heads,
                                                                    .scale = scale,
                                                                    .out = 1,
                                                                    .init = p->init,
                                                                    .gain = p->gain,
                                                                    .out_gain = p->gain });
    taut_module *mlp = taut_mlp(&(taut_mlp_spec){ .width = p->width,
                                                  .hidden = p->hidden,
                                                  .out = p->width,
                                                  .curve = TAUT_RELU,
                                                  .factor = 1,
                                                  .bias = true,
                                                  .init = p->init,
                                                  .gain = p->gain,
                                                  .out_gain = p->gain });
    static const char *const names[] = { "attn", "norm1", "mlp", "norm2" };
    taut_module *const row[] = { taut_mix(attention, 1, 1), taut_layernorm(p->width, p->norm_eps), taut_mix(mlp, 1, 1),
                                 taut_layernorm(p->width, p->norm_eps) };
    return taut_sequence(4, names, row);
}

taut_module *taut_plash_middle(const taut_plash_spec *p)
{
    const char *names[3 + 64];
    taut_module *row[3 + 64];
    char label[64][24];
    int count = 0;
    taut_sketch_spec sketch = { .in = p->features ? p->features : 2 * p->width,
                                .out = p->width,
                                .degrees = p->degrees,
                                .floor = p->floor,
                                .tau = p->sketch_tau,
                                .seed = p->seed,
                                .fixed = p->fixed,
                                .init = p->init,
                                .gain = p->gain };
    for (int i = 0; i < p->degrees; i++) {
        sketch.degree[i] = p->degree[i];
        sketch.size[i] = p->size[i];
    }
    if (p->features) {
        names[count] = "psi", row[count++] = taut_linear(p->features, 2 * p->width, true, p->init, p->gain);
        names[count] = "curve", row[count++] = taut_pointwise(TAUT_GELU, 1);
    }
    names[count] = "sketch", row[count++] = taut_sketch(&sketch);
    for (int i = 0; i < p->mixers; i++) {
        snprintf(label[i], sizeof label[i], "mixer%d", i);
        names[count] = label[i], row[count++] = mixer_layer(p);
    }
    return taut_sequence(count, names, row);
}
