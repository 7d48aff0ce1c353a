/* The gradient of a step: the sum over its micro-batches in one binary tree over their numbers, whoever computes which.  The sum
 * over [lo, hi) is that over the first 2^k of them plus that over the rest, 2^k the largest power of two below their number.
 * Float addition is not associative, so the tree is part of what a recipe means: the same bits for any number of ranks.
 *
 * A rank has a range of micro-batches, and sums up the largest subtrees inside it by itself.  Then each rank adds those of
 * all ranks on the weights that it steps (train/owned.h), in the tree's order: nobody else needs their gradients.
 *
 * The square of the gradient's norm is the sum over stretches of one length, in their order; that length is a matter of the model
 * alone.  So a rank has its weights' gradients up to the end of the last stretch that begins there, and sums up those. */
#ifndef TAUT_TRAIN_SUM_TREE_H
#define TAUT_TRAIN_SUM_TREE_H
#include "train/owned.h"

typedef struct {
    const taut_model *m;
    taut_ranks ranks;
    const taut_messages *to;    /* about the model's memory; NULL: nobody is spoken to */
    int64_t leaves, first, end; /* micro-batches of a step; those of this rank */
    int64_t stretch;            /* elements */
    int64_t squares;            /* stretches that begin in this rank's weights */
    int64_t parts, others;      /* largest subtrees inside this rank's range; of all ranks */
    taut_real *memory, *wait;   /* one slab per level: left sums that wait for the right ones */
    taut_real *part, *in;       /* `parts` slabs; this rank's weights of all `others`; both for several ranks only */
    int64_t at, seen;           /* the next part: of this rank; of all */
} taut_sum_tree;

/* More ranks than micro-batches are refused. */
taut_status taut_sum_tree_create(taut_sum_tree **out, const taut_model *, const taut_ranks *,
                                 int64_t leaves) TAUT_MUST_USE;
void taut_sum_tree_free(taut_sum_tree *);
int64_t taut_sum_tree_len(const taut_model *, int64_t leaves); /* elements that it will own with one rank */

/* leaf(arg, i) leaves the gradient of micro-batch i alone in the model's gradients, which are 0 before; it is called for this
 * rank's, in rising order.  Afterwards the gradients of the weights that this rank steps are the sum over all; others mean
 * nothing. */
void taut_sum_tree_gradients(taut_sum_tree *, void (*leaf)(void *arg, int64_t i), void *arg);
/* Begins this rank's part of the gradient's squared norm: t->squares sums.  Read, they give the whole. */
void taut_sum_tree_squares(const taut_sum_tree *, taut_sum *);
double taut_sum_tree_square(const taut_sum_tree *, const double *mine);
/* The sum in the same order of one number a micro-batch: x[stride i], given for those of this rank. */
double taut_sum_tree_number(const taut_sum_tree *, const double *mine, int64_t stride);
#endif
