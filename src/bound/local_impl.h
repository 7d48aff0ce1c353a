/* What local.c (all rows of all heads together) and local_row.c (one row of one head) share. */
#ifndef TAUT_BOUND_LOCAL_IMPL_H
#define TAUT_BOUND_LOCAL_IMPL_H
#include <fenv.h>

#if defined __GNUC__ && !defined __clang__ && !defined __ROUNDING_MATH__
#error "these files change the rounding mode: -frounding-math"
#endif

#include "bound/local.h"
#include "bound/matrix.h"
#include "bound/norm.h"

/* Plain doubles below are upper bounds unless they say "computed".  A row is made with the processor rounding up
 * (local_rows sets it), so that +, *, / and sqrt of numbers >= 0 are upper bounds as they stand, whatever their number, and
 * -(b - a) is a lower bound of a - b.  What is computed (BLAS, exp, tokens less their centre) and whatever counts its own
 * roundings to nearest (bound/norm.h, bound/matrix.h) is a LOCAL_NEAR function: it begins with local_rounds_near, ends with
 * local_rounds_up and is never inlined, so that no compiler carries an operation from one mode into the other. */
#define LOCAL_NEAR __attribute__((noinline))
static inline void local_rounds_up(void) { fesetround(FE_UPWARD); }
static inline void local_rounds_near(void) { fesetround(FE_TONEAREST); }

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
    double *own, *lam, *off;     /* local_pair.c, or NULL: C_i (tq, dh, width) computed; lam_i; how far C_i is off */
    double *jacobian,
        *err; /* (tq dh, tk width) computed, and one a query: how far the real rows are; NULL: not asked for */
} local_head;

bool local_head_begin(local_head *, const taut_attention_weights *, const taut_local_at *, int64_t index);
void local_head_end(local_head *);
bool local_rows(local_head *); /* local_row.c: all answers; false: no bound */

/* One row: its numbers, and local_spread.c, which needs those of local_row.c. */
typedef struct {
    int64_t i, m;                      /* the query, the keys it sees */
    double *s, *d, *hat;               /* logits, their reach, computed weights */
    double *lo, *hi, *others;          /* exp at both ends, and sums without one of them */
    double *c, *kb, *wu;               /* centres; W_V u_i */
    double *zv, *zk, *rz, *tmp;        /* (m, dh): v_j - c, k_j - kbar, rq z_j, scaled rows */
    double *a, *z, *b, *alpha, *kappa; /* sizes, one a key */
    double *g, *h;                     /* (dh, dh) */
    double uhat, u, omega, chi;        /* |computed u_i|, |u'_i|, |o' - c|, |W_Q^T (kbar' - kbar)| */
    double spread, spread_k;           /* sqrt(sum p alpha^2), sqrt(sum p kappa^2) */
} local_row;

/* Products that underflow lose at most 2^-1074 each.  Where nothing is larger than LOCAL_MOST (other numbers get no bound),
 * no chain of factors here brings that, or its root, near LOCAL_LOST, which is added to whatever a row answers: rounded up, so
 * that a large number becomes larger too. */
#define LOCAL_MOST 1e15
#define LOCAL_LOST 1e-80

double local_size(const double *x, int64_t n); /* |x| */
double local_gamma(int64_t k);                 /* up_gamma */

/* g = sum_j x_j x_j^T of the rows x_j = factor_j z_j (root: its root), computed; answers its trace.  lam_max of a matrix that is
 * off by at most `error` in norm, never more than its trace. */
double local_gram(const local_head *, local_row *, const double *factor, bool root, const double *z);
double local_gram_error(const local_row *, double trace);
double local_top(double *g, int64_t dh, double trace, double error);
double local_beta(const local_head *, local_row *, double trace, double lam);
double local_tau(const local_head *, local_row *);
double local_spread(const local_head *, local_row *);
double local_key_spread(const local_head *, local_row *);
void local_blocks(const local_head *, local_row *);
double local_moved(const local_head *,
                   const local_row *); /* how far the real Cov_i(v, k) W_Q is from the computed one */
double local_row_error(const local_head *, const local_row *);

/* local_exact.c: query i's rows of the Jacobian; answers what forming them may have rounded, in norm.  Comes and goes with
 * the processor rounding up. */
double local_jacobian_rows(const local_head *, int64_t i, int64_t m, const double *hat, const double *zv,
                           const double *zk, const double *a, const double *z);

/* local_pair.c: decides whether this bound is asked for; one row of it, with lam >= lam_i; the bound, from the tokens' slopes. */
void local_pair_begin(local_head *);
void local_pair_row(const local_head *, local_row *, double lam);
taut_up up_pair(const local_head *, const taut_up *slope);

/* local_concave.c: ||J||^2 <= max over tokens, for K = P beta (tq, tk) with the columns already scaled; self: tau_i
 * belongs to token i, else queries are tokens of their own. */
taut_up up_concave(const double *k, const double *tau, int64_t tq, int64_t tk, bool self);
#endif
