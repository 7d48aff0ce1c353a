/* The checker's own forward pass where it is most its own: proximal steps and attention over distances.  What it answers
 * must be within the error that it states, held against the same formulas in long double; on easy inputs, large and small
 * weights, a token much longer than the others, equal tokens, zeros, steps from 1e-6 to 1e4.  A step that is not found must be
 * said to be unsure, and numbers that are not finite must leave no finite error. */
#include <fenv.h>

#include "base/float32.h"
#include "check/ck.h"
#include "harness.h"

typedef long double real;
enum { T = 7, D = 6, HEADS = 2, DH = 2, LEN = T * D, INNER = HEADS * DH };

static real scale_of(int dh) { return (real)taut_float32(1 / sqrt((double)dh)); }

/* g = f'(y) + (y - x)/eta of AttLip */
static void slope(real *g, const real *y, const double *x, const double *w, real eta)
{
    real v[T][INNER], p[T][T];
    const real s = scale_of(DH);
    for (int i = 0; i < LEN; i++) g[i] = (y[i] - (real)x[i]) / eta;
    for (int t = 0; t < T; t++)
        for (int i = 0; i < INNER; i++) {
            v[t][i] = 0;
            for (int k = 0; k < D; k++) v[t][i] += (real)w[i * D + k] * y[t * D + k];
        }
    for (int h = 0; h < INNER; h += DH) {
        for (int i = 0; i < T; i++) {
            real top = 0, sum = 0;
            for (int j = 0; j < T; j++) {
                p[i][j] = 0;
                for (int k = h; k < h + DH; k++) p[i][j] += s * (v[i][k] + v[j][k]) * (v[i][k] + v[j][k]);
                top = p[i][j] > top ? p[i][j] : top;
            }
            for (int j = 0; j < T; j++) sum += p[i][j] = expl(p[i][j] - top);
            for (int j = 0; j < T; j++) p[i][j] /= sum;
        }
        for (int k = 0; k < T; k++)
            for (int d = h; d < h + DH; d++) {
                real pull = v[k][d];
                for (int i = 0; i < T; i++) pull += p[i][k] * v[k][d] + (p[k][i] + p[i][k]) * v[i][d];
                for (int i = 0; i < D; i++) g[k * D + i] += s * pull * (real)w[d * D + i];
            }
    }
}

static real length(const real *x)
{
    real sum = 0;
    for (int i = 0; i < LEN; i++) sum += x[i] * x[i];
    return sqrtl(sum);
}

/* eta |g| at y in long double: no solution is further away than that. */
static double distance(const double *y, const double *x, const double *w, double eta)
{
    real at[LEN], g[LEN];
    for (int i = 0; i < LEN; i++) at[i] = (real)y[i];
    slope(g, at, x, w, (real)eta);
    return (double)((real)eta * length(g));
}

static ck *check_begin(taut_checked *out)
{
    ck *c = calloc(1, sizeof *c);
    if (!c) abort();
    c->out = out;
    return c;
}

static ck_mat tokens(ck *c, const double *x, int rows, int cols)
{
    const ck_mat m = ck_new(c, rows, cols);
    for (int i = 0; i < rows * cols; i++) m.v[i / cols * m.ld + i % cols] = x[i];
    return m;
}

static ck_node node_of(const char *rule) { return (ck_node){ .rule = ck_rule_of(rule), .tokens = T, .width = D }; }

static void draw(double *x, double *w, int64_t weights, double weight)
{
    const double size = exp(3 * rng_pm());
    for (int i = 0; i < LEN; i++) x[i] = size * rng_pm();
    for (int64_t i = 0; i < weights; i++) w[i] = taut_float32(weight * rng_pm());
    switch (rng_int(0, 5)) {
    case 0: /* a sink */
        for (int i = 0; i < D; i++) x[i] *= 30;
        break;
    case 1: /* equal tokens */
        for (int i = D; i < LEN; i++) x[i] = x[i % D];
        break;
    case 2:
        for (int i = 0; i < LEN; i++) x[i] = 0;
        break;
    case 3: /* one direction, half of it turned round */
        for (int i = 0; i < LEN; i++) x[i] = (i / D % 2 ? -1 : 1) * x[i % D] * (1 + 1e-9 * rng_pm());
        break;
    default:
        break;
    }
}

static int solved, left_open;

/* |(2 y - x) - r| */
static double reflected(const double *y, const double *x, ck_mat r)
{
    double sum = 0;
    for (int i = 0; i < LEN; i++) sum += pow(2 * y[i] - x[i] - r.v[i / D * r.ld + i % D], 2);
    return sqrt(sum);
}

static void prox(void)
{
    static const double etas[] = { 1, 0.25, 0x1p-20, 16, 8192 }, sizes[] = { 0.5, 0.5, 3, 20, 1e-4, 0 };
    double x[LEN], w[INNER * D], y[LEN];
    taut_checked out = { 0 };
    ck *c = check_begin(&out);
    if (setjmp(c->end)) abort();
    ck_node n = node_of("attlip");
    const double eta = etas[rng_int(0, 4)];
    draw(x, w, INNER * D, sizes[rng_int(0, 5)]);
    fesetround(FE_UPWARD);
    n.k[0] = HEADS, n.k[1] = eta, n.k[2] = 1e-5;
    n.w[0] = tokens(c, w, INNER, D);
    ck_mat m = tokens(c, x, T, D), r = tokens(c, x, T, D);
    n.rule->run(c, &n, &m);
    n.k[3] = 1;
    n.rule->run(c, &n, &r);
    fesetround(FE_TONEAREST);
    for (int i = 0; i < LEN; i++) y[i] = m.v[i / D * m.ld + i % D];
    const double off = distance(y, x, w, eta), apart = reflected(y, x, r);
    solved += !c->unsure, left_open += c->unsure;
    if (!c->unsure) {
        CHECK_LE(off, m.err, "prox: further than stated");
        CHECK_LE(m.err, 1e-5 * eta + 1e-14 * norm(y, LEN), "prox: sure, but coarse");
        CHECK_LE(apart, 1e-14 * (norm(x, LEN) + norm(y, LEN)), "reflected: twice the step less x");
        CHECK_LE(2 * (m.err - 1e-14 * norm(y, LEN)), r.err, "reflected: twice the error");
    }
    ck_give_back(c, NULL);
    free(c);
}

/* y = W_O [sum_j P_ij v_j]_h in long double */
static void by_distance(real *y, const double *x, const double *wq, const double *wv, const double *wo, bool tied)
{
    enum { WIDE = D / HEADS };
    real q[T][D] = { { 0 } }, v[T][D] = { { 0 } }, o[T][D] = { { 0 } }, value[T][D] = { { 0 } };
    for (int t = 0; t < T; t++)
        for (int i = 0; i < D; i++)
            for (int k = 0; k < D; k++) {
                q[t][i] += (real)wq[i * D + k] * (real)x[t * D + k];
                v[t][i] += (real)wv[i * D + k] * (real)x[t * D + k];
            }
    for (int t = 0; t < T; t++)
        for (int i = 0; i < D; i++) {
            value[t][i] = tied ? 0 : v[t][i];
            for (int j = i / WIDE * WIDE; tied && j < (i / WIDE + 1) * WIDE; j++)
                for (int k = 0; k < D; k++)
                    value[t][i] += (real)wv[i * D + k] * (real)wq[j * D + k] * q[t][j] / sqrtl((real)WIDE);
        }
    for (int h = 0; h < D; h += WIDE)
        for (int i = 0; i < T; i++) {
            real p[T], sum = 0;
            for (int j = 0; j < T; j++) {
                real far = 0;
                for (int k = h; k < h + WIDE; k++) far += (q[i][k] - q[j][k]) * (q[i][k] - q[j][k]);
                sum += p[j] = expl(-scale_of(WIDE) * far);
            }
            for (int j = 0; j < T; j++)
                for (int k = h; k < h + WIDE; k++) o[i][k] += p[j] / sum * value[j][k];
        }
    for (int i = 0; i < LEN; i++) {
        y[i] = 0;
        for (int k = 0; k < D; k++) y[i] += (real)wo[i % D * D + k] * o[i / D][k];
    }
}

static void distances(void)
{
    double x[LEN], w[3 * D * D];
    real y[LEN];
    taut_checked out = { 0 };
    ck *c = check_begin(&out);
    if (setjmp(c->end)) abort();
    ck_node n = node_of("l2attention");
    draw(x, w, 3 * D * D, rng_int(0, 3) ? 0.7 : 5);
    fesetround(FE_UPWARD);
    n.k[0] = HEADS, n.k[1] = (double)rng_int(0, 1);
    for (int i = 0; i < 3; i++) n.w[i] = tokens(c, w + i * D * D, D, D);
    ck_mat m = tokens(c, x, T, D);
    n.rule->run(c, &n, &m);
    fesetround(FE_TONEAREST);
    by_distance(y, x, w, w + D * D, w + 2 * D * D, n.k[1] != 0);
    for (int t = 0; t < T; t++) {
        real off = 0;
        for (int i = 0; i < D; i++)
            off += (y[t * D + i] - (real)m.v[t * m.ld + i]) * (y[t * D + i] - (real)m.v[t * m.ld + i]);
        CHECK_LE((double)sqrtl(off), m.err, "distances: further than stated");
    }
    ck_give_back(c, NULL);
    free(c);
}

static void one_not_finite(double bad)
{
    double x[LEN], w[INNER * D];
    taut_checked out = { 0 };
    ck *c = check_begin(&out);
    if (setjmp(c->end)) abort();
    ck_node n = node_of("attlip");
    draw(x, w, INNER * D, 1);
    x[rng_int(0, LEN - 1)] = bad;
    fesetround(FE_UPWARD);
    n.k[0] = HEADS, n.k[1] = 1, n.k[2] = 1e-5;
    n.w[0] = tokens(c, w, INNER, D);
    ck_mat m = tokens(c, x, T, D);
    n.rule->run(c, &n, &m);
    fesetround(FE_TONEAREST);
    CHECK(c->unsure && !(m.err < 1e-3), "not finite: unsure");
    ck_give_back(c, NULL);
    free(c);
}

/* NaN, infinity and numbers whose squares overflow */
static void not_finite(void)
{
    static const double bad[] = { NAN, INFINITY, 1e200, -1e300 };
    for (int i = 0; i < 4; i++) one_not_finite(bad[i]);
}

int main(void)
{
    test_begin();
    for (case_no = 0; case_no < effort(300); case_no++) prox();
    for (case_no = 0; case_no < effort(100); case_no++) distances();
    not_finite();
    CHECK(solved > 3 * left_open, "most steps are found");
    return test_end("solve", "%d proximal steps found, %d left open", solved, left_open);
}
