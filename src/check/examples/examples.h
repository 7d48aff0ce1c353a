/* Predictions: the forward pass in double, module by module, and what a constant is around an example.  No constant of a proof
 * rests on any of it. */
#ifndef TAUT_CHECK_EXAMPLES_EXAMPLES_H
#define TAUT_CHECK_EXAMPLES_EXAMPLES_H
#include "check/ck.h"

/* example.c: x becomes what n makes of it, at most `off` from what real arithmetic makes of the same x; lip is a constant of
 * n for all that is within `moved` of x */
typedef struct {
    double off, lip;
} ck_step;
ck_step ck_forward(ck *c, const ck_node *n, ck_mat *x, double moved);
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
double ck_mlp_near(ck *c, const ck_node *n, ck_mat x,
                   double moved); /* rules/mlp.c; of the mix around it, if it answers for that */
/* around.c: constants of a norm layer, and of attention that states ||W_O|| */
double ck_slope_near(ck *c, const ck_node *n, ck_mat x, double moved);
double ck_attention_near(ck *c, const ck_node *n, ck_mat x, double moved);
#endif
