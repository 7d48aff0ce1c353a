/* How programs name the tensors of a transformer: one row each.
 *
 * A pattern is a tensor's name, in which
 *     #      is the number of a block
 *     *      is weight or bias; two names with a space between them are the weight's and the bias's
 *     ~      is the prefix that the checkpoint puts before its names, whatever it is ("", "model.", "module.bert.")
 *     a|b    says that both are in use
 * A name without ~ is looked for under the prefix, then one level further out, and so on: heads often stand outside.
 *
 * taut's own names are the last row: what nobody else wrote may be mapped to them (taut convert --map). */
#include "model/hf_impl.h"

/* GPT-2 and nanoGPT: c_attn stacks q, k and v; Hugging Face's Conv1D stores (in, out), nanoGPT's linear (out, in). */
#define GPT2                                                                                                           \
    [HF_EMBED] = "~wte.weight", [HF_POS] = "~wpe.weight", [HF_NORM1] = "~h.#.ln_1.*", [HF_QKV] = "~h.#.attn.c_attn.*", \
    [HF_O] = "~h.#.attn.c_proj.*", [HF_NORM2] = "~h.#.ln_2.*", [HF_IN] = "~h.#.mlp.c_fc.*",                            \
    [HF_OUT] = "~h.#.mlp.c_proj.*", [HF_NORM] = "~ln_f.*", [HF_HEAD] = "lm_head.*"

static const taut_hf_idle gpt2_idle[] = {
    { ".attn.bias", "the causal mask, a constant" },
    { ".attn.masked_bias", "the causal mask, a constant" },
    { "score.", "a head for classes; taut reads the one for tokens" },
    { "multiple_choice_head.", "a head for choices; taut reads the one for tokens" },
    { NULL, NULL },
};

#define BERT                                                                                                         \
    [HF_EMBED] = "~embeddings.word_embeddings.weight", [HF_POS] = "~embeddings.position_embeddings.weight",          \
    [HF_TYPES] = "~embeddings.token_type_embeddings.weight", [HF_EMBED_NORM] = "~embeddings.LayerNorm.*",            \
    [HF_Q] = "~encoder.layer.#.attention.self.query.*", [HF_K] = "~encoder.layer.#.attention.self.key.*",            \
    [HF_V] = "~encoder.layer.#.attention.self.value.*", [HF_O] = "~encoder.layer.#.attention.output.dense.*",        \
    [HF_NORM1] = "~encoder.layer.#.attention.output.LayerNorm.*", [HF_IN] = "~encoder.layer.#.intermediate.dense.*", \
    [HF_OUT] = "~encoder.layer.#.output.dense.*", [HF_NORM2] = "~encoder.layer.#.output.LayerNorm.*"

static const taut_hf_idle bert_idle[] = {
    { "pooler.", "the pooler, behind which no token is predicted" },
    { "cls.seq_relationship.", "the head for next sentences; taut reads the one for masked tokens" },
    { "classifier.", "a head for classes; taut reads the one for masked tokens" },
    { "qa_outputs.", "a head for answers; taut reads the one for masked tokens" },
    { "embeddings.position_ids", "0, 1, 2, ..., a constant" },
    { "embeddings.token_type_ids", "zeros, a constant" },
    { NULL, NULL },
};

/* Around a ViT's blocks, whose names transformers changed with its fifth version. */
#define VIT                                                                                         \
    [HF_PATCH] = "~embeddings.patch_embeddings.projection.*", [HF_CLASS] = "~embeddings.cls_token", \
    [HF_DISTIL] = "~embeddings.distillation_token", [HF_POS] = "~embeddings.position_embeddings",   \
    [HF_NORM] = "~layernorm.*", [HF_HEAD] = "classifier.*"

static const taut_hf_idle vit_idle[] = {
    { "pooler.", "the pooler, which no head for classes reads" },
    { "embeddings.mask_token", "stands for hidden patches while training" },
    { NULL, NULL },
};

#define PRE  "norm_place = pre\n"
#define POST "norm_place = post\n"
#define ONNX "/1/1.#/1.#."

const taut_hf_scheme taut_hf_schemes[HF_SCHEMES] = {
    { "gpt2",
      "|gpt2|",
      HF_EMBED,
      { GPT2 },
      .causal = true,
      .transposed = true,
      .usual = PRE "norm_eps = 1e-5\nactivation = gelu_tanh\n",
      .idle = gpt2_idle,
      .recipe = taut_hf_gpt2_recipe },
    { "nanogpt",
      NULL,
      HF_EMBED,
      { GPT2 },
      .causal = true,
      .usual = PRE "norm_eps = 1e-5\nactivation = gelu\n",
      .idle = gpt2_idle },
    { "bert",
      "|bert|",
      HF_EMBED,
      { BERT, [HF_TRANSFORM] = "cls.predictions.transform.dense.*",
        [HF_TRANSFORM_NORM] = "cls.predictions.transform.LayerNorm.*",
        [HF_HEAD] = "cls.predictions.decoder.weight cls.predictions.bias" },
      .usual = POST "norm_eps = 1e-12\nactivation = gelu\n",
      .idle = bert_idle,
      .recipe = taut_hf_bert_recipe },
    { "roberta",
      "|roberta|xlm-roberta|camembert|",
      HF_EMBED,
      { BERT, [HF_TRANSFORM] = "lm_head.dense.*", [HF_TRANSFORM_NORM] = "lm_head.layer_norm.*",
        [HF_HEAD] = "lm_head.decoder.weight lm_head.bias" },
      .usual = POST "norm_eps = 1e-5\nactivation = gelu\n",
      .idle = bert_idle,
      .recipe = taut_hf_bert_recipe },
    { "vit",
      "|vit|deit|",
      HF_CLASS,
      { VIT, [HF_NORM1] = "~encoder.layer.#.layernorm_before.*",
        [HF_Q] = "~encoder.layer.#.attention.attention.query.*", [HF_K] = "~encoder.layer.#.attention.attention.key.*",
        [HF_V] = "~encoder.layer.#.attention.attention.value.*", [HF_O] = "~encoder.layer.#.attention.output.dense.*",
        [HF_NORM2] = "~encoder.layer.#.layernorm_after.*", [HF_IN] = "~encoder.layer.#.intermediate.dense.*",
        [HF_OUT] = "~encoder.layer.#.output.dense.*" },
      .usual = PRE "norm_eps = 1e-12\nactivation = gelu\n",
      .idle = vit_idle,
      .recipe = taut_hf_vit_recipe },
    { "vit-5",
      "|vit|deit|",
      HF_CLASS,
      { VIT, [HF_NORM1] = "~layers.#.layernorm_before.*", [HF_Q] = "~layers.#.attention.q_proj.*",
        [HF_K] = "~layers.#.attention.k_proj.*", [HF_V] = "~layers.#.attention.v_proj.*",
        [HF_O] = "~layers.#.attention.o_proj.*", [HF_NORM2] = "~layers.#.layernorm_after.*",
        [HF_IN] = "~layers.#.mlp.fc1.*", [HF_OUT] = "~layers.#.mlp.fc2.*" },
      .usual = PRE "norm_eps = 1e-12\nactivation = gelu\n",
      .idle = vit_idle,
      .recipe = taut_hf_vit_recipe },
    { "timm",
      NULL,
      HF_IN,
      { [HF_PATCH] = "~patch_embed.proj.*",
        [HF_CLASS] = "~cls_token",
        [HF_DISTIL] = "~dist_token",
        [HF_POS] = "~pos_embed",
        [HF_NORM1] = "~blocks.#.norm1.*",
        [HF_QKV] = "~blocks.#.attn.qkv.*",
        [HF_O] = "~blocks.#.attn.proj.*",
        [HF_SCALE1] = "~blocks.#.ls1.gamma",
        [HF_NORM2] = "~blocks.#.norm2.*",
        [HF_IN] = "~blocks.#.mlp.fc1.*",
        [HF_OUT] = "~blocks.#.mlp.fc2.*",
        [HF_SCALE2] = "~blocks.#.ls2.gamma",
        [HF_NORM] = "~norm.*",
        [HF_HEAD] = "~head.*" },
      .usual = PRE "norm_eps = 1e-6\nactivation = gelu\n" },
    { "torchvision",
      NULL,
      HF_NORM1,
      { [HF_PATCH] = "~conv_proj.*",
        [HF_CLASS] = "~class_token",
        [HF_POS] = "~encoder.pos_embedding",
        [HF_NORM1] = "~encoder.layers.encoder_layer_#.ln_1.*",
        [HF_QKV] = "~encoder.layers.encoder_layer_#.self_attention.in_proj_*",
        [HF_O] = "~encoder.layers.encoder_layer_#.self_attention.out_proj.*",
        [HF_NORM2] = "~encoder.layers.encoder_layer_#.ln_2.*",
        [HF_IN] = "~encoder.layers.encoder_layer_#.mlp.0.*|~encoder.layers.encoder_layer_#.mlp.linear_1.*",
        [HF_OUT] = "~encoder.layers.encoder_layer_#.mlp.3.*|~encoder.layers.encoder_layer_#.mlp.linear_2.*",
        [HF_NORM] = "~encoder.ln.*",
        [HF_HEAD] = "~heads.head.*|~heads.0.*" },
      .usual = PRE "norm_eps = 1e-6\nactivation = gelu\n" },
    /* nn.TransformerEncoderLayer, in a model of one's own: what stands around it has any name */
    { "torch",
      NULL,
      HF_IN,
      { [HF_EMBED] = "embedding.weight|embed.weight|emb.weight|tok_emb.weight|token_embedding.weight|token_emb.weight",
        [HF_PATCH] = "patch_embed.proj.*",
        [HF_CLASS] = "cls_token",
        [HF_POS] = "pos_embed|pos_embedding|pos_emb|pos.weight|pos_embed.weight|pos_embedding.weight|pos_emb.weight|"
                   "position_embedding.weight",
        [HF_NORM1] = "~layers.#.norm1.*",
        [HF_QKV] = "~layers.#.self_attn.in_proj_*",
        [HF_O] = "~layers.#.self_attn.out_proj.*",
        [HF_NORM2] = "~layers.#.norm2.*",
        [HF_IN] = "~layers.#.linear1.*",
        [HF_OUT] = "~layers.#.linear2.*",
        [HF_NORM] = "~norm.*|mlp_head.0.*|norm.*",
        [HF_HEAD] = "mlp_head.1.*|head.*|lm_head.*|fc.*|fc_out.*|classifier.*|out.*" },
      .usual = POST "norm_eps = 1e-5\nactivation = relu\n" },
    /* The ViTs of the verification competition VNN-COMP 2023, ONNX files with their exporter's names, described by a
     * recipe: a class token, the mean of all tokens read out, ReLU, and BatchNorm where a norm stands. */
    { "vnncomp",
      NULL,
      HF_PATCH,
      { [HF_PATCH] = "~0.projection.*",
        [HF_CLASS] = "~0.cls_token",
        [HF_POS] = "~0.positions",
        [HF_NORM1] = "~1.#.0.fn.0.norm.*",
        [HF_Q] = ONNX "0/fn/fn.1/query/MatMul 1.#.0.fn.1.query.bias",
        [HF_K] = ONNX "0/fn/fn.1/key/MatMul 1.#.0.fn.1.key.bias",
        [HF_V] = ONNX "0/fn/fn.1/value/MatMul 1.#.0.fn.1.value.bias",
        [HF_O] = ONNX "0/fn/fn.1/out/MatMul 1.#.0.fn.1.out.bias",
        [HF_NORM2] = "~1.#.1.fn.0.norm.*",
        [HF_IN] = ONNX "1/fn/fn.1/fn.1.0/MatMul 1.#.1.fn.1.0.bias",
        [HF_OUT] = ONNX "1/fn/fn.1/fn.1.3/MatMul 1.#.1.fn.1.3.bias",
        [HF_NORM] = "~2.1.*",
        [HF_HEAD] = "~2.2.*" },
      .transposed = true,
      .folded = true,
      .usual = "",
      .nodes = "|Shape|Constant|Gather|Conv|Slice|Concat|Reshape|Transpose|Unsqueeze|ConstantOfShape|Add|"
               "BatchNormalization|MatMul|Mul|Softmax|Relu|ReduceMean|Gemm|" },
    { "taut",
      NULL,
      HF_IN,
      { [HF_EMBED] = "~embed.weight",
        [HF_POS] = "~pos.weight",
        [HF_EMBED_NORM] = "~embed_norm.*",
        [HF_PATCH] = "~patch.*",
        [HF_CLASS] = "~cls.weight",
        [HF_DISTIL] = "~dist.weight",
        [HF_NORM1] = "~block.#.norm1.*",
        [HF_Q] = "~block.#.attn.q.*",
        [HF_K] = "~block.#.attn.k.*",
        [HF_V] = "~block.#.attn.v.*",
        [HF_O] = "~block.#.attn.o.*",
        [HF_SCALE1] = "~block.#.scale1.weight",
        [HF_NORM2] = "~block.#.norm2.*",
        [HF_IN] = "~block.#.mlp.in.*",
        [HF_OUT] = "~block.#.mlp.out.*",
        [HF_SCALE2] = "~block.#.scale2.weight",
        [HF_NORM] = "~norm.*",
        [HF_TRANSFORM] = "~transform.*",
        [HF_TRANSFORM_NORM] = "~transform_norm.*",
        [HF_HEAD] = "~head.*" },
      .usual = "norm_eps = 1e-5\n" },
};
