/* Training a recipe into a run folder:  RUN/{recipe.ini, model.safetensors, state.safetensors, log.jsonl,
 * summary.json}.  Interrupted anywhere and resumed, it ends with the same bits. */
#ifndef TAUT_TRAIN_TRAIN_H
#define TAUT_TRAIN_TRAIN_H
#include "data/series.h"
#include "train/recipe.h"

typedef struct {
    int64_t step, steps; /* steps done, steps in all */
    double loss, lr, grad_norm;
    double tokens_per_s, seconds;
} taut_progress;

typedef struct {
    const char *run;                                    /* folder; made if it is not there */
    bool resume;                                        /* go on from RUN/state.safetensors */
    bool overwrite;                                     /* without it, a folder that holds a run is refused */
    void (*progress)(const taut_progress *, void *arg); /* after every step; may be NULL */
    void *arg;
    const volatile int *stop; /* set by a signal: save and return; may be NULL */
} taut_training;

typedef struct {
    int64_t steps, tokens, weights;
    double train_loss, val_loss, val_acc, tokens_per_s, seconds;
    double val_mae, test_loss, test_mae; /* of a forecaster, whose losses are mean squared errors; NaN for all others */
    int64_t best_step;                   /* of a run with patience: what model.safetensors is of; 0: the last */
    bool stopped;                        /* before the last step */
    const char *counted;                 /* what `tokens` counts: tokens, texts, images or rows of forecasts */
    double target;                       /* constrain.target_lipschitz; 0: none, and nothing below is there */
    taut_up bound;                       /* what is proved of model.safetensors, in the recipe's norm and units */
    bool flat, l2;                       /* these */
    char about[TAUT_ABOUT_ROOM];         /* the inputs it holds for: as they are, not moved */
    char sha256[65];                     /* of model.safetensors */
    const char *kernels;                 /* what trained it, */
    taut_products matmul;                /* and how it multiplied */
    char data[TAUT_SERIES_NOTE];         /* what was done to a table when it was read; "": nothing */
} taut_train_summary;

taut_status taut_train(taut_train_summary *, taut_config *, const taut_kernels *, const taut_training *) TAUT_MUST_USE;
#endif
