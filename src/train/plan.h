/* Caps that meet a Lipschitz budget, before anything is trained: the convex-residual transformer without norm layers
 * and biases, when nothing is known of a matrix but its cap.  RMS units, norm tokens: a change is measured by its
 * largest token.  Proved; the two published formulas stand beside it and are not. */
#ifndef TAUT_TRAIN_PLAN_H
#define TAUT_TRAIN_PLAN_H
#include "model/spec.h"

typedef struct {
    int64_t depth, width, heads;
    double alpha;      /* of the residuals; 0: 1/(2 depth) */
    double scale, out; /* of the logits; of the attention's output */
    taut_curve curve;  /* of the MLP, times factor */
    double factor;
    bool rope;
    double size;        /* the RMS of a token that enters the first block */
    double head, logit; /* cap of the head, scale of the logits; 1 and 1: the blocks alone */
    double qk;          /* caps of W_Q and W_K as a multiple of the others' */
} taut_budget;

typedef struct {
    taut_up lip;  /* embeddings to logits */
    taut_up size; /* RMS of a token behind the last block */
} taut_budget_bound;

/* With every other matrix of the blocks at this cap. */
taut_budget_bound up_budget(const taut_budget *, double cap);

/* The largest cap, to six digits and rounded down, that keeps the constant a millionth below target.
 * TAUT_BAD_CONFIG: none does, and the line says what stays with all caps at 0. */
taut_status taut_budget_solve(double *cap, const taut_budget *, double target) TAUT_MUST_USE;

/* What the enforced paper prints: its code's formula and its theorem D.1.  Unsound, docs/errata.md. */
typedef double (*taut_printed)(const taut_budget *, double cap);
double printed_by_code(const taut_budget *, double cap);
double printed_by_theorem(const taut_budget *, double cap);
double printed_cap(taut_printed, const taut_budget *, double target); /* NaN: none in [0, 1e6] */

/* up_budget without six digits and without a millionth: for comparing with published tables. */
double est_budget_cap(const taut_budget *, double target);
#endif
