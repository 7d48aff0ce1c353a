/* What config.json says of BERT and RoBERTa: post-norm, a norm behind the embeddings, exact GELU as a rule.
 * Token types: taut's encoder reads one sentence, whose tokens are all of type 0, so that row is added to the positions.
 * RoBERTa's first pad_token_id + 1 positions belong to padding; its position 0 is the row behind them. */
#include <stdio.h>
#include <string.h>

#include "model/hf_impl.h"

/* A second name for the head's bias is fine if it says the same. */
static taut_status look_at_bias(taut_hf *hf, bool roberta)
{
    const char *names[] = { roberta ? "lm_head.bias" : "cls.predictions.bias",
                            roberta ? "lm_head.decoder.bias" : "cls.predictions.decoder.bias" };
    const taut_shard_tensor *a = taut_hf_named(hf, names[0]), *b = taut_hf_named(hf, names[1]);
    bool same = true;
    taut_status s = a && b ? taut_hf_equal(&same, hf, a, b) : TAUT_OK;
    if (!s && !same)
        s = taut_fail(TAUT_BAD_FILE, "%s: %s and %s differ, and the head has one bias", hf->folder, names[1], names[0]);
    if (!s && a && b) taut_hf_leave(hf, b, "the head's bias under a second name");
    return s;
}

taut_status taut_hf_bert_recipe(taut_hf *hf, char *dst, size_t room)
{
    int64_t width, depth, heads, context, mlp, pad = -1;
    double eps;
    const char *activation = NULL, *pool = NULL;
    const bool roberta = strcmp(hf->scheme->name, "roberta") == 0,
               head = taut_hf_at(hf, HF_TRANSFORM, false, 0) != NULL;
    taut_status s = taut_hf_wants(hf, "position_embedding_type", "absolute");
    if (!s) s = taut_hf_wants(hf, "is_decoder", "false");
    if (!s) s = taut_hf_int(hf, &width, "hidden_size", 1, 1 << 24);
    if (!s) s = taut_hf_int(hf, &depth, "num_hidden_layers", 1, 128);
    if (!s) s = taut_hf_int(hf, &heads, "num_attention_heads", 1, 4096);
    if (!s) s = taut_hf_int(hf, &context, "max_position_embeddings", 1, 1 << 24);
    if (!s) s = taut_hf_int(hf, &mlp, "intermediate_size", 1, 1 << 24);
    if (!s) s = taut_hf_activation(hf, &activation, "hidden_act");
    if (!s) s = taut_hf_real(hf, &eps, "layer_norm_eps", 1e-12);
    if (!s && roberta && head) s = taut_hf_wants(hf, "hidden_act", "gelu"); /* its head has no other */
    if (!s && roberta) s = taut_hf_int(hf, &pad, "pad_token_id", 0, context - 2);
    if (!s && head) s = taut_hf_look_at_head(hf);
    if (!s && head) s = look_at_bias(hf, roberta);
    if (!s && !head) s = taut_hf_pooling(hf, &pool);
    if (s) return s;
    hf->skip = pad + 1;
    taut_hf_note(hf, "token type 0 is added to the positions, rounded to float: one sentence, no second segment");
    if (hf->skip) taut_hf_note(hf, "the positions of padding, in front of the first token's, are left out");
    const int used = snprintf(
        dst, room,
        "[model]\narch = encoder\nwidth = %lld\ndepth = %lld\nheads = %lld\ncontext = %lld\nmlp = %lld\n"
        "norm = layernorm\nnorm_place = post\nnorm_eps = %.17g\nembed_norm = true\npositions = learned\n"
        "bias = true\nactivation = %s\n",
        (long long)width, (long long)depth, (long long)heads, (long long)(context - hf->skip), (long long)mlp, eps,
        activation);
    if (head)
        snprintf(dst + used, room - (size_t)used, "tied = %s\nhead_bias = true\n", hf->tied ? "true" : "false");
    else
        snprintf(dst + used, room - (size_t)used, "head = none\npool = %s\n", pool);
    return TAUT_OK;
}
