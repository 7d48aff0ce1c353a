/* APGD: projected gradient ascent that sets its own step (Croce and Hein 2020; L1: 2021).
 *
 * Linf, L2.  From a random point of the sphere, step s = 2 eps:
 *     u = project(y + s * ascent),  y' = project(y + a (u - y) + (1 - a)(y - y_before)),   a = 0.75, first step 1.
 * At checkpoints the step is halved, and y set back to the best point so far with its gradient, if in the steps since the
 * last one (a) the loss rose in at most 75 % of them, or (b) s was not halved then and the best loss has not risen since.
 * Windows are 22 % of the steps, shrinking by 3 %, never under 6 %.
 * L1.  s = eps, along the signs of the largest gradient entries (20 % at first), no momentum.  Every 4 % of the steps, the
 * share becomes the best point's support / 1.5; where that support shrank by more than 5 % the step is eps again and y the
 * best point, else the step is divided by 1.5, down to eps / 10.
 *
 * The rise of the first step is counted against the start's loss. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "attack/attack.h"
#include "base/rng.h"

enum { Y, OLD, BEST, G, G_BEST, SUM };

typedef struct {
    double step, share, support; /* L1: the share of entries moved, and how many the best point moved */
    double best, best_before;    /* the best loss, now and at the last checkpoint */
    double last;                 /* loss of the iterate before */
    int64_t rises;               /* steps since the checkpoint that raised the loss */
    bool halved;
} pace;
_Static_assert(sizeof(pace) <= TAUT_CHASE_STATE, "an example's state");

static int64_t part(double share, int64_t steps)
{
    const int64_t k = (int64_t)(share * (double)steps + 1e-9);
    return k > 1 ? k : 1;
}

int64_t taut_apgd_window(taut_ball_kind kind, int64_t last, int64_t steps)
{
    if (last == 0) return part(kind == TAUT_BALL_L1 ? 0.04 : 0.22, steps);
    if (kind == TAUT_BALL_L1) return last;
    const int64_t least = part(0.06, steps), next = last - part(0.03, steps);
    return next > least ? next : least;
}

static bool all_zero(const double *g, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        if (g[i] != 0) return false;
    return true;
}

/* Logits, loss and gradient at y, the gradient averaged over the draws; prediction and loss are the last draw's. */
static void look(taut_chase *c, int64_t step)
{
    taut_hunt *h = c->h;
    const int64_t dim = h->target->dim, draws = c->a->draws;
    double *g = c->array[G], *sum = c->array[SUM];
    for (int64_t draw = 0; draw < draws; draw++) {
        taut_target_slope(h->target, c->z, c->loss, g, c->array[Y], taut_chase_keys(c, step, draw), c->live, c->lives,
                          c->a->loss, h->label, c->wrong);
        for (int64_t i = 0; draws > 1 && i < c->lives; i++)
            for (int64_t at = c->live[i] * dim; at < (c->live[i] + 1) * dim; at++) {
                sum[at] = (draw ? sum[at] : 0) + g[at];
                g[at] = sum[at] / (double)draws;
            }
    }
}

static void move_sparse(const taut_chase *c, taut_ball b, const pace *p, int64_t e)
{
    const int64_t dim = c->h->target->dim;
    double *y = c->array[Y] + e * dim;
    taut_ball_sparse_step(y, c->array[G] + e * dim, p->step, p->share, taut_chase_work(c), dim);
    taut_ball_project(b, y, c->h->x + e * dim, dim);
}

static void move(const taut_chase *c, taut_ball b, const pace *p, int64_t e, double a)
{
    const int64_t dim = c->h->target->dim;
    const double *x = c->h->x + e * dim;
    double *y = c->array[Y] + e * dim, *old = c->array[OLD] + e * dim, *u = taut_chase_work(c);
    memcpy(u, y, (size_t)dim * sizeof *u);
    taut_ball_step(b, u, c->array[G] + e * dim, p->step, dim);
    taut_ball_project(b, u, x, dim);
    for (int64_t i = 0; i < dim; i++) {
        const double now = y[i];
        y[i] = now + a * (u[i] - now) + (1 - a) * (now - old[i]);
        old[i] = now;
    }
    taut_ball_project(b, y, x, dim);
}

static void copy_row(const taut_chase *c, int to, int from, int64_t e)
{
    const int64_t dim = c->h->target->dim;
    memcpy(c->array[to] + e * dim, c->array[from] + e * dim, (size_t)dim * sizeof(double));
}

static void back_to_best(const taut_chase *c, int64_t e)
{
    copy_row(c, Y, BEST, e);
    copy_row(c, G, G_BEST, e);
}

static void note(const taut_chase *c, pace *p, int64_t e)
{
    const double loss = c->loss[e];
    p->rises += loss > p->last;
    p->last = loss;
    if (!(loss > p->best)) return;
    p->best = loss;
    copy_row(c, BEST, Y, e);
    copy_row(c, G_BEST, G, e);
}

static void check(const taut_chase *c, pace *p, int64_t e, int64_t window)
{
    const bool swings = (double)p->rises <= 0.75 * (double)window, stuck = !p->halved && p->best_before >= p->best;
    p->halved = swings || stuck;
    p->best_before = p->best;
    p->rises = 0;
    if (!p->halved) return;
    p->step /= 2;
    back_to_best(c, e);
}

static void check_sparse(const taut_chase *c, taut_ball b, pace *p, int64_t e)
{
    const int64_t dim = c->h->target->dim;
    const double *best = c->array[BEST] + e * dim, *x = c->h->x + e * dim;
    int64_t moved = 0;
    for (int64_t i = 0; i < dim; i++) moved += best[i] != x[i];
    const double support = (double)moved;
    const bool sparser = support < 0.95 * p->support;
    p->share = support / (double)dim / 1.5;
    p->step = sparser ? b.eps : fmax(p->step / 1.5, b.eps / 10);
    p->support = support;
    if (sparser) back_to_best(c, e);
}

static void begin(taut_chase *c, taut_ball b, pace *all, bool random)
{
    const int64_t dim = c->h->target->dim;
#pragma omp parallel for schedule(static) if (c->lives * c->h->target->dim > TAUT_CHASE_WORTH)
    for (int64_t i = 0; i < c->lives; i++) {
        const int64_t e = c->live[i];
        const double *x = c->h->x + e * dim;
        double *y = c->array[Y] + e * dim;
        if (random)
            taut_ball_start(b, y, x, c->key[e], dim);
        else
            taut_ball_project(b, y, x, dim);
        pace *p = &all[e];
        *p = (pace){
            .step = b.kind == TAUT_BALL_L1 ? b.eps : 2 * b.eps, .share = 0.2, .support = (double)dim, .halved = true
        };
        if (!random) { /* a later leg: as sparse as what it starts from */
            p->support = 0;
            for (int64_t k = 0; k < dim; k++) p->support += y[k] != x[k];
            p->share = p->support / (double)dim / 1.5;
        }
    }
}

static void first_look(taut_chase *c, pace *p, int64_t e)
{
    const int64_t dim = c->h->target->dim;
    p->best = p->best_before = p->last = c->loss[e];
    copy_row(c, OLD, Y, e);
    copy_row(c, BEST, Y, e);
    copy_row(c, G_BEST, G, e);
    c->h->still += all_zero(c->array[G] + e * dim, dim);
}

/* `steps` steps in this ball; only a point of the hunt's own ball counts.  clock numbers the passes of all legs. */
static void leg(taut_chase *c, taut_ball b, int64_t steps, bool random, int64_t *clock)
{
    const bool sparse = b.kind == TAUT_BALL_L1, counts = b.eps <= c->h->ball.eps;
    pace *all = c->state;
    int64_t window = taut_apgd_window(b.kind, 0, steps), since = 0;
    begin(c, b, all, random);
    look(c, (*clock)++);
    if (counts) taut_chase_settle(c, c->array[Y]);
    for (int64_t i = 0; i < c->lives; i++) first_look(c, &all[c->live[i]], c->live[i]);
    for (int64_t step = 0; c->lives && step < steps; step++) {
#pragma omp parallel for schedule(static) if (c->lives * c->h->target->dim > TAUT_CHASE_WORTH)
        for (int64_t i = 0; i < c->lives; i++)
            if (sparse)
                move_sparse(c, b, &all[c->live[i]], c->live[i]);
            else
                move(c, b, &all[c->live[i]], c->live[i], step ? 0.75 : 1);
        look(c, (*clock)++);
        if (counts) taut_chase_settle(c, c->array[Y]);
        const bool checkpoint = ++since == window;
        for (int64_t i = 0; i < c->lives; i++) {
            pace *p = &all[c->live[i]];
            note(c, p, c->live[i]);
            if (checkpoint && sparse) check_sparse(c, b, p, c->live[i]);
            if (checkpoint && !sparse) check(c, p, c->live[i], window);
        }
        if (!checkpoint) continue;
        window = taut_apgd_window(b.kind, window, steps);
        since = 0;
    }
}

void taut_apgd(taut_chase *c)
{
    taut_ball b = c->h->ball;
    const int64_t steps = c->a->steps;
    int64_t clock = 0, done = 0;
    for (int k = b.kind == TAUT_BALL_L1 && c->a->shrink ? 3 : 1; k >= 1; k--) {
        const bool first = done == 0;
        const int64_t third = (int64_t)ceil(0.3 * (double)steps), count = k > 1 ? third : steps - done;
        b.eps = k * c->h->ball.eps;
        for (int64_t i = 0; !first && i < c->lives; i++) copy_row(c, Y, BEST, c->live[i]);
        leg(c, b, count, first, &clock);
        done += count;
    }
}
