/* A model as the public interface hands it out: the network with its vocabulary and the recipe it came with. */
#ifndef TAUT_API_NET_H
#define TAUT_API_NET_H
#include <cjson/cJSON.h>

#include "data/source.h"
#include "model/model.h"
#include "train/recipe.h"

struct taut_net {
    taut_model *model;
    taut_vocab *vocab; /* NULL: it reads reals */
    taut_config *cfg;  /* the recipe stored in the model; owns data's strings */
    taut_data_spec data;
    char *source;     /* data.source, where it lies near the model and not here; NULL: as the recipe says */
    char *report;     /* JSON: what became of every tensor of a foreign checkpoint; NULL: it is a model of taut's own */
    const char *note; /* what the caller may want to tell a person; NULL: nothing */
};

/* The data of its kind, by name or what it was trained on. */
taut_status taut_net_source(taut_source **out, const taut_net *, const char *name) TAUT_MUST_USE;
taut_status taut_net_predicts(const taut_net *) TAUT_MUST_USE; /* one that gives features does not */
cJSON *taut_tensors_json(const taut_model *);                  /* [{ name, rows, cols }] */
/* train.c: `count` times "section.key=value". */
taut_status taut_overrides_apply(taut_config *, const char *const *overrides, int count) TAUT_MUST_USE;
#endif
