/* What local.c (all rows of all heads together) and local_row.c (one row of one head) share. */
#ifndef TAUT_BOUND_LOCAL_IMPL_H
#define TAUT_BOUND_LOCAL_IMPL_H
#include "bound/local.h"
#include "bound/matrix.h"

/* Plain doubles below are upper bounds unless they say "computed".  Expressions of non-negative terms are evaluated as
 * they stand and rounded up at the end: `more` covers 2^7 roundings and underflow, more_sum n terms besides. */
static inline double more(double x) { return x * (1 + 0x1p-44) + 0x1p-1000; }
static inline double more_sum(double x, int64_t n) { return x * (1 + (double)(n + 256) * 0x1p-52) + 0x1p-1000; }
static inline double less_sum(double x, int64_t n) { return x * (1 - (double)(n + 256) * 0x1p-52); }

typedef struct {
    const taut_attention_weights *w;
    const taut_local_at *at;
    int64_t tq, tk, dh, index;
    bool moved;                            /* some radius is not 0 */
    double s;                              /* |scale| */
    double slope;                          /* of alibi, computed */
    double *q, *k, *v;                     /* computed, turned by RoPE */
    double *eq, *ek, *ev;                  /* |computed - real|, one a token */
    double nq, nk, nv, na;                 /* ||W_Q||, ||W_K||, ||W_V||, ||W_K^T W_Q|| (RoPE: nk nq) */
    taut_ball rq, rk;                      /* W_Q W_Q^T <= rq^T rq + lost_q I; the same for W_K (both void with RoPE) */
    double lost_q, lost_k, frob_q, frob_k; /* Frobenius norms of rq and rk */
    taut_ball vv, vk;                      /* W_V W_V^T and W_V W_K^T (void with RoPE) */
    /* the rows' answers */
    double *p, *dev;             /* (tq, tk): P' <= p; |P' - computed P| <= dev */
    double *block;               /* (tq, tk): norms of the Jacobian's blocks but for the diagonal's tau */
    double *beta, *tau, *u, *vm; /* one a query; u = |u_i|, vm = ||(v - o_i)^T diag(P_i)|| */
    double *jacobian,
        *err; /* (tq dh, tk width) computed, and one a query: how far the real rows are; NULL: not asked for */
} local_head;

bool local_head_begin(local_head *, const taut_attention_weights *, const taut_local_at *, int64_t index);
void local_head_end(local_head *);
bool local_rows(local_head *); /* local_row.c: all answers; false: no bound */

/* local_exact.c: query i's rows of the Jacobian; answers what forming them may have rounded, in norm. */
double local_jacobian_rows(const local_head *, int64_t i, int64_t m, const double *hat, const double *zv,
                           const double *zk, const double *a, const double *z);

/* local_concave.c: ||J||^2 <= max over tokens, for K = P beta (tq, tk) with the columns already scaled; self: tau_i
 * belongs to token i, else queries are tokens of their own. */
taut_up up_concave(const double *k, const double *tau, int64_t tq, int64_t tk, bool self);
#endif
