/* Random recipes of small text models, of every kind that has a constant. */
#ifndef CERTIFY_RECIPE_H
#define CERTIFY_RECIPE_H
#include "harness.h"

static inline const char *pick(int count, const char *const *words) { return words[rng_int(0, count - 1)]; }

/* May describe what cannot be: then another is made. */
static inline void random_recipe(char *text, size_t room)
{
    static const char *const norms[] = { "none", "none", "centernorm", "layernorm", "rmsnorm" },
                             *const curves[] = { "gelu", "gelu_tanh", "relu", "silu", "tanh", "maxmin", "abs" },
                             *const scales[] = { "inv_sqrt_head", "inv_head", "inv_width" },
                             *const places[] = { "pre", "post" }, *const mixes[] = { "plain", "convex", "channel" },
                             *const positions[] = { "learned", "alibi", "none", "rope" },
                             *const truth[] = { "true", "false" }, *const blocks[] = { "mlp", "potential", "sll" };
    const int64_t kind = rng_int(0, 7);
    const bool cosine = kind == 0, position = kind == 1, l2 = kind == 2, attlip = kind == 3, own = kind < 4,
               other = rng_int(0, 3) == 0;
    const int64_t heads = rng_int(1, 3), width = heads * rng_int(1, 3);
    const char *norm = pick(5, norms), *mix = pick(3, mixes);
    const bool eps = strcmp(norm, "layernorm") == 0 || strcmp(norm, "rmsnorm") == 0;
    int n = snprintf(
        text, room,
        "[model]\narch = %s\nwidth = %d\nheads = %d\ndepth = %d\ncontext = %d\nmlp = %d\nnorm = %s\nnorm_eps = %g\n"
        "positions = %s\nbias = %s\ntied = %s\nhead_bias = %s\nactivation = %s\nactivation_factor = %g\n"
        "residual = %s\nresidual_alpha = %g\nattention_scale = %s\nattention_factor = %g\nattention_out = %g\n"
        "logit_scale = %g\ndropout = %g\n",
        rng_int(0, 2) && !l2 && !attlip ? "gpt" : "encoder", (int)width, (int)heads, (int)rng_int(1, 3),
        (int)rng_int(1, 5), (int)rng_int(1, 6), norm, eps ? pow(10, -3 * rng_unit()) : 1e-5, pick(4, positions),
        pick(2, truth), pick(2, truth), pick(2, truth), pick(7, curves), rng_int(0, 1) ? 1 : 1 / 1.1289, mix,
        strcmp(mix, "plain") == 0 || rng_int(0, 1) ? 0 : rng_unit(), own ? scales[0] : pick(3, scales),
        own || rng_int(0, 1) ? 1 : 4 * rng_unit(), own || rng_int(0, 1) ? 1 : 1. / 3,
        rng_int(0, 1) ? 1 : 3 * rng_unit() + 0.1, rng_int(0, 3) ? 0 : 0.1);
    if (strcmp(norm, "none") != 0) n += snprintf(text + n, room - (size_t)n, "norm_place = %s\n", pick(2, places));
    if (other) n += snprintf(text + n, room - (size_t)n, "droppath = 0.1\nmlp_block = %s\n", pick(3, blocks));
    if (cosine)
        snprintf(text + n, room - (size_t)n,
                 "attention = cosine\ncosine_eps = %g\ncosine_tau = %g\ncosine_values = %s\n", pow(10, -3 * rng_unit()),
                 4 * rng_unit(), pick(2, truth));
    if (l2) snprintf(text + n, room - (size_t)n, "attention = l2\n");
    if (attlip)
        snprintf(text + n, room - (size_t)n,
                 "attention = attlip\nattlip_eta = %g\nattlip_tol = 1e-9\nattlip_loose = 0\nattlip_slope_tol = 1e-13\n"
                 "attlip_head_width = %d\nattlip_reflected = %s\nattlip_turn = %s\n",
                 pow(10, 2 * rng_pm()), (int)rng_int(1, 3), pick(2, truth), pick(2, truth));
    if (position)
        snprintf(text + n, room - (size_t)n,
                 "attention = position\nattention_blocks = 1\nfirst_residual = %s\nmlp_residual = %s\n", pick(2, truth),
                 pick(2, truth));
}
#endif
