/* What the parts of hf share; nobody else includes it. */
#ifndef TAUT_MODEL_HF_IMPL_H
#define TAUT_MODEL_HF_IMPL_H
#include "model/hf.h"
#include "model/shards.h"

/* What a tensor is for. */
typedef enum {
    HF_EMBED,
    HF_POS,
    HF_TYPES, /* a table whose first row is added to every position */
    HF_EMBED_NORM,
    HF_PATCH, /* a convolution's kernel, (out, channel, row, column) */
    HF_CLASS,
    HF_DISTIL,
    HF_NORM1,
    HF_QKV, /* q, k and v stacked along the output features */
    HF_Q,
    HF_K,
    HF_V,
    HF_O,
    HF_SCALE1, /* a factor of each channel behind the branch */
    HF_NORM2,
    HF_IN,
    HF_OUT,
    HF_SCALE2,
    HF_NORM,
    HF_TRANSFORM,
    HF_TRANSFORM_NORM,
    HF_HEAD,
    HF_ROLES
} taut_hf_role;

typedef struct {
    const char *part, *why; /* a tensor with this in its name has no place in the function */
} taut_hf_idle;

/* How one program names its tensors: a row of hf_names.c, which says how patterns are read. */
typedef struct {
    const char *name, *types; /* types: model_type in config.json, "|bert|"; NULL: it has no such file */
    taut_hf_role key;         /* the prefix is what stands before this one's name */
    const char *at[HF_ROLES]; /* NULL: such a model has none */
    bool causal;              /* a gpt; else an encoder, and with patches a vit */
    bool transposed;          /* matrices of blocks are stored as (in, out) */
    bool folded;              /* norms are BatchNorms, folded into the maps behind them (hf_fold.c) */
    const char *usual;        /* lines of [model] that no shape tells: what the program does unless told otherwise */
    const taut_hf_idle *idle; /* until part is NULL; or NULL */
    taut_status (*recipe)(taut_hf *, char *dst, size_t room); /* the [model] section, from config.json */
    const char *nodes;                                        /* of an ONNX file: the kinds that such a model has */
} taut_hf_scheme;

enum { HF_SCHEMES = 11, HF_NAME = 512 };
extern const taut_hf_scheme taut_hf_schemes[HF_SCHEMES];

struct taut_hf {
    char *folder;           /* or the file, as it was named */
    char *beside;           /* where JSON files are: the folder of a file, and a folder itself */
    const taut_hf_ask *ask; /* while it is opened and explained */
    cJSON *config;          /* config.json; NULL: there is none */
    const char *type;       /* in config, or the scheme's name */
    const taut_hf_scheme *scheme;
    char prefix[HF_NAME / 2];
    taut_shards *shards;
    const char **why; /* for every tensor: NULL used, "" unknown, else why it is left out */
    char **map;       /* the caller's, copied */
    int maps;
    char *recipe;      /* every key resolved */
    taut_model *model; /* without memory: the names and shapes of all weights */
    taut_model_spec spec;
    int64_t tokens, skip;
    bool tied;
    const char *notes[12];
    int note_count;
    char told[320]; /* the note of what no tensor tells */
};

/* How a weight is made of a tensor. */
typedef struct {
    taut_hf_role role;
    bool bias, kernel, transposed;
    int part, parts; /* of `parts` stacked along the output features; 0, 0: all of it */
    int number;      /* of the block */
    bool zero;       /* the program has no such tensor: zeros */
    int folds;       /* the role of a BatchNorm before it that is folded in; -1: none */
} taut_hf_rule;

/* hf_config.c: numbers and words of config.json, each with one line when it is not what it must be */
taut_status taut_hf_int(const taut_hf *, int64_t *out, const char *key, int64_t lo, int64_t hi) TAUT_MUST_USE;
taut_status taut_hf_real(const taut_hf *, double *out, const char *key, double def) TAUT_MUST_USE;
taut_status taut_hf_activation(const taut_hf *, const char **out, const char *key) TAUT_MUST_USE;
/* `key` is absent, or has this value (true, false, or a word); else one line. */
taut_status taut_hf_wants(const taut_hf *, const char *key, const char *value) TAUT_MUST_USE;
taut_status taut_hf_json(cJSON **out, const taut_hf *, const char *name) TAUT_MUST_USE;      /* a file of the folder */
taut_status taut_hf_json_list(cJSON **out, const taut_hf *, const char *name) TAUT_MUST_USE; /* an array instead */
bool taut_hf_json_there(const taut_hf *, const char *name);
bool taut_hf_has(const taut_hf *, const char *key);    /* there and not null */
bool taut_hf_denies(const taut_hf *, const char *key); /* there and false */
/* "0.5 0.5 0.5" of a list of an object; false: it is none. */
bool taut_hf_list(char dst[96], const cJSON *object, const char *key);

/* hf_find.c: which names a tensor may have, and the one that it has.  NULL: not there. */
const taut_shard_tensor *taut_hf_at(const taut_hf *, taut_hf_role, bool bias, int number);
const taut_shard_tensor *taut_hf_named(const taut_hf *, const char *name); /* ~ and no ~ as in a pattern */
/* The name that is looked for first, for a person. */
const char *taut_hf_name(char dst[HF_NAME], const taut_hf *, taut_hf_role, bool bias, int number);
taut_status taut_hf_find_scheme(taut_hf *) TAUT_MUST_USE; /* and prefix, by the names alone */
/* The weight's place in a model; -1: none of a checkpoint's. */
int taut_hf_role_of(const char *path, bool *bias, int *number);

/* hf_rule.c: how a weight is made, and of which tensor (NULL where zeros are); one line if there is none. */
taut_status taut_hf_source(taut_hf_rule *, const taut_shard_tensor **, const taut_hf *,
                           const taut_weight *) TAUT_MUST_USE;
void taut_hf_wanted(int64_t *rows, int64_t *cols, const taut_hf *, const taut_hf_rule *, const taut_param *);
taut_status taut_hf_check_maps(const taut_hf *) TAUT_MUST_USE; /* is each for a weight that the model has? */

/* hf_sizes.c: the [model] section from the shapes of tensors. */
taut_status taut_hf_sizes(taut_hf *, char *dst, size_t room) TAUT_MUST_USE;
/* Is the head the embedding again?  Sets hf->tied, and leaves the second copy out. */
taut_status taut_hf_look_at_head(taut_hf *) TAUT_MUST_USE;

/* hf.c: all of taut_hf_open, into a handle that stays as far as it got when it fails. */
taut_status taut_hf_begin(taut_hf *, const char *path) TAUT_MUST_USE;
void taut_hf_judge(taut_hf *);                  /* what no weight asked for: left out for a reason, or unknown */
void taut_hf_note(taut_hf *, const char *line); /* line must live as long as it */
void taut_hf_leave(taut_hf *, const taut_shard_tensor *, const char *why);

/* hf_fold.c: are the norm's tensors there?  Marks them as used.  And the weight or bias with the norm in it. */
taut_status taut_hf_fold_check(taut_hf *, const taut_hf_rule *) TAUT_MUST_USE;
taut_status taut_hf_fold_load(const taut_model *, const taut_hf *, const taut_hf_rule *, const taut_shard_tensor *,
                              const taut_param *) TAUT_MUST_USE;

/* hf_check.c: is it a vector of that length?  Do two tensors hold the same numbers?  "768 x 2304" */
taut_status taut_hf_check_vector(const taut_hf *, const taut_st_tensor *, int64_t len) TAUT_MUST_USE;
taut_status taut_hf_check_weight(const taut_hf *, const taut_hf_rule *, const taut_shard_tensor *,
                                 const taut_param *) TAUT_MUST_USE;
taut_status taut_hf_check_types(const taut_hf *, const taut_shard_tensor **, const taut_hf_rule *,
                                const taut_param *) TAUT_MUST_USE;
taut_status taut_hf_check_shapes(taut_hf *) TAUT_MUST_USE; /* of all weights, and marks what is used */
taut_status taut_hf_equal(bool *same, const taut_hf *, const taut_shard_tensor *,
                          const taut_shard_tensor *) TAUT_MUST_USE;

/* hf_sentence.c: how features of tokens become those of a text: "mean" or "class". */
taut_status taut_hf_pooling(taut_hf *, const char **pool) TAUT_MUST_USE;

/* hf_gpt2.c, hf_bert.c, hf_vit.c: what config.json says */
taut_status taut_hf_gpt2_recipe(taut_hf *, char *dst, size_t room) TAUT_MUST_USE;
taut_status taut_hf_bert_recipe(taut_hf *, char *dst, size_t room) TAUT_MUST_USE;
taut_status taut_hf_vit_recipe(taut_hf *, char *dst, size_t room) TAUT_MUST_USE;
#endif
