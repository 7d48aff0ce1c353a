/* What the parts of hf share; nobody else includes it. */
#ifndef TAUT_MODEL_HF_IMPL_H
#define TAUT_MODEL_HF_IMPL_H
#include "model/hf.h"
#include "model/shards.h"

/* Where a weight comes from.  # in both names is the same block number; ~ in `from` is the checkpoint's prefix. */
typedef struct {
    const char *to, *from;
    bool transposed;  /* stored as (in, out) */
    int part, parts;  /* of `parts` stacked along the output features; 0, 0: all of it */
    const char *plus; /* a table whose first row is added to every row */
    bool skips;       /* the first hf->skip rows are no positions */
    bool kernel;      /* of a convolution: (out, channel, row, column) */
    const char *folds,
        *matrix; /* a BatchNorm before it is folded in (hf_fold.c); of a bias: the matrix it belongs to */
} taut_hf_rule;

typedef struct {
    const char *part, *why; /* a tensor with this in its name has no place in the function */
} taut_hf_idle;

typedef struct {
    const char *types;                                        /* model_type in config.json: "|bert|" */
    const char *prefixes[3], *key;                            /* the prefix is the one under which `key` is found */
    const taut_hf_rule *rules[2];                             /* each until to is NULL; the second list may be NULL */
    const taut_hf_idle *idle;                                 /* until part is NULL */
    taut_status (*recipe)(taut_hf *, char *dst, size_t room); /* the [model] section, from config.json */
    const char *nodes;                                        /* of an ONNX file: the kinds that such a model has */
} taut_hf_family_rules;

struct taut_hf {
    char *folder;
    cJSON *config;
    const char *type; /* in config */
    const taut_hf_family_rules *family;
    const char *prefix;
    taut_shards *shards;
    const char **why; /* for every tensor: NULL used, "" unknown, else why it is left out */
    char *recipe;     /* every key resolved */
    taut_model_spec spec;
    int64_t tokens, skip;
    bool tied;
    const char *notes[8];
    int note_count;
};

/* hf_config.c: numbers and words of config.json, each with one line when it is not what it must be */
taut_status taut_hf_int(const taut_hf *, int64_t *out, const char *key, int64_t lo, int64_t hi) TAUT_MUST_USE;
taut_status taut_hf_real(const taut_hf *, double *out, const char *key, double def) TAUT_MUST_USE;
taut_status taut_hf_activation(const taut_hf *, const char **out, const char *key) TAUT_MUST_USE;
/* `key` is absent, or has this value (true, false, or a word); else one line. */
taut_status taut_hf_wants(const taut_hf *, const char *key, const char *value) TAUT_MUST_USE;
taut_status taut_hf_json(cJSON **out, const taut_hf *, const char *name) TAUT_MUST_USE; /* a file of the folder */
bool taut_hf_has(const taut_hf *, const char *key);                                     /* there and not null */
bool taut_hf_denies(const taut_hf *, const char *key);                                  /* there and false */

/* hf.c: "~h.#.ln_1.weight" of block `number`, under the checkpoint's prefix; NULL: not there.  Older names of norms too. */
const taut_shard_tensor *taut_hf_find(const taut_hf *, const char *from, int number);
void taut_hf_note(taut_hf *, const char *line); /* line must live for ever */
void taut_hf_leave(taut_hf *, const taut_shard_tensor *, const char *why);
/* The rule that fills a weight, the tensor it names and the block it is in; one line if there is none. */
taut_status taut_hf_source(const taut_hf_rule **, const taut_shard_tensor **, int *number, const taut_hf *,
                           const taut_weight *) TAUT_MUST_USE;

/* hf_fold.c: are the norm's tensors there?  Marks them as used.  And the weight or bias with the norm in it. */
taut_status taut_hf_fold_check(taut_hf *, const taut_hf_rule *, int number) TAUT_MUST_USE;
taut_status taut_hf_fold_load(const taut_model *, const taut_hf *, const taut_hf_rule *, const taut_shard_tensor *,
                              int number, const taut_param *) TAUT_MUST_USE;

/* hf_load.c: is it a vector of that length?  Do two tensors hold the same numbers? */
taut_status taut_hf_check_vector(const taut_hf *, const taut_st_tensor *, int64_t len) TAUT_MUST_USE;
taut_status taut_hf_equal(bool *same, const taut_hf *, const taut_shard_tensor *,
                          const taut_shard_tensor *) TAUT_MUST_USE;
taut_status taut_hf_check_shapes(taut_hf *, const taut_model *) TAUT_MUST_USE; /* and mark what is used */

/* hf_gpt2.c, hf_bert.c, hf_vit.c, hf_torch.c */
extern const taut_hf_family_rules taut_hf_gpt2, taut_hf_bert, taut_hf_roberta, taut_hf_vit, taut_hf_deit, taut_hf_torch,
    taut_hf_vnncomp;
#endif
