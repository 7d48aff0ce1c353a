/* What config.json says of a GPT-2: pre-norm, GELU by tanh as a rule, learned positions, the head tied to the embedding. */
#include <stdio.h>

#include "model/hf_impl.h"

taut_status taut_hf_gpt2_recipe(taut_hf *hf, char *dst, size_t room)
{
    int64_t width, depth, heads, context, mlp;
    double eps;
    const char *activation = NULL;
    taut_status s = taut_hf_wants(hf, "scale_attn_weights", "true");
    if (!s) s = taut_hf_wants(hf, "scale_attn_by_inverse_layer_idx", "false");
    if (!s) s = taut_hf_wants(hf, "add_cross_attention", "false");
    if (!s) s = taut_hf_int(hf, &width, "n_embd", 1, 1 << 24);
    if (!s) s = taut_hf_int(hf, &depth, "n_layer", 1, 128);
    if (!s) s = taut_hf_int(hf, &heads, "n_head", 1, 4096);
    if (!s) s = taut_hf_int(hf, &context, "n_positions", 1, 1 << 24);
    if (!s && taut_hf_has(hf, "n_inner")) s = taut_hf_int(hf, &mlp, "n_inner", 1, 1 << 24);
    if (!s && !taut_hf_has(hf, "n_inner")) mlp = 4 * width;
    if (!s) s = taut_hf_activation(hf, &activation, "activation_function");
    if (!s) s = taut_hf_real(hf, &eps, "layer_norm_epsilon", 1e-5);
    if (!s) s = taut_hf_look_at_head(hf);
    if (s) return s;
    snprintf(dst, room,
             "[model]\narch = gpt\nwidth = %lld\ndepth = %lld\nheads = %lld\ncontext = %lld\nmlp = %lld\n"
             "norm = layernorm\nnorm_place = pre\nnorm_eps = %.17g\npositions = learned\nbias = true\ntied = %s\n"
             "activation = %s\n",
             (long long)width, (long long)depth, (long long)heads, (long long)context, (long long)mlp, eps,
             hf->tied ? "true" : "false", activation);
    return TAUT_OK;
}
