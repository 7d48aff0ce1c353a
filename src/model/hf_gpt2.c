/* GPT-2: pre-norm, GELU by tanh, learned positions, the head tied to the embedding.  Its Conv1D layers store (in, out),
 * and c_attn stacks q, k and v along out. */
#include <stdio.h>

#include "model/hf_impl.h"

static const taut_hf_rule rules[] = {
    { .to = "embed.weight", .from = "~wte.weight" },
    { .to = "pos.weight", .from = "~wpe.weight" },
    { .to = "block.#.norm1.weight", .from = "~h.#.ln_1.weight" },
    { .to = "block.#.norm1.bias", .from = "~h.#.ln_1.bias" },
    { .to = "block.#.attn.q.weight", .from = "~h.#.attn.c_attn.weight", .transposed = true, .part = 0, .parts = 3 },
    { .to = "block.#.attn.k.weight", .from = "~h.#.attn.c_attn.weight", .transposed = true, .part = 1, .parts = 3 },
    { .to = "block.#.attn.v.weight", .from = "~h.#.attn.c_attn.weight", .transposed = true, .part = 2, .parts = 3 },
    { .to = "block.#.attn.q.bias", .from = "~h.#.attn.c_attn.bias", .part = 0, .parts = 3 },
    { .to = "block.#.attn.k.bias", .from = "~h.#.attn.c_attn.bias", .part = 1, .parts = 3 },
    { .to = "block.#.attn.v.bias", .from = "~h.#.attn.c_attn.bias", .part = 2, .parts = 3 },
    { .to = "block.#.attn.o.weight", .from = "~h.#.attn.c_proj.weight", .transposed = true },
    { .to = "block.#.attn.o.bias", .from = "~h.#.attn.c_proj.bias" },
    { .to = "block.#.norm2.weight", .from = "~h.#.ln_2.weight" },
    { .to = "block.#.norm2.bias", .from = "~h.#.ln_2.bias" },
    { .to = "block.#.mlp.in.weight", .from = "~h.#.mlp.c_fc.weight", .transposed = true },
    { .to = "block.#.mlp.in.bias", .from = "~h.#.mlp.c_fc.bias" },
    { .to = "block.#.mlp.out.weight", .from = "~h.#.mlp.c_proj.weight", .transposed = true },
    { .to = "block.#.mlp.out.bias", .from = "~h.#.mlp.c_proj.bias" },
    { .to = "norm.weight", .from = "~ln_f.weight" },
    { .to = "norm.bias", .from = "~ln_f.bias" },
    { .to = "head.weight", .from = "lm_head.weight" },
    { .to = NULL },
};

static const taut_hf_idle idle[] = {
    { ".attn.bias", "the causal mask, a constant" },
    { ".attn.masked_bias", "the causal mask, a constant" },
    { "score.", "a head for classes; taut reads the one for tokens" },
    { "multiple_choice_head.", "a head for choices; taut reads the one for tokens" },
    { NULL, NULL },
};

/* Tied unless the file has a head of its own with other numbers. */
static taut_status look_at_head(taut_hf *hf)
{
    const taut_shard_tensor *head = taut_hf_find(hf, "lm_head.weight", 0),
                            *table = taut_hf_find(hf, hf->family->key, 0);
    hf->tied = !taut_hf_denies(hf, "tie_word_embeddings");
    if (!head) return TAUT_OK;
    const taut_status s = taut_hf_equal(&hf->tied, hf, head, table);
    if (!s && hf->tied) taut_hf_leave(hf, head, "tied: the embedding's numbers again");
    return s;
}

static taut_status recipe(taut_hf *hf, char *dst, size_t room)
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
    if (!s) s = look_at_head(hf);
    if (s) return s;
    snprintf(dst, room,
             "[model]\narch = gpt\nwidth = %lld\ndepth = %lld\nheads = %lld\ncontext = %lld\nmlp = %lld\n"
             "norm = layernorm\nnorm_place = pre\nnorm_eps = %.17g\npositions = learned\nbias = true\ntied = %s\n"
             "activation = %s\n",
             (long long)width, (long long)depth, (long long)heads, (long long)context, (long long)mlp, eps,
             hf->tied ? "true" : "false", activation);
    return TAUT_OK;
}

const taut_hf_family_rules taut_hf_gpt2 = { .types = "|gpt2|",
                                            .prefixes = { "transformer.", "" },
                                            .key = "~wte.weight",
                                            .rules = { rules, NULL },
                                            .idle = idle,
                                            .recipe = recipe };
