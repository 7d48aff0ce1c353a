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
    taut_real *memory; /* x, logits, [gx], trace, scratch, ids, targets, sums */
    double *host;      /* what the root plans there */
    taut_tensor x, logits;
    taut_real *gx;
    taut_span trace;
    taut_index *ids, *targets; /* of the batch that is in it now */
    taut_sum *sums;            /* TAUT_PASS_SUMS of them, 0 at first */
} taut_pass;

/* What a pass adds up where its model lives, until somebody reads and clears it. */
enum {
    TAUT_PASS_LOSS,    /* losses */
    TAUT_PASS_RIGHT,   /* right answers; of forecasts, the sizes of their errors */
    TAUT_PASS_PENALTY, /* penalties */
    TAUT_PASS_ROOM,    /* for whoever holds the pass, e.g. a norm that is read with the others */
    TAUT_PASS_SUMS
};

/* n examples of t tokens each; a model that reads reals has t = m->in.t always. */
int64_t taut_pass_len(const taut_model *, int64_t n, int64_t t, bool backward); /* elements it will own */
taut_status taut_pass_create(taut_pass **out, taut_model *, int64_t n, int64_t t, bool backward) TAUT_MUST_USE;
void taut_pass_free(taut_pass *);

/* The same in two halves, for whoever fills pass->x (n, t, m->in.d) himself: an attack, a search for slopes. */
void taut_pass_shape(taut_pass *, int64_t n, int64_t t);
void taut_pass_embed(taut_pass *, const int32_t *ids, int64_t n, int64_t t); /* the shape, and the embeddings in x */
void taut_pass_run(taut_pass *);

/* n is at most what it was made for; the logits are then in pass->logits, one row for each question.  taut_pass_read
 * takes examples of the full length, whatever the model reads. */
void taut_pass_forward(taut_pass *, const int32_t *ids, int64_t n, int64_t t);
void taut_pass_forward_real(taut_pass *, const double *reals, int64_t n);
void taut_pass_read(taut_pass *, taut_input, int64_t n);
/* Adds to the sums of the pass: the cross-entropies over targets >= 0 and the right answers; with backward, the logits
 * become weight times the loss's gradient. */
void taut_pass_loss(taut_pass *, const int32_t *targets, double weight, bool backward);
/* The same, backward always, with shares (n, questions, classes) in the place of targets; a model has at most as many
 * classes as an input has numbers. */
void taut_pass_loss_shared(taut_pass *, const double *shares, double weight);
/* Of a forecast: the squared errors over the numbers wanted (n, asked, reals), and the errors' sizes. */
void taut_pass_error(taut_pass *, const double *wanted, double weight, bool backward);
void taut_pass_clear(taut_pass *);                                                  /* all sums become 0 */
taut_status taut_pass_sums(taut_pass *, double sums[TAUT_PASS_SUMS]) TAUT_MUST_USE; /* waits for them; NaN on failure */
/* After a loss with backward, or with any cotangent in pass->logits: adds the gradients of every weight.
 * taut_pass_input_grad leaves the weights alone.  Both leave the gradient of the input in pass->gx. */
void taut_pass_backward(taut_pass *);
void taut_pass_input_grad(taut_pass *);
#endif
