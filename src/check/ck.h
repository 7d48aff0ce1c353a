/* What the files of the checker share: one check in progress, the model's tree, its rules, matrices. */
#ifndef TAUT_CHECK_CK_H
#define TAUT_CHECK_CK_H
#include <cjson/cJSON.h>
#include <setjmp.h>

#include "check/check.h"
#include "check/up.h"

/* A matrix; entry (i, j) is v[i * ld + j], and the rows end in zeros up to ld.  It is within err, in Frobenius norm, of
 * the matrix that it stands for.  Tokens are the rows of a matrix too, each of them within err.  None: v = NULL. */
typedef struct {
    double *v, err;
    int64_t rows, cols, ld;
} ck_mat;

typedef struct {
    double lip, out;
} ck_bound;

enum { CK_TENSORS = 12, CK_CONSTANTS = 8 }; /* of a rule at most */

/* A module of the tree.  w and k are its tensors and constants, in the order of its rule. */
typedef struct ck_node {
    const struct ck_rule *rule;
    const char *name;
    char path[64];            /* of names: where its tensors are, and what messages call it */
    struct ck_node *up, *end; /* its parts are the nodes from the one behind it up to end */
    int64_t tokens, width;    /* that come in */
    ck_mat w[CK_TENSORS];
    double k[CK_CONSTANTS];
    bool mixed;          /* lip and out are about keep x + mix f(x) of the mix around it */
    double in, lip, out; /* as stated, once confirmed */
    double norm;         /* of a norm layer, of W_O in an attention that states it, likewise; none: +inf */
    double mean, count;  /* of attention: of what leaves its means, and of one key's shares, likewise */
    const cJSON *json;   /* its node of the proof */
    double defect;       /* what solving to a tolerance only adds, at both ends of a pair together */
} ck_node;

typedef struct {
    taut_checked *out;
    jmp_buf end; /* the first problem ends the check */
    taut_status status;
    struct ck_block *blocks; /* all memory, the latest first */
    double taken;            /* bytes that were asked for, ever */
    char *file;
    size_t size;  /* of the file; once read, of the weights at its start */
    bool *filled; /* of every four bytes of the weights: have they been read? */
    size_t left;  /* bytes that have not */
    cJSON *cert, *header, *tree;
    ck_node *nodes;
    int count, used;       /* nodes, tensors */
    int64_t tokens, width; /* of an input; while the tree is built, of what comes next */
    double version;        /* of the certificate */
    double tolerance;      /* logits may be off by so much, as stated */
    bool unit, old;        /* inputs are numbers in [0, 1], not embeddings; the tree's version is below 4 */
    ck_mat embed;
    char bad[64]; /* a weight of f that is not finite */
    bool unsure;  /* the example at hand can neither be confirmed nor be refuted */
    bool jumped;  /* it went through a module that jumps: nothing is said of its prediction */
} ck;

/* One JSON object in hand: every field is asked for once, and a number that is missing counts as 0. */
typedef struct {
    ck *c;
    const char *path, *part; /* for messages */
    const cJSON *json;
    int taken;
} ck_fields;

/* A constant is a float32 number; with # a whole number >= 1, with + one or, absent, 0, with ? 0 or 1, with ~ any number; curve
 * is a word.
 * A shape's letters: d is the width that comes in, o what goes out, t the tokens, others as they are; a tensor's name with
 * = is a list in the tree, one with ? may be absent, ?= is both; of one with * there are as many as the first list has numbers,
 * which stand in its place, and its S is a size of its own. */
typedef struct ck_rule {
    const char *name;
    ck_bound (*prove)(ck_fields *f, ck_node *n,
                      double x); /* of the stated numbers, each confirmed, if no token is longer than x */
    void (*run)(ck *c, const ck_node *n, ck_mat *x); /* the forward pass; NULL: its parts one after the other */
    bool (*fits)(const ck_node *n);                  /* do constants and shapes?  NULL: always */
    void (*shape)(const ck_node *n, int64_t *tokens,
                  int64_t *width); /* what goes out; NULL: as many, and as wide as o says */
    int64_t (*join)(ck *c, const cJSON *part, ck_node *n, int64_t d); /* builds its parts; NULL: it has none */
    const char *constants[CK_CONSTANTS];
    struct {
        const char *name, *shape;
    } tensors[CK_TENSORS];
} ck_rule;
const ck_rule *ck_rule_of(const char *name); /* rules/rules.c; NULL: there is none */

/* check.c.  A problem ends the check: none of these returns then. */
void ck_fail(ck *c, const char *format, ...) __attribute__((noreturn, format(printf, 2, 3)));
void ck_give_up(ck *c, const ck_node *n, const char *why) __attribute__((noreturn)); /* neither confirmed nor refuted */
void *ck_room(ck *c, int64_t count, size_t size);                                    /* zeroed */
void ck_give_back(ck *c, const struct ck_block *to); /* all that was taken since c->blocks was `to` */
void ck_confirm(ck *c, ck_node *n, const cJSON *json, double x);

/* fields.c */
const cJSON *ck_get(const cJSON *json, const char *key);
ck_fields ck_open(ck *c, const char *path, const cJSON *json, const char *rule, const char *part);
const cJSON *ck_take(ck_fields *f, const char *key);
const char *ck_word(ck_fields *f, const char *key);                  /* absent: "" */
const cJSON *ck_list(ck_fields *f, const char *key, int64_t *count); /* its first item; absent: NULL, and count is 0 */
double ck_stated(ck_fields *f, const char *key);
double ck_accept(ck_fields *f, const char *key, double stated, double proved);
double ck_claim(ck_fields *f, const char *key, double proved); /* what is stated, which must not be below */
double ck_claim_norm(ck_fields *f, const char *key, ck_mat m);
void ck_close(ck_fields *f);

/* json.c */
cJSON *ck_json(size_t *flaw, const char *text, size_t len); /* NULL: not JSON at byte *flaw, or no memory */
void ck_once(ck *c, const cJSON *json, const char *what);   /* no key is twice in an object */

/* model.c */
void ck_model_read(ck *c);
int64_t ck_build(ck *c, const cJSON *json, ck_node *up, int64_t d); /* a node and its parts; the width that goes out */
bool ck_is(const ck_node *n, const char *rule);
double ck_constant(const ck_node *n, const char *key); /* by its name; 0 if its rule has none */

/* matrix.c */
ck_mat ck_new(ck *c, int64_t rows, int64_t cols); /* zeros */
ck_mat ck_turn(ck *c, ck_mat m);                  /* transposed */
ck_mat ck_rows(ck_mat m, int64_t first, int64_t rows);
double ck_length(ck_mat m);                                               /* at least the Frobenius norm */
double ck_longest(ck_mat m);                                              /* at least the longest row of v */
ck_mat ck_product(ck *c, ck_mat a, ck_mat b);                             /* A^T B */
double ck_roundings(int64_t k);                                           /* of a sum of k products in it */
ck_mat ck_stack(ck *c, const ck_mat *m, const double *by, int64_t count); /* by_0 M_0, below it by_1 M_1, ... */
double ck_norm(ck *c, ck_mat m, double mu); /* at least the norm: mu if that can be proved, or more */
typedef struct {
    ck_mat g; /* X^T X, the upper half; err: of X */
    double length, roundings;
} ck_square;
ck_square ck_squared(ck *c, ck_mat m);
ck_square ck_square_sum(ck *c, const ck_square *, const double *by, int64_t count); /* of ck_stack's matrix */
double ck_square_norm(ck *c, ck_square, double mu);                                 /* as ck_norm */
#endif
