/* L-BFGS in inner coordinates, and Newton-CG for the lanes it leaves (module/prox.h).
 *
 * phi is convex with second derivative at least that of |y|^2/(2 eta): a step t d with b = dphi(z + t d).d <= 0 lowers
 * phi without a value of it being looked at, which near the end would be all rounding.  Accepted when
 *     b <= 0,  or phi falls by 1e-4 t |g.d|,  or b <= 0.9 |g.d| and |g| falls;  else t *= g.d/(g.d - b) within [0.1, 0.5].
 * The first trial that fails is used otherwise: its pair tells how phi bends, so another direction is made with it.
 * The last clause may raise phi; the caps on steps and trials make that harmless.  A lane leaves for Newton when it
 * gains less than a digit in 10 steps, when 12 trials fail, or after 25 steps.
 *
 * Newton-CG: for |A d + g| <= th |g| the slope of |g|^2 along d is at most -2 (1 - th) |g|^2, so |g| is its own merit.
 *
 * What is right does not depend on any of this, only on the residual that was measured in the end. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "module/prox.h"

enum { PAIRS = 5, STEPS = 25, TRIALS = 12, WINDOW = 10, NEWTON_STEPS = 100, NEWTON_TRIALS = 30, PRODUCTS = 500 };

typedef enum { SEEKING, STUCK, ENDED } lane_state;

typedef struct {
    lane_state state;
    double phi, size, slope, t; /* at z: phi, |g|, g.d; the length of the step that is being tried */
    int step, trial, pairs, newest;
    double past[STEPS + 1]; /* |g| before every step */
    double bend[PAIRS];     /* s.y */
} lane;

typedef struct {
    prox *p;
    taut_real *z, *g, *dir, *z_new, *g_new, *s, *y; /* s and y: PAIRS arrays each */
    lane *lane;
    prox_lane_end *end;
    taut_span rest;
} search;

int64_t prox_solve_used(const prox *p)
{
    const int64_t len = p->shape.n * prox_lane(p), lane = p->shape.t * p->shape.d;
    const int64_t history = p->plain ? 0 : 2 * PAIRS * len + lane + prox_cg_used(p, 1);
    return 4 * len + history;
}

int64_t prox_lbfgs_host(const prox *p)
{
    return taut_host_len(p->shape.n, sizeof(lane)) + p->shape.n + prox_cg_host(1);
}

static taut_real *pair_at(const search *q, taut_real *all, int slot)
{
    return taut_at(q->p->k, all, slot * q->p->shape.n * prox_lane(q->p));
}

/* dir = -(L-BFGS matrix) g, from the newest pair down and up again */
static void direction(search *q, int64_t e)
{
    const prox *p = q->p;
    lane *l = &q->lane[e];
    double weight[PAIRS] = { 0 };
    prox_add(p, q->dir, -1, q->g, 0, e);
    for (int i = 0; i < l->pairs; i++) {
        const int slot = (l->newest - i + PAIRS) % PAIRS;
        weight[slot] = prox_dot(p, pair_at(q, q->s, slot), q->dir, e) / l->bend[slot];
        prox_add(p, q->dir, -weight[slot], pair_at(q, q->y, slot), 1, e);
    }
    if (l->pairs > 0) {
        taut_real *y = pair_at(q, q->y, l->newest);
        prox_add(p, q->dir, l->bend[l->newest] / prox_dot(p, y, y, e), q->dir, 0, e);
    }
    for (int i = l->pairs - 1; i >= 0; i--) {
        const int slot = (l->newest - i + PAIRS) % PAIRS;
        const double back = prox_dot(p, pair_at(q, q->y, slot), q->dir, e) / l->bend[slot];
        prox_add(p, q->dir, weight[slot] - back, pair_at(q, q->s, slot), 1, e);
    }
    l->slope = prox_dot(p, q->g, q->dir, e);
}

static void end_lane(search *q, int64_t e, double at)
{
    q->lane[e].state = ENDED;
    q->end[e].done = true;
    q->end[e].at = at;
}

/* Looks at the gradient at z, which was evaluated last: is it small enough?  |g| in y is at least |g|/sqrt(eta)
 * here. */
static bool small_enough(search *q, int64_t e)
{
    const lane *l = &q->lane[e];
    if (!(l->size <= q->end[e].tol * sqrt(q->p->eta))) return false;
    const double size = prox_norm(q->p, q->g, e, q->rest);
    if (!(size <= q->end[e].tol)) return false;
    end_lane(q, e, size);
    return true;
}

/* A new point was accepted: the next direction, or out of here. */
static void next_direction(search *q, int64_t e)
{
    lane *l = &q->lane[e];
    if (small_enough(q, e)) return;
    const bool slow = l->step >= WINDOW + 2 && l->size > 0.1 * l->past[l->step - WINDOW];
    l->state = STUCK;
    if (!isfinite(l->size) || !isfinite(l->phi) || slow || l->step >= STEPS) return;
    l->past[l->step++] = l->size;
    direction(q, e);
    if (!(l->slope < 0)) return;
    l->state = SEEKING;
    l->t = 1;
    l->trial = 0;
}

/* The pair of a trial, taken or not: either way it tells how phi bends. */
static void remember(search *q, int64_t e)
{
    const prox *p = q->p;
    lane *l = &q->lane[e];
    const int slot = l->pairs ? (l->newest + 1) % PAIRS : 0;
    taut_real *s = pair_at(q, q->s, slot), *y = pair_at(q, q->y, slot);
    prox_add(p, s, l->t, q->dir, 0, e);
    prox_add(p, y, 1, q->g_new, 0, e);
    prox_add(p, y, -1, q->g, 1, e);
    const double bend = prox_dot(p, s, y, e);
    if (bend > 1e-12 * sqrt(prox_dot(p, s, s, e) * prox_dot(p, y, y, e))) {
        l->newest = slot;
        l->bend[slot] = bend;
        if (l->pairs < PAIRS) l->pairs++;
    }
}

static void accept(search *q, int64_t e, double phi, double size)
{
    const prox *p = q->p;
    lane *l = &q->lane[e];
    remember(q, e);
    prox_add(p, q->z, 1, q->z_new, 0, e);
    prox_add(p, q->g, 1, q->g_new, 0, e);
    l->phi = phi;
    l->size = size;
    next_direction(q, e);
}

static void judge(search *q, int64_t e, double phi)
{
    lane *l = &q->lane[e];
    const double size = sqrt(prox_dot(q->p, q->g_new, q->g_new, e)), b = prox_dot(q->p, q->g_new, q->dir, e);
    if (++l->trial >= TRIALS) l->state = STUCK;
    if (!isfinite(phi) || !isfinite(size)) {
        l->t *= 0.1;
        return;
    }
    if (b <= 0 || phi <= l->phi + 1e-4 * l->t * l->slope || (b <= -0.9 * l->slope && size < l->size)) {
        accept(q, e, phi, size);
        return;
    }
    l->t *= fmin(0.5, fmax(0.1, l->slope / (l->slope - b)));
    if (l->trial > 1 || l->state != SEEKING) return;
    remember(q, e);
    direction(q, e); /* from the same point, knowing more */
    l->t = 1;
    if (!(l->slope < 0)) l->state = STUCK;
}

static bool seeking(const search *q)
{
    for (int64_t e = 0; e < q->p->shape.n; e++)
        if (q->lane[e].state == SEEKING) return true;
    return false;
}

static search search_new(prox *p, taut_real *z, prox_lane_end *end, taut_span scratch)
{
    const int64_t len = p->shape.n * prox_lane(p);
    search q = { .p = p, .z = z, .end = end };
    taut_real **part[] = { &q.g, &q.dir, &q.z_new, &q.g_new };
    for (int i = 0; i < 4; i++) *part[i] = taut_take(&scratch, len);
    q.s = taut_take(&scratch, PAIRS * len);
    q.y = taut_take(&scratch, PAIRS * len);
    q.rest = scratch;
    q.lane = taut_take_host(&p->host, p->shape.n, sizeof *q.lane);
    return q;
}

void prox_lbfgs(prox *p, taut_real *z, prox_lane_end *end, taut_span scratch)
{
    const int64_t n = p->shape.n;
    const taut_span mark = p->host;
    search q = search_new(p, z, end, scratch);
    double *phi = taut_take_host(&p->host, n, sizeof *phi);
    prox_gradient(p, q.g, phi, z, 0, n);
    for (int64_t e = 0; e < n; e++) {
        q.lane[e].phi = phi[e];
        q.lane[e].size = sqrt(prox_dot(p, q.g, q.g, e));
        next_direction(&q, e);
    }
    while (seeking(&q)) {
        for (int64_t e = 0; e < n; e++) {
            const bool tries = q.lane[e].state == SEEKING; /* the others stay where they are */
            prox_add(p, q.z_new, 1, q.z, 0, e);
            if (tries) prox_add(p, q.z_new, q.lane[e].t, q.dir, 1, e);
        }
        prox_gradient(p, q.g_new, phi, q.z_new, 0, n);
        for (int64_t e = 0; e < n; e++)
            if (q.lane[e].state == SEEKING) judge(&q, e, phi[e]);
    }
    bool stale = false;
    for (int64_t e = 0; e < n; e++) {
        if (q.lane[e].state != STUCK) continue;
        stale = true;
        prox_newton(p, z, end, e, scratch);
    }
    if (stale) prox_gradient(p, q.g, phi, z, 0, n); /* v and the rows are those of z again */
    p->host = mark;
}

/* One step of Newton-CG from (z, g); false: no step helps. */
static bool newton_step(prox *p, taut_real *z, taut_real *g, taut_real *z_new, taut_real *g_new, taut_real *dir,
                        double *size, int64_t e, taut_span rest)
{
    const double tol = 0.1 * fmin(1, sqrt(*size));
    double phi;
    prox_add(p, g_new, -1, g, 0, e);
    if (prox_cg(p, dir, g_new, &tol, PRODUCTS, e, 1, rest) == 0) { /* not there: good enough to go on? */
        if (!(prox_dot(p, dir, g, e) < 0)) return false;
    }
    double t = 1;
    for (int trial = 0; trial < NEWTON_TRIALS; trial++, t *= 0.5) {
        prox_add(p, z_new, 1, z, 0, e);
        prox_add(p, z_new, t, dir, 1, e);
        prox_gradient(p, g_new, &phi, z_new, e, 1);
        const double now = sqrt(prox_dot(p, g_new, g_new, e));
        if (!(now <= (1 - 1e-4 * t) * *size)) continue;
        prox_add(p, z, 1, z_new, 0, e);
        prox_add(p, g, 1, g_new, 0, e);
        *size = now;
        return true;
    }
    return false;
}

void prox_newton(prox *p, taut_real *z, prox_lane_end *end, int64_t e, taut_span scratch)
{
    const int64_t len = p->shape.n * prox_lane(p);
    taut_real *g = taut_take(&scratch, len), *dir = taut_take(&scratch, len);
    taut_real *z_new = taut_take(&scratch, len), *g_new = taut_take(&scratch, len);
    double phi;
    prox_gradient(p, g, &phi, z, e, 1);
    double size = sqrt(prox_dot(p, g, g, e));
    for (int step = 0; step < NEWTON_STEPS && isfinite(size); step++) {
        if (size <= end[e].tol * sqrt(p->eta)) {
            end[e].at = prox_norm(p, g, e, scratch);
            end[e].done = end[e].at <= end[e].tol;
            if (end[e].done) return;
        }
        if (!newton_step(p, z, g, z_new, g_new, dir, &size, e, scratch)) break;
        /* g_new, v and the rows are those of z */
    }
    end[e].at = size;
    end[e].why = isfinite(size) ? "the residual did not fall to the tolerance" : "a number that is not finite";
}
