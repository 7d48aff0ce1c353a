/* What config.json says of ViT and DeiT with their heads for classes: pixels, a class token in front (DeiT: and a second one
 * for distillation, which no head here reads), learned positions, the norm before the branches and once more at the end.
 * How pixels are normalised is said by preprocessor_config.json. */
#include <stdio.h>

#include "model/hf_impl.h"

static taut_status numbers(const taut_hf *hf, char dst[96], const cJSON *pre, const char *key)
{
    if (taut_hf_list(dst, pre, key)) return TAUT_OK;
    return taut_fail(TAUT_BAD_FILE, "%s/preprocessor_config.json: %s is no list of numbers: how are pixels normalised?",
                     hf->folder, key);
}

taut_status taut_hf_vit_recipe(taut_hf *hf, char *dst, size_t room)
{
    int64_t width, depth, heads, mlp, side, patch, channels;
    double eps;
    char mean[96], std[96];
    const char *activation = NULL;
    const taut_shard_tensor *head = taut_hf_at(hf, HF_HEAD, false, 0);
    if (!head || head->tensor->rank != 2)
        return taut_fail(TAUT_BAD_FILE, "%s: no classifier.weight, so the model predicts nothing", hf->folder);
    cJSON *pre = NULL;
    taut_status s = taut_hf_json(&pre, hf, "preprocessor_config.json");
    if (!s) s = numbers(hf, mean, pre, "image_mean");
    if (!s) s = numbers(hf, std, pre, "image_std");
    cJSON_Delete(pre);
    if (!s) s = taut_hf_wants(hf, "qkv_bias", "true");
    if (!s) s = taut_hf_int(hf, &width, "hidden_size", 1, 1 << 24);
    if (!s) s = taut_hf_int(hf, &depth, "num_hidden_layers", 1, 128);
    if (!s) s = taut_hf_int(hf, &heads, "num_attention_heads", 1, 4096);
    if (!s) s = taut_hf_int(hf, &mlp, "intermediate_size", 1, 1 << 24);
    if (!s) s = taut_hf_int(hf, &side, "image_size", 1, 1 << 12);
    if (!s) s = taut_hf_int(hf, &patch, "patch_size", 1, side);
    if (!s) s = taut_hf_int(hf, &channels, "num_channels", 1, 4);
    if (!s) s = taut_hf_activation(hf, &activation, "hidden_act");
    if (!s) s = taut_hf_real(hf, &eps, "layer_norm_eps", 1e-12);
    if (s) return s;
    snprintf(
        dst, room,
        "[model]\narch = vit\nwidth = %lld\ndepth = %lld\nheads = %lld\nmlp = %lld\nimage_height = %lld\n"
        "image_width = %lld\nimage_channels = %lld\npatch = %lld\nclasses = %lld\npixel_mean = %s\npixel_std = %s\n"
        "norm = layernorm\nnorm_place = pre\nfinal_norm = true\nnorm_eps = %.17g\npool = class\nbias = true\n"
        "activation = %s\n%s",
        (long long)width, (long long)depth, (long long)heads, (long long)mlp, (long long)side, (long long)side,
        (long long)channels, (long long)patch, (long long)head->tensor->shape[0], mean, std, eps, activation,
        taut_hf_at(hf, HF_DISTIL, false, 0) ? "distilled = true\n" : "");
    return TAUT_OK;
}
