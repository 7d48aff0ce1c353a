/* Building blocks of the models: each model file is a tree of these. */
#ifndef TAUT_MODEL_TREE_H
#define TAUT_MODEL_TREE_H
#include "model/spec.h"

/* A sequence under construction.  A NULL child is remembered and makes the sequence NULL. */
typedef struct {
    const char *name[16];
    taut_module *child[16];
    int count;
} taut_list;

void taut_list_add(taut_list *, const char *name, taut_module *child);
taut_module *taut_list_sequence(const taut_list *);

taut_module *taut_tree_norm(const taut_model_spec *); /* not for norm = none */
taut_module *taut_tree_activation(const taut_model_spec *);
taut_module *taut_tree_blocks(const taut_model_spec *, bool causal); /* all blocks, named 0, 1, ... */
taut_module *taut_tree_distil(const taut_model_spec *);              /* forecaster.c: half as many tokens */
/* Attention of the kind that the recipe names; with queries = m the first m tokens ask and the others are read. */
taut_module *taut_tree_attention(const taut_model_spec *, bool causal, int64_t queries, uint64_t index);
taut_module *taut_tree_mlp(const taut_model_spec *);
taut_module *taut_tree_layers(const taut_model_spec *, int64_t from); /* the hidden layers, on so many features */
void taut_tree_fold(taut_list *, const taut_model_spec *);            /* an activation, then learned positions */
void taut_tree_begin(taut_list *, const taut_model_spec *);           /* positions, norm, dropout, before the blocks */

void taut_tree_pool(taut_list *,
                    const taut_model_spec *); /* norm, pool, hidden layers, behind the blocks of one answer */

/* The models up to their last features; the head that scores tokens or classes comes behind. */
taut_module *taut_gpt(const taut_model_spec *);
taut_module *taut_encoder(const taut_model_spec *);
taut_module *taut_layers(const taut_model_spec *); /* model.arch = mlp */
taut_module *taut_vit(const taut_model_spec *);
taut_module *taut_forecaster(const taut_model_spec *);
taut_module *taut_classifier(const taut_model_spec *);

/* logits = logit_scale (W h + b): W is the embedding's table when tied; b if head_bias. */
taut_module *taut_tree_head(const taut_model_spec *, taut_param *table, int64_t classes);
#endif
