/* A stored model with the text it belongs to: what eval and sample start from. */
#ifndef TAUT_CLI_MODEL_H
#define TAUT_CLI_MODEL_H
#include "cli.h"
#include "data/text.h"
#include "model/model.h"
#include "train/recipe.h"

typedef struct {
    taut_model *model;
    taut_vocab *vocab;
    taut_config *cfg; /* the recipe stored in the model; owns data's strings */
    taut_data_spec data;
    double mask_rate; /* of an encoder's questions */
} cli_model;

taut_status cli_model_open(cli_model *, const char *operand, const taut_kernels *) TAUT_MUST_USE;
void cli_model_close(cli_model *);
#endif
