/* The ViTs of the verification competition VNN-COMP 2023, ONNX files with their exporter's names, described by a recipe.
 * A class token, the mean of all tokens read out, ReLU, and BatchNorm where a norm stands: a fixed affine map when the
 * network is used, which is folded into the linear map behind it (hf_fold.c), so that the model here has no norms. */
#include "model/hf_impl.h"

#define NORM1     "1.#.0.fn.0.norm."
#define NORM2     "1.#.1.fn.0.norm."
#define ATTENTION "/1/1.#/1.#.0/fn/fn.1/"
#define QUERY     ATTENTION "query/MatMul"
#define KEY       ATTENTION "key/MatMul"
#define VALUE     ATTENTION "value/MatMul"
#define IN        "/1/1.#/1.#.1/fn/fn.1/fn.1.0/MatMul"

static const taut_hf_rule rules[] = {
    { .to = "patch.weight", .from = "0.projection.weight", .kernel = true },
    { .to = "patch.bias", .from = "0.projection.bias" },
    { .to = "cls.weight", .from = "0.cls_token" },
    { .to = "pos.weight", .from = "0.positions" },
    { .to = "block.#.attn.q.weight", .from = QUERY, .transposed = true, .folds = NORM1 },
    { .to = "block.#.attn.q.bias",
      .from = "1.#.0.fn.1.query.bias",
      .transposed = true,
      .folds = NORM1,
      .matrix = QUERY },
    { .to = "block.#.attn.k.weight", .from = KEY, .transposed = true, .folds = NORM1 },
    { .to = "block.#.attn.k.bias", .from = "1.#.0.fn.1.key.bias", .transposed = true, .folds = NORM1, .matrix = KEY },
    { .to = "block.#.attn.v.weight", .from = VALUE, .transposed = true, .folds = NORM1 },
    { .to = "block.#.attn.v.bias",
      .from = "1.#.0.fn.1.value.bias",
      .transposed = true,
      .folds = NORM1,
      .matrix = VALUE },
    { .to = "block.#.attn.o.weight", .from = ATTENTION "out/MatMul", .transposed = true },
    { .to = "block.#.attn.o.bias", .from = "1.#.0.fn.1.out.bias" },
    { .to = "block.#.mlp.in.weight", .from = IN, .transposed = true, .folds = NORM2 },
    { .to = "block.#.mlp.in.bias", .from = "1.#.1.fn.1.0.bias", .transposed = true, .folds = NORM2, .matrix = IN },
    { .to = "block.#.mlp.out.weight", .from = "/1/1.#/1.#.1/fn/fn.1/fn.1.3/MatMul", .transposed = true },
    { .to = "block.#.mlp.out.bias", .from = "1.#.1.fn.1.3.bias" },
    { .to = "head.weight", .from = "2.2.weight", .folds = "2.1." },
    { .to = "head.bias", .from = "2.2.bias", .folds = "2.1.", .matrix = "2.2.weight" },
    { .to = NULL },
};

static const taut_hf_idle idle[] = { { NULL, NULL } };

const taut_hf_family_rules taut_hf_vnncomp = { .types = "|vnncomp|",
                                               .prefixes = { "" },
                                               .key = "~0.projection.weight",
                                               .rules = { rules, NULL },
                                               .idle = idle,
                                               .nodes = "|Shape|Constant|Gather|Conv|Slice|Concat|Reshape|Transpose|"
                                                        "Unsqueeze|ConstantOfShape|Add|BatchNormalization|MatMul|Mul|"
                                                        "Softmax|Relu|ReduceMean|Gemm|" };
