/* FAB (Croce and Hein 2020): the shortest way out of the class, by walking along its linearised boundary.
 *
 * With f = z_c - z_y and w its gradient at y (c the wrong class whose plane is nearest, or the one pulled to), the plane is
 * {v: f + w.(v - y) = 0}.  d1 leads from y to it, d2 from the clean x, each the shortest inside the box; with
 * a = min(|d1| / (|d1| + |d2|), 0.1):
 *     y' = cut((1 - a)(y + 1.05 d1) + a (x + 1.05 d2))
 * A y' of another class is kept if it is the closest so far, and y is pulled back to x + 0.9 (y' - x).  Only what lies
 * within eps counts.  Random starts (radius up to eps / 2) from the second restart on. */
#include <math.h>
#include <string.h>

#include "attack/attack.h"

static const double a_most = 0.1, over = 1.05, pull = 0.9, least = 1e-8;

enum { Y, G, FOUND };

typedef struct {
    double gap, best; /* f; the closest distance found so far */
} walk;
_Static_assert(sizeof(walk) <= TAUT_CHASE_STATE, "an example's state");

static void start(const taut_chase *c, int64_t e)
{
    const int64_t dim = c->h->target->dim;
    const double *x = c->h->x + e * dim;
    double *y = c->array[Y] + e * dim;
    taut_ball half = c->h->ball;
    half.eps /= 2;
    ((walk *)c->state)[e] = (walk){ 0, INFINITY };
    if (c->restart > 0)
        taut_ball_start(half, y, x, c->key[e], dim);
    else
        memcpy(y, x, (size_t)dim * sizeof *y);
}

static double size(taut_ball_kind kind, const double *d, int64_t n)
{
    static const taut_ball_kind dual[] = { TAUT_BALL_L1, TAUT_BALL_L2, TAUT_BALL_LINF };
    return fmax(taut_ball_dual(dual[kind])(d, n), least);
}

static void move(const taut_chase *c, int64_t e)
{
    const taut_ball b = c->h->ball;
    const int64_t dim = c->h->target->dim;
    const double *x = c->h->x + e * dim, *w = c->array[G] + e * dim, gap = ((walk *)c->state)[e].gap;
    double *y = c->array[Y] + e * dim, *d1 = c->array[FOUND + 1] + e * dim, *d2 = c->array[FOUND + 2] + e * dim;
    double along = 0; /* w.(y - x) */
    for (int64_t i = 0; i < dim; i++) along += w[i] * (y[i] - x[i]);
    taut_plane_move(b, d1, y, w, -gap, taut_chase_work(c), dim);
    taut_plane_move(b, d2, x, w, along - gap, taut_chase_work(c), dim);
    const double s1 = size(b.kind, d1, dim), s2 = size(b.kind, d2, dim), a = fmin(s1 / (s1 + s2), a_most);
    for (int64_t i = 0; i < dim; i++) {
        const double v = (1 - a) * (y[i] + over * d1[i]) + a * (x[i] + over * d2[i]);
        y[i] = v < b.lo ? b.lo : v > b.hi ? b.hi : v;
    }
}

/* Keeps what is closest and pulls back; true: within eps and no more is wanted. */
static bool judge(const taut_chase *c, int64_t e)
{
    const taut_hunt *h = c->h;
    const int64_t dim = h->target->dim, classes = h->target->classes;
    const double *x = h->x + e * dim;
    double *y = c->array[Y] + e * dim;
    walk *w = &((walk *)c->state)[e];
    if (taut_argmax(c->z + e * classes, classes) == h->label[e]) return false;
    const double distance = taut_ball_distance(h->ball.kind, x, y, dim);
    if (distance < w->best) {
        w->best = distance;
        memcpy(c->array[FOUND] + e * dim, y, (size_t)dim * sizeof *y);
    }
    for (int64_t i = 0; i < dim; i++) y[i] = x[i] + pull * (y[i] - x[i]);
    return !c->a->minimal && w->best <= h->ball.eps;
}

static void keep(const taut_chase *c, int64_t e)
{
    taut_hunt *h = c->h;
    const int64_t dim = h->target->dim;
    const walk *w = &((walk *)c->state)[e];
    if (!(w->best <= h->ball.eps)) return;
    memcpy(h->adv + e * dim, c->array[FOUND] + e * dim, (size_t)dim * sizeof(double));
    h->distance[e] = w->best;
    h->broken[e] = true;
}

void taut_fab(taut_chase *c)
{
    taut_hunt *h = c->h;
    walk *all = c->state;
    for (int64_t i = 0; i < c->lives; i++) start(c, c->live[i]);
    for (int64_t step = 0; c->lives && step < c->a->steps; step++) {
        taut_target_boundary(h->target, c->loss, c->array[G], c->array[Y], taut_chase_keys(c, step, 0), c->live,
                             c->lives, h->label, c->wrong, taut_ball_dual(h->ball.kind));
#pragma omp parallel for schedule(static) if (c->lives * c->h->target->dim > TAUT_CHASE_WORTH)
        for (int64_t i = 0; i < c->lives; i++) {
            all[c->live[i]].gap = c->loss[c->live[i]];
            move(c, c->live[i]);
        }
        taut_target_logits(h->target, c->z, c->array[Y], taut_chase_keys(c, step, 1), c->live, c->lives);
        int64_t left = 0;
        for (int64_t i = 0; i < c->lives; i++) {
            const int64_t e = c->live[i];
            if (judge(c, e))
                keep(c, e);
            else
                c->live[left++] = e;
        }
        c->lives = left;
    }
    for (int64_t i = 0; i < c->lives; i++) keep(c, c->live[i]);
}
