/* FGSM: one step of length eps along the steepest ascent of the cross-entropy (sign of the gradient for Linf, the gradient
 * over its length for L2), cut to the box.  L1: the entries with the largest gradients, each as far as the box lets it,
 * until eps is spent, which is the most a linear loss can be raised by. */
#include <math.h>
#include <string.h>

#include "attack/attack.h"

void taut_fgsm(taut_chase *c)
{
    taut_hunt *h = c->h;
    const int64_t dim = h->target->dim;
    double *y = c->array[0], *g = c->array[1];
    taut_target_slope(h->target, c->z, c->loss, g, h->x, taut_chase_keys(c, 0, 0), c->live, c->lives, c->a->loss,
                      h->label, c->wrong);
#pragma omp parallel for schedule(static) if (c->lives * c->h->target->dim > TAUT_CHASE_WORTH)
    for (int64_t i = 0; i < c->lives; i++) {
        const int64_t at = c->live[i] * dim;
        if (h->ball.kind == TAUT_BALL_L1) {
            taut_plane_far(h->ball, y + at, h->x + at, g + at, INFINITY, taut_chase_work(c), dim);
            for (int64_t k = 0; k < dim; k++) y[at + k] += h->x[at + k];
        } else {
            memcpy(y + at, h->x + at, (size_t)dim * sizeof *y);
            taut_ball_step(h->ball, y + at, g + at, h->ball.eps, dim);
        }
        taut_ball_project(h->ball, y + at, h->x + at, dim);
    }
    taut_target_logits(h->target, c->z, y, taut_chase_keys(c, 1, 0), c->live, c->lives);
    taut_chase_settle(c, y);
}
