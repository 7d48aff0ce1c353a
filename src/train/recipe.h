/* A whole run in one file: what the [model], [data], [train] and [constrain] sections say. */
#ifndef TAUT_TRAIN_RECIPE_H
#define TAUT_TRAIN_RECIPE_H
#include "data/images.h"
#include "data/series_spec.h"
#include "model/spec.h"
#include "train/constrain/shares.h"
#include "train/constrain/spec.h"
#include "train/penalty/penalty.h"

typedef enum { TAUT_SGD, TAUT_ADAMW, TAUT_MUON } taut_optimiser_kind;
typedef enum { TAUT_BY_CROSS_ENTROPY, TAUT_BY_MARGIN } taut_loss_kind;
typedef enum { TAUT_CONSTANT, TAUT_LINEAR, TAUT_COSINE, TAUT_TYPE1 } taut_schedule_kind;

typedef struct {
    int64_t steps, batch, accumulate;
    taut_optimiser_kind optimiser;
    double lr, adam_lr; /* adam_lr: what Muon leaves to AdamW */
    double vector_lr;   /* adam_lr of vectors: biases and gains */
    double logits_lr;   /* adam_lr of tables of logits */
    double beta1, beta2, eps, momentum, decay;
    int polynomial;     /* index into taut_muon_names */
    taut_shares shares; /* of lr, one for each matrix */
    double blocks_mass;
    taut_schedule_kind schedule;
    int64_t warmup;
    int64_t epoch;   /* steps of one, for type1 */
    double lr_final; /* fraction of lr at the last step */
    taut_products matmul;
    double clip; /* largest gradient norm; 0: no clipping */
    taut_loss_kind loss;
    double margin, margin_final, margin_radius, margin_least; /* of TAUT_BY_MARGIN: train/margin.h */
    double temperature, focus;                                /* the same */
    double average;       /* decay of a running mean of the weights, which is what is saved; 0: none */
    const char *teachers; /* runs: train/teachers.h; NULL: none; lives as long as the config */
    double teacher_share;
    int64_t eval_every, eval_batches, checkpoint_every, log_every;
    int64_t patience; /* evaluations without a better one before training ends; 0: it goes on to the last step */
    uint64_t seed;
} taut_train_spec;

typedef struct {
    const char *source, *tokens; /* live as long as the config; tokens: a kind, or the folder of a tokenizer */
    double val_fraction,
        hold_out;     /* hold_out: the share of images for training that validate instead of the set's own */
    int64_t length;   /* of a built-in set */
    uint64_t seed;    /* of a built-in set */
    double mask_rate; /* of an encoder's questions */
    taut_augment augment;
    double plain;             /* the share of the steps, the last ones, whose images augment.plain_from spares */
    int64_t side;             /* pictures are made side x side: data.resize; 0: they stay as they are */
    const char *class_names;  /* with commas between them; NULL: classes are numbers */
    taut_series_spec series;  /* of a forecaster; but for source, length and seed, which are above */
    const char *label, *text; /* columns of labelled texts; NULL: found by their usual names */
    int64_t words;            /* of a vocabulary of words, at most */
    int64_t rows;             /* of the embedding of a text's tokens, at least; 0: one for each */
} taut_data_spec;

typedef struct {
    taut_model_spec model;
    taut_data_spec data;
    taut_train_spec train;
    taut_constrain_spec constrain;
    taut_penalty_spec penalty;
} taut_recipe;

/* Reads everything and refuses what nobody asked for. */
taut_status taut_recipe_read(taut_recipe *, taut_config *cfg) TAUT_MUST_USE;
void taut_data_spec_read(taut_data_spec *, taut_config *cfg);

/* open.c: what a set of images or a series says for the recipe; and the source of its examples, read with the vocabulary given
 * (of a stored model), or with its own. */
taut_status taut_recipe_defaults(taut_config *cfg) TAUT_MUST_USE;
taut_status taut_recipe_give(taut_config *cfg, const char *key, const char *value) TAUT_MUST_USE; /* if it has none */
/* open_labelled.c: the same of labelled texts. */
taut_status taut_labelled_defaults(taut_config *cfg) TAUT_MUST_USE;
taut_status taut_labelled_source(taut_source **out, const taut_data_spec *, const taut_model_spec *,
                                 const taut_vocab *given) TAUT_MUST_USE;
taut_status taut_recipe_source(taut_source **out, const taut_data_spec *, const taut_model_spec *,
                               const taut_vocab *given) TAUT_MUST_USE;
/* Whoever only looks at data needs no training split; whoever learns from them fails with this line. */
taut_status taut_recipe_nothing(const taut_data_spec *);
/* open_series.c: the same of a forecaster. */
void taut_series_spec_read(taut_series_spec *, taut_config *cfg);
/* What is done about empty cells, gaps, repeated times and constant columns: as cfg says, else as it was. */
void taut_series_rules_read(taut_series_spec *, taut_config *cfg);
taut_status taut_recipe_series_defaults(taut_config *cfg) TAUT_MUST_USE;
taut_series_spec taut_recipe_series(const taut_data_spec *);
taut_status taut_recipe_series_source(taut_source **out, const taut_data_spec *, const taut_model_spec *) TAUT_MUST_USE;
#endif
