/* One batch through a model: embedding, root, loss, and back.  Owns the trace and the scratch, sized once. */
#ifndef TAUT_MODEL_PASS_H
#define TAUT_MODEL_PASS_H
#include "model/model.h"

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

int64_t taut_pass_len(const taut_model *, int64_t n, int64_t t, bool backward); /* elements it will own */
taut_status taut_pass_create(taut_pass **out, taut_model *, int64_t n, int64_t t, bool backward) TAUT_MUST_USE;
void taut_pass_free(taut_pass *);

/* ids is (n, t), n at most what it was made for; the logits are then in pass->logits. */
void taut_pass_forward(taut_pass *, const int32_t *ids, int64_t n, int64_t t);
/* Sum of the cross-entropies over targets >= 0; with backward, the logits become weight times its gradient.
 */
double taut_pass_loss(taut_pass *, const int32_t *targets, int64_t *correct, double weight, bool backward);
/* After a loss with backward: adds the gradients of every weight. */
void taut_pass_backward(taut_pass *, const int32_t *ids);
#endif
