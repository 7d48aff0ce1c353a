/* Models written with PyTorch's own layers (nn.TransformerEncoderLayer, whose in_proj stacks q, k and v), described by a
 * recipe instead of a config.json.  A ViT: patch_embed.proj, cls_token, pos_embed, transformer.layers.#, mlp_head. */
#include "model/hf_impl.h"

static const taut_hf_rule rules[] = {
    { .to = "patch.weight", .from = "patch_embed.proj.weight", .kernel = true },
    { .to = "patch.bias", .from = "patch_embed.proj.bias" },
    { .to = "cls.weight", .from = "cls_token" },
    { .to = "pos.weight", .from = "pos_embed" },
    { .to = "block.#.norm1.weight", .from = "~layers.#.norm1.weight" },
    { .to = "block.#.norm1.bias", .from = "~layers.#.norm1.bias" },
    { .to = "block.#.attn.q.weight", .from = "~layers.#.self_attn.in_proj_weight", .part = 0, .parts = 3 },
    { .to = "block.#.attn.k.weight", .from = "~layers.#.self_attn.in_proj_weight", .part = 1, .parts = 3 },
    { .to = "block.#.attn.v.weight", .from = "~layers.#.self_attn.in_proj_weight", .part = 2, .parts = 3 },
    { .to = "block.#.attn.q.bias", .from = "~layers.#.self_attn.in_proj_bias", .part = 0, .parts = 3 },
    { .to = "block.#.attn.k.bias", .from = "~layers.#.self_attn.in_proj_bias", .part = 1, .parts = 3 },
    { .to = "block.#.attn.v.bias", .from = "~layers.#.self_attn.in_proj_bias", .part = 2, .parts = 3 },
    { .to = "block.#.attn.o.weight", .from = "~layers.#.self_attn.out_proj.weight" },
    { .to = "block.#.attn.o.bias", .from = "~layers.#.self_attn.out_proj.bias" },
    { .to = "block.#.norm2.weight", .from = "~layers.#.norm2.weight" },
    { .to = "block.#.norm2.bias", .from = "~layers.#.norm2.bias" },
    { .to = "block.#.mlp.in.weight", .from = "~layers.#.linear1.weight" },
    { .to = "block.#.mlp.in.bias", .from = "~layers.#.linear1.bias" },
    { .to = "block.#.mlp.out.weight", .from = "~layers.#.linear2.weight" },
    { .to = "block.#.mlp.out.bias", .from = "~layers.#.linear2.bias" },
    { .to = "norm.weight", .from = "mlp_head.0.weight" },
    { .to = "norm.bias", .from = "mlp_head.0.bias" },
    { .to = "head.weight", .from = "mlp_head.1.weight" },
    { .to = "head.bias", .from = "mlp_head.1.bias" },
    { .to = NULL },
};

static const taut_hf_idle idle[] = { { NULL, NULL } };

const taut_hf_family_rules taut_hf_torch = { .types = "|torch|",
                                             .prefixes = { "transformer." },
                                             .key = "~layers.0.linear1.weight",
                                             .rules = { rules, NULL },
                                             .idle = idle };
