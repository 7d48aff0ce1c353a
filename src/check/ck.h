/* What the files of the checker share: one check in progress, the model's tree, matrices. */
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
typedef struct {
    double lo, hi;
} ck_range;

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
    size_t size; /* of the file; once read, of the weights at its start */
    cJSON *cert, *header, *tree;
    ck_node *nodes, *top;
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

/* prove: what the rule makes of the stated numbers, once they are confirmed, if every token has size <= x.  run: the
 * forward pass.  A constant is a float32 number; with # a whole number >= 1, with + one or, absent, 0,
 * with ? 0 or 1, with ~ any number; curve is a word.
 * A shape's letters: d is the width that comes in, o what goes out, t the tokens, others as they are; a tensor's name with
 * = is a list in the tree, one with ? may be absent; of one with * there are as many as the first list has numbers, which stand
 * in its place, and its S is a size of its own. */
typedef struct ck_rule {
    const char *name;
    ck_bound (*prove)(ck_fields *f, ck_node *n, double x);
    void (*run)(ck *c, const ck_node *n, ck_mat *x); /* NULL: its parts one after the other */
    bool (*fits)(const ck_node *n);                  /* do constants and shapes?  NULL: always */
    const char *constants[CK_CONSTANTS];
    struct {
        const char *name, *shape;
    } tensors[CK_TENSORS];
} ck_rule;
extern const ck_rule ck_rules[]; /* rules.c; the last one has no name */
bool ck_is(const ck_node *n, const char *rule);
bool ck_has_parts(const ck_node *n);
double ck_constant(const ck_node *n, const char *key); /* by its name; 0 if its rule has none */

/* check.c.  A problem ends the check: none of these returns then. */
void ck_fail(ck *c, const char *format, ...) __attribute__((noreturn, format(printf, 2, 3)));
void *ck_room(ck *c, int64_t count, size_t size);    /* zeroed */
void ck_give_back(ck *c, const struct ck_block *to); /* all that was taken since c->blocks was `to` */
const cJSON *ck_get(const cJSON *json, const char *key);
ck_fields ck_open(ck *c, const char *path, const cJSON *json, const char *rule, const char *part);
const cJSON *ck_take(ck_fields *f, const char *key);
const char *ck_word(ck_fields *f, const char *key);                  /* absent: "" */
const cJSON *ck_list(ck_fields *f, const char *key, int64_t *count); /* its first item; absent: NULL, and count is 0 */
double ck_stated(ck_fields *f, const char *key);
double ck_accept(ck_fields *f, const char *key, double stated, double proved);
double ck_claim(ck_fields *f, const char *key, double proved); /* what is stated, which must not be below */
double ck_claim_norm(ck_fields *f, const char *key, ck_mat m);
const cJSON *ck_heads(ck_fields *f, int64_t heads); /* the first of a list of them all */
void ck_close(ck_fields *f);
void ck_confirm(ck *c, ck_node *n, const cJSON *json, double x);
void ck_not_run(ck *c, const ck_node *n, ck_mat *x); /* examples of a model with this rule are not for the checker */

/* json.c */
cJSON *ck_json(size_t *flaw, const char *text, size_t len); /* NULL: not JSON at byte *flaw, or no memory */
void ck_once(ck *c, const cJSON *json, const char *what);   /* no key is twice in an object */

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

taut_status ck_arithmetic(void) TAUT_MUST_USE; /* arithmetic.c; TAUT_DEVICE: nothing can be checked here */

void ck_model_read(ck *c); /* model.c */

/* forward.c: parts of a forward pass */
ck_mat ck_affine(ck *c, ck_mat x, double factor, ck_mat w, ck_mat b); /* factor x W^T + b */
void ck_weigh(ck_mat *x, double factor, ck_mat g, ck_mat b);          /* factor g_i x_i + b_i */
void ck_activate(ck_mat *x, double curve, double factor);
void ck_centre(ck_mat *x);
void ck_divide(ck_mat *x, int64_t group, double over, double eps); /* z / sqrt(|z|^2 / over + eps) for every group z */
ck_range ck_slopes(double curve);                                  /* where f' is, and secants of f */
ck_range ck_ratio(double curve);                                   /* where f(z)/z is */
double ck_root(double n);                                          /* fl32(1/sqrt(n)), to nearest */

/* simple.c: matrices, norm layers, what moves tokens */
ck_bound ck_simple(ck_fields *f, ck_node *n, double x);
ck_bound ck_norm_layer(ck_fields *f, ck_node *n, double x);
void ck_run_simple(ck *c, const ck_node *n, ck_mat *x);
bool ck_pairs(const ck_node *n);
bool ck_near_fits(const ck_node *n);
bool ck_some_fit(const ck_node *n);
ck_bound ck_mlp(ck_fields *f, ck_node *n, double x); /* mlp.c */
void ck_run_mlp(ck *c, const ck_node *n, ck_mat *x);
ck_bound ck_potential(ck_fields *f, ck_node *n, double x); /* potential.c */
void ck_run_potential(ck *c, const ck_node *n, ck_mat *x);
bool ck_image_fits(const ck_node *n); /* image.c: pixels, and the tokens that leave */
ck_bound ck_pixels(ck_fields *f, ck_node *n, double x);
void ck_run_pixels(ck *c, const ck_node *n, ck_mat *x);
void ck_run_prefix(ck *c, const ck_node *n, ck_mat *x);
void ck_run_pool(ck *c, const ck_node *n, ck_mat *x);
void ck_run_l2pool(ck *c, const ck_node *n, ck_mat *x);
void ck_run_concat(ck *c, const ck_node *n, ck_mat *x);

bool ck_heads_fit(const ck_node *n);  /* attention.c */
int64_t ck_queries(const ck_node *n); /* so many tokens ask an attention, the others are read; 0: all do both */
ck_bound ck_attention(ck_fields *f, ck_node *n, double x);
ck_bound ck_l2attention(ck_fields *f, ck_node *n, double x);
bool ck_table_fits(const ck_node *n); /* posattention.c */
ck_bound ck_posattention(ck_fields *f, ck_node *n, double x);
double ck_logit(const ck_node *n, int64_t h, int64_t i, int64_t j);
ck_mat ck_gains(ck *c, const ck_node *n);
void ck_attend(ck *c, const ck_node *n, ck_mat *x); /* attend.c: of all three */
typedef struct {
    const ck_node *n;
    ck_mat q, k, v; /* q and k: none if there is a table */
    int64_t heads, dh;
    double scale;
    bool causal, alibi, apart; /* apart: distances for products */
    int64_t block, global;     /* windows; 0: none */
} ck_attended;
ck_attended ck_projected(ck *c, const ck_node *n, ck_mat x);
bool ck_sees(const ck_attended *a, int64_t i, int64_t j);
void ck_shares(const ck_attended *a, double *s, int64_t h, int64_t i); /* of every key, for query i in head h */
double ck_shares_off(const ck_attended *a); /* how far one may be off, relatively; but 1e-290, where exp underflows */
/* RoPE: the pairs (i, i + dh/2) of every head turn by sign t base^(-2i/dh). */
void ck_rotate(ck_mat *x, int64_t dh, double base, double sign);
bool ck_attlip_fits(const ck_node *n); /* attlip.c */
ck_bound ck_attlip(ck_fields *f, ck_node *n, double x);
void ck_solve(ck *c, const ck_node *n, ck_mat *x);
/* rivals.c: attentions in linear time */
typedef struct {
    double norm, size; /* ||W||, |W x + b| */
} ck_reach;
ck_reach ck_reach_of(ck_fields *f, int side, ck_mat w, ck_mat b, double x); /* side: of queries, keys, values, out */
ck_bound ck_leave(ck_fields *f, const ck_node *n, double lip, double size); /* of out W_O o + b_O, from those of o */
bool ck_linear_fits(const ck_node *n);
ck_bound ck_cosformer(ck_fields *f, ck_node *n, double x);
void ck_run_cosformer(ck *c, const ck_node *n, ck_mat *x);
ck_bound ck_performer(ck_fields *f, ck_node *n, double x);
void ck_run_performer(ck *c, const ck_node *n, ck_mat *x);
ck_bound ck_jumping(ck_fields *f, ck_node *n, double x);
void ck_jump(ck *c, const ck_node *n, ck_mat *x);
/* plash.c */
bool ck_sketch_fits(const ck_node *n);
ck_bound ck_sketch(ck_fields *f, ck_node *n, double x);
void ck_run_sketch(ck *c, const ck_node *n, ck_mat *x);
bool ck_plash_fits(const ck_node *n);
ck_bound ck_plash(ck_fields *f, ck_node *n, double x);
void ck_run_plash(ck *c, const ck_node *n, ck_mat *x); /* and its part */
/* example.c: x becomes what n makes of it, at most `off` from what real arithmetic makes of the same x; lip is a constant of
 * n for all that is within `moved` of x */
typedef struct {
    double off, lip;
} ck_step;
ck_step ck_forward(ck *c, const ck_node *n, ck_mat *x, double moved);
double ck_slope_near(ck *c, const ck_node *n, ck_mat x, double moved); /* simple.c: of a norm layer */
double ck_attention_near(ck *c, const ck_node *n, ck_mat x,
                         double moved);                     /* around.c: of attention that states ||W_O|| */
void ck_examples(ck *c, const cJSON *first, int64_t count); /* example.c; on all threads */
#endif
