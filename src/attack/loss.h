/* Losses of one example, to be made large, and their gradients in the logits z.  With z sorted, z1 >= z2 >= ..., y the label:
 *     CE        -ln softmax(z)_y
 *     DLR       -(z_y - max_{i != y} z_i) / (z1 - z3 + 1e-12)
 *     DLR_T     -(z_y - z_t) / (z1 - (z3 + z4) / 2 + 1e-12), t the wrong class pulled to
 *     MARGIN    -(z_y - max_{i != y} z_i)
 * DLR needs three classes and DLR_T four: taut_loss_for says what takes their place with fewer. */
#ifndef TAUT_ATTACK_LOSS_H
#define TAUT_ATTACK_LOSS_H
#include <stdint.h>

typedef enum { TAUT_LOSS_CE, TAUT_LOSS_DLR, TAUT_LOSS_DLR_T, TAUT_LOSS_MARGIN } taut_loss;

/* The value; w (classes) becomes the gradient, NULL: not wanted.  classes >= 2; NaN logits give NaN. */
double taut_loss_at(double *w, taut_loss, const double *z, int64_t classes, int32_t label, int32_t wrong);
taut_loss taut_loss_for(taut_loss wanted, int64_t classes);
const char *taut_loss_name(taut_loss);
#endif
