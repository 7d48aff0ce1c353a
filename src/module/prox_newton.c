/* Newton-CG in inner coordinates (module/prox.h): for |A d + g| <= th |g| the slope of |g|^2 along d is at most
 * -2 (1 - th) |g|^2, so |g| is its own merit. */
#include <math.h>

#include "module/prox.h"

enum { STEPS = 100, TRIALS = 30, PRODUCTS = 500 };

typedef struct {
    double size, t; /* |g|; the length of the step that is being tried, 0: it stays where it is */
    bool open;
} lane;

typedef struct {
    prox *p;
    taut_real *z, *g, *dir, *z_new, *g_new;
    lane *lane;
    double *number, *a, *b; /* one of every lane each */
    prox_lane_end *end;
    taut_span rest;
} search;

int64_t prox_newton_host(const prox *p)
{
    const int64_t n = p->shape.n;
    return taut_host_len(n, sizeof(int64_t)) + taut_host_len(n, sizeof(prox_lane_end)) +
           taut_host_len(n, sizeof(lane)) + 3 * n + prox_cg_host(n);
}

static search search_new(prox *p, taut_real *z, prox_lane_end *end, taut_span scratch)
{
    const int64_t n = p->shape.n, len = n * prox_lane(p);
    search q = { .p = p, .z = z, .end = end };
    q.g = taut_take(&scratch, len);
    q.dir = taut_take(&scratch, len);
    q.z_new = taut_take(&scratch, len);
    q.g_new = taut_take(&scratch, len);
    q.rest = scratch;
    q.lane = taut_take_host(&p->host, n, sizeof *q.lane);
    q.number = taut_take_host(&p->host, n, sizeof *q.number);
    q.a = taut_take_host(&p->host, n, sizeof *q.a);
    q.b = taut_take_host(&p->host, n, sizeof *q.b);
    return q;
}

/* y = a x + b y in every lane. */
static void add(const search *q, taut_real *y, const taut_real *x)
{
    const int64_t n = q->p->shape.n, len = prox_lane(q->p);
    taut_sum *room = taut_sum_at(q->p->sums, n);
    const taut_factor a = prox_factor(q->p, room, q->a, n), b = prox_factor(q->p, taut_sum_at(room, n), q->b, n);
    q->p->k->axpby_by(y, len, a, x, len, b, n, len);
}

/* Lanes whose gradient is small enough end.  |g| in y is at least |g|/sqrt(eta) here. */
static void end_small(search *q)
{
    const int64_t n = q->p->shape.n;
    const double root = sqrt(q->p->eta);
    bool any = false;
    for (int64_t e = 0; e < n; e++) any = any || (q->lane[e].open && q->lane[e].size <= q->end[e].tol * root);
    if (any) prox_norms(q->p, q->number, q->g, 0, n, q->rest);
    for (int64_t e = 0; any && e < n; e++) {
        lane *l = &q->lane[e];
        if (!(l->open && l->size <= q->end[e].tol * root && q->number[e] <= q->end[e].tol)) continue;
        l->open = false;
        q->end[e].done = true, q->end[e].at = q->number[e];
    }
}

/* The directions of the open lanes; one whose direction leads nowhere is closed.  False: none is open. */
static bool turn(search *q)
{
    const int64_t n = q->p->shape.n;
    bool any = false;
    for (int64_t e = 0; e < n; e++) {
        q->a[e] = q->lane[e].open ? -1 : 0, q->b[e] = 0;
        q->number[e] = 0.1 * fmin(1, sqrt(q->lane[e].size));
        any = any || q->lane[e].open;
    }
    if (!any) return false;
    add(q, q->g_new, q->g);
    (void)prox_cg(q->p, q->dir, q->g_new, q->number, PRODUCTS, 0, n,
                  q->rest); /* one that is not there may do as well */
    prox_dots(q->p, q->number, q->dir, q->g, 0, n);
    for (int64_t e = 0; e < n; e++) {
        q->lane[e].open = q->lane[e].open && q->number[e] < 0;
        q->lane[e].t = q->lane[e].open;
    }
    return true;
}

/* The trial of every lane that has a step to try; false: there is none. */
static bool attempt(search *q)
{
    const int64_t n = q->p->shape.n;
    bool any = false;
    for (int64_t e = 0; e < n; e++) q->a[e] = q->lane[e].t, q->b[e] = 1, any = any || q->lane[e].t > 0;
    if (!any) return false;
    q->p->k->axpby(q->z_new, 1, q->z, 0, n * prox_lane(q->p));
    add(q, q->z_new, q->dir);
    prox_gradient(q->p, q->g_new, NULL, q->z_new, 0, n);
    prox_dots(q->p, q->number, q->g_new, q->g_new, 0, n);
    for (int64_t e = 0; e < n; e++) {
        lane *l = &q->lane[e];
        const double size = sqrt(q->number[e]);
        const bool taken = l->t > 0 && size <= (1 - 1e-4 * l->t) * l->size;
        q->a[e] = taken, q->b[e] = !taken;
        if (taken) l->size = size;
        l->t = taken ? 0 : 0.5 * l->t;
    }
    add(q, q->z, q->z_new);
    add(q, q->g, q->g_new);
    return true; /* v and the rows are those of z in every lane that goes on */
}

static void solve(prox *p, taut_real *z, prox_lane_end *end, taut_span scratch)
{
    const int64_t n = p->shape.n;
    search q = search_new(p, z, end, scratch);
    prox_gradient(p, q.g, NULL, z, 0, n);
    prox_dots(p, q.number, q.g, q.g, 0, n);
    for (int64_t e = 0; e < n; e++) {
        q.lane[e].size = sqrt(q.number[e]);
        q.lane[e].open = isfinite(q.lane[e].size);
    }
    for (int step = 0; step < STEPS; step++) {
        end_small(&q);
        if (!turn(&q)) break;
        for (int trial = 0; trial < TRIALS && attempt(&q);) trial++;
        for (int64_t e = 0; e < n; e++)
            if (q.lane[e].t > 0) q.lane[e].open = false; /* no step helps */
    }
    for (int64_t e = 0; e < n; e++) {
        if (end[e].done) continue;
        end[e].at = q.lane[e].size;
        end[e].why = isfinite(end[e].at) ? "the residual did not fall to the tolerance" : "a number that is not finite";
    }
}

/* The lanes in `which`, gathered, go on and return. */
static void solve_some(const prox *p, taut_real *z, prox_lane_end *end, const int64_t *which, int64_t count,
                       taut_span scratch)
{
    const taut_kernels *k = p->k;
    const int64_t len = prox_lane(p), inner = prox_inner(p);
    prox some = *p;
    some.shape.n = count;
    some.centre = taut_take(&scratch, count * inner);
    taut_real *at = taut_take(&scratch, count * len);
    prox_lane_end *ends = taut_take_host(&some.host, count, sizeof *ends);
    for (int64_t i = 0; i < count; i++) {
        k->axpby(taut_at(k, some.centre, i * inner), 1, taut_at(k, p->centre, which[i] * inner), 0, inner);
        k->axpby(taut_at(k, at, i * len), 1, prox_at(p, z, which[i]), 0, len);
        ends[i] = end[which[i]];
    }
    solve(&some, at, ends, scratch);
    for (int64_t i = 0; i < count; i++) {
        k->axpby(prox_at(p, z, which[i]), 1, taut_at(k, at, i * len), 0, len);
        end[which[i]] = ends[i];
    }
}

void prox_newton(prox *p, taut_real *z, prox_lane_end *end, int64_t together, taut_span scratch)
{
    const int64_t n = p->shape.n;
    const taut_span mark = p->host;
    int64_t *which = taut_take_host(&p->host, n, sizeof *which), count = 0;
    /* v and the rows may not be those of z: so where lanes were gathered, or a trial was refused last */
    bool stale = false;
    for (int64_t e = 0; e < n; e++) {
        if (!end[e].done) which[count++] = e;
        if (count == 0 || (count < together && e < n - 1)) continue;
        solve_some(p, z, end, which, count, scratch);
        stale = stale || count < n;
        for (int64_t i = 0; i < count; i++) stale = stale || !end[which[i]].done;
        count = 0;
    }
    if (stale) prox_gradient(p, taut_take(&scratch, n * prox_lane(p)), NULL, z, 0, n);
    p->host = mark;
}
