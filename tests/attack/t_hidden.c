/* One hidden layer with a known exact answer.
 *
 * Ridge: every hidden unit looks along one u, so z_1 - z_0 is a piecewise linear function q of s = u.x, and the smallest
 * distance to class 1 is |s - s*| / |u|_dual, s* the nearest root of q.
 * Columns: unit j looks at x_j alone and z_1 - z_0 = sum_j q_j(x_j) with q_j concave, so the worst case in an Linf ball is
 * the sum of each q_j's largest value on an interval, and the smallest radius is found by bisection. */
#include "targets.h"

static int broken_above, missed, trials, below;
static int fab_near, column_nets;

/* q(s) of the ridge net, at an x with u.x = s. */
static double ridge_at(const net *m, double s, double scale)
{
    double z = m->c[1] - m->c[0];
    for (int64_t j = 0; j < m->hidden; j++)
        z += (m->v[m->hidden + j] - m->v[j]) * fmax(m->w[j * m->dim] / scale * s + m->b[j], 0);
    return z;
}

static double dual_norm(taut_ball_kind kind, const double *u, int64_t n)
{
    return test_norm(kind == TAUT_BALL_LINF ? TAUT_BALL_L1 : kind == TAUT_BALL_L1 ? TAUT_BALL_LINF : kind, u, n);
}

/* The nearest s where q is not below 0; the kinks are finer than a ten-thousandth of the range almost surely. */
static double nearest_root(const net *m, double s, double scale)
{
    for (int64_t k = 1; k < 200000; k++)
        for (int side = -1; side <= 1; side += 2)
            if (ridge_at(m, s + side * 1e-4 * (double)k, scale) >= 0) return 1e-4 * (double)k;
    return INFINITY;
}

/* q rises, or falls, all over the ball: then climbing must succeed, else it may end in a valley. */
static bool monotone(const net *m, double s, double scale, double reach)
{
    bool rises = true, falls = true;
    for (int k = -1000; k < 1000; k++) {
        const double a = ridge_at(m, s + reach * k / 1000, scale), b = ridge_at(m, s + reach * (k + 1) / 1000, scale);
        rises = rises && b > a, falls = falls && b < a;
    }
    return rises || falls;
}

static int64_t try_at(field *f, const char *name, taut_ball_kind kind, double eps)
{
    taut_profile p;
    must(taut_profile_find(&p, name, kind, (taut_profile_options){ .restarts = 3 }));
    f->h.ball = (taut_ball){ kind, eps, f->h.target->lo, f->h.target->hi };
    return field_attack(f, &p);
}

static void ridge(taut_ball_kind kind)
{
    static const char *const strong[] = { "apgd-ce", "apgd-dlr", "apgd-t", "fab" };
    net m = net_make(rng_int(2, 12), rng_int(2, 5), 2);
    taut_target t = net_target(&m, false, NET_BATCH);
    double u[12];
    field f;
    fill(u, m.dim);
    for (int64_t j = 0; j < m.hidden; j++) {
        const double a = rng_pm();
        for (int64_t i = 0; i < m.dim; i++) m.w[j * m.dim + i] = a * u[i];
    }
    field_open(&f, &t, 1);
    do {
        fill(f.x, m.dim);
        field_label(&f);
        m.c[0] += 0.05;
    } while (f.label[0] != 0);
    field_label(&f);
    const double r = nearest_root(&m, dot(u, f.x, m.dim), u[0]) / dual_norm(kind, u, m.dim);
    for (int a = 0; isfinite(r) && a < 4; a++) {
        /* the root is found to 1e-4 */
        below += (int)try_at(&f, strong[a], kind, r * (1 - 2e-4 / (r * dual_norm(kind, u, m.dim))));
        if (!monotone(&m, dot(u, f.x, m.dim), u[0], 1.5 * r * dual_norm(kind, u, m.dim))) continue;
        const bool sure = a < 3 && kind != TAUT_BALL_L1; /* FAB and L1's steps may miss: t_linear.c says why */
        const int64_t done = try_at(&f, strong[a], kind, (r + 1e-3) * (kind == TAUT_BALL_L1 ? 1.5 : 1.06));
        broken_above += (int)done, missed += !done && !sure;
        trials++;
    }
    field_close(&f);
    taut_target_done(&t);
    net_free(&m);
}

/* Coordinate j: slope a up to the kink, b < a after it: concave.  Units relu(x - k) and relu(x + 9), x in [-1, 1]. */
static void columns_net(net *m, double *kink, double *rise, double *fall)
{
    memset(m->w, 0, (size_t)(m->hidden * m->dim) * 8), memset(m->v, 0, (size_t)(2 * m->hidden) * 8);
    for (int64_t j = 0; j < m->dim; j++) {
        kink[j] = rng_pm(), rise[j] = rng_pm(), fall[j] = rise[j] - 2 * rng_unit();
        m->w[(2 * j) * m->dim + j] = m->w[(2 * j + 1) * m->dim + j] = 1;
        m->b[2 * j] = 9, m->b[2 * j + 1] = -kink[j];
        m->v[m->hidden + 2 * j] = rise[j], m->v[m->hidden + 2 * j + 1] = fall[j] - rise[j];
    }
}

static double columns_most(const net *m, const double *x, double eps, const double *kink, const double *rise,
                           const double *fall)
{
    double sum = m->c[1] - m->c[0];
    for (int64_t j = 0; j < m->dim; j++) {
        double best = -INFINITY;
        for (int k = 0; k < 3; k++) {
            const double s = k == 2 ? fmin(fmax(kink[j], x[j] - eps), x[j] + eps) : x[j] + (k ? eps : -eps);
            best = fmax(best, rise[j] * (s + 9) + (fall[j] - rise[j]) * fmax(s - kink[j], 0));
        }
        sum += best;
    }
    return sum;
}

static void columns(void)
{
    double kink[8], rise[8], fall[8];
    net m = net_make(rng_int(1, 8), 0, 2);
    const int64_t dim = m.dim;
    net_free(&m);
    m = net_make(dim, 2 * dim, 2);
    columns_net(&m, kink, rise, fall);
    taut_target t = net_target(&m, false, NET_BATCH);
    field f;
    field_open(&f, &t, 1);
    fill(f.x, dim);
    m.c[1] = 0, m.c[0] = 0;
    m.c[0] = columns_most(&m, f.x, 0, kink, rise, fall) + 0.3; /* class 0 by 0.3 */
    field_label(&f);
    CHECK(f.label[0] == 0, "set up");
    double low = 0, high = 2;
    for (int it = 0; it < 100; it++) {
        const double eps = (low + high) / 2;
        if (columns_most(&m, f.x, eps, kink, rise, fall) > 0)
            high = eps;
        else
            low = eps;
    }
    if (high < 1.9) {
        below += (int)try_at(&f, "aa-plus", TAUT_BALL_LINF, high * (1 - 1e-9));
        broken_above += (int)try_at(&f, "apgd-ce", TAUT_BALL_LINF, high * 1.02);
        trials++;
        column_nets++;
        taut_profile p;
        must(taut_profile_find(&p, "fab", TAUT_BALL_LINF, (taut_profile_options){ .restarts = 1 }));
        p.attack[0].minimal = true;
        f.h.ball.eps = 1e9;
        if (field_attack(&f, &p)) {
            CHECK_LE(high, f.h.distance[0] * (1 + 1e-9), "no shorter way out than the exact one");
            fab_near += f.h.distance[0] <= 1.06 * high;
        }
    }
    field_close(&f);
    taut_target_done(&t);
    net_free(&m);
}

int main(void)
{
    test_begin();
    for (case_no = 0; case_no < effort(45); case_no++) ridge((taut_ball_kind)(case_no % 3)), columns();
    CHECK(below == 0, "no attack beats the exact distance");
    CHECK(broken_above + missed == trials && trials > effort(40), "all that must be are broken just above it");
    CHECK_LE(10 * missed, trials, "and nine in ten of the others");
    CHECK(2 * fab_near > column_nets, "FAB is mostly near");
    return test_end("hidden", "%d of %d broken just above the exact distance, %d below it; FAB near it in %d of %d",
                    broken_above, trials, below, fab_near, column_nets);
}
