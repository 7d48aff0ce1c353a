/* The certificates of PLASH: in the setting of the paper's figure 4 ours is within 1 % of the true deviation and below
 * the trivial bound, the paper's is far above both; the ball is never left by sampled perturbations; the printed
 * constant of the mixer is beaten on its own segment; LayerNorm's constant is sharp. */
#include "certify/mixer.h"
#include "certify/plash.h"
#include "harness.h"

static double normal(void) { return sqrt(-2 * log(1 - rng_unit())) * cos(6.283185307179586 * rng_unit()); }

/* degree 2 beside degree 1 where `both` */
static void figure4(int64_t groups, bool xavier, bool both, double tau_g, double *tight)
{
    enum { NQ = 32, NK = 64, D = 32 };
    const taut_plash_case c = { .nq = NQ,
                                .nk = NK,
                                .width = D,
                                .groups = groups,
                                .degrees = both ? 2 : 1,
                                .degree = { 1, 2 },
                                .size = { 256, 128 },
                                .hidden = 64,
                                .mixer_heads = 4,
                                .mixers = 1,
                                .tau = 1,
                                .tau_g = tau_g,
                                .floor = 1e-6,
                                .norm_eps = 1e-5,
                                .eta = 0.5,
                                .xavier = xavier,
                                .seed = rng_next() };
    static double q[NQ * D], k[NK * D], v[NK * D];
    const double sigma = 0.004 + 0.076 * rng_unit();
    for (int i = 0; i < NQ * D; i++) q[i] = sigma * normal();
    for (int i = 0; i < NK * D; i++) k[i] = sigma * normal(), v[i] = sigma * normal();
    taut_plash_head *h = NULL;
    taut_plash_verdict r;
    CHECK(taut_plash_head_new(&h, &c) == TAUT_OK, "a head");
    CHECK(taut_plash_judge(&r, h, q, k, v) == TAUT_OK, "judged");
    CHECK_LE(r.truth, r.ours, "ours holds");
    CHECK_LE(r.ours, 1.01 * r.truth, "and is within 1 %");
    CHECK_LE(r.ours, r.hull, "below the trivial bound");
    CHECK_LE(10 * r.hull, r.paper.stage1 + r.paper.reference + r.paper.printed,
             "the printed one says less than the trivial one");
    CHECK_LE(r.truth, r.paper.stage1 + r.paper.reference + r.paper.mended, "the mended one holds");
    CHECK_LE(r.exact2, r.paper.mended, "its second stage too");
    *tight = fmax(*tight, r.ours / r.truth);
    taut_plash_head_free(h);
}

/* P11: raising tau_g does not tighten what it is said to tighten, since LayerNorm undoes it. */
static void temperature(void)
{
    enum { D = 8 };
    double q[4 * D], k[8 * D], v[8 * D], second[3];
    for (int i = 0; i < 4 * D; i++) q[i] = normal();
    for (int i = 0; i < 8 * D; i++) k[i] = normal(), v[i] = normal();
    for (int i = 0; i < 3; i++) {
        const taut_plash_case c = { .nq = 4,
                                    .nk = 8,
                                    .width = D,
                                    .groups = 4,
                                    .hidden = 8,
                                    .mixer_heads = 2,
                                    .mixers = 1,
                                    .degrees = 1,
                                    .degree = { 1 },
                                    .size = { 16 },
                                    .tau = 1,
                                    .tau_g = pow(10, i + 1),
                                    .floor = 1e-6,
                                    .norm_eps = 1e-12,
                                    .eta = 0.5,
                                    .xavier = true,
                                    .seed = 3 };
        taut_plash_head *h = NULL;
        taut_plash_verdict r;
        CHECK(taut_plash_head_new(&h, &c) == TAUT_OK && taut_plash_judge(&r, h, q, k, v) == TAUT_OK, "judged");
        second[i] = r.exact2;
        taut_plash_head_free(h);
    }
    CHECK(second[2] > 0.9 * second[0], "P11: a hundred times tau_g leaves |Y - Y_det| where it was");
}

/* The probability that the mended one fails: a sum over degrees, (3^k - 1) M/(eta^2 D_k), and never above 1. */
static void failing(void)
{
    enum { D = 8 };
    const double zero[8 * D] = { 0 };
    for (int both = 0; both < 2; both++) {
        const taut_plash_case c = { .nq = 4,
                                    .nk = 8,
                                    .width = D,
                                    .groups = 4,
                                    .hidden = 8,
                                    .mixer_heads = 2,
                                    .mixers = 1,
                                    .degrees = 1 + both,
                                    .degree = { 1, 2 },
                                    .size = { 256, 512 },
                                    .tau = 1,
                                    .tau_g = 10,
                                    .floor = 1e-6,
                                    .norm_eps = 1e-5,
                                    .eta = 0.5,
                                    .seed = 3 };
        taut_plash_head *h = NULL;
        taut_plash_verdict r;
        CHECK(taut_plash_head_new(&h, &c) == TAUT_OK && taut_plash_judge(&r, h, zero, zero, zero) == TAUT_OK, "judged");
        CHECK_NEAR(r.paper.delta, 4 / 0.25 * (2.0 / 256 + both * 8.0 / 512), 1e-15, "delta");
        taut_plash_head_free(h);
    }
}

typedef struct {
    taut_mixer_layer l;
    double w[12][64], y[2][16], work[256];
} toy;

static void draw(toy *t, double gain)
{
    enum { M = 2, D = 4, F = 8 };
    const int len[] = { D * D, D * D, D * D, D * D, D * F, F, D * F, D, D, D, D, D };
    t->l = (taut_mixer_layer){ .groups = M, .width = D, .heads = 2, .hidden = F, .eps = 1e-5 };
    const double **const to[] = { &t->l.wq, &t->l.wk, &t->l.wv, &t->l.wo,  &t->l.w1, &t->l.b1,
                                  &t->l.w2, &t->l.b2, &t->l.g1, &t->l.be1, &t->l.g2, &t->l.be2 };
    for (int i = 0; i < 12; i++) {
        for (int j = 0; j < len[i]; j++) t->w[i][j] = i == 8 || i == 10 ? 1 : i < 8 ? gain * normal() : 0;
        *to[i] = t->w[i];
    }
    taut_mixer_norms(&t->l);
    CHECK(taut_mixer_work(&t->l) <= 256, "room for the layer's steps");
}

static double far(const double *x, const double *y)
{
    double most = 0;
    for (int r = 0; r < 2; r++) {
        double sum = 0;
        for (int c = 0; c < 4; c++) sum += (x[4 * r + c] - y[4 * r + c]) * (x[4 * r + c] - y[4 * r + c]);
        most = fmax(most, sqrt(sum));
    }
    return most;
}

/* P7: no sampled point leaves the ball. */
static double ball(void)
{
    toy t;
    double centre[8], out[8], worst = 0;
    const double r = pow(10, -4 * rng_unit());
    draw(&t, 0.1 + rng_unit());
    for (int i = 0; i < 8; i++) centre[i] = normal();
    memcpy(out, centre, sizeof out);
    const double reach = taut_mixer_ball(&t.l, out, r, t.work);
    for (int trial = 0; trial < 40; trial++) {
        double x[8];
        for (int row = 0; row < 2; row++) {
            double e[4] = { normal(), normal(), normal(), normal() };
            for (int c = 0; c < 4; c++) x[4 * row + c] = centre[4 * row + c] + r * e[c] / norm(e, 4);
        }
        (void)taut_mixer_ball(&t.l, x, 0, t.work);
        CHECK_LE(far(x, out), reach, "P7: the ball holds");
        worst = fmax(worst, far(x, out) / reach);
    }
    return worst;
}

/* The centred size before the second LayerNorm that the printed constant takes for granted on the whole segment, from
 * its endpoints, is exceeded inside it: two endpoints that a symmetric layer treats alike, with a bump between. */
static bool printed_is_beaten(void)
{
    toy t;
    double y0[8], y1[8], a0[8], a1[8];
    draw(&t, 1.5);
    for (int i = 0; i < 8; i++) y0[i] = normal(), y1[i] = -0.3 * y0[i] + 0.1 * normal();
    memcpy(a0, y0, sizeof a0), memcpy(a1, y1, sizeof a1);
    (void)taut_mixer_printed(&t.l, a0, a1, t.work);
    const double ends = far(a0, a1); /* the radius that the next layer is given */
    for (int i = 1; i < 100; i++) {
        double x[8];
        for (int j = 0; j < 8; j++) x[j] = y0[j] + i / 100.0 * (y1[j] - y0[j]);
        (void)taut_mixer_ball(&t.l, x, 0, t.work);
        if (far(x, a0) > 1.001 * ends) return true;
    }
    return false;
}

/* P6: |LN u - LN v| <= ||g||/sqrt(m) |u - v| where var + eps >= m, attained by turning a row of that size. */
static void sharp(void)
{
    enum { D = 4 };
    const double eps = 1e-3, size = 0.7, m = size * size / D + eps, angle = 1e-6;
    const double u[D] = { 0.5, -0.5, 0.5, -0.5 }, w[D] = { 0.5, 0.5, -0.5, -0.5 };
    double a[D], b[D];
    for (int c = 0; c < D; c++) a[c] = size * u[c], b[c] = size * (cos(angle) * u[c] + sin(angle) * w[c]);
    double change = 0, out = 0;
    for (int c = 0; c < D; c++) {
        change += (a[c] - b[c]) * (a[c] - b[c]);
        out += (a[c] - b[c]) * (a[c] - b[c]) / m;
    }
    CHECK_NEAR(sqrt(out / change) * sqrt(m), 1, 1e-9, "P6: attained");
    for (int i = 0; i < 200; i++) {
        double x[D], y[D], mx = 0, my = 0, vx = 0, vy = 0, far2 = 0, near2 = 0;
        for (int c = 0; c < D; c++) x[c] = normal(), y[c] = x[c] + 0.1 * normal(), mx += x[c] / D, my += y[c] / D;
        for (int c = 0; c < D; c++) vx += (x[c] - mx) * (x[c] - mx) / D, vy += (y[c] - my) * (y[c] - my) / D;
        for (int c = 0; c < D; c++) {
            const double e = (x[c] - mx) / sqrt(vx + eps) - (y[c] - my) / sqrt(vy + eps);
            far2 += e * e, near2 += (x[c] - y[c]) * (x[c] - y[c]);
        }
        CHECK_LE(sqrt(far2 / near2), (1 + 1e-9) / sqrt(fmin(vx, vy) + eps), "P6: holds");
    }
}

int main(void)
{
    double tight = 0, worst = 0;
    int beaten = 0;
    test_begin();
    for (case_no = 0; case_no < effort(8); case_no++)
        figure4(case_no % 2 ? 16 : 64, case_no / 2 % 2, case_no / 4 % 2, case_no % 3 ? 1585 : 631, &tight);
    temperature();
    failing();
    for (case_no = 0; case_no < effort(300); case_no++) worst = fmax(worst, ball());
    for (case_no = 0; case_no < effort(100); case_no++) beaten += printed_is_beaten();
    CHECK(beaten > effort(100) / 10, "P7: endpoints say little about what is between them");
    sharp();
    return test_end("plash", "ours / truth at most %.5f, sampled / ball at most %.3f, printed radius beaten %d times",
                    tight, worst, beaten);
}
