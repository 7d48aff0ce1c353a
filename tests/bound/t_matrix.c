/* Balls against exact arithmetic: every operation is repeated in Arb on a true matrix that lies somewhere in
 * the ball, and the result must lie in the ball that came out.  Cancelling float factors included: there
 * the computed product's norm is below the true one, and only the ball's error saves the bound. */
#include "base/float32.h"
#include "bound/matrix.h"

#include "base/alloc.h"
#include "bound/norm.h"
#include "oracle.h"

enum { BITS = 400, MAX = 64 };

typedef struct {
    taut_ball b;
    arb_ptr m;
} pair; /* a ball and a true matrix in it */

static double worst;

static arb_ptr at(const pair *p, int64_t i, int64_t j) { return p->m + i * p->b.cols + j; }

static pair shadow(taut_ball b) { return (pair){ b, _arb_vec_init(b.rows * b.cols + 1) }; }

static void drop(pair *p)
{
    _arb_vec_clear(p->m, p->b.rows * p->b.cols + 1);
    ball_free(&p->b);
}

/* ||m - v||_F <= err, up to what BITS cannot see. */
static void check_inside(pair *p, const char *what)
{
    arb_t sum, d;
    arb_init(sum), arb_init(d);
    for (int64_t i = 0; i < p->b.rows * p->b.cols; i++) {
        arb_set_d(d, p->b.v[i]);
        arb_sub(d, d, p->m + i, BITS);
        arb_addmul(sum, d, d, BITS);
    }
    arb_sqrtpos(sum, sum, BITS);
    const double gap = arb_low(sum);
    CHECK_LE(gap, p->b.err.v, what);
    if (p->b.err.v > 0 && isfinite(gap)) worst = fmax(worst, gap / p->b.err.v);
    arb_clear(sum), arb_clear(d);
}

static double any_entry(int kind)
{
    switch (kind) {
    case 0:
        return taut_float32(rng_pm());
    case 1:
        return rng_pm() * pow(10, 20 * rng_pm());
    case 2:
        return rng_pm() * 1e-160; /* products underflow */
    case 3:
        return (double)rng_int(-3, 3);
    default:
        return taut_float32(1000 + rng_pm()); /* cancels against kind 4 of the other sign */
    }
}

/* A ball, and a true matrix at its very edge when `off`. */
static pair random_pair(int64_t rows, int64_t cols, bool off)
{
    double w[MAX], e[MAX];
    const int kind = (int)rng_int(0, 4);
    for (int64_t i = 0; i < rows * cols; i++)
        w[i] = any_entry(kind) * (kind == 4 && rng_int(0, 1) ? -1 : 1), e[i] = rng_pm();
    pair p = shadow(ball_of(w, rows, cols));
    const double size = off ? pow(10, -3 - 9 * rng_unit()) * up_norm_frobenius(w, rows * cols).v : 0;
    const double unit = norm(e, rows * cols) * (1 + 1e-14);
    arb_t d;
    arb_init(d);
    for (int64_t i = 0; i < rows * cols; i++) {
        arb_set_d(p.m + i, w[i]);
        arb_set_d(d, size * (e[i] / unit));
        arb_add(p.m + i, p.m + i, d, BITS);
    }
    p.b.err = (taut_up){ size * (1 + 1e-13) };
    arb_clear(d);
    return p;
}

static void check_product(bool off)
{
    const bool ta = rng_int(0, 1), tb = rng_int(0, 1);
    const int64_t m = rng_int(1, 7), k = rng_int(1, 7), n = rng_int(1, 7);
    pair a = random_pair(ta ? k : m, ta ? m : k, off), b = random_pair(tb ? n : k, tb ? k : n, off);
    pair c = shadow(ball_mul(&a.b, ta, &b.b, tb));
    for (int64_t i = 0; i < m; i++)
        for (int64_t j = 0; j < n; j++)
            for (int64_t l = 0; l < k; l++)
                arb_addmul(at(&c, i, j), ta ? at(&a, l, i) : at(&a, i, l), tb ? at(&b, j, l) : at(&b, l, j), BITS);
    CHECK(c.b.v && c.b.rows == m && c.b.cols == n, "product's shape");
    if (c.b.v) check_inside(&c, "product");
    drop(&a), drop(&b), drop(&c);
}

static void check_sum(bool off)
{
    const int64_t m = rng_int(1, 7), n = rng_int(1, 7);
    pair a = random_pair(m, n, off), b = random_pair(m, n, off), c = shadow(ball_add(&a.b, &b.b));
    for (int64_t i = 0; i < m * n; i++) arb_add(c.m + i, a.m + i, b.m + i, BITS);
    check_inside(&c, "sum");
    drop(&a), drop(&b), drop(&c);
}

static void check_scale(bool off)
{
    const int64_t m = rng_int(1, 7), n = rng_int(1, 7);
    const double s = any_entry((int)rng_int(0, 4));
    double d[8];
    for (int i = 0; i < 8; i++) d[i] = any_entry((int)rng_int(0, 1));
    pair a = random_pair(m, n, off), b = shadow(ball_scale(&a.b, s)), r = shadow(ball_scale_rows(&a.b, d));
    pair c = shadow(ball_scale_cols(&a.b, d));
    arb_t f;
    arb_init(f);
    for (int64_t i = 0; i < m; i++)
        for (int64_t j = 0; j < n; j++) {
            arb_set_d(f, s), arb_mul(at(&b, i, j), at(&a, i, j), f, BITS);
            arb_set_d(f, d[i]), arb_mul(at(&r, i, j), at(&a, i, j), f, BITS);
            arb_set_d(f, d[j]), arb_mul(at(&c, i, j), at(&a, i, j), f, BITS);
        }
    check_inside(&b, "multiple"), check_inside(&r, "diag(d) A"), check_inside(&c, "A diag(d)");
    arb_clear(f);
    drop(&a), drop(&b), drop(&r), drop(&c);
}

/* Join two, cut one out again. */
static void check_blocks(bool off)
{
    const int64_t m = rng_int(1, 5), n = rng_int(1, 5), extra = rng_int(1, 4);
    pair a = random_pair(m, n, off), b = random_pair(m, extra, off), c = random_pair(extra, n, off);
    pair h = shadow(ball_hcat((taut_ball[]){ a.b, b.b }, 2)), v = shadow(ball_vcat((taut_ball[]){ a.b, c.b }, 2));
    for (int64_t i = 0; i < m; i++)
        for (int64_t j = 0; j < n + extra; j++) arb_set(at(&h, i, j), j < n ? at(&a, i, j) : at(&b, i, j - n));
    for (int64_t i = 0; i < m + extra; i++)
        for (int64_t j = 0; j < n; j++) arb_set(at(&v, i, j), i < m ? at(&a, i, j) : at(&c, i - m, j));
    check_inside(&h, "side by side"), check_inside(&v, "one below the other");
    pair hc = shadow(ball_cols(&h.b, n, extra));
    for (int64_t i = 0; i < m * extra; i++) arb_set(hc.m + i, b.m + i);
    check_inside(&hc, "columns");
    drop(&a), drop(&b), drop(&c), drop(&h), drop(&v), drop(&hc);
}

/* B C cancels to rounding level: the true norm, from Arb, must stay below the bound. */
static void check_cancelling(void)
{
    const int64_t k = 6;
    double b[6], c[6];
    for (int64_t i = 0; i < k; i += 2) {
        b[i] = taut_float32(1e4 * rng_pm()), c[i] = taut_float32(1e4 * rng_pm());
        b[i + 1] = taut_float32(-b[i]), c[i + 1] = nextafterf(taut_float32(c[i]), taut_float32(2 * c[i]));
    }
    arb_t sum, x, y;
    arb_init(sum), arb_init(x), arb_init(y);
    for (int64_t i = 0; i < k; i++) arb_set_d(x, b[i]), arb_set_d(y, c[i]), arb_addmul(sum, x, y, BITS);
    arb_abs(sum, sum);
    taut_ball bb = ball_of(b, 1, k), cc = ball_of(c, k, 1), p = ball_mul(&bb, false, &cc, false);
    CHECK_LE(arb_low(sum), up_ball_norm(&p).v, "a cancelling product");
    ball_free(&bb), ball_free(&cc), ball_free(&p);
    arb_clear(sum), arb_clear(x), arb_clear(y);
}

static void check_corners(void)
{
    const double bad[] = { 1, NAN, 3, 4 }, big[] = { 1e300, 1e300, 1, 1 }, zero[4] = { 0 }, ones[] = { 1, 1, 1, 1 };
    taut_ball n = ball_of(bad, 2, 2), b = ball_of(big, 2, 2), z = ball_of(zero, 2, 2), o = ball_of(ones, 2, 2);
    taut_ball nb = ball_mul(&n, false, &b, false), bb = ball_mul(&b, false, &b, true),
              zo = ball_mul(&z, false, &o, false);
    taut_ball id = ball_identity(3, 2), sum = ball_add(&n, &o), cat = ball_hcat((taut_ball[]){ o, nb }, 2);
    CHECK(!n.v && !nb.v && !bb.v && !sum.v && !cat.v, "what is not finite is void");
    CHECK(up_ball_norm(&nb).v == INFINITY && up_ball_norm(&bb).v == INFINITY, "and has no bound");
    CHECK(ball_is_zero(&zo) && up_ball_norm(&zo).v == 0 && !ball_is_zero(&o) && !ball_is_zero(&n), "exact zero");
    CHECK_LE(3, up_ball_norm(&id).v, "identity");
    CHECK_LE(up_ball_norm(&id).v, 3 * (1 + 1e-13), "identity");
    taut_ball *all[] = { &n, &b, &z, &o, &nb, &bb, &zo, &id, &sum, &cat };
    for (int i = 0; i < 10; i++) ball_free(all[i]);
    taut_alloc_fail_at(1);
    taut_ball none = ball_of(ones, 2, 2);
    taut_alloc_fail_at(0);
    CHECK(!none.v && up_ball_norm(&none).v == INFINITY && up_ball_frobenius(&none).v == INFINITY, "no memory");
    taut_ball more = ball_scale(&none, 2);
    CHECK(!more.v, "void stays void");
}

int main(void)
{
    test_begin();
    const int cases = effort(20000);
    for (case_no = 0; case_no < cases; case_no++) {
        check_product(case_no % 2);
        check_sum(case_no % 2);
        check_scale(case_no % 2);
        check_blocks(case_no % 2);
        check_cancelling();
    }
    check_corners();
    flint_cleanup();
    return test_end("matrix", "%d x 9 operations, worst error / promised = %.3f", cases, worst);
}
