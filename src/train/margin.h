/* A loss that asks for a radius.  Of logits f = W h + b the answer y stands against j as far as the features move by less than
 * (f_y - f_j) / |w_y - w_j|; so every other class gets a head start of
 *     s_j = margin * margin_radius * |w_y - w_j|,      loss = -ln softmax((f + s) / temperature)[y],
 * of which 1 / temperature is left out of the gradient.  Margin 1 asks for the radius margin_radius, if nothing before the head
 * stretches.  It goes from train.margin to train.margin_final in the first half of training.  The head's rows feel the head
 * starts too: they come closer where that pays.
 *
 * With train.margin_least below 1 a class is given no more of its head start than y leads it by, f_y - f_j, but no less than that
 * share of it, and the share counts as a constant in the gradient.  So an example far from its radius is asked for being right
 * first.  0.01 is EMMA's ("Unlocking Deterministic Robustness Certification on ImageNet", Hu et al. 2023).
 *
 * With train.focus = F, at least 1, and p that softmax's share of y, the loss is (1 - p)^F (-ln p), so examples that have their
 * radius by far are left alone; -ln p is what is logged all the same.  5 is the logit annealing loss's ("Enhancing Certified
 * Robustness via Block Reflector Orthogonal Layers and Logit Annealing Loss", Lai et al. 2025), which has EMMA's margins
 * too, and an offset that is not here.
 *
 * Features are far from 0 and differ little, so a step of W that is right for their differences moves all logits by much more
 * than a margin.  A step is therefore made of W and c in f = W (h - mu) + c, mu the mean of some features: the gradient of W
 * loses gb mu^T, and b is c - W mu with the new W.  The function that is trained is the same, and so is what is stored. */
#ifndef TAUT_TRAIN_MARGIN_H
#define TAUT_TRAIN_MARGIN_H
#include "model/pass.h"
#include "train/recipe.h"

enum { TAUT_MARGIN_CLASSES = 64 }; /* at most: the differences of all pairs of rows are kept */

typedef struct {
    const taut_train_spec *spec;
    const taut_param *head;
    double scale;                                 /* of the logits */
    taut_real *pairs;                             /* (classes^2, classes): row (i, j) times W is w_i - w_j */
    taut_real *apart;                             /* (classes^2, features): these differences; pull: their gradients */
    taut_real *pull, *distance, *tension, *start; /* |w_i - w_j|, its gradient; the head start of each example */
    taut_real *lead;                              /* shares of head starts; NULL: all get the whole */
    taut_real *mean;                              /* mu */
    const taut_param *bias;                       /* NULL: none, and no step is made of c */
} taut_margin;

taut_status taut_margin_create(taut_margin **out, const taut_model *, const taut_train_spec *) TAUT_MUST_USE;
void taut_margin_free(taut_margin *, const taut_kernels *);
int64_t taut_margin_len(const taut_model *, const taut_train_spec *); /* elements it will own */

/* After a forward pass: adds the loss to its sums, replaces its logits by the gradient, and adds to the head's. */
void taut_margin_loss(const taut_margin *, taut_pass *, const int32_t *targets, double weight, int64_t step);
/* After a forward pass: the head's bias becomes what makes the mean of these logits 0.  At a low temperature logits that are
 * all far from 0 would drown every difference between examples. */
taut_status taut_margin_centre(const taut_model *, const taut_pass *) TAUT_MUST_USE;
/* A step: after a forward pass of examples that are every rank's, before the optimiser, and after it and the constraints. */
void taut_margin_look(const taut_margin *, const taut_pass *); /* mu becomes the mean of their features */
void taut_margin_before(const taut_margin *, const taut_kernels *);
void taut_margin_after(const taut_margin *, const taut_kernels *);
double taut_margin_at(const taut_train_spec *, int64_t step); /* margin * margin_radius at this step */
#endif
