/* The kinds of attention: what model.attention can be.
 *
 * A kind is a row: its name, the recipe keys that it alone reads, what it can do, how a layer of it is built.  The row stands
 * at the end of the module's own file, its name in the list of kinds.c, and its keys on its page in docs/modules; nobody else
 * knows a kind by its name.  What a kind cannot do is refused for all kinds alike, by taut_attention_check. */
#ifndef TAUT_MODULE_KIND_H
#define TAUT_MODULE_KIND_H
#include <stddef.h>

#include "base/config.h"
#include "module/modules.h"

/* Where a layer of attention stands: what the rest of the recipe says, whatever the kind. */
typedef struct {
    int64_t width, heads;
    int64_t context; /* tokens of the longest input */
    int64_t tokens;  /* tokens that are read here: fewer where they were halved on the way */
    int64_t queries; /* as in taut_attention_spec */
    int64_t row;     /* tokens are patches of an image in rows of so many; 0: they are not */
    int64_t front;   /* tokens before the patches */
    uint64_t index;  /* of the block; another stream of layers has other numbers */
    bool causal, rope, alibi, bias;
    double rope_base, scale, out;
    taut_init init;
    double gain, out_gain;
} taut_site;

/* A key of [model].  `at` is its place in the kind's own struct: an int64_t, double, bool, int (a choice) or const char *. */
typedef struct {
    const char *name;
    enum { TAUT_KEY_INT, TAUT_KEY_REAL, TAUT_KEY_BOOL, TAUT_KEY_CHOICE, TAUT_KEY_TEXT } type;
    size_t at;
    double def, lo, hi;
    const char *words;                   /* the choices, "kv|qv|qk"; the default of a text */
    double (*def_at)(const taut_site *); /* in the place of def */
    bool rare; /* a real or a bool, asked for only where a recipe names it: all other recipes print as before */
    const char *help;
} taut_key;

enum {
    TAUT_CAN_CAUSAL = 1,
    TAUT_CAN_CROSS = 2, /* some tokens ask, the others are read */
    TAUT_CAN_ROPE = 4,
    TAUT_CAN_ALIBI = 8,
    TAUT_CAN_SCALE = 16,    /* logits and outputs take the recipe's factors */
    TAUT_CAN_PENALTY = 32,  /* train.penalty = specformer finds W_Q and W_V */
    TAUT_IS_RESIDUAL = 64,  /* y = x + something by itself: no residual around it, no norm before it */
    TAUT_IS_FORECAST = 128, /* for forecasters only */
    TAUT_OWN_WIDTH = 256,   /* its heads have a width of their own */
    TAUT_CAN_JASMIN = 512   /* train.penalty = jasmin finds rows of softmax */
};

typedef struct taut_attention_kind taut_attention_kind;

/* A kind with its keys as a recipe gives them. */
typedef struct {
    const taut_attention_kind *kind;
    unsigned can; /* of the kind's abilities, those that its keys leave */
    bool turn;    /* an orthogonal map stands behind every layer */
    int settle;   /* prototypes: 0 drawn at random, else put on keys before training (train/prototypes.h) */
    int steps;    /* steps of a solver that training takes up one after the other; 0: none */
    union {
        max_align_t align;
        unsigned char bytes[256];
    } own; /* the kind's struct */
} taut_attention_choice;

struct taut_attention_kind {
    const char *name, *page; /* docs/modules/PAGE.md */
    unsigned can;
    const char *not_causal, *not_placed; /* why it cannot be causal, why not take rope or alibi; NULL: nothing to add */
    const taut_key *keys;
    int count;
    /* Relations between keys; may fill the rest of the choice.  NULL: there are none. */
    taut_status (*check)(taut_attention_choice *, const taut_site *);
    taut_module *(*build)(const taut_attention_choice *, const taut_site *);
};

/* kinds.c */
extern const char *const taut_attention_names; /* "softmax|cosine|..." */
const taut_attention_kind *taut_attention_kind_at(int index);
/* For config_list.h: writes which kind the key is of ("model.attention = window"); false: of none. */
bool taut_attention_owner(char *to, size_t room, const char *key);
void taut_attention_choose(taut_attention_choice *, const taut_attention_kind *);
void taut_attention_read(taut_attention_choice *, const taut_site *, taut_config *,
                         bool rare); /* those keys or the others */
taut_status taut_attention_check(taut_attention_choice *, const taut_site *) TAUT_MUST_USE;
/* A layer of this kind, or of softmax attention where the kind has no causal or no cross form. */
taut_module *taut_attention_build(const taut_attention_choice *, const taut_site *);
#endif
