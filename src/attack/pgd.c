/* PGD: y <- project(y + step * steepest ascent of the cross-entropy), from a random point of the ball (Linf: each entry
 * uniform; L2, L1: a Gaussian direction with a length uniform in [0, eps], for L1 then projected) or from the clean input.
 * In L1 the ascent is the move that raises the linearised loss most among those inside the box that spread over at least a
 * hundredth of the entries, equally where the box lets them (Tramer and Boneh 2019; one entry alone would be the steepest). */
#include <string.h>

#include "attack/attack.h"
#include "base/rng.h"

/* Inside the ball, not only on its sphere. */
static void start(const taut_chase *c, double *y, int64_t e)
{
    const taut_hunt *h = c->h;
    const int64_t dim = h->target->dim;
    const double *x = h->x + e * dim;
    taut_ball b = h->ball;
    if (c->a->fixed_start && c->restart == 0) {
        memcpy(y, x, (size_t)dim * sizeof *y);
        return;
    }
    if (b.kind == TAUT_BALL_LINF) {
        for (int64_t i = 0; i < dim; i++) y[i] = x[i] + b.eps * (2 * taut_rng_unit(c->key[e], (uint64_t)i) - 1);
        taut_ball_project(b, y, x, dim);
        return;
    }
    b.eps *= taut_rng_unit(c->key[e], UINT64_MAX - 1);
    taut_ball_start(b, y, x, c->key[e], dim);
}

static void climb(const taut_chase *c, double *y, double *g, const double *x, int64_t dim)
{
    taut_ball b = c->h->ball;
    const double size = c->a->step * b.eps;
    if (b.kind == TAUT_BALL_L1) {
        double *d = c->array[2] + (y - c->array[0]);
        b.eps = size;
        taut_plane_far(b, d, y, g, size / (double)(dim < 200 ? 1 : dim / 100), taut_chase_work(c), dim);
        for (int64_t i = 0; i < dim; i++) y[i] += d[i];
    } else {
        taut_ball_step(b, y, g, size, dim);
    }
    taut_ball_project(c->h->ball, y, x, dim);
}

/* Entries from which on threads pay; in Linf and L2 an entry takes a few instructions only. */
static int64_t worth(const taut_hunt *h)
{
    return h->ball.kind == TAUT_BALL_L1 ? TAUT_CHASE_WORTH : 16 * TAUT_CHASE_WORTH;
}

void taut_pgd(taut_chase *c)
{
    taut_hunt *h = c->h;
    const int64_t dim = h->target->dim;
    double *y = c->array[0], *g = c->array[1];
#pragma omp parallel for schedule(static) if (c->lives * c->h->target->dim > TAUT_CHASE_WORTH)
    for (int64_t i = 0; i < c->lives; i++) start(c, y + c->live[i] * dim, c->live[i]);
    for (int64_t step = 0; c->lives && step < c->a->steps; step++) {
        taut_target_slope(h->target, c->z, c->loss, g, y, taut_chase_keys(c, step, 0), c->live, c->lives, c->a->loss,
                          h->label, c->wrong);
        taut_chase_settle(c, y);
#pragma omp parallel for schedule(static) if (c->lives * c->h->target->dim > worth(h))
        for (int64_t i = 0; i < c->lives; i++) {
            const int64_t at = c->live[i] * dim;
            climb(c, y + at, g + at, h->x + at, dim);
        }
    }
    taut_target_logits(h->target, c->z, y, taut_chase_keys(c, c->a->steps, 0), c->live, c->lives);
    taut_chase_settle(c, y);
}
