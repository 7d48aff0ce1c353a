/* Predictions: the forward pass in double, module by module, and what a constant is around an example.  No constant of a proof
 * rests on any of it. */
#ifndef TAUT_CHECK_EXAMPLES_EXAMPLES_H
#define TAUT_CHECK_EXAMPLES_EXAMPLES_H
#include "check/ck.h"

/* shape.c: of an example that is moved by up to r, what becomes of every token by itself.  Between any two places it differs by
 * at most sum_c n_tc a_c, a >= 0 being no longer than these are apart; but for the last column, which says how far the computed
 * token of the example is from the real one. */
typedef struct {
    double r;
    ck_mat n;
} ck_shape;
ck_shape ck_shape_of(ck *c, int64_t tokens, double r);
ck_mat ck_shape_none(ck *c, int64_t tokens);                    /* nothing is known */
double ck_shape_row(ck_mat n, int64_t t);                       /* the length of row t */
double ck_shape_whole(const ck *c, ck_mat n);                   /* a constant of all tokens, in the norm */
double *ck_shape_moved(ck *c, const ck_shape *s, double moved); /* of every token; all of them in the norm: moved */
void ck_shape_mix(ck *c, ck_shape *s, ck_mat in, double keep, double mix);
void ck_shape_pass(ck *c, const ck_node *n, ck_shape *s,
                   const double *each); /* each: a constant of n for every token */

/* example.c: x becomes what n makes of it, at most `off` from what real arithmetic makes of the same x; lip is a constant of
 * n for all that is within `moved` of x, and s goes along */
typedef struct {
    double off, lip;
} ck_step;
ck_step ck_forward(ck *c, const ck_node *n, ck_mat *x, double moved, ck_shape *s);
void ck_examples(ck *c, const cJSON *first, int64_t count); /* on all threads */
void ck_not_run(ck *c, const ck_node *n, ck_mat *x); /* examples of a model with this rule are not for the checker */

/* forward.c: parts of a forward pass */
ck_mat ck_affine(ck *c, ck_mat x, double factor, ck_mat w, ck_mat b); /* factor x W^T + b */
void ck_weigh(ck_mat *x, double factor, ck_mat g, ck_mat b);          /* factor g_i x_i + b_i */
void ck_activate(ck_mat *x, double curve, double factor);
void ck_centre(ck_mat *x);
void ck_divide(ck_mat *x, int64_t group, double over, double eps); /* z / sqrt(|z|^2 / over + eps) for every group z */

/* attend.c: of every attention that takes means of values */
void ck_attend(ck *c, const ck_node *n, ck_mat *x);
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
double ck_logit(const ck_node *n, int64_t h, int64_t i, int64_t j); /* rules/posattention.c: of its table */
ck_mat ck_gains(ck *c, const ck_node *n);

double ck_slope_at(double curve, double z); /* forward.c: f', computed; of a kink 0 */
/* Constants where token t is within m_t of x; each: of every token, where that is less.  rules/mlp.c: of a perceptron, or of the
 * mix that it answers for.  around.c: of a norm layer; of attention that states ||W_O||, which takes s along itself */
double ck_mlp_near(ck *c, const ck_node *n, ck_mat x, const double *m, double *each);
double ck_slope_near(ck *c, const ck_node *n, ck_mat x, const double *m, double *each);
double ck_attention_near(ck *c, const ck_node *n, ck_mat x, const double *m, ck_shape *s);
#endif
