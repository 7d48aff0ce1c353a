/* One batch through a model: embedding or reals, root, loss, and back.  Owns the trace and the scratch, sized once. */
#ifndef TAUT_MODEL_PASS_H
#define TAUT_MODEL_PASS_H
#include "model/model.h"

/* What goes in, on the host: (n, t) token ids, or (n, t, m->in.d) reals; the other is NULL. */
typedef struct {
    const int32_t *ids;
    const double *reals;
} taut_input;

typedef struct taut_pass {
    taut_model *m;
    taut_shape in;   /* the batch that is in it now */
    int64_t largest; /* examples it was made for */
    bool backward;
    taut_run run;
    taut_real *memory; /* x, logits, [gx], trace, scratch */
    taut_tensor x, logits;
    taut_real *gx;
    taut_span trace;
} taut_pass;

/* n examples of t tokens each; a model that reads reals has t = m->in.t always. */
int64_t taut_pass_len(const taut_model *, int64_t n, int64_t t, bool backward); /* elements it will own */
taut_status taut_pass_create(taut_pass **out, taut_model *, int64_t n, int64_t t, bool backward) TAUT_MUST_USE;
void taut_pass_free(taut_pass *);

/* The same in two halves, for whoever fills pass->x (n, t, m->in.d) himself: an attack, a search for slopes. */
void taut_pass_shape(taut_pass *, int64_t n, int64_t t);
void taut_pass_run(taut_pass *);

/* n is at most what it was made for; the logits are then in pass->logits, one row for each question.  taut_pass_read
 * takes examples of the full length, whatever the model reads. */
void taut_pass_forward(taut_pass *, const int32_t *ids, int64_t n, int64_t t);
void taut_pass_forward_real(taut_pass *, const double *reals, int64_t n);
void taut_pass_read(taut_pass *, taut_input, int64_t n);
/* Sum of the cross-entropies over targets >= 0; with backward, the logits become weight times its gradient.
 */
double taut_pass_loss(taut_pass *, const int32_t *targets, int64_t *correct, double weight, bool backward);
/* The same, backward always, with shares (n, questions, classes) in the place of targets; a model has at most as many
 * classes as an input has numbers. */
double taut_pass_loss_shared(taut_pass *, const double *shares, int64_t *correct, double weight);
/* Of a forecast: the sum of the squared errors over the numbers wanted (n, asked, reals); the sum of their sizes is added to
 * *absolute. */
double taut_pass_error(taut_pass *, const double *wanted, double *absolute, double weight, bool backward);
/* After a loss with backward, or with any cotangent in pass->logits: adds the gradients of every weight; ids is NULL
 * for reals.  taut_pass_input_grad leaves the weights alone.  Both leave the gradient of the input in pass->gx. */
void taut_pass_backward(taut_pass *, const int32_t *ids);
void taut_pass_input_grad(taut_pass *);
#endif
