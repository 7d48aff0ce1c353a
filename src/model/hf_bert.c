/* BERT and RoBERTa with their masked-token heads: post-norm, a norm behind the embeddings, exact GELU as a rule.
 * Token types: taut's encoder reads one sentence, whose tokens are all of type 0, so that row is added to the positions.
 * RoBERTa's first pad_token_id + 1 positions belong to padding; its position 0 is the row behind them. */
#include <stdio.h>

#include "model/hf_impl.h"

static const taut_hf_rule body[] = {
    { .to = "embed.weight", .from = "~embeddings.word_embeddings.weight" },
    { .to = "pos.weight",
      .from = "~embeddings.position_embeddings.weight",
      .plus = "~embeddings.token_type_embeddings.weight",
      .skips = true },
    { .to = "embed_norm.weight", .from = "~embeddings.LayerNorm.weight" },
    { .to = "embed_norm.bias", .from = "~embeddings.LayerNorm.bias" },
    { .to = "block.#.attn.q.weight", .from = "~encoder.layer.#.attention.self.query.weight" },
    { .to = "block.#.attn.q.bias", .from = "~encoder.layer.#.attention.self.query.bias" },
    { .to = "block.#.attn.k.weight", .from = "~encoder.layer.#.attention.self.key.weight" },
    { .to = "block.#.attn.k.bias", .from = "~encoder.layer.#.attention.self.key.bias" },
    { .to = "block.#.attn.v.weight", .from = "~encoder.layer.#.attention.self.value.weight" },
    { .to = "block.#.attn.v.bias", .from = "~encoder.layer.#.attention.self.value.bias" },
    { .to = "block.#.attn.o.weight", .from = "~encoder.layer.#.attention.output.dense.weight" },
    { .to = "block.#.attn.o.bias", .from = "~encoder.layer.#.attention.output.dense.bias" },
    { .to = "block.#.norm1.weight", .from = "~encoder.layer.#.attention.output.LayerNorm.weight" },
    { .to = "block.#.norm1.bias", .from = "~encoder.layer.#.attention.output.LayerNorm.bias" },
    { .to = "block.#.mlp.in.weight", .from = "~encoder.layer.#.intermediate.dense.weight" },
    { .to = "block.#.mlp.in.bias", .from = "~encoder.layer.#.intermediate.dense.bias" },
    { .to = "block.#.mlp.out.weight", .from = "~encoder.layer.#.output.dense.weight" },
    { .to = "block.#.mlp.out.bias", .from = "~encoder.layer.#.output.dense.bias" },
    { .to = "block.#.norm2.weight", .from = "~encoder.layer.#.output.LayerNorm.weight" },
    { .to = "block.#.norm2.bias", .from = "~encoder.layer.#.output.LayerNorm.bias" },
    { .to = NULL },
};

static const taut_hf_rule bert_head[] = {
    { .to = "transform.weight", .from = "cls.predictions.transform.dense.weight" },
    { .to = "transform.bias", .from = "cls.predictions.transform.dense.bias" },
    { .to = "transform_norm.weight", .from = "cls.predictions.transform.LayerNorm.weight" },
    { .to = "transform_norm.bias", .from = "cls.predictions.transform.LayerNorm.bias" },
    { .to = "head.weight", .from = "cls.predictions.decoder.weight" },
    { .to = "head.bias", .from = "cls.predictions.bias" },
    { .to = NULL },
};

static const taut_hf_rule roberta_head[] = {
    { .to = "transform.weight", .from = "lm_head.dense.weight" },
    { .to = "transform.bias", .from = "lm_head.dense.bias" },
    { .to = "transform_norm.weight", .from = "lm_head.layer_norm.weight" },
    { .to = "transform_norm.bias", .from = "lm_head.layer_norm.bias" },
    { .to = "head.weight", .from = "lm_head.decoder.weight" },
    { .to = "head.bias", .from = "lm_head.bias" },
    { .to = NULL },
};

static const taut_hf_idle idle[] = {
    { "pooler.", "the pooler, behind which no token is predicted" },
    { "cls.seq_relationship.", "the head for next sentences; taut reads the one for masked tokens" },
    { "classifier.", "a head for classes; taut reads the one for masked tokens" },
    { "qa_outputs.", "a head for answers; taut reads the one for masked tokens" },
    { "embeddings.position_ids", "0, 1, 2, ..., a constant" },
    { "embeddings.token_type_ids", "zeros, a constant" },
    { NULL, NULL },
};

/* A second name for the head's bias or weight is fine if it says the same. */
static taut_status look_at_double(taut_hf *hf, bool *same, const char *one, const char *other, const char *why)
{
    const taut_shard_tensor *a = taut_hf_find(hf, one, 0), *b = taut_hf_find(hf, other, 0);
    *same = true;
    if (!a || !b) return TAUT_OK;
    const taut_status s = taut_hf_equal(same, hf, a, b);
    if (!s && *same) taut_hf_leave(hf, a, why);
    return s;
}

static taut_status look_at_head(taut_hf *hf)
{
    const bool roberta = hf->family == &taut_hf_roberta;
    const char *head = roberta ? "lm_head." : "cls.predictions.";
    char decoder[48], decoder_bias[48], bias[48], dense[48];
    bool same;
    snprintf(decoder, sizeof decoder, "%sdecoder.weight", head);
    snprintf(decoder_bias, sizeof decoder_bias, "%sdecoder.bias", head);
    snprintf(bias, sizeof bias, "%sbias", head);
    snprintf(dense, sizeof dense, "%s%sdense.weight", head, roberta ? "" : "transform.");
    if (!taut_hf_find(hf, dense, 0))
        return taut_fail(TAUT_BAD_FILE, "%s: no masked-token head (%s is missing), so the model predicts nothing",
                         hf->folder, dense);
    taut_status s = look_at_double(hf, &hf->tied, decoder, hf->family->key, "tied: the embedding's numbers again");
    if (!s && !taut_hf_find(hf, decoder, 0)) hf->tied = !taut_hf_denies(hf, "tie_word_embeddings");
    if (!s) s = look_at_double(hf, &same, decoder_bias, bias, "the head's bias under a second name");
    if (!s && !same)
        s = taut_fail(TAUT_BAD_FILE, "%s: %s and %s differ, and the head has one bias", hf->folder, decoder_bias, bias);
    return s;
}

static taut_status recipe(taut_hf *hf, char *dst, size_t room)
{
    int64_t width, depth, heads, context, mlp, pad = -1;
    double eps;
    const char *activation = NULL;
    taut_status s = taut_hf_wants(hf, "position_embedding_type", "absolute");
    if (!s) s = taut_hf_wants(hf, "is_decoder", "false");
    if (!s) s = taut_hf_int(hf, &width, "hidden_size", 1, 1 << 24);
    if (!s) s = taut_hf_int(hf, &depth, "num_hidden_layers", 1, 128);
    if (!s) s = taut_hf_int(hf, &heads, "num_attention_heads", 1, 4096);
    if (!s) s = taut_hf_int(hf, &context, "max_position_embeddings", 1, 1 << 24);
    if (!s) s = taut_hf_int(hf, &mlp, "intermediate_size", 1, 1 << 24);
    if (!s) s = taut_hf_activation(hf, &activation, "hidden_act");
    if (!s) s = taut_hf_real(hf, &eps, "layer_norm_eps", 1e-12);
    if (!s && hf->family == &taut_hf_roberta) s = taut_hf_wants(hf, "hidden_act", "gelu"); /* its head has no other */
    if (!s && hf->family == &taut_hf_roberta) s = taut_hf_int(hf, &pad, "pad_token_id", 0, context - 2);
    if (!s) s = look_at_head(hf);
    if (s) return s;
    hf->skip = pad + 1;
    taut_hf_note(hf, "token type 0 is added to the positions, rounded to float: one sentence, no second segment");
    if (hf->skip) taut_hf_note(hf, "the positions of padding, in front of the first token's, are left out");
    snprintf(dst, room,
             "[model]\narch = encoder\nwidth = %lld\ndepth = %lld\nheads = %lld\ncontext = %lld\nmlp = %lld\n"
             "norm = layernorm\nnorm_place = post\nnorm_eps = %.17g\nembed_norm = true\npositions = learned\n"
             "bias = true\ntied = %s\nhead_bias = true\nactivation = %s\n",
             (long long)width, (long long)depth, (long long)heads, (long long)(context - hf->skip), (long long)mlp, eps,
             hf->tied ? "true" : "false", activation);
    return TAUT_OK;
}

const taut_hf_family_rules taut_hf_bert = { .types = "|bert|",
                                            .prefixes = { "bert.", "" },
                                            .key = "~embeddings.word_embeddings.weight",
                                            .rules = { body, bert_head },
                                            .idle = idle,
                                            .recipe = recipe };
const taut_hf_family_rules taut_hf_roberta = { .types = "|roberta|xlm-roberta|camembert|",
                                               .prefixes = { "roberta.", "" },
                                               .key = "~embeddings.word_embeddings.weight",
                                               .rules = { body, roberta_head },
                                               .idle = idle,
                                               .recipe = recipe };
