/* Square (Andriushchenko et al. 2020): random search with windows, no gradients.  The margin z_y - max other is made small;
 * a trial is taken when the margin falls or the class changes.
 *
 * A window has a share p of the pixels: side round(sqrt(p h w)), at least 1 (Linf) or 3 and odd (L2, L1).  In an image
 * narrower than that, the window is as wide as the image and as much longer.  p = 0.8 at first, halved after 10, 50, 200,
 * 500, 1000, 2000, 4000, 6000 and 8000 queries; `rescale` stretches the table to the queries there are.  Windows lie
 * anywhere, the last position included, one for each example.
 * Linf.  Start: vertical stripes of +-eps, one sign a channel and column.  Trial: one window moved by +-2 eps, one sign a
 * channel, cut to ball and box.
 * L2, L1.  Start: tiles of side h / 5 with one bump each, scaled to eps.  Trial: the mass of two windows, and what is left
 * of eps, goes into the first of them, mixed with a new bump; the second becomes 0. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "attack/attack.h"
#include "base/rng.h"

enum { BEST, TRIAL };

typedef struct {
    double margin;
} search;

typedef struct {
    int64_t top, left, high, wide;
} window;

double taut_square_share(int64_t query, int64_t queries, bool rescale)
{
    static const int64_t after[] = { 10, 50, 200, 500, 1000, 2000, 4000, 6000, 8000 };
    const int64_t at = rescale ? (int64_t)((double)query / (double)queries * 10000) : query;
    double p = 0.8;
    for (int i = 0; i < 9 && at > after[i]; i++) p /= 2;
    return p;
}

void taut_square_window(int64_t *high, int64_t *wide, double p, int64_t height, int64_t width, taut_ball_kind kind)
{
    const int64_t least = kind == TAUT_BALL_LINF ? 1 : 3, narrow = height < width ? height : width,
                  broad = height < width ? width : height;
    const double area = p * (double)height * (double)width;
    int64_t side = llround(sqrt(area));
    if (side < least) side = least;
    if (kind != TAUT_BALL_LINF && side % 2 == 0) side++;
    int64_t longer = side;
    if (side > narrow) {
        side = narrow;
        longer = llround(area / (double)narrow);
        longer = longer < least ? least : longer;
        if (longer > broad) longer = broad;
    }
    *high = height < width ? side : longer;
    *wide = height < width ? longer : side;
}

static window place(const taut_target *t, int64_t high, int64_t wide, uint64_t key, uint64_t counter)
{
    return (window){ .top = (int64_t)taut_rng_below(key, counter, (uint64_t)(t->height - high + 1)),
                     .left = (int64_t)taut_rng_below(key, counter + 1, (uint64_t)(t->width - wide + 1)),
                     .high = high,
                     .wide = wide };
}

static double coin(uint64_t key, uint64_t counter) { return taut_rng_bits(key, counter) >> 63 ? 1 : -1; }

/* ---- Linf ---- */

static void stripes(const taut_chase *c, double *y, int64_t e)
{
    const taut_target *t = c->h->target;
    for (int64_t i = 0; i < t->dim; i++)
        y[i] = c->h->x[e * t->dim + i] + c->h->ball.eps * coin(c->key[e], (uint64_t)(i % (t->width * t->channels)));
    taut_ball_project(c->h->ball, y, c->h->x + e * t->dim, t->dim);
}

static void flip(const taut_chase *c, double *y, int64_t e, window w, uint64_t key)
{
    const taut_target *t = c->h->target;
    for (int64_t ch = 0; ch < t->channels; ch++) {
        const double by = 2 * c->h->ball.eps * coin(key, (uint64_t)(16 + ch));
        for (int64_t r = w.top; r < w.top + w.high; r++)
            for (int64_t k = w.left; k < w.left + w.wide; k++) y[(r * t->width + k) * t->channels + ch] += by;
    }
    taut_ball_project(c->h->ball, y, c->h->x + e * t->dim, t->dim);
}

/* ---- L2 and L1 ---- */

/* A bump that falls off from its middle: sum over k of 1/(k+1)^2 on the rectangles within k of it. */
static double hill(int64_t r, int64_t k, int64_t high, int64_t wide)
{
    const int64_t down = llabs(r - high / 2), across = llabs(k - wide / 2), far = down > across ? down : across,
                  rings = (high > wide ? high : wide) / 2 + 1;
    double sum = 0;
    for (int64_t ring = far; ring < rings; ring++) sum += 1 / (double)((ring + 1) * (ring + 1));
    return sum;
}

/* Two hills of opposite sign side by side; a coin says whether they lie above one another or beside. */
static double bump(int64_t r, int64_t k, int64_t high, int64_t wide, bool turned)
{
    if (turned) return bump(k, r, wide, high, false);
    const int64_t half = high / 2;
    if (r < half) return hill(r, k, half, wide);
    return half ? -hill(r - half, k, high - half, wide) : hill(r, k, high, wide);
}

static double mass(taut_ball_kind kind, double d) { return kind == TAUT_BALL_L2 ? d * d : fabs(d); }
static double length(taut_ball_kind kind, double sum) { return kind == TAUT_BALL_L2 ? sqrt(sum) : sum; }

static void tiles(const taut_chase *c, double *y, int64_t e)
{
    const taut_target *t = c->h->target;
    const taut_ball_kind kind = c->h->ball.kind;
    const int64_t narrow = t->height < t->width ? t->height : t->width, side = narrow >= 5 ? narrow / 5 : 1;
    const double *x = c->h->x + e * t->dim;
    double sum = 0;
    for (int64_t i = 0; i < t->dim; i++) {
        const int64_t ch = i % t->channels, k = i / t->channels % t->width, r = i / t->channels / t->width;
        const int64_t tile = (ch * t->height + r / side) * t->width + k / side;
        const double up = coin(c->key[e], (uint64_t)(2 * tile)), turned = coin(c->key[e], (uint64_t)(2 * tile + 1));
        y[i] = up * bump(r % side, k % side, side, side, turned > 0);
        sum += mass(kind, y[i]);
    }
    const double scale = c->h->ball.eps / length(kind, sum);
    for (int64_t i = 0; i < t->dim; i++) y[i] = x[i] + scale * y[i];
    taut_ball_project(c->h->ball, y, x, t->dim);
}

static bool inside(window w, int64_t r, int64_t k)
{
    return r >= w.top && r < w.top + w.high && k >= w.left && k < w.left + w.wide;
}

/* One channel of the move d, its entries `channels` apart: what the two windows hold and `spare` more, as one bump in the
 * first. */
static void gather(double *d, const taut_target *t, taut_ball_kind kind, window to, window from, double spare,
                   uint64_t key, int64_t channel)
{
    double held = 0, first = 0, bumps = 0, mixed = 0;
    const double up = coin(key, (uint64_t)(16 + channel));
    const bool turned = coin(key, 8) > 0;
    for (int64_t r = 0; r < t->height; r++)
        for (int64_t k = 0; k < t->width; k++) {
            const double m = mass(kind, d[(r * t->width + k) * t->channels]);
            if (inside(to, r, k)) first += m;
            if (inside(to, r, k) || inside(from, r, k)) held += m;
            if (inside(to, r, k)) bumps += mass(kind, bump(r - to.top, k - to.left, to.high, to.wide, turned));
            if (inside(from, r, k) && !inside(to, r, k)) d[(r * t->width + k) * t->channels] = 0;
        }
    const double old = 1 / (1e-12 + length(kind, first)), new = up / length(kind, bumps);
    for (int pass = 0; pass < 2; pass++) {
        const double scale = pass ? length(kind, held + spare) / (1e-12 + length(kind, mixed)) : 1;
        for (int64_t r = to.top; r < to.top + to.high; r++)
            for (int64_t k = to.left; k < to.left + to.wide; k++) {
                double *v = &d[(r * t->width + k) * t->channels];
                if (!pass) *v = *v * old + new *bump(r - to.top, k - to.left, to.high, to.wide, turned);
                if (!pass) mixed += mass(kind, *v);
                *v *= scale;
            }
    }
}

static void shift(const taut_chase *c, double *y, int64_t e, window to, window from, uint64_t key)
{
    const taut_target *t = c->h->target;
    const taut_ball b = c->h->ball;
    const double *x = c->h->x + e * t->dim;
    double used = 0;
    for (int64_t i = 0; i < t->dim; i++) {
        y[i] -= x[i];
        used += mass(b.kind, y[i]);
    }
    const double spare = fmax(mass(b.kind, b.eps) - used, 0) / (double)t->channels;
    for (int64_t ch = 0; ch < t->channels; ch++) gather(y + ch, t, b.kind, to, from, spare, key, ch);
    for (int64_t i = 0; i < t->dim; i++) y[i] += x[i];
    taut_ball_project(b, y, x, t->dim);
}

/* ---- the search ---- */

static void propose(const taut_chase *c, int64_t e, int64_t query)
{
    const taut_target *t = c->h->target;
    const taut_ball_kind kind = c->h->ball.kind;
    const uint64_t key = taut_rng_key(c->key[e], 1, (uint64_t)query);
    double *y = c->array[TRIAL] + e * t->dim;
    int64_t high, wide;
    taut_square_window(&high, &wide, taut_square_share(query, c->a->steps, c->a->rescale), t->height, t->width, kind);
    memcpy(y, c->array[BEST] + e * t->dim, (size_t)t->dim * sizeof *y);
    if (kind == TAUT_BALL_LINF)
        flip(c, y, e, place(t, high, wide, key, 0), key);
    else
        shift(c, y, e, place(t, high, wide, key, 0), place(t, high, wide, key, 2), key);
}

/* The trials that are better, or all of them at the start, become the points of their examples. */
static void accept(taut_chase *c, const double *y, bool all)
{
    const int64_t dim = c->h->target->dim, classes = c->h->target->classes;
    for (int64_t i = 0; i < c->lives; i++) {
        const int64_t e = c->live[i];
        search *s = (search *)c->state + e;
        const double margin = -taut_loss_at(NULL, TAUT_LOSS_MARGIN, c->z + e * classes, classes, c->h->label[e], 0);
        if (!all && !(margin < s->margin)) continue;
        s->margin = margin;
        if (!all) memcpy(c->array[BEST] + e * dim, y + e * dim, (size_t)dim * sizeof *y);
    }
    taut_chase_settle(c, y);
}

void taut_square(taut_chase *c)
{
    taut_hunt *h = c->h;
    const int64_t dim = h->target->dim;
#pragma omp parallel for schedule(static) if (c->lives * c->h->target->dim > TAUT_CHASE_WORTH)
    for (int64_t i = 0; i < c->lives; i++)
        (h->ball.kind == TAUT_BALL_LINF ? stripes : tiles)(c, c->array[BEST] + c->live[i] * dim, c->live[i]);
    taut_target_logits(h->target, c->z, c->array[BEST], taut_chase_keys(c, 0, 0), c->live, c->lives);
    accept(c, c->array[BEST], true);
    for (int64_t query = 0; c->lives && query < c->a->steps; query++) {
#pragma omp parallel for schedule(static) if (c->lives * c->h->target->dim > TAUT_CHASE_WORTH)
        for (int64_t i = 0; i < c->lives; i++) propose(c, c->live[i], query);
        taut_target_logits(h->target, c->z, c->array[TRIAL], taut_chase_keys(c, query + 1, 0), c->live, c->lives);
        accept(c, c->array[TRIAL], false);
    }
}
