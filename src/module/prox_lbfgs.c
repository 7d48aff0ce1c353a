/* L-BFGS in inner coordinates; the lanes it leaves go to Newton-CG, prox_newton.c (module/prox.h).
 *
 * phi is convex with second derivative at least that of |y|^2/(2 eta): a step t d with b = dphi(z + t d).d <= 0 lowers
 * phi without a value of it being looked at, which near the end would be all rounding.  Accepted when
 *     b <= 0,  or phi falls by 1e-4 t |g.d|,  or b <= 0.9 |g.d| and |g| falls;  else t *= g.d/(g.d - b) within [0.1, 0.5].
 * The first trial that fails is used otherwise: its pair tells how phi bends, so another direction is made with it.
 * The last clause may raise phi; the caps on steps and trials make that harmless.  A lane leaves for Newton when it
 * gains less than a digit in 10 steps, when 12 trials fail, or after 25 steps.
 *
 * What is right does not depend on any of this, only on the residual that was measured in the end. */
#include <math.h>
#include <string.h>

#include "module/prox.h"

enum { PAIRS = 5, STEPS = 25, TRIALS = 12, WINDOW = 10 };

/* The vectors of a lane are rows of one matrix, two in every slot: s and y of a pair, and in the one slot that is free the
 * direction d and the gradient g, which become a pair where they lie.  Row 2 i is s of slot i.  A new gradient meets all of
 * them in one pass, and a direction is made in one pass, since vectors that long come from memory every time.  Products of a lane
 * are kept in that order; behind them is the gradient's with itself, and phi.
 * What happens to rows happens to those of all lanes at once, slot by slot: with factors 0 and 1 a lane stays as it is, and most
 * often all lanes have the same slot free. */
enum { SLOTS = PAIRS + 1, ROWS = 2 * SLOTS, SELF = ROWS, PHI, MEASURED };
_Static_assert((int)ROWS <= (int)TAUT_TERMS, "a direction is one blend");

typedef enum { SEEKING, STUCK, ENDED } lane_state;
typedef enum { NO_TRIAL, TAKEN, LEARNT_FROM, REFUSED } verdict; /* of the last trial; learnt from: and not taken */

typedef struct {
    lane_state state;
    double phi, size, slope, t; /* at z: phi, |g|, g.d; the length of the step that is being tried */
    int step, trial, pairs, free;
    verdict last;
    bool learnt, turns; /* the trial became the pair of slot `was`; a new direction is wanted */
    int was;
    double past[STEPS + 1];                    /* |g| before every step */
    double along[ROWS];                        /* s_i.g and y_i.g of the pairs */
    double sy[SLOTS][SLOTS], yy[SLOTS][SLOTS]; /* s_i.y_j where j is not older than i, and y_i.y_j */
} lane;

typedef struct {
    prox *p;
    taut_real *z, *z_old, *g_new, *rows;
    taut_sum *sums;   /* of a trial's gradient: its products with all rows, those with itself, and phi; */
    double *measured; /* the same on the host, MEASURED a lane; */
    double *raw;      /* as it comes */
    double *factor;   /* up to ROWS factors of every lane, those of all lanes one behind the other; */
    taut_sum *by;     /* where the kernels are */
    double *norm;     /* |g| in y */
    lane *lane;
    prox_lane_end *end;
    taut_span rest;
} search;

int64_t prox_solve_used(const prox *p)
{
    const int64_t n = p->shape.n, len = n * prox_lane(p), lane = p->shape.t * p->shape.d;
    if (p->plain) return 4 * len;
    return (2 + ROWS) * len + taut_sums_len(n * MEASURED) + taut_sums_len(n * ROWS) + n * lane; /* Newton takes less */
}

int64_t prox_lbfgs_host(const prox *p)
{
    return taut_host_len(p->shape.n, sizeof(lane)) + p->shape.n * (1 + 2 * MEASURED + ROWS) + prox_newton_host(p);
}

/* Row `row` of lane 0, and how far that of the next lane is. */
static taut_real *row_at(const search *q, int row) { return taut_at(q->p->k, q->rows, row * prox_lane(q->p)); }
static int64_t row_stride(const search *q) { return ROWS * prox_lane(q->p); }

/* The first `count` factors of every lane go to where the kernels are; one lane's travel with what is asked of them. */
static void put_factors(search *q, int count)
{
    const int64_t n = q->p->shape.n;
    if (n > 1) q->p->k->put_sum(q->by, q->factor, count * n);
}
static taut_factor factor_at(const search *q, int i)
{
    const int64_t n = q->p->shape.n;
    return n > 1 ? (taut_factor){ 1, taut_sum_at(q->by, i * n) } : (taut_factor){ q->factor[i], NULL };
}

/* y = a x + b y, where y is a row of every lane, and a and b are factors of it. */
static void add_to_row(search *q, int row, int a, const taut_real *x, int64_t stride, int b)
{
    q->p->k->axpby_by(row_at(q, row), row_stride(q), factor_at(q, a), x, stride, factor_at(q, b), q->p->shape.n,
                      prox_lane(q->p));
}

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

/* The lane's part of its rows in the next direction: ROWS factors, `stride` apart; and its slope. */
static void compose(lane *l, double *factor, int64_t stride)
{
    double down[SLOTS], up[SLOTS];
    const double scale = two_loops(l, down, up);
    factor[(2 * l->free + 1) * stride] = -scale;
    l->slope = -scale * l->size * l->size;
    for (int i = 0; i < l->pairs; i++) {
        const int slot = slot_of(l, i);
        factor[(2 * slot + 1) * stride] = -scale * down[slot];
        factor[2 * slot * stride] = up[slot];
        l->slope += up[slot] * l->along[2 * slot] - scale * down[slot] * l->along[2 * slot + 1];
    }
}

/* The directions of the lanes that want one and have this slot free. */
static void make_directions(search *q, int slot)
{
    const int64_t n = q->p->shape.n;
    taut_term terms[ROWS];
    int count = 0;
    bool any = false;
    memset(q->factor, 0, (size_t)(n * ROWS) * sizeof *q->factor);
    for (int64_t e = 0; e < n; e++) {
        lane *l = &q->lane[e];
        const bool mine = l->turns && l->free == slot;
        any = any || mine;
        if (mine) compose(l, q->factor + e, n);
        if (!mine) q->factor[2 * slot * n + e] = 1;
    }
    if (!any) return;
    put_factors(q, ROWS);
    for (int row = 0; row < ROWS; row++) {
        bool used = false;
        for (int64_t e = 0; e < n; e++) used = used || q->factor[row * n + e] != 0;
        if (used) terms[count++] = (taut_term){ factor_at(q, row), row_at(q, row), row_stride(q) };
    }
    q->p->k->blend(row_at(q, 2 * slot), row_stride(q), terms, count, n, prox_lane(q->p));
}

/* Lanes that stand where their trial's gradient, of norm `size`, is small enough, end.  |g| in y is at least |g|/sqrt(eta)
 * here. */
static void end_small(search *q)
{
    const int64_t n = q->p->shape.n;
    const double root = sqrt(q->p->eta);
    bool any = false;
    for (int64_t e = 0; e < n; e++) any = any || (q->lane[e].last == TAKEN && q->lane[e].size <= q->end[e].tol * root);
    if (any) prox_norms(q->p, q->norm, q->g_new, 0, n, q->rest);
    for (int64_t e = 0; any && e < n; e++) {
        lane *l = &q->lane[e];
        if (l->last != TAKEN || !(l->size <= q->end[e].tol * root && q->norm[e] <= q->end[e].tol)) continue;
        l->state = ENDED, l->last = NO_TRIAL;
        q->end[e].done = true, q->end[e].at = q->norm[e];
    }
}

/* From a new point: another direction, or out of here. */
static void go_on(lane *l)
{
    const bool slow = l->step >= WINDOW + 2 && l->size > 0.1 * l->past[l->step - WINDOW];
    l->state = STUCK;
    if (!isfinite(l->size) || !isfinite(l->phi) || slow || l->step >= STEPS) return;
    l->past[l->step++] = l->size;
    l->state = SEEKING;
    l->turns = true;
    l->trial = 0;
}

static void turn(search *q)
{
    for (int slot = 0; slot < SLOTS; slot++) make_directions(q, slot);
    for (int64_t e = 0; e < q->p->shape.n; e++) {
        lane *l = &q->lane[e];
        if (l->turns && !(l->slope < 0)) l->state = STUCK;
        if (l->turns) l->t = 1;
        l->turns = false;
    }
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

/* d and g of this slot become the pair of a trial, taken or not: either way it tells how phi bends.  And the slot that is free
 * then gets the g of where z is. */
static void remember(search *q, int slot)
{
    enum { FRESH, STAYS, KEPT, KEEPS, G, OLD, ZERO, TIMES, COUNT };
    const int64_t n = q->p->shape.n, len = prox_lane(q->p);
    bool taken = false, refused = false, any = false, shorter = false;
    for (int64_t e = 0; e < n; e++) {
        const lane *l = &q->lane[e];
        double *f = q->factor + e;
        const bool pair = l->last != NO_TRIAL && l->was == slot && l->learnt, fresh = pair && l->last == TAKEN;
        const bool moved = pair || (l->last == TAKEN && l->was == slot);
        f[FRESH * n] = fresh, f[STAYS * n] = !fresh;
        f[KEPT * n] = pair && !fresh, f[KEEPS * n] = !(pair && !fresh);
        f[G * n] = moved, f[OLD * n] = pair ? -1 : !moved;
        f[ZERO * n] = 0, f[TIMES * n] = pair ? l->t : 1;
        taken = taken || fresh, refused = refused || (pair && !fresh), any = any || moved;
        shorter = shorter || f[TIMES * n] != 1;
    }
    if (!any) return;
    const int next = 2 * ((slot + 1) % SLOTS) + 1;
    put_factors(q, COUNT);
    if (taken) add_to_row(q, next, FRESH, q->g_new, len, STAYS);
    if (refused) add_to_row(q, next, KEPT, row_at(q, 2 * slot + 1), row_stride(q), KEEPS);
    add_to_row(q, 2 * slot + 1, G, q->g_new, len, OLD);
    if (shorter) add_to_row(q, 2 * slot, ZERO, NULL, 0, TIMES);
}

/* What becomes of the lane's trial. */
static void judge(search *q, int64_t e)
{
    lane *l = &q->lane[e];
    const double *now = q->measured + e * MEASURED;
    const double size = sqrt(now[SELF]), phi = now[PHI], b = now[2 * l->free];
    const bool known = isfinite(phi) && isfinite(size);
    if (++l->trial >= TRIALS) l->state = STUCK;
    l->last = REFUSED;
    l->learnt = false;
    l->was = l->free;
    if (known && (b <= 0 || phi <= l->phi + 1e-4 * l->t * l->slope || (b <= -0.9 * l->slope && size < l->size))) {
        l->last = TAKEN;
        l->learnt = learn(l, now, true); /* from what was before */
        l->phi = phi, l->size = size;
    } else if (known && l->trial == 1) {
        l->learnt = learn(l, now, false);
        if (l->learnt) l->last = LEARNT_FROM;
    }
    if (l->last == REFUSED) l->t *= known ? fmin(0.5, fmax(0.1, l->slope / (l->slope - b))) : 0.1;
}

/* After a trial of every lane that seeks: where z is, what is remembered, where to look next. */
static void settle(search *q)
{
    const int64_t n = q->p->shape.n, len = prox_lane(q->p);
    double *back = q->factor, *stay = back + n;
    bool any = false;
    for (int64_t e = 0; e < n; e++) {
        q->lane[e].last = NO_TRIAL;
        if (q->lane[e].state == SEEKING) judge(q, e);
        back[e] = q->lane[e].last == LEARNT_FROM || q->lane[e].last == REFUSED, stay[e] = 1 - back[e];
        any = any || back[e] != 0;
    }
    if (any) {
        put_factors(q, 2);
        q->p->k->axpby_by(q->z, len, factor_at(q, 0), q->z_old, len, factor_at(q, 1), n, len);
    }
    end_small(q);
    for (int slot = 0; slot < SLOTS; slot++) remember(q, slot);
    for (int64_t e = 0; e < n; e++) {
        lane *l = &q->lane[e];
        if (l->last == TAKEN) go_on(l);
        if (l->last == LEARNT_FROM) l->turns = true; /* from the same point, knowing more */
    }
    turn(q);
}

/* All products with the trials' gradients and phi, in one reading: lane by lane or row by row, whichever are fewer. */
static void measure(search *q)
{
    const prox *p = q->p;
    const taut_kernels *k = p->k;
    const int64_t n = p->shape.n, inner = prox_inner(p), len = prox_lane(p);
    const taut_real *image = taut_at(k, q->g_new, inner);
    int64_t rows = 0;
    for (int64_t e = 0; e < n; e++)
        if (q->lane[e].state == SEEKING && 2 * (q->lane[e].pairs + 1) > rows) rows = 2 * (q->lane[e].pairs + 1);
    const bool by_lane = n < rows;
    for (int64_t e = 0; by_lane && e < n; e++)
        k->dot(taut_sum_at(q->sums, e * rows), taut_at(k, q->rows, e * row_stride(q)), len, taut_at(k, image, e * len),
               0, rows, inner);
    for (int64_t r = 0; !by_lane && r < rows; r++)
        k->dot(taut_sum_at(q->sums, r * n), row_at(q, (int)r), row_stride(q), image, len, n, inner);
    k->dot(taut_sum_at(q->sums, n * rows), q->g_new, len, image, len, n, inner);
    k->sum_op(taut_sum_at(q->sums, n * (rows + 1)), TAUT_SUM_MUL, 1, p->sums, NULL, n); /* phi */
    (void)k->read(q->raw, q->sums, n * (rows + 2)); /* of a device that failed: NaN, with which no trial is taken */
    for (int64_t e = 0; e < n; e++) {
        for (int64_t r = 0; r < rows; r++) q->measured[e * MEASURED + r] = q->raw[by_lane ? e * rows + r : r * n + e];
        q->measured[e * MEASURED + SELF] = q->raw[n * rows + e];
        q->measured[e * MEASURED + PHI] = q->raw[n * (rows + 1) + e];
    }
}

/* The trial of every lane that seeks, the others stay where they are. */
static void attempt(search *q)
{
    const taut_kernels *k = q->p->k;
    const int64_t n = q->p->shape.n, len = prox_lane(q->p);
    k->axpby(q->z_old, 1, q->z, 0, n * len);
    for (int slot = 0; slot < SLOTS; slot++) {
        bool any = false;
        for (int64_t e = 0; e < n; e++) {
            const lane *l = &q->lane[e];
            q->factor[e] = l->state == SEEKING && l->free == slot ? l->t : 0;
            any = any || q->factor[e] != 0;
        }
        if (!any) continue;
        put_factors(q, 1);
        k->axpby_by(q->z, len, factor_at(q, 0), row_at(q, 2 * slot), row_stride(q), (taut_factor){ 1, NULL }, n, len);
    }
    prox_gradient(q->p, q->g_new, NULL, q->z, 0, n);
    measure(q);
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
    q.by = taut_take_sums(&scratch, n * ROWS);
    q.rest = scratch;
    q.lane = taut_take_host(&p->host, n, sizeof *q.lane);
    q.measured = taut_take_host(&p->host, n * MEASURED, sizeof *q.measured);
    q.raw = taut_take_host(&p->host, n * MEASURED, sizeof *q.raw);
    q.factor = taut_take_host(&p->host, n * ROWS, sizeof *q.factor);
    q.norm = taut_take_host(&p->host, n, sizeof *q.norm);
    return q;
}

void prox_lbfgs(prox *p, taut_real *z, prox_lane_end *end, taut_span scratch)
{
    const int64_t n = p->shape.n;
    const taut_span mark = p->host;
    search q = search_new(p, z, end, scratch);
    prox_gradient(p, q.g_new, q.raw, z, 0, n);
    prox_dots(p, q.norm, q.g_new, q.g_new, 0, n);
    for (int64_t e = 0; e < n; e++) q.lane[e].phi = q.raw[e], q.lane[e].size = sqrt(q.norm[e]), q.lane[e].last = TAKEN;
    end_small(&q);
    p->k->axpby_by(row_at(&q, 1), row_stride(&q), (taut_factor){ 1, NULL }, q.g_new, prox_lane(p),
                   (taut_factor){ 0, NULL }, n, prox_lane(p));
    for (int64_t e = 0; e < n; e++)
        if (q.lane[e].state != ENDED) go_on(&q.lane[e]);
    turn(&q);
    while (seeking(&q)) {
        attempt(&q);
        settle(&q);
    }
    prox_newton(p, z, end, prox_together(p), scratch);
    p->host = mark;
}
