/* Small recipes for the tests of training: a trainer from a text, and its weights as doubles. */
#ifndef SMALL_H
#define SMALL_H
#include "harness.h"
#include "must.h"
#include "train/trainer.h"

static inline taut_config *config_of(const char *recipe)
{
    taut_config *cfg = NULL;
    must(taut_config_parse(&cfg, recipe, "test"));
    return cfg;
}

/* Ready for its first step.  The config must live as long as the trainer. */
static inline taut_config *trainer_of(taut_trainer *t, const char *recipe, const char *kernels)
{
    taut_config *cfg = config_of(recipe);
    must(taut_trainer_open(t, cfg, taut_kernels_find(kernels)));
    must(taut_model_init(t->model, t->recipe.train.seed));
    return cfg;
}

static inline void trainer_end(taut_trainer *t, taut_config *cfg)
{
    taut_trainer_close(t);
    taut_config_free(cfg);
}

/* All weights one after another, gaps included; the caller frees. */
static inline double *values_of(const taut_model *m)
{
    double *v = doubles(m->slab);
    m->k->get(v, m->values, m->slab);
    return v;
}
#endif
