/* A model: one root module, and two slabs (values, gradients) that hold every weight.  What the root reads is either
 * reals as they are (images) or token ids through an embedding.  The embedding is not part of the root: tokens are no
 * vector space, so a certificate starts behind it. */
#ifndef TAUT_MODEL_MODEL_H
#define TAUT_MODEL_MODEL_H
#include "base/about.h"
#include "model/spec.h"

typedef struct {
    taut_param *param;
    char *path;     /* "block.0.attn.q.weight" */
    int64_t offset; /* of its first element in every slab */
} taut_weight;

typedef struct taut_model {
    const taut_kernels *k;
    taut_model_spec spec;
    char *recipe, *vocab;            /* as printed by taut_config_print and taut_vocab_print; stored in the file */
    taut_param embed;                /* no rows: the model reads reals */
    taut_shape in;                   /* one example as the root reads it, at its longest */
    int64_t classes;                 /* what its head scores; without one, features */
    taut_module *root, *body, *head; /* root is body, then head (or NULL: features come out), then the logit scale */
    taut_weight *weight;
    int weights;
    int64_t slab;              /* elements of one slab; gaps between weights stay 0 */
    taut_real *values, *grads; /* grads is NULL unless asked for */
} taut_model;

/* A model of this shape, its weights named and counted but without memory; `tokens` rows in the embedding, 0 for a
 * model that reads reals; recipe and vocab are copied.  bind then allocates the slabs, every weight 0. */
taut_status taut_model_create(taut_model **out, const taut_model_spec *, int64_t tokens, const char *recipe,
                              const char *vocab, const taut_kernels *) TAUT_MUST_USE;
taut_status taut_model_bind(taut_model *, bool grads) TAUT_MUST_USE;
void taut_model_free(taut_model *);

taut_status taut_model_init(taut_model *, uint64_t seed) TAUT_MUST_USE; /* init.c */
int64_t taut_model_size(const taut_model *);                            /* how many weights, without gaps */
int64_t taut_weight_len(const taut_weight *);
const taut_weight *taut_model_find(const taut_model *, const char *path); /* or NULL */

/* Inputs are images: numbers in [0, 1]. */
static inline bool taut_model_sees(const taut_model *m) { return m->embed.rows == 0 && !m->spec.ahead; }

/* bound.c, on a ref model: the longest token of any input (an embedding; an image with pixels in [0, 1]), so that every
 * input lies in a ball of this size; and the region of all inputs moved by up to `room`. */
taut_up taut_model_reach(const taut_model *);
taut_ask taut_model_region(const taut_model *, taut_norm, taut_up room);
/* What is proved of the root on a region, and the Lipschitz constant of the body alone, which is a factor of the root's.
 * TAUT_DEVICE: this program's arithmetic is not to be trusted (bound/arithmetic.h).  TAUT_NO_MEMORY: an allocation failed on
 * the way, so that +inf would not mean what it says. */
typedef struct {
    taut_answer whole;
    taut_up body;
} taut_model_proof;
taut_status taut_model_prove(taut_model_proof *, const taut_model *, taut_ask) TAUT_MUST_USE;
/* Of the root, on the region of room 0. */
taut_status taut_model_bound(taut_answer *, const taut_model *, taut_norm) TAUT_MUST_USE;
/* A constant in RMS units: |y|_RMS = |y| / sqrt(n) for the n numbers of a token, or of all tokens where the norm is flat. */
taut_up up_model_rms(const taut_model *, taut_norm, taut_up lip);
/* What a constant is about that is proved for inputs moved by up to room, no token longer than reach, no row than rows. */
taut_about taut_model_about(const taut_model *, taut_up room, taut_up reach, taut_up rows, taut_up defect);
bool taut_model_finite(const taut_model *); /* no weight is NaN or infinite; with one, there is no bound */

/* describe.c: JSON that says which function this is, but for its weights; the caller frees.  NULL: out of memory. */
enum { TAUT_TREE_VERSION = 4 }; /* grows when any module describes itself otherwise */
char *taut_model_tree(const taut_model *);
/* Does the tree of a file say this?  An older one may say less, but no other function; of a version that no checker reads it may
 * say anything. */
taut_status taut_model_tree_fits(bool *fits, const taut_model *, const char *stored) TAUT_MUST_USE;

/* checkpoint.c: model.safetensors, float32, with recipe, tree and vocabulary in its metadata */
taut_status taut_model_save(const taut_model *, const char *path) TAUT_MUST_USE;
taut_status taut_model_open(taut_model **out, const char *path, const taut_kernels *, bool grads) TAUT_MUST_USE;
/* A run's folder stands for its model.safetensors; the caller frees.  NULL: out of memory. */
char *taut_model_path(const char *model);
#endif
