/* Projections against their optimality, and the way to a hyperplane against a search that shares nothing with it. */
#include "attack/ball.h"

#include "shortest.h"

static double worst_way, worst_near;

static void plane(taut_ball_kind kind)
{
    const int64_t n = rng_int(1, MOST);
    const bool boxed = rng_int(0, 1);
    const taut_ball b = { kind, 1, boxed ? 0 : -INFINITY, boxed ? 1 : INFINITY };
    double x[MOST], w[MOST], d[MOST], r[MOST], size[MOST], work[3 * MOST], all = 0;
    for (int64_t i = 0; i < n; i++) x[i] = rng_int(0, 5) ? rng_unit() : (double)rng_int(0, 1), w[i] = rng_pm();
    double c = 2 * rng_pm();
    for (int64_t i = 0; i < n; i++) {
        const double way = c < 0 ? -w[i] : w[i];
        r[i] = !boxed ? 1e6 : way > 0 ? 1 - x[i] : x[i];
        size[i] = fabs(w[i]), all += size[i] * r[i];
    }
    if (kind == TAUT_BALL_L1 && c > 0) {
        const taut_ball far = { kind, 5 * rng_unit(), b.lo, b.hi };
        const double most = rng_int(0, 1) ? INFINITY : 0.5 * rng_unit();
        double capped[MOST];
        for (int64_t i = 0; i < n; i++) capped[i] = fmin(r[i], most);
        taut_plane_far(far, d, x, w, most, work, n);
        for (int64_t i = 0; i < n; i++) CHECK(x[i] + d[i] >= b.lo - 1e-15 && x[i] + d[i] <= b.hi + 1e-15, "in the box");
        CHECK_LE(test_norm(kind, d, n), far.eps * (1 + 1e-12), "no longer than it may be");
        CHECK_NEAR(dot(w, d, n), reach(kind, far.eps, size, capped, n), 1e-12 * (1 + all), "the furthest");
    }
    taut_plane_move(b, d, x, w, c, work, n);
    for (int64_t i = 0; i < n; i++) CHECK(x[i] + d[i] >= b.lo - 1e-15 && x[i] + d[i] <= b.hi + 1e-15, "in the box");
    if (all < fabs(c)) {
        CHECK_NEAR(dot(w, d, n), copysign(all, c), 1e-12, "all the room there is");
        return;
    }
    const double best = shortest(kind, fabs(c), size, r, n), ours = test_norm(kind, d, n);
    CHECK_NEAR(dot(w, d, n), c, 1e-12, "on the plane");
    CHECK_NEAR(ours / best, 1, 1e-6, "the shortest way"); /* the search's own two bisections */
    worst_way = fmax(worst_way, fabs(ours / best - 1));
}

/* The nearest point p of a convex set: <u - p, q - p> <= 0 for every q of the set.  L2 with a box is not the nearest, only
 * inside. */
static void project(taut_ball_kind kind)
{
    const int64_t n = rng_int(1, MOST);
    const bool boxed = rng_int(0, 1);
    const taut_ball b = { kind, 3 * rng_unit(), boxed ? 0 : -INFINITY, boxed ? 1 : INFINITY };
    double x[MOST], u[MOST], p[MOST], q[MOST], d[MOST];
    for (int64_t i = 0; i < n; i++) x[i] = rng_unit(), u[i] = x[i] + 2 * rng_pm(), p[i] = u[i];
    taut_ball_project(b, p, x, n);
    CHECK_LE(taut_ball_distance(kind, x, p, n), b.eps * (1 + 1e-12), "in the ball");
    for (int64_t i = 0; i < n; i++) CHECK(p[i] >= b.lo && p[i] <= b.hi, "in the box");
    for (int k = 0; k < 20; k++) {
        taut_ball_start(b, q, x, rng_next(), n);
        CHECK_LE(taut_ball_distance(kind, x, q, n), b.eps * (1 + 1e-12), "a start in the ball");
        double away = 0;
        for (int64_t i = 0; i < n; i++) away += (u[i] - p[i]) * (q[i] - p[i]), d[i] = q[i] - x[i];
        if (!boxed && kind != TAUT_BALL_L1)
            CHECK_NEAR(test_norm(kind, d, n), b.eps, 1e-12 * (1 + b.eps), "a start on the sphere");
        if (kind == TAUT_BALL_L2 && boxed) continue;
        CHECK_LE(away, 1e-9, "nothing in the set is nearer");
        worst_near = fmax(worst_near, away);
    }
}

static void steps(void)
{
    const double g[] = { 3, -4, 0, 1e-30 };
    double y[] = { 0, 0, 0, 0 }, work[4];
    taut_ball_step((taut_ball){ TAUT_BALL_LINF, 1, 0, 1 }, y, g, 0.5, 4);
    CHECK(y[0] == 0.5 && y[1] == -0.5 && y[2] == 0 && y[3] == 0.5, "signs");
    memset(y, 0, sizeof y);
    taut_ball_step((taut_ball){ TAUT_BALL_L2, 1, 0, 1 }, y, g, 0.5, 4);
    CHECK(fabs(y[0] - 0.3) < 1e-12 && fabs(y[1] + 0.4) < 1e-12 && y[2] == 0, "along the gradient");
    memset(y, 0, sizeof y);
    taut_ball_sparse_step(y, g, 0.5, 0.5, work, 4);
    CHECK(y[0] == 0.25 && y[1] == -0.25 && y[2] == 0 && y[3] == 0, "half of the entries");
    const double zero[] = { 0, 0, 0, 0 }, broken[] = { NAN, 1, 1, 1 }, endless[] = { 1, INFINITY, 1, 1 };
    memset(y, 0, sizeof y);
    taut_ball_step((taut_ball){ TAUT_BALL_L2, 1, 0, 1 }, y, zero, 0.5, 4);
    taut_ball_step((taut_ball){ TAUT_BALL_L2, 1, 0, 1 }, y, broken, 0.5, 4);
    taut_ball_step((taut_ball){ TAUT_BALL_L2, 1, 0, 1 }, y, endless, 0.5, 4);
    taut_ball_sparse_step(y, zero, 0.5, 0.5, work, 4);
    CHECK(y[0] == 0 && y[1] == 0 && y[2] == 0 && y[3] == 0, "no gradient, no step");
}

int main(void)
{
    test_begin();
    for (case_no = 0; case_no < effort(600); case_no++)
        for (int kind = 0; kind < 3; kind++) plane((taut_ball_kind)kind), project((taut_ball_kind)kind);
    steps();
    return test_end("ball", "way to a plane within %.1e of the shortest, projections within %.1e", worst_way,
                    worst_near);
}
