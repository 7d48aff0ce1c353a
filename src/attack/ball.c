#include "attack/ball.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/ascending.h"
#include "base/clones.h"
#include "base/rng.h"

static const char *const names[] = { "Linf", "L2", "L1" };

bool taut_ball_parse(taut_ball_kind *kind, const char *name)
{
    for (int i = 0; i < 3; i++)
        if (strcasecmp(name, names[i]) == 0) return *kind = (taut_ball_kind)i, true;
    return false;
}

const char *taut_ball_name(taut_ball_kind kind) { return names[kind]; }

static double norm_one(const double *x, int64_t n)
{
    double s = 0;
    for (int64_t i = 0; i < n; i++) s += fabs(x[i]);
    return s;
}

static double norm_two(const double *x, int64_t n)
{
    double s = 0;
    for (int64_t i = 0; i < n; i++) s += x[i] * x[i];
    return sqrt(s);
}

static double norm_most(const double *x, int64_t n)
{
    double m = 0;
    for (int64_t i = 0; i < n; i++)
        if (!(fabs(x[i]) <= m)) m = fabs(x[i]);
    return m;
}

double (*taut_ball_dual(taut_ball_kind kind))(const double *, int64_t)
{
    return kind == TAUT_BALL_LINF ? norm_one : kind == TAUT_BALL_L2 ? norm_two : norm_most;
}

double taut_ball_distance(taut_ball_kind kind, const double *x, const double *y, int64_t n)
{
    double sum = 0;
    for (int64_t i = 0; i < n; i++) {
        const double d = fabs(x[i] - y[i]);
        if (kind == TAUT_BALL_LINF)
            sum = d <= sum ? sum : d;
        else
            sum += kind == TAUT_BALL_L2 ? d * d : d;
    }
    return kind == TAUT_BALL_L2 ? sqrt(sum) : sum;
}

static double cut(double v, double lo, double hi) { return v < lo ? lo : v > hi ? hi : v; }

static void cut_to_box(taut_ball b, double *y, int64_t n)
{
    for (int64_t i = 0; i < n; i++) y[i] = cut(y[i], b.lo, b.hi);
}

/* Into the cube around x, then into the box. */
TAUT_CLONES static void cut_to_cube(double *restrict y, const double *restrict x, double eps, double lo, double hi,
                                    int64_t n)
{
    for (int64_t i = 0; i < n; i++) y[i] = cut(cut(y[i], x[i] - eps, x[i] + eps), lo, hi);
}

/* y += size times the sign of g, which has none where it is 0 or NaN. */
TAUT_CLONES static void step_signs(double *restrict y, const double *restrict g, double size, int64_t n)
{
    for (int64_t i = 0; i < n; i++) y[i] += g[i] > 0 ? size : g[i] < 0 ? -size : 0;
}

/* How far entry i of a move may go in the direction of its sign. */
static double room(taut_ball b, double x, double sign) { return sign > 0 ? b.hi - x : x - b.lo; }

/* The nearest point is soft-thresholded by some l >= 0 and cut to the box; its L1 norm falls as l grows.  Bisection from
 * above, so that what is taken is in the ball. */
static void project_one(taut_ball b, double *y, const double *x, int64_t n)
{
    double low = 0, high = 0;
    for (int64_t i = 0; i < n; i++) high = fmax(high, fabs(y[i] - x[i]));
    for (int it = 0; it < 100; it++) {
        const double l = it ? (low + high) / 2 : 0;
        double sum = 0;
        for (int64_t i = 0; i < n; i++) {
            const double u = y[i] - x[i];
            sum += fmin(fmax(fabs(u) - l, 0), room(b, x[i], u));
        }
        if (sum <= b.eps) high = l;
        if (high == 0 || high - low <= 1e-16 * high) break;
        if (!(sum <= b.eps)) low = l;
    }
    for (int64_t i = 0; i < n; i++) {
        const double u = y[i] - x[i], size = fmin(fmax(fabs(u) - high, 0), room(b, x[i], u));
        y[i] = cut(x[i] + copysign(size, u), b.lo, b.hi);
    }
}

void taut_ball_project(taut_ball b, double *y, const double *x, int64_t n)
{
    if (b.kind == TAUT_BALL_L1) {
        project_one(b, y, x, n);
        return;
    }
    if (b.kind == TAUT_BALL_LINF) {
        cut_to_cube(y, x, b.eps, b.lo, b.hi, n);
        return;
    }
    const double size = taut_ball_distance(b.kind, x, y, n);
    if (size > b.eps)
        for (int64_t i = 0; i < n; i++) y[i] = x[i] + (y[i] - x[i]) * (b.eps / size);
    cut_to_box(b, y, n);
}

void taut_ball_start(taut_ball b, double *y, const double *x, uint64_t key, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        y[i] = b.kind == TAUT_BALL_LINF ? 2 * taut_rng_unit(key, (uint64_t)i) - 1 : taut_rng_normal(key, (uint64_t)i);
    const double size = b.kind == TAUT_BALL_LINF ? norm_most(y, n) : b.kind == TAUT_BALL_L2 ? norm_two(y, n) : b.eps;
    const double scale = size > 0 ? b.eps / size : 0;
    for (int64_t i = 0; i < n; i++) y[i] = x[i] + scale * y[i];
    taut_ball_project(b, y, x, n);
}

void taut_ball_step(taut_ball b, double *y, const double *g, double size, int64_t n)
{
    if (b.kind == TAUT_BALL_LINF) {
        step_signs(y, g, size, n);
        return;
    }
    const double length = norm_two(g, n), scale = size / (length + 1e-12);
    for (int64_t i = 0; isfinite(length) && i < n; i++) y[i] += scale * g[i];
}

void taut_ball_sparse_step(double *y, const double *g, double size, double share, double *work, int64_t n)
{
    for (int64_t i = 0; i < n; i++) work[i] = fabs(g[i]);
    qsort(work, (size_t)n, sizeof *work, taut_ascending);
    const int64_t at = (int64_t)cut((1 - share) * (double)n, 0, (double)(n - 1));
    const double least = work[at];
    int64_t count = 0;
    for (int64_t i = 0; i < n; i++) count += fabs(g[i]) >= least && g[i] != 0;
    for (int64_t i = 0; i < n; i++)
        if (fabs(g[i]) >= least && g[i] != 0) y[i] += copysign(size / (double)count, g[i]);
}
