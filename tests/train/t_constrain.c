/* Every constraint against an exact SVD: what it promises to do to the singular values, on tall, wide and square
 * matrices, in double and in float; and that none leaves a norm above its cap by more than it says. */
#include "base/float32.h"
#include "train/constrain/hold.h"

#include "harness.h"
#include "train/constrain/odd.h"
#include "train/constrain/rescale.h"

enum { MOST = 64 };

/* W = U diag(s) V^T by one-sided Jacobi: u (side, rows), v (side, cols), s not sorted. */
typedef struct {
    int64_t rows, cols, side;
    double u[MOST * MOST], v[MOST * MOST], s[MOST];
} svd;

/* The vectors x_0 .. x_{n-1} of length len are made orthogonal by rotations, which y follows. */
static void jacobi(double *x, int64_t len, double *y, int64_t n)
{
    for (int sweep = 0, turned = 1; sweep < 60 && turned; sweep++) {
        turned = 0;
        for (int64_t p = 0; p < n; p++)
            for (int64_t q = p + 1; q < n; q++) {
                double *a = x + p * len, *b = x + q * len;
                const double aa = dot(a, a, len), bb = dot(b, b, len), ab = dot(a, b, len);
                if (fabs(ab) <= 1e-15 * sqrt(aa * bb) || ab == 0) continue;
                const double z = (bb - aa) / (2 * ab), t = copysign(1, z) / (fabs(z) + sqrt(1 + z * z));
                const double c = 1 / sqrt(1 + t * t), s = c * t;
                turned = 1;
                for (int64_t i = 0; i < len + n; i++) {
                    double *l = i < len ? a + i : y + p * n + i - len, *r = i < len ? b + i : y + q * n + i - len;
                    const double keep = *l;
                    *l = c * keep - s * *r;
                    *r = s * keep + c * *r;
                }
            }
    }
}

static void svd_of(svd *d, const double *w, int64_t rows, int64_t cols)
{
    const bool wide = rows < cols;
    const int64_t n = wide ? rows : cols, len = wide ? cols : rows;
    *d = (svd){ .rows = rows, .cols = cols, .side = n };
    double *x = wide ? d->v : d->u, *y = wide ? d->u : d->v;
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < len; j++) x[i * len + j] = wide ? w[i * cols + j] : w[j * cols + i];
    for (int64_t i = 0; i < n; i++) y[i * n + i] = 1;
    jacobi(x, len, y, n);
    for (int64_t i = 0; i < n; i++) {
        d->s[i] = norm(x + i * len, len);
        for (int64_t j = 0; j < len && d->s[i] > 0; j++) x[i * len + j] /= d->s[i];
    }
}

static void rebuild(double *w, const svd *d)
{
    memset(w, 0, (size_t)(d->rows * d->cols) * sizeof *w);
    for (int64_t k = 0; k < d->side; k++)
        for (int64_t i = 0; i < d->rows; i++)
            for (int64_t j = 0; j < d->cols; j++)
                w[i * d->cols + j] += d->s[k] * d->u[k * d->rows + i] * d->v[k * d->cols + j];
}

static double top(const svd *d)
{
    double most = 0;
    for (int64_t i = 0; i < d->side; i++) most = fmax(most, d->s[i]);
    return most;
}

/* A random matrix whose singular values, in RMS units, are spread over [lo, hi] and include both; the largest
 * stands out, so that its vectors mean something. */
static void random_matrix(double *w, int64_t rows, int64_t cols, double lo, double hi)
{
    svd d;
    fill(w, rows * cols);
    svd_of(&d, w, rows, cols);
    for (int64_t i = 0; i < d.side; i++)
        d.s[i] = (i == 0 ? hi : i == 1 ? lo : lo + (0.95 * hi - lo) * rng_unit()) * sqrt((double)rows / (double)cols);
    rebuild(w, &d);
}

/* ---- running one constraint ---- */

typedef struct {
    const taut_kernels *k;
    double cap, argument;
    int iterations;
} setting;

typedef void (*method)(taut_hold, double argument);
static void run_normalise(taut_hold h, double x) { (void)x, taut_normalise(h); }
static void run_softcap(taut_hold h, double k) { taut_softcap(&h, &k, 1, true); }
static void run_stiefel(taut_hold h, double x) { (void)x, taut_stiefel(h); }
static void run_hammer(taut_hold h, double x) { (void)x, taut_hammer(h); }
static void run_hardcap(taut_hold h, double x) { (void)x, taut_hardcap(h); }
static void run_table(taut_hold h, double x) { (void)x, taut_hardcap_table(h); }

static void run(method f, double *w, int64_t rows, int64_t cols, setting s)
{
    const int64_t room = taut_softcap_work(rows, cols, 1); /* the most that any of them needs */
    double start[MOST];
    taut_real *x = taut_reals(s.k, rows * cols), *work = taut_reals(s.k, room), *v = taut_reals(s.k, cols);
    for (int64_t i = 0; i < cols; i++) start[i] = rng_pm();
    s.k->put(x, w, rows * cols);
    s.k->put(v, start, cols);
    f((taut_hold){ s.k, x, rows, cols, s.cap, { work, room, s.k->elem }, v, s.iterations }, s.argument);
    s.k->get(w, x, rows * cols);
    s.k->release(x), s.k->release(work), s.k->release(v);
}

/* The formula on one singular value, when the largest is s1; all in RMS units. */
typedef double (*formula)(double s, double s1, double cap, double argument);
static double f_decay(double s, double s1, double cap, double x) { return (void)cap, s == s1 ? (1 - x) * s : s; }
static double f_normalise(double s, double s1, double cap, double x) { return (void)x, s * fmin(1, cap / s1); }
static double f_hammer(double s, double s1, double cap, double x) { return (void)x, s == s1 ? cap : s; }
static double f_hardcap(double s, double s1, double cap, double x) { return (void)s1, (void)x, fmin(s, cap); }
static double f_clip(double s, double s1, double cap, double x) { return (void)s1, fmin(fmax(s, x), cap); }
static double f_clipped(double s, double s1, double cap, double x)
{
    return (void)s1, s <= cap ? s : (1 - x) * s + x * cap;
}
static double f_softcap(double s, double s1, double cap, double k)
{
    double a;
    if (!taut_cap_strength(&a, cap, k)) return s * fmin(1, cap / s1);
    s *= fmin(1, fmax(k, cap) / s1);
    const double y = s - a * s * s * s;
    return y + a * y * y * y;
}
static double f_table(double s, double s1, double cap, double x)
{
    static const double t[4][3] = { { 0.805032, 0.206361, -0.019763 },
                                    { 0.649867, 0.162935, -0.011150 },
                                    { 1.810259, -0.200265, 0.008251 },
                                    { 1.004384, -0.183490, 0.014413 } };
    (void)x;
    s *= fmin(1, 2 * cap / s1) / cap;
    for (int i = 0; i < 4; i++) s = s * (t[i][0] + s * s * (t[i][1] + s * s * t[i][2]));
    return s * cap;
}

static const struct {
    const char *name;
    method run;
    formula f;
    double least, most; /* the argument */
    double tol;         /* relative to the larger of cap and s1, in double */
    double over;        /* how far above cap the norm may be; inf: it is no cap */
} methods[] = {
    { "spectral decay", taut_spectral_decay, f_decay, 0, 1, 1e-12, INFINITY },
    { "normalise", run_normalise, f_normalise, 0, 0, 1e-12, 1e-6 },
    { "hammer", run_hammer, f_hammer, 0, 0, 1e-12, INFINITY },
    { "softcap", run_softcap, f_softcap, 0.1, 4, 1e-12, 1e-6 },
    { "hardcap", run_hardcap, f_hardcap, 0, 0, 2e-6, 2e-6 },
    { "hardcap_table", run_table, f_table, 0, 0, 1e-12, 0.0111 },
    { "clip", taut_clip, f_clip, 0, 1, 2e-6, 2e-6 },
    { "clipped decay", taut_clipped_decay, f_clipped, 0, 1, 2e-6, INFINITY },
};
enum { METHODS = sizeof methods / sizeof *methods };

static double worst[METHODS];

static void compare(int i, int64_t rows, int64_t cols, const char *kernels)
{
    static double w[MOST * MOST], expected[MOST * MOST];
    static svd d, after;
    const double unit = sqrt((double)rows / (double)cols), cap = 0.2 + 2 * rng_unit();
    const double argument = methods[i].least + (methods[i].most - methods[i].least) * rng_unit();
    const double hi = cap * (0.3 + 3 * rng_unit()), lo = hi * (0.05 + 0.7 * rng_unit());
    const bool in_cap = methods[i].run == run_softcap || methods[i].run == taut_clip;
    const double x = in_cap ? argument * cap : argument;
    random_matrix(w, rows, cols, lo, hi);
    svd_of(&d, w, rows, cols);
    const double s1 = top(&d) / unit;
    for (int64_t k = 0; k < d.side; k++) d.s[k] = unit * methods[i].f(d.s[k] / unit, s1, cap, x);
    rebuild(expected, &d);
    run(methods[i].run, w, rows, cols, (setting){ taut_kernels_find(kernels), cap, x, 100 });
    svd_of(&after, w, rows, cols);
    for (int64_t k = 0; k < rows * cols; k++) expected[k] -= w[k];
    svd_of(&d, expected, rows, cols);
    const double error = top(&d) / unit / fmax(cap, s1);
    const double promised = methods[i].tol + (strcmp(kernels, "cpu") == 0 ? 4e-6 : 0);
    CHECK_LE(error, promised, methods[i].name);
    CHECK_LE(top(&after) / unit, cap * (1 + methods[i].over + 2e-6), "stays below its cap");
    worst[i] = fmax(worst[i], error / promised);
}

static void formulas(void)
{
    static const int64_t shapes[][2] = { { 12, 12 }, { 24, 7 }, { 5, 40 }, { 33, 48 }, { 1, 9 }, { 9, 1 }, { 1, 1 } };
    for (int i = 0; i < METHODS; i++)
        for (int j = 0; j < effort(4); j++)
            for (int shape = 0; shape < 7; shape++)
                for (int cpu = 0; cpu < 2; cpu++, case_no++)
                    compare(i, shapes[shape][0], shapes[shape][1], cpu ? "cpu" : "ref");
}

/* Stiefel has a range, not a formula; singular values below 0.002 of the Frobenius norm are not promised. */
static void stiefel(int64_t rows, int64_t cols)
{
    static double w[MOST * MOST];
    static svd d;
    const double unit = sqrt((double)rows / (double)cols);
    random_matrix(w, rows, cols, 0.1, 7);
    run(run_stiefel, w, rows, cols, (setting){ taut_kernels_find("cpu"), 3, 0, 1 });
    svd_of(&d, w, rows, cols);
    for (int64_t i = 0; i < d.side; i++) {
        CHECK_LE(0.9955 * 3 * unit, d.s[i], "stiefel: not below");
        CHECK_LE(d.s[i], 0.99936 * 3 * unit, "stiefel: not above");
    }
}

/* Nothing to constrain: zero stays zero, and what is below its cap stays what it was. */
static void idle(void)
{
    static double w[MOST * MOST], before[MOST * MOST];
    const taut_kernels *k = taut_kernels_find("cpu");
    for (int i = 0; i < METHODS; i++) {
        memset(w, 0, sizeof w);
        run(methods[i].run, w, 8, 20, (setting){ k, 1, 0.5, 16 });
        CHECK(norm(w, 160) == 0, methods[i].name);
    }
    run(run_stiefel, w, 8, 20, (setting){ k, 1, 0, 16 });
    CHECK(norm(w, 160) == 0, "stiefel");
    random_matrix(w, 20, 8, 0.1, 0.9);
    for (int i = 0; i < 160; i++) before[i] = w[i] = taut_float32(w[i]);
    run(run_normalise, w, 20, 8, (setting){ k, 1, 0, 16 });
    CHECK(memcmp(w, before, 160 * sizeof *w) == 0, "normalise leaves a small matrix alone");
    run(run_softcap, w, 20, 8, (setting){ k, 1, 1, 16 });
    CHECK(memcmp(w, before, 160 * sizeof *w) == 0, "so does the soft cap when nothing was added");
}

/* With the usual 16 iterations normalise and soft cap stay within 2 % also of matrices without a gap. */
static void sixteen(void)
{
    static double w[MOST * MOST];
    static svd d;
    for (case_no = 0; case_no < effort(20); case_no++) {
        const int64_t rows = rng_int(2, 60), cols = rng_int(2, 60);
        const double unit = sqrt((double)rows / (double)cols);
        for (int which = 0; which < 2; which++) {
            fill(w, rows * cols);
            for (int64_t i = 0; i < rows * cols; i++) w[i] *= 5;
            run(which ? run_softcap : run_normalise, w, rows, cols, (setting){ taut_kernels_find("cpu"), 1, 0, 16 });
            svd_of(&d, w, rows, cols);
            CHECK_LE(top(&d) / unit, 1.02, which ? "soft cap of an unknown step" : "normalise");
        }
    }
}

/* ---- the strength of the soft cap ---- */

static double p(double s, double a)
{
    const double y = s - a * s * s * s;
    return y + a * y * y * y;
}

/* The published strength: the root of the quartic, wherever it lies. */
static double printed_strength(double cap, double k)
{
    double lo = 0, hi = 1;
    for (int i = 0; i < 200; i++) {
        const double t = 0.5 * (lo + hi), h = 1 - 3 * t * t + 3 * t * t * t - t * t * t * t;
        if (h > cap / k)
            lo = t;
        else
            hi = t;
    }
    return hi / (k * k);
}

static double peak(double a, double k)
{
    double most = 0;
    for (int i = 0; i <= 2000; i++) {
        const double here = fabs(p(k * i / 2000, a));
        if (here > most) most = here;
    }
    return most;
}

static void strength(void)
{
    static const double t5[][3] = { { 1, 1.01, .05802510184971454 }, { 1, 1.02, .08110244591596384 },
                                    { 1, 1.1, .15886441915070834 },  { 2, 2.5, .04842174086839157 },
                                    { 8, 8.4, .001913114505278169 }, { 1, 2, .19529543260681803 } };
    double a;
    for (int i = 0; i < 6; i++) {
        CHECK(taut_cap_strength(&a, t5[i][0], t5[i][1]), "T5 is feasible");
        CHECK_NEAR(a, t5[i][2], 1e-14 * t5[i][2], "T5");
    }
    CHECK(!taut_cap_strength(&a, 1, 2.7), "T5: 2.7 is infeasible");
    CHECK(!taut_cap_strength(&a, 1, 2.613) && taut_cap_strength(&a, 1, 2.6129), "from 81/31 on");
    CHECK(!taut_cap_strength(&a, 1, NAN) && !taut_cap_strength(&a, 0, 1), "nonsense is infeasible");
    CHECK(taut_cap_strength(&a, 1, 1) && a == 0 && taut_cap_strength(&a, 1, 0.3) && a == 0, "nothing to do");
    for (case_no = 0; case_no < effort(200); case_no++) {
        const double cap = exp(6 * rng_pm()), k = cap * (1 + 1.6129 * rng_unit());
        CHECK(taut_cap_strength(&a, cap, k), "feasible");
        CHECK_LE(peak(a, k), cap * (1 + 1e-14), "our strength holds on all of [0, k]");
        if (a > 0) CHECK_LE(cap * (1 - 1e-6), peak(a * 0.999, k) + 1e-3 * cap, "and is not too strong");
    }
    for (double k = 2.62; k < 6; k += 0.3)
        for (double b = 0.005; b < 1; b += 0.005) CHECK_LE(1 + 1e-9, peak(b, k), "beyond 81/31 every strength fails");
    /* T4: the published strength at k = 2 lets a singular value reach 1.1917 */
    const double printed = printed_strength(1, 2);
    CHECK_NEAR(peak(printed, 2), 1.1917, 1e-4, "T4 printed");
    CHECK(taut_cap_strength(&a, 1, 2), "T4");
    CHECK_LE(peak(a, 2), 1 + 1e-14, "T4 ours");
}

/* ---- the proved rescale ---- */

static double hard_entry(int kind, int64_t i, int64_t j)
{
    switch (kind) {
    case 0:
        return rng_pm();
    case 1:
        return ldexp(rng_pm(), (int)rng_int(-60, 60)); /* graded */
    case 2:
        return 0.1; /* rank one */
    case 3:
        return i == j; /* orthogonal */
    case 4:
        return __builtin_popcount((unsigned)(i & j)) % 2 ? -1 : 1;
    case 5:
        return 3e38 * rng_pm();
    case 6:
        return 1e-38 * rng_pm(); /* partly subnormal */
    case 7:
        return ldexp(1 + 0x1p-23, -(int)(i + j));
    default:
        return (double)(i == 0) * rng_pm();
    }
}

static void rescale(void)
{
    static double w[MOST * MOST];
    for (case_no = 0; case_no < effort(400); case_no++) {
        const int64_t rows = rng_int(1, 40), cols = rng_int(1, 40);
        const double limit = case_no % 7 == 6 ? ldexp(1, -120) : exp(8 * rng_pm());
        for (int64_t i = 0; i < rows; i++)
            for (int64_t j = 0; j < cols; j++) w[i * cols + j] = taut_float32(hard_entry(case_no % 9, i, j));
        const taut_up before = up_norm(w, rows, cols), after = up_rescale(w, rows, cols, limit);
        const taut_up again = up_norm(w, rows, cols);
        CHECK_LE(again.v, limit, "the certified norm is at most the limit");
        CHECK_LE(again.v, after.v, "and as it says");
        if (before.v > limit && limit > 1e-20) CHECK_LE(limit * (1 - 1e-5), again.v, "without waste");
        for (int64_t i = 0; i < rows * cols; i++) CHECK(w[i] == taut_float32(w[i]), "all floats");
    }
    w[3] = NAN;
    CHECK(up_rescale(w, 5, 5, 1).v == INFINITY && isnan(w[3]), "a NaN is not hidden");
}

static void rows_capped(const char *kernels)
{
    enum { ROWS = 300, COLS = 24 };
    static double w[ROWS * COLS], before[ROWS * COLS];
    const taut_kernels *k = taut_kernels_find(kernels);
    taut_real *x = taut_reals(k, ROWS * COLS);
    for (int i = 0; i < ROWS * COLS; i++) w[i] = before[i] = taut_float32(rng_pm() * (i / COLS) * 0.01);
    k->put(x, w, ROWS * COLS);
    taut_cap_rows(k, x, ROWS, COLS, 0.7);
    k->get(w, x, ROWS * COLS);
    for (int r = 0; r < ROWS; r++) {
        const double rms = norm(w + r * COLS, COLS) / sqrt(COLS), old = norm(before + r * COLS, COLS) / sqrt(COLS);
        CHECK_LE(rms, 0.7, "no row above its cap");
        CHECK_NEAR(rms, fmin(old, 0.7), 2e-6, "and none below for nothing");
        if (old <= 0.7 * (1 - 0x1p-19))
            CHECK(memcmp(w + r * COLS, before + r * COLS, COLS * 8) == 0, "small rows stay");
    }
    k->release(x);
}

int main(void)
{
    test_begin();
    formulas();
    stiefel(30, 12), stiefel(12, 30), stiefel(20, 20);
    idle();
    sixteen();
    strength();
    rescale();
    rows_capped("ref"), rows_capped("cpu");
    double most = 0;
    for (int i = 0; i < METHODS; i++) most = fmax(most, worst[i]);
    return test_end("constrain", "%d methods against an SVD, worst error / promised %.2f", METHODS + 1, most);
}
