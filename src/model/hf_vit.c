/* ViT and DeiT with their heads for classes, and plain PyTorch ones: pixels, a class token in front (DeiT: and a second one
 * for distillation, which no head here reads), learned positions, the norm before the branches and once more at the end.
 * A patch is a convolution's kernel, (out, channel, row, column), where taut has (out, row, column, channel).
 * How pixels are normalised is said by preprocessor_config.json. */
#include <stdio.h>

#include "model/hf_impl.h"

static const taut_hf_rule body[] = {
    { .to = "patch.weight", .from = "~embeddings.patch_embeddings.projection.weight", .kernel = true },
    { .to = "patch.bias", .from = "~embeddings.patch_embeddings.projection.bias" },
    { .to = "cls.weight", .from = "~embeddings.cls_token" },
    { .to = "dist.weight", .from = "~embeddings.distillation_token" },
    { .to = "pos.weight", .from = "~embeddings.position_embeddings" },
    { .to = "block.#.norm1.weight", .from = "~encoder.layer.#.layernorm_before.weight" },
    { .to = "block.#.norm1.bias", .from = "~encoder.layer.#.layernorm_before.bias" },
    { .to = "block.#.attn.q.weight", .from = "~encoder.layer.#.attention.attention.query.weight" },
    { .to = "block.#.attn.q.bias", .from = "~encoder.layer.#.attention.attention.query.bias" },
    { .to = "block.#.attn.k.weight", .from = "~encoder.layer.#.attention.attention.key.weight" },
    { .to = "block.#.attn.k.bias", .from = "~encoder.layer.#.attention.attention.key.bias" },
    { .to = "block.#.attn.v.weight", .from = "~encoder.layer.#.attention.attention.value.weight" },
    { .to = "block.#.attn.v.bias", .from = "~encoder.layer.#.attention.attention.value.bias" },
    { .to = "block.#.attn.o.weight", .from = "~encoder.layer.#.attention.output.dense.weight" },
    { .to = "block.#.attn.o.bias", .from = "~encoder.layer.#.attention.output.dense.bias" },
    { .to = "block.#.norm2.weight", .from = "~encoder.layer.#.layernorm_after.weight" },
    { .to = "block.#.norm2.bias", .from = "~encoder.layer.#.layernorm_after.bias" },
    { .to = "block.#.mlp.in.weight", .from = "~encoder.layer.#.intermediate.dense.weight" },
    { .to = "block.#.mlp.in.bias", .from = "~encoder.layer.#.intermediate.dense.bias" },
    { .to = "block.#.mlp.out.weight", .from = "~encoder.layer.#.output.dense.weight" },
    { .to = "block.#.mlp.out.bias", .from = "~encoder.layer.#.output.dense.bias" },
    { .to = "norm.weight", .from = "~layernorm.weight" },
    { .to = "norm.bias", .from = "~layernorm.bias" },
    { .to = "head.weight", .from = "classifier.weight" },
    { .to = "head.bias", .from = "classifier.bias" },
    { .to = NULL },
};

static const taut_hf_idle idle[] = {
    { "pooler.", "the pooler, which no head for classes reads" },
    { "embeddings.mask_token", "stands for hidden patches while training" },
    { NULL, NULL },
};

/* "0.5 0.5 0.5" of a list in preprocessor_config.json */
static taut_status three(const taut_hf *hf, char dst[96], const cJSON *pre, const char *key)
{
    const cJSON *n, *list = cJSON_GetObjectItemCaseSensitive(pre, key);
    size_t used = 0;
    cJSON_ArrayForEach(n, list)
    {
        if (!cJSON_IsNumber(n) || used > 60) used = 96;
        if (used < 96) used += (size_t)snprintf(dst + used, 96 - used, "%s%.17g", used ? " " : "", n->valuedouble);
    }
    if (used > 0 && used < 96) return TAUT_OK;
    return taut_fail(TAUT_BAD_FILE, "%s/preprocessor_config.json: %s is no list of numbers: how are pixels normalised?",
                     hf->folder, key);
}

static taut_status recipe(taut_hf *hf, char *dst, size_t room)
{
    int64_t width, depth, heads, mlp, side, patch, channels;
    double eps;
    char mean[96], std[96];
    const char *activation = NULL;
    const taut_shard_tensor *head = taut_hf_find(hf, "classifier.weight", 0);
    if (!head || head->tensor->rank != 2)
        return taut_fail(TAUT_BAD_FILE, "%s: no classifier.weight, so the model predicts nothing", hf->folder);
    cJSON *pre = NULL;
    taut_status s = taut_hf_json(&pre, hf, "preprocessor_config.json");
    if (!s) s = three(hf, mean, pre, "image_mean");
    if (!s) s = three(hf, std, pre, "image_std");
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
        taut_hf_find(hf, "~embeddings.distillation_token", 0) ? "distilled = true\n" : "");
    return TAUT_OK;
}

const taut_hf_family_rules taut_hf_vit = { .types = "|vit|",
                                           .prefixes = { "vit.", "" },
                                           .key = "~embeddings.cls_token",
                                           .rules = { body, NULL },
                                           .idle = idle,
                                           .recipe = recipe };
const taut_hf_family_rules taut_hf_deit = { .types = "|deit|",
                                            .prefixes = { "deit.", "" },
                                            .key = "~embeddings.cls_token",
                                            .rules = { body, NULL },
                                            .idle = idle,
                                            .recipe = recipe };
