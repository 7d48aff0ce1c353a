/* Linear classifiers, whose exact smallest adversarial distance is known: min over classes c of the shortest move to the
 * plane z_c = z_y.  No attack succeeds below it; each of those that should, succeeds just above; FAB measures it. */
#include "shortest.h"

enum { N = 12 };
static double worst_fab[3];
static int tried, hits[3][8], chances[3][8];
static const char *const attacks[] = { "fgsm", "pgd", "apgd-ce", "apgd-dlr", "apgd-t", "fab", "fab-t", "square" };

static double exact(const net *m, const taut_target *t, taut_ball_kind kind, const double *x, const double *z,
                    int32_t y)
{
    double best = INFINITY, w[MOST], r[MOST];
    for (int64_t c = 0; c < m->classes; c++) {
        if (c == y) continue;
        double all = 0;
        const double gap = z[y] - z[c];
        for (int64_t i = 0; i < m->dim; i++) {
            const double way = m->v[c * m->dim + i] - m->v[y * m->dim + i];
            w[i] = fabs(way);
            r[i] = isinf(t->hi) ? 1e6 : way > 0 ? t->hi - x[i] : x[i] - t->lo;
            all += w[i] * r[i];
        }
        if (all > gap) best = fmin(best, shortest(kind, gap, w, r, m->dim));
    }
    return best;
}

/* How far above the exact distance an attack must succeed; infinite: nothing is promised.  Two classes: the gradient points
 * the right way at once, so one step of FGSM without a box (L1: with one too), and any 100 steps; PGD's 100 of eps / 40
 * turn an angle to a twelfth.  With a box the L2 step is cut after it was scaled, which costs some of it.  APGD's L1 steps
 * are never shorter than eps / 10, spread over several entries, so a corner of the ball is only come near to; PGD's
 * projections drain the entries that it has just filled.  FAB steps 5 % over the plane and pulls back
 * by 10 %; in L1 a step moves whole entries, and a box can make another class the nearest than the one it takes.  Square
 * has no gradients and small windows of 3. */
static double promise(int attack, taut_ball_kind kind, bool boxed, int64_t classes)
{
    const bool climbs = attack >= 1 && attack <= 3, one = kind == TAUT_BALL_L1;
    if (attack == 0) return (boxed && !one) || classes > 2 ? INFINITY : 1.001;
    if (climbs && classes > 2) return INFINITY;
    if (attack == 1 && !one) return boxed ? 1.1 : 1.05;
    if (climbs || attack == 4) return one ? 1.5 : boxed ? 1.1 : 1.01;
    if (attack == 7) return boxed || one ? INFINITY : kind == TAUT_BALL_LINF ? 2 : 3;
    return boxed && classes > 2 ? INFINITY : one ? 1.1 : 1.06;
}

static void one(field *f, int attack, double eps, taut_ball_kind kind, const double *radius, double above)
{
    const taut_profile_options o = { .steps = attack == 1 ? 100 : 0, .queries = 3000 };
    const taut_target *t = f->h.target;
    taut_profile p;
    must(taut_profile_find(&p, attacks[attack], kind, o));
    f->h.ball = (taut_ball){ kind, eps, t->lo, t->hi };
    field_attack(f, &p);
    for (int64_t e = 0; e < N; e++) {
        const double *x = f->x + e * t->dim, *adv = f->h.adv + e * t->dim;
        double d[MOST], z[16];
        chances[kind][attack] += above > 1 && e == 0;
        if (!f->h.broken[e]) {
            CHECK(!(e == 0 && above > 1 && eps >= radius[e] * above), attacks[attack]);
            continue;
        }
        hits[kind][attack] += above > 1 && e == 0;
        for (int64_t i = 0; i < t->dim; i++) {
            d[i] = adv[i] - x[i];
            CHECK(adv[i] >= t->lo && adv[i] <= t->hi, "in the box");
        }
        net_forward(t->arg, 0, z, adv, NULL, 1);
        CHECK(taut_argmax(z, t->classes) != f->label[e], "really another class");
        CHECK_NEAR(test_norm(kind, d, t->dim), f->h.distance[e], 1e-12, "the distance told");
        CHECK_LE(f->h.distance[e], eps * (1 + 1e-12), "inside the ball");
        CHECK_LE(radius[e], f->h.distance[e] * (1 + 1e-9), "no attack beats the exact distance");
        tried++;
    }
}

static void fab_distance(field *f, taut_ball_kind kind, const double *radius)
{
    const taut_target *t = f->h.target;
    const double within = promise(5, kind, isfinite(t->hi), t->classes);
    taut_profile p;
    must(taut_profile_find(&p, "fab", kind, (taut_profile_options){ 0 }));
    p.attack[0].minimal = true;
    f->h.ball = (taut_ball){ kind, 1e9, t->lo, t->hi };
    field_attack(f, &p);
    for (int64_t e = 0; e < N; e++) {
        if (!(radius[e] < INFINITY)) continue;
        CHECK(f->h.broken[e], "FAB finds a way out");
        CHECK_LE(f->h.distance[e], within * radius[e], "FAB measures the distance");
        if (isfinite(within)) worst_fab[kind] = fmax(worst_fab[kind], f->h.distance[e] / radius[e] - 1);
    }
}

static void model(taut_ball_kind kind, bool boxed, int64_t classes)
{
    net m = net_make(rng_int(1, 3) * 16, 0, classes);
    taut_target t = net_target(&m, boxed, NET_BATCH);
    field f;
    double radius[N];
    if (m.dim == 48) t.channels = 3, t.height = t.width = 4;
    field_open(&f, &t, N);
    for (int64_t i = 0; i < N * m.dim; i++) f.x[i] = rng_unit();
    field_label(&f);
    for (int64_t e = 0; e < N; e++) radius[e] = exact(&m, &t, kind, f.x + e * m.dim, f.z + e * classes, f.label[e]);
    for (int a = 0; a < 8; a++) {
        const double above = promise(a, kind, boxed, classes);
        one(&f, a, radius[0] * 0.999, kind, radius, 0); /* not by a hair */
        if (isfinite(above) && isfinite(radius[0])) one(&f, a, radius[0] * above, kind, radius, above);
    }
    fab_distance(&f, kind, radius);
    field_close(&f);
    taut_target_done(&t);
    net_free(&m);
}

int main(void)
{
    test_begin();
    for (case_no = 0; case_no < effort(24); case_no++)
        model((taut_ball_kind)(case_no % 3), case_no / 3 % 2, case_no / 6 % 2 ? 2 : rng_int(3, 10));
    for (int k = 0; k < 3; k++)
        for (int a = 0; a < 8; a++) CHECK(hits[k][a] > 0 || !chances[k][a], attacks[a]);
    return test_end("linear", "%d successes, none below the exact distance; FAB within %.2g %.2g %.2g of it", tried,
                    worst_fab[0], worst_fab[1], worst_fab[2]);
}
