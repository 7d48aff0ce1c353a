/* The proximal problem of AttLip, and its solvers: for every example on its own
 *     prox(x) = argmin_y  f(W y) + |y - x|^2 / (2 eta),      f the convex potential of the attlip kernels.
 *
 * INNER COORDINATES.  With s the potential's scale, c = 4 s, M = I/eta + c W^T W (a head that attends to itself has the second
 * derivative 4 s W^T W, one that attends evenly 2 s W^T W, up to the part that moves attention), B = W M^-1 and K = B W^T:
 * every y a preconditioned method reaches from y0 = M^-1 x / eta is y0 + A B, with one row A a token and as wide as all heads,
 *     y = x + (A - c X) B,   V = y W^T = V0 + A K,   V0 = X - c X K,   X = x W^T,
 *     phi = f(V) - (c/2) |V|^2 + <A, A K>/2,      its gradient there  q + A,   q = G - c V,   G = df/dV,
 * up to a constant (rotations of V by position change none of this).  <., K .> is the product of M, so plain L-BFGS and CG with
 * it are the preconditioned ones in y; the gradient in y is (q + A) W.  A vector is kept with its image, (A, A K) one after the
 * other: it adds like any vector, a product of two is A of one with A K of the other, and an evaluation costs one product with K.
 * In PLAIN coordinates none of that:   phi(y) = f(V) + |y|^2/(2 eta) - y.x/eta,   V = y W^T.
 *
 * Lanes: an example is a lane.  Lanes are evaluated and moved together, each by its own factors, and decide apart; nothing of one
 * reaches another, but for the last bits where a table's products are rounded by how many rows there are (cpu). */
#ifndef TAUT_MODULE_PROX_H
#define TAUT_MODULE_PROX_H
#include "module/modules.h"

typedef struct {
    const taut_kernels *k;
    taut_shape shape; /* of x */
    int64_t heads, dh;
    double scale, eta;
    double near, rope_base;      /* as in taut_attlip_spec */
    const taut_real *x, *weight; /* weight: (heads*dh, d) */
    bool plain;
    double shift;                       /* c; plain: 0 */
    taut_real *back, *gram;             /* B (heads*dh, d) and K (heads*dh, heads*dh) */
    taut_real *v, *g, *max, *sum, *col; /* V turned, G turned back, rows of alpha */
    taut_real *centre, *mean;           /* V0, or x/eta (plain); a scratch row each */
    taut_real *side;                    /* of several lanes: A without images, and a product; twice v */
    taut_sum *sums;                     /* three per lane, for numbers on their way to the host */
    taut_span host;                     /* a stack of doubles on the host */
    taut_solves *log;                   /* counts what is done */
} prox;

/* Elements that a problem keeps for its derivatives (back, gram, v, g, max, sum, col), and those it needs while it
 * is solved or differentiated (centre, mean, side, sums). */
int64_t prox_kept(taut_shape, int64_t heads, int64_t dh);
int64_t prox_used(taut_shape, int64_t heads, int64_t dh);
void prox_lay_out(prox *, taut_span *kept, taut_span *scratch); /* after k, shape, heads, dh are set */
/* B and K; scratch: prox_ready_used elements */
int64_t prox_ready_used(const prox *);
void prox_precondition(prox *, taut_span scratch);

static inline int64_t prox_inner(const prox *p) { return p->shape.t * p->heads * p->dh; }
static inline int64_t prox_lane(const prox *p) { return p->plain ? p->shape.t * p->shape.d : 2 * prox_inner(p); }
static inline taut_real *prox_at(const prox *p, const taut_real *x, int64_t lane)
{
    return taut_at(p->k, x, lane * prox_lane(p));
}
double prox_dot(const prox *, const taut_real *x, const taut_real *y, int64_t lane);
void prox_dots(const prox *, double *sum, const taut_real *x, const taut_real *y, int64_t first, int64_t count);
void prox_add(const prox *, taut_real *y, double a, const taut_real *x, double b, int64_t lane); /* y = a x + b y */
/* A factor for each of `count` lanes; room: as many sums. */
taut_factor prox_factor(const prox *, taut_sum *room, const double *each, int64_t count);

/* The image of every lane of x, whose A parts are given.  And v0 = X - c X K from X. */
void prox_image(const prox *, taut_real *x, int64_t first, int64_t count);
void prox_begin(const prox *, taut_real *v0, const taut_real *x);

/* phi of the lanes first .. first+count-1 at `point`, which stays in the first of `sums` where `phi` is NULL, and its gradient.
 * v, max, sum and, with the gradient, col and g are then those of the point. */
void prox_value(prox *, double *phi, const taut_real *point, int64_t first, int64_t count);
void prox_gradient(prox *, taut_real *grad, double *phi, const taut_real *point, int64_t first, int64_t count);
/* out = (d2phi) dir where the last gradient was taken; e and h have room for v each */
void prox_hessian(prox *, taut_real *out, const taut_real *dir, taut_real *e, taut_real *h, int64_t first,
                  int64_t count);
/* Conjugate gradients: out = (d2phi)^-1 rhs, to |residual| <= tol[lane - first] |rhs| in these coordinates or `most`
 * products; rhs becomes what is left; answers how many of the lanes got there.  scratch: prox_cg_used. */
int64_t prox_cg_used(const prox *, int64_t count);
int64_t prox_cg_host(int64_t count);
int64_t prox_cg(prox *, taut_real *out, taut_real *rhs, const double *tol, int most, int64_t first, int64_t count,
                taut_span scratch);

taut_attn prox_attn(const prox *, int64_t count); /* as the kernels want it, for so many lanes */
/* v of `count` lanes turned by its positions (sign 1) or back (-1), in place; without rope nothing */
void prox_turn(const prox *, taut_real *v, int64_t count, double sign);

/* y = x + (A - c X) B.  scratch: as large as v */
void prox_return(const prox *, taut_real *y, const taut_real *a, const taut_real *x, taut_span scratch);
/* |(q + A) W| of lanes: the gradient's norm in y.  scratch: as many lanes of y */
void prox_norms(const prox *, double *norm, const taut_real *grad, int64_t first, int64_t count, taut_span scratch);

typedef struct {
    double tol; /* |gradient in y| to reach */
    double at;  /* what was reached, in the solver's coordinates where it gave up */
    bool done;
    const char *why; /* when not done */
} prox_lane_end;

/* Solvers.  z holds the start and the result, end[lane] says how it ended; scratch: prox_solve_used elements, and on the host
 * prox_lbfgs_host doubles (newton: prox_newton_host is enough) or prox_descent_host (descent, barzilai). */
int64_t prox_solve_used(const prox *);
int64_t prox_lbfgs_host(const prox *);
int64_t prox_newton_host(const prox *);
int64_t prox_descent_host(const prox *);
void prox_lbfgs(prox *, taut_real *z, prox_lane_end *end, taut_span scratch);
/* Of the lanes that are not done, gathered, at most `together` at a time.  A device is idle with one; a processor would work for
 * those that end before the others. */
void prox_newton(prox *, taut_real *z, prox_lane_end *end, int64_t together, taut_span scratch);
static inline int64_t prox_together(const prox *p) { return p->k->host ? 1 : p->shape.n; }
/* In plain coordinates: the paper's gradient descent with Armijo's rule, `steps` of them or to the tolerance, in at most
 * `most` (0: 2000); when `path` is given, the points before every step and, in `rates`, the steps' lengths (steps, lanes).
 * Barzilai-Borwein. */
void prox_descent(prox *, taut_real *z, prox_lane_end *end, int steps, int most, taut_real *path, double *rates,
                  taut_span scratch);
void prox_barzilai(prox *, taut_real *z, prox_lane_end *end, taut_span scratch);

/* prox_prove.c: |grad f(y) + (y - x)/eta| of a lane from above, in plain coordinates on the ref kernels; +inf where a
 * number is not finite.  v, the rows and g are then those of y.  scratch: as large as x; on the host
 * prox_proved_host doubles */
int64_t prox_proved_host(const prox *);
taut_up prox_proved(prox *, const taut_real *y, int64_t lane, taut_span scratch);
#endif
