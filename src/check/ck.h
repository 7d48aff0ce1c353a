/* What the files of the checker share: one check in progress, the model and its tree, matrices. */
#ifndef TAUT_CHECK_CK_H
#define TAUT_CHECK_CK_H
#include <cjson/cJSON.h>
#include <setjmp.h>

#include "check/check.h"
#include "check/up.h"

/* A matrix somewhere in memory, float32 (f) or double (d); entry (i, j) is at i * down + j * right. */
typedef struct {
    const float *f;
    const double *d;
    int64_t rows, cols, down, right;
} ck_view;
/* sum_h w_h^2 X_h^T X_h, n by n, upper triangle; k roundings at most in any term; the true [w_h X_h] is within err (in
 * Frobenius norm) of the one that g came from. */
typedef struct {
    double *g, k, err;
    int64_t n;
} ck_gram;

/* The recipe's [model] section, in the order of the list in model.c; a word's value is its place among its words. */
typedef union {
    double all[27];
    struct {
        double arch, width, depth, heads, context, mlp, norm, norm_place, norm_eps, embed_norm, positions, rope_base,
            bias, tied, head_bias, activation, activation_factor, residual, residual_alpha, dropout, attention_factor,
            attention_out, attention_scale, logit_scale, init, init_std, zero_out;
    };
} ck_recipe;
enum { LAYERNORM, RMSNORM, CENTERNORM, NO_NORM };
enum { LEARNED, ROPE, ALIBI };
enum { GELU, GELU_TANH, RELU, SILU, TANH };
typedef enum { SEQUENCE, MIX, LINEAR, POSITION, SCALE, POINTWISE, DROP, NORM, CENTER, MLP, ATTENTION } ck_kind;

typedef struct ck_node {
    ck_kind kind;
    char name[24], path[64]; /* the path of names is where its weights are, and what messages call it */
    struct ck_node *parent, *first, *last, *next;
    ck_view w[4], b[4]; /* weight and bias; mlp: in, out; attention: q, k, v, o.  No bias: f = NULL, no rows */
    bool mixed;         /* lip and out are about keep x + mix f(x) of the mix around it */
    double in, lip, out, norm_out; /* as stated, once confirmed */
} ck_node;

typedef struct {
    taut_checked *out;
    jmp_buf end; /* the first problem ends the check */
    taut_status status;
    struct ck_block *blocks; /* all memory, the latest first */
    char *file;
    size_t size; /* of the file; once read, of the weights at its start */
    cJSON *cert, *header;
    ck_recipe r;
    double keep, mix, scale, factor; /* float32: of every mix, of the logits of attention, of activations */
    ck_node *nodes, *root, *body, *head;
    int count, used; /* nodes, tensors */
    ck_view embed;
    char bad[64]; /* a weight of f that is not finite */
} ck;

/* One JSON object in hand: every field is asked for once, and a number that is missing counts as 0. */
typedef struct {
    ck *c;
    const char *path, *part; /* for messages */
    const cJSON *json;
    int taken;
} ck_fields;

/* check.c.  A problem ends the check: none of these returns then. */
void ck_fail(ck *c, const char *format, ...) __attribute__((noreturn, format(printf, 2, 3)));
void *ck_room(ck *c, int64_t count, size_t size);    /* zeroed */
void ck_give_back(ck *c, const struct ck_block *to); /* all that was taken since c->blocks was `to` */
const cJSON *ck_get(const cJSON *json, const char *key);

/* norm.c */
double ck_at(const ck_view *v, int64_t i, int64_t j);
ck_view ck_turn(ck_view v); /* transposed */
ck_view ck_rows(ck_view v, int64_t first, int64_t rows);
ck_view ck_of(const double *d, int64_t rows, int64_t cols);
double ck_length(ck_view v);                               /* at least the Frobenius norm */
double ck_longest(ck_view w);                              /* at least the longest row */
double ck_product(ck *c, double *p, ck_view a, ck_view b); /* p = a^T b, within (the answer) |a|_F |b|_F */
ck_gram *ck_gram_new(ck *c, int64_t n);
void ck_gram_add(ck *c, ck_gram **to, const double *w, int count, ck_view x, double err); /* w_i x into to[i] */
double ck_gram_norm(ck *c, const ck_gram *g, double mu); /* at least the norm: mu if that can be proved, or more */

void ck_model_read(ck *c); /* model.c */

/* rules.c */
ck_fields ck_open(ck *c, const ck_node *n, const cJSON *json, const char *rule, const char *part);
const cJSON *ck_take(ck_fields *f, const char *key);
const char *ck_word(ck_fields *f, const char *key);
double ck_stated(ck_fields *f, const char *key);
double ck_claim(ck_fields *f, const char *key, double proved); /* what is stated, which must not be below */
double ck_claim_norm(ck_fields *f, const char *key, const ck_gram *g);
double ck_claim_view(ck_fields *f, const char *key, ck_view w, double err); /* err: how far w is from the true one */
void ck_close(ck_fields *f);
void ck_confirm(ck *c, ck_node *n, const cJSON *json, double x);
double ck_slope(const ck *c); /* hi, the largest slope of the activation; (lo + hi) / 2 = 1/2 for all of them */

void ck_attention(ck_fields *f, ck_node *n, double x, double *lip, double *out); /* attention.c */
void ck_example(ck *c, const cJSON *json);                                       /* example.c */
#endif
