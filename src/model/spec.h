/* What a model looks like, read from the [model] section of a recipe. */
#ifndef TAUT_MODEL_SPEC_H
#define TAUT_MODEL_SPEC_H
#include "base/config.h"
#include "module/kind.h"

typedef enum {
    TAUT_ARCH_GPT,
    TAUT_ARCH_ENCODER,
    TAUT_ARCH_MLP,
    TAUT_ARCH_VIT,
    TAUT_ARCH_FORECASTER,
    TAUT_ARCH_CLASSIFIER
} taut_arch;
typedef enum { TAUT_PLACE_PRE, TAUT_PLACE_POST } taut_place;
typedef enum { TAUT_NORM_LAYER, TAUT_NORM_RMS, TAUT_NORM_CENTER, TAUT_NORM_NONE } taut_norm_kind;
typedef enum { TAUT_POS_LEARNED, TAUT_POS_ROPE, TAUT_POS_ALIBI, TAUT_POS_NONE } taut_pos_kind;
typedef enum { TAUT_POOL_NONE, TAUT_POOL_MEAN, TAUT_POOL_FIRST } taut_pool_kind;
typedef enum { TAUT_BLOCK_MLP, TAUT_BLOCK_POTENTIAL, TAUT_BLOCK_SLL, TAUT_BLOCK_FOLD } taut_block_kind;

enum { TAUT_LAYERS = 16 }; /* hidden layers, at most */

typedef struct {
    taut_arch arch;
    int64_t width, depth, heads, context, mlp; /* width: features of the last layer before the head */
    taut_pixels_spec image;                    /* of a model that reads images; height 0: it reads tokens */
    int64_t classes;                           /* what the head scores; 0: the tokens of the embedding */
    int64_t layers;                            /* hidden ones: of an MLP, or behind the pool of a ViT or classifier */
    int64_t hidden[TAUT_LAYERS];               /* their widths */
    bool head_bends;                           /* those behind a pool have a curve of their own */
    taut_curve head_activation;
    int64_t seq, label, ahead; /* of a forecaster: rows that its encoder reads, that its decoder knows, that it fills */
    int64_t columns, marks;    /* and what a row is: numbers, and time features */
    int64_t decoder_depth;
    bool distil;      /* between two of its encoder's blocks the tokens are halved */
    bool pool_mean;   /* of a ViT or a classifier: the mean of all tokens, or the first one */
    bool final_norm;  /* of a ViT, a classifier and an encoder: a norm behind the last block */
    bool pool_concat; /* of a ViT: all tokens side by side in the place of the mean */
    bool pool_l2;     /* of a ViT: feature by feature the l2 norm over all tokens */
    bool class_token; /* of a ViT: it has one, also where the mean is read */
    bool distilled;   /* of a ViT: a second token behind the class token, read by no head (DeiT) */
    taut_norm_kind norm;
    taut_place place;
    double norm_eps;
    bool embed_norm;
    taut_pos_kind positions;
    double rope_base;
    bool bias, tied, head_bias;
    taut_curve activation;
    bool maxmin; /* in the place of the curve */
    double activation_factor;
    taut_block_kind mlp_block; /* potential and sll are residual layers by themselves; fold is f(x) + p, p learned */
    bool convex;               /* (1-a) x + a f(x) instead of x + f(x) */
    bool channel;              /* x + a * f(x), a learned, one a channel */
    double residual_alpha;     /* a; 0 asks for 1/(2 depth), with `channel` it starts from 1/depth */
    double droppath;
    taut_attention_choice attention;
    int64_t attention_blocks;   /* the blocks from this one on have no attention */
    taut_attention_choice last; /* of another kind, before the attention of the last blocks; kind NULL: there is none */
    int64_t last_blocks;        /* so many */
    bool bare_first, bare_mlp;  /* no residual around the first attention, around any MLP */
    bool bare_patches;          /* of a ViT: no fold between its patches and the first block */
    bool bare_head;             /* of an encoder: no transform between its blocks and the head */
    bool unit_head;             /* of images and classifiers: training keeps the head's rows at length 1 */
    bool headless;              /* of an encoder: its features are what comes out, */
    taut_pool_kind pool;        /* those of every token, or one row of them */
    double attention_scale, attention_out, logit_scale, dropout;
    taut_init init;
    double init_std; /* normal: standard deviation; orthogonal: every singular value; spectral: the largest */
    bool zero_out;   /* matrices that write into the residual stream start at 0 */
} taut_model_spec;

/* Reads and checks; problems wait in cfg as usual, and a relation between keys is told by the status. */
taut_status taut_model_spec_read(taut_model_spec *, taut_config *cfg) TAUT_MUST_USE;

/* spec_image.c: the keys of an architecture that reads images. */
taut_status taut_spec_read_mlp(taut_model_spec *, taut_config *cfg) TAUT_MUST_USE;
taut_status taut_spec_read_patches(taut_model_spec *, taut_config *cfg) TAUT_MUST_USE;
taut_status taut_spec_read_hidden(taut_model_spec *, taut_config *cfg, const char *key) TAUT_MUST_USE;

/* spec_series.c: the keys of a forecaster. */
void taut_spec_read_series(taut_model_spec *, taut_config *cfg);

/* tree.c: where the attention of block `index` stands. */
taut_site taut_spec_site(const taut_model_spec *, bool causal, int64_t queries, uint64_t index);
/* Tokens that block i of the encoder reads: fewer behind every one where a forecaster distils. */
int64_t taut_spec_tokens(const taut_model_spec *, int64_t block);

/* Shared by the readers of all architectures. */
void taut_spec_read_activation(taut_model_spec *, taut_config *cfg);
void taut_spec_read_init(taut_model_spec *, taut_config *cfg);

extern const char taut_arch_names[]; /* "gpt|encoder|..." */
const char *taut_arch_name(taut_arch);
bool taut_arch_reads_images(taut_arch);
bool taut_arch_reads_tokens(taut_arch);

double taut_spec_alpha(const taut_model_spec *);
#endif
