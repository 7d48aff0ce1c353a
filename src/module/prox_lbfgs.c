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

/* The vectors of a lane are rows of one matrix, two in every slot: s and y of a pair, and in the one slot that is free the
 * direction d and the gradient g, which become a pair where they lie.  Row 2 i is s of slot i.  A new gradient meets all of
 * them in one pass, and a direction is made in one pass, since vectors that long come from memory every time.  Products of a lane
 * are kept in that order; behind them is the gradient's with itself. */
enum { SLOTS = PAIRS + 1, ROWS = 2 * SLOTS, SELF = ROWS, MEASURED };
_Static_assert((int)ROWS <= (int)TAUT_TERMS, "a direction is one blend");

typedef enum { SEEKING, STUCK, ENDED } lane_state;

typedef struct {
    lane_state state;
    double phi, size, slope, t; /* at z: phi, |g|, g.d; the length of the step that is being tried */
    int step, trial, pairs, free;
    double past[STEPS + 1];                    /* |g| before every step */
    double along[ROWS];                        /* s_i.g and y_i.g of the pairs */
    double sy[SLOTS][SLOTS], yy[SLOTS][SLOTS]; /* s_i.y_j where j is not older than i, and y_i.y_j */
} lane;

typedef struct {
    prox *p;
    taut_real *z, *z_old, *g_new, *rows;
    taut_sum *sums;   /* the last gradient's products, MEASURED a lane; */
    double *measured; /* on the host */
    lane *lane;
    prox_lane_end *end;
    taut_span rest;
} search;

int64_t prox_solve_used(const prox *p)
{
    const int64_t n = p->shape.n, len = n * prox_lane(p), lane = p->shape.t * p->shape.d;
    if (p->plain) return 4 * len;
    return (2 + ROWS) * len + taut_sums_len(n * MEASURED) + lane + prox_cg_used(p, 1);
}

int64_t prox_lbfgs_host(const prox *p)
{
    return taut_host_len(p->shape.n, sizeof(lane)) + p->shape.n * (1 + MEASURED) + prox_cg_host(1);
}

static taut_real *row_at(const search *q, int64_t e, int64_t row)
{
    return taut_at(q->p->k, q->rows, (e * ROWS + row) * prox_lane(q->p));
}

static taut_real *s_at(const search *q, int64_t e, int slot) { return row_at(q, e, 2 * slot); }
static taut_real *y_at(const search *q, int64_t e, int slot) { return row_at(q, e, 2 * slot + 1); }

/* The slot of the pair that is `age` pairs older than the newest. */
static int slot_of(const lane *l, int age) { return (l->free - 1 - age + 2 * SLOTS) % SLOTS; }

/* -(L-BFGS matrix) g = -scale (g + sum_i down_i y_i) + sum_i up_i s_i: the usual two loops, from the newest pair down and up
 * again, on products that are known. */
static double two_loops(const lane *l, double down[SLOTS], double up[SLOTS])
{
    for (int i = 0; i < l->pairs; i++) {
        const int slot = slot_of(l, i);
        double sum = -l->along[2 * slot];
        for (int j = 0; j < i; j++) sum -= down[slot_of(l, j)] * l->sy[slot][slot_of(l, j)];
        down[slot] = sum / l->sy[slot][slot];
    }
    if (l->pairs == 0) return 1;
    const int newest = slot_of(l, 0);
    const double scale = l->sy[newest][newest] / l->yy[newest][newest];
    for (int i = l->pairs - 1; i >= 0; i--) {
        const int slot = slot_of(l, i);
        double sum = -scale * l->along[2 * slot + 1];
        for (int j = 0; j < l->pairs; j++) sum -= scale * down[slot_of(l, j)] * l->yy[slot][slot_of(l, j)];
        for (int j = i + 1; j < l->pairs; j++) sum += up[slot_of(l, j)] * l->sy[slot_of(l, j)][slot];
        up[slot] = down[slot] - sum / l->sy[slot][slot];
    }
    return scale;
}

static void direction(search *q, int64_t e)
{
    lane *l = &q->lane[e];
    double down[SLOTS], up[SLOTS];
    const double scale = two_loops(l, down, up);
    taut_term terms[ROWS] = { { -scale, y_at(q, e, l->free) } };
    int count = 1;
    l->slope = -scale * l->size * l->size;
    for (int i = 0; i < l->pairs; i++) {
        const int slot = slot_of(l, i);
        terms[count++] = (taut_term){ -scale * down[slot], y_at(q, e, slot) };
        terms[count++] = (taut_term){ up[slot], s_at(q, e, slot) };
        l->slope += up[slot] * l->along[2 * slot] - scale * down[slot] * l->along[2 * slot + 1];
    }
    q->p->k->blend(s_at(q, e, l->free), terms, count, prox_lane(q->p));
}

static void end_lane(search *q, int64_t e, double at)
{
    q->lane[e].state = ENDED;
    q->end[e].done = true;
    q->end[e].at = at;
}

/* Is the gradient at z, which was evaluated last, small enough?  |g| in y is at least |g|/sqrt(eta) here. */
static bool small_enough(search *q, int64_t e, double size)
{
    if (!(size <= q->end[e].tol * sqrt(q->p->eta))) return false;
    const double there = prox_norm(q->p, q->g_new, e, q->rest);
    if (!(there <= q->end[e].tol)) return false;
    end_lane(q, e, there);
    return true;
}

/* From a new point: the next direction, or out of here. */
static void next_direction(search *q, int64_t e)
{
    lane *l = &q->lane[e];
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

/* What the pair of a trial tells of how phi bends, `now` being the products with the trial's gradient; false: nothing.  The
 * products with the change of g are differences of products with g, whose images are elements: in float they are noise where g
 * changes by less than a thousandth or so.  That is rare, and nothing but speed depends on it. */
static bool learn(lane *l, const double *now, bool taken)
{
    const int slot = l->free;
    const double before = l->size * l->size, both = now[2 * slot + 1];
    const double bend = l->t * (now[2 * slot] - l->slope), square = before - 2 * both + now[SELF];
    for (int i = 0; i < l->pairs; i++) {
        const int other = slot_of(l, i);
        l->sy[other][slot] = now[2 * other] - l->along[2 * other];
        l->yy[other][slot] = l->yy[slot][other] = now[2 * other + 1] - l->along[2 * other + 1];
    }
    if (taken) memcpy(l->along, now, sizeof l->along);
    if (!(square > 0 && bend > 1e-12 * square)) return false;
    l->sy[slot][slot] = bend;
    l->yy[slot][slot] = square;
    l->along[2 * slot] = l->t * (taken ? now[2 * slot] : l->slope);
    l->along[2 * slot + 1] = taken ? now[SELF] - both : both - before;
    l->free = (slot + 1) % SLOTS;
    if (l->pairs < PAIRS) l->pairs++;
    return true;
}

/* d and g become the pair of a trial, taken or not: either way it tells how phi bends.  And the free slot gets the g of where
 * z is then. */
static bool remember(search *q, int64_t e, const double *now, bool taken)
{
    const taut_kernels *k = q->p->k;
    const int64_t len = prox_lane(q->p);
    lane *l = &q->lane[e];
    taut_real *s = s_at(q, e, l->free), *g = y_at(q, e, l->free), *g_new = prox_at(q->p, q->g_new, e);
    const bool learnt = learn(l, now, taken);
    if (taken || learnt) k->axpby(y_at(q, e, l->free), 1, taken ? g_new : g, 0, len);
    if (!learnt) return false;
    k->axpby(g, 1, g_new, -1, len);
    if (l->t != 1) k->axpby(s, 0, NULL, l->t, len);
    return true;
}

static void accept(search *q, int64_t e, double phi, double size, const double *now)
{
    lane *l = &q->lane[e];
    if (small_enough(q, e, size)) return;
    remember(q, e, now, true);
    l->phi = phi;
    l->size = size;
    next_direction(q, e);
}

static void judge(search *q, int64_t e, double phi)
{
    lane *l = &q->lane[e];
    const double *now = q->measured + e * MEASURED;
    const double size = sqrt(now[SELF]), b = now[2 * l->free];
    const bool known = isfinite(phi) && isfinite(size);
    if (++l->trial >= TRIALS) l->state = STUCK;
    if (known && (b <= 0 || phi <= l->phi + 1e-4 * l->t * l->slope || (b <= -0.9 * l->slope && size < l->size))) {
        accept(q, e, phi, size, now);
        return;
    }
    prox_add(q->p, q->z, 1, q->z_old, 0, e);
    if (known && l->trial == 1 && remember(q, e, now, false)) {
        direction(q, e); /* from the same point, knowing more */
        l->t = 1;
        if (!(l->slope < 0)) l->state = STUCK;
        return;
    }
    l->t *= known ? fmin(0.5, fmax(0.1, l->slope / (l->slope - b))) : 0.1;
}

/* The trial of every lane that seeks, the others stay where they are; and all products with its gradient, in one reading. */
static void attempt(search *q, double *phi)
{
    const prox *p = q->p;
    const taut_kernels *k = p->k;
    const int64_t n = p->shape.n, inner = prox_inner(p), len = prox_lane(p);
    for (int64_t e = 0; e < n; e++) {
        const lane *l = &q->lane[e];
        if (l->state != SEEKING) continue;
        prox_add(p, q->z_old, 1, q->z, 0, e);
        k->axpby(prox_at(p, q->z, e), l->t, s_at(q, e, l->free), 1, len);
    }
    prox_gradient(q->p, q->g_new, phi, q->z, 0, n);
    for (int64_t e = 0; e < n; e++) {
        if (q->lane[e].state != SEEKING) continue;
        taut_sum *sums = taut_sum_at(q->sums, e * MEASURED);
        const taut_real *g = prox_at(p, q->g_new, e), *image = taut_at(k, g, inner);
        k->dot(sums, row_at(q, e, 0), len, image, 0, 2 * (q->lane[e].pairs + 1), inner);
        k->dot(taut_sum_at(sums, SELF), g, 0, image, 0, 1, inner);
    }
    (void)k->read(q->measured, q->sums, n * MEASURED); /* of a device that failed: NaN, with which no trial is taken */
}

static bool seeking(const search *q)
{
    for (int64_t e = 0; e < q->p->shape.n; e++)
        if (q->lane[e].state == SEEKING) return true;
    return false;
}

static search search_new(prox *p, taut_real *z, prox_lane_end *end, taut_span scratch)
{
    const int64_t n = p->shape.n, len = n * prox_lane(p);
    search q = { .p = p, .z = z, .end = end };
    q.z_old = taut_take(&scratch, len);
    q.g_new = taut_take(&scratch, len);
    q.rows = taut_take(&scratch, ROWS * len);
    q.sums = taut_take_sums(&scratch, n * MEASURED);
    q.rest = scratch;
    q.lane = taut_take_host(&p->host, n, sizeof *q.lane);
    q.measured = taut_take_host(&p->host, n * MEASURED, sizeof *q.measured);
    return q;
}

void prox_lbfgs(prox *p, taut_real *z, prox_lane_end *end, taut_span scratch)
{
    const int64_t n = p->shape.n;
    const taut_span mark = p->host;
    search q = search_new(p, z, end, scratch);
    double *phi = taut_take_host(&p->host, n, sizeof *phi);
    prox_gradient(p, q.g_new, phi, z, 0, n);
    for (int64_t e = 0; e < n; e++) {
        q.lane[e].phi = phi[e];
        q.lane[e].size = sqrt(prox_dot(p, q.g_new, q.g_new, e));
        if (small_enough(&q, e, q.lane[e].size)) continue;
        p->k->axpby(y_at(&q, e, 0), 1, prox_at(p, q.g_new, e), 0, prox_lane(p));
        next_direction(&q, e);
    }
    while (seeking(&q)) {
        attempt(&q, phi);
        for (int64_t e = 0; e < n; e++)
            if (q.lane[e].state == SEEKING) judge(&q, e, phi[e]);
    }
    bool stale = false;
    for (int64_t e = 0; e < n; e++) {
        if (q.lane[e].state != STUCK) continue;
        stale = true;
        prox_newton(p, z, end, e, scratch);
    }
    if (stale) prox_gradient(p, q.g_new, phi, z, 0, n); /* v and the rows are those of z again */
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
