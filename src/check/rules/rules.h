/* The rules of docs/certificate.md, and what several of them use.  Every stated number must be at least the true quantity, and
 * every stated lip and out at least what the rule makes of the stated numbers.  X is the size that enters; a node hands on its
 * stated out.  Each file says why its rules hold. */
#ifndef TAUT_CHECK_RULES_RULES_H
#define TAUT_CHECK_RULES_RULES_H
#include "check/ck.h"

extern const ck_rule ck_rule_sequence, ck_rule_mix, ck_rule_parts, ck_rule_ask; /* compose.c */
extern const ck_rule ck_rule_linear, ck_rule_channel, ck_rule_scale, ck_rule_centernorm,
    ck_rule_layernorm; /* simple.c */
extern const ck_rule ck_rule_position, ck_rule_sinusoid, ck_rule_maxmin, ck_rule_pointwise;
extern const ck_rule ck_rule_tokens, ck_rule_neighbours, ck_rule_halve; /* move.c */
extern const ck_rule ck_rule_prefix, ck_rule_pool, ck_rule_l2pool, ck_rule_concat;
extern const ck_rule ck_rule_pixels;                                          /* pixels.c */
extern const ck_rule ck_rule_mlp;                                             /* mlp.c */
extern const ck_rule ck_rule_potential, ck_rule_sll;                          /* potential.c */
extern const ck_rule ck_rule_attention, ck_rule_cosattention, ck_rule_window; /* attention.c */
extern const ck_rule ck_rule_l2attention;                                     /* l2attention.c */
extern const ck_rule ck_rule_posattention;                                    /* posattention.c */
extern const ck_rule ck_rule_attlip;                                          /* attlip.c */
extern const ck_rule ck_rule_cosformer, ck_rule_performer, ck_rule_nystrom, ck_rule_clustered,
    ck_rule_probsparse;              /* rivals.c */
extern const ck_rule ck_rule_plash;  /* plash.c */
extern const ck_rule ck_rule_sketch; /* sketch.c */
#define CK_FOUR                                                                                                 \
    { "q.weight", "dd" }, { "k.weight", "dd" }, { "v.weight", "dd" }, { "o.weight", "dd" }, { "?q.bias", "d" }, \
        { "?k.bias", "d" }, { "?v.bias", "d" },                                                                 \
    {                                                                                                           \
        "?o.bias", "d"                                                                                          \
    }

/* curves.c: the activations, by their place in model.c's list */
enum { CK_GELU, CK_GELU_TANH, CK_RELU, CK_SILU, CK_TANH, CK_ELU, CK_ABS };
typedef struct {
    double lo, hi;
} ck_range;
ck_range ck_slopes(double curve); /* where f' is, and secants of f */
ck_range ck_ratio(double curve);  /* where f(z)/z is */
double ck_root(double n);         /* fl32(1/sqrt(n)), to nearest */

int64_t ck_queries(const ck_node *n); /* so many tokens ask an attention, the others are read; 0: all do both */
void ck_asked(const ck_node *n, int64_t *tokens, int64_t *width); /* those that ask go out */
bool ck_heads_fit(const ck_node *n);
double ck_head_index(const cJSON *json);            /* of softmax attention; absent: 0, as every number; no head: -1 */
const cJSON *ck_heads(ck_fields *f, int64_t heads); /* the first of a list of them all */
typedef struct {
    double norm, size; /* ||W||, |W x + b| */
} ck_reach;
ck_reach ck_reach_of(ck_fields *f, int side, ck_mat w, ck_mat b, double x); /* side: of queries, keys, values, out */
ck_bound ck_leave(ck_fields *f, const ck_node *n, double lip, double size); /* of out W_O o + b_O, from those of o */
#endif
