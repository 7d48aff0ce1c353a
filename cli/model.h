/* A stored model with the data it belongs to: what eval and sample start from. */
#ifndef TAUT_CLI_MODEL_H
#define TAUT_CLI_MODEL_H
#include "cli.h"
#include "model/model.h"
#include "train/recipe.h"

typedef struct {
    taut_model *model;
    taut_vocab *vocab; /* NULL: it reads images */
    taut_config *cfg;  /* the recipe stored in the model; owns data's strings */
    taut_data_spec data;
} cli_model;

/* operand: a model's file or folder; or, if there is none of that name, a built-in shape with random weights of `seed`,
 * whose tokenizer is looked for as data (tokenizers/gpt2), and which reads bytes where that is not found. */
taut_status cli_model_open(cli_model *, const char *operand, const taut_kernels *, uint64_t seed) TAUT_MUST_USE;
void cli_model_close(cli_model *);
char *cli_builtin_vocab(const char *name); /* of a built-in shape, as printed; NULL: not found.  The caller frees. */

/* The data it was trained on, or other data of the same kind; the model's own vocabulary. */
taut_status cli_model_source(taut_source **out, const cli_model *, const char *other) TAUT_MUST_USE;
#endif
