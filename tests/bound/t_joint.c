/* Joint norms against a witness evaluated in Arb from the factors themselves.  Factors that cancel are the
 * point: there the thin form loses everything to rounding, and must say so. */
#include "base/float32.h"
#include "bound/joint.h"

#include "base/alloc.h"
#include "oracle.h"

enum { N = 6, K = 4, M = 6, HEADS = 3, BITS = 600 };

static double worst, loosest;

typedef struct {
    int64_t n, k, m, heads;
    double x[HEADS][N * K], y[HEADS][K * M], c[HEADS];
} blocks;

/* |[c_h X_h Y_h]^T g| / |g| from below. */
static double joint_witness(const blocks *b, const double *g)
{
    arb_t top, sum, part, t, gi;
    arb_init(top), arb_init(sum), arb_init(part), arb_init(t), arb_init(gi);
    for (int64_t h = 0; h < b->heads; h++)
        for (int64_t j = 0; j < b->m; j++) {
            arb_zero(sum);
            for (int64_t l = 0; l < b->k; l++) {
                arb_zero(part);
                for (int64_t i = 0; i < b->n; i++) {
                    arb_set_d(t, b->x[h][i * b->k + l]), arb_set_d(gi, g[i]);
                    arb_addmul(part, t, gi, BITS);
                }
                arb_set_d(t, b->y[h][l * b->m + j]);
                arb_addmul(sum, part, t, BITS);
            }
            arb_set_d(t, b->c[h]), arb_mul(sum, sum, t, BITS);
            arb_addmul(top, sum, sum, BITS);
        }
    arb_zero(sum);
    for (int64_t i = 0; i < b->n; i++) arb_set_d(t, g[i]), arb_addmul(sum, t, t, BITS);
    arb_div(top, top, sum, BITS), arb_sqrtpos(top, top, BITS);
    const double r = arb_low(top);
    arb_clear(top), arb_clear(sum), arb_clear(part), arb_clear(t), arb_clear(gi);
    return isfinite(r) && r > 0 ? r : 0;
}

/* [c_h X_h Y_h] in long double: exact enough to see through cancellation. */
static void explicit_matrix(long double a[N][HEADS * M], const blocks *b)
{
    memset(a, 0, N * HEADS * M * sizeof a[0][0]);
    for (int64_t h = 0; h < b->heads; h++)
        for (int64_t i = 0; i < b->n; i++)
            for (int64_t j = 0; j < b->m; j++)
                for (int64_t l = 0; l < b->k; l++)
                    a[i][h * b->m + j] += (long double)b->c[h] * b->x[h][i * b->k + l] * b->y[h][l * b->m + j];
}

/* q = p p / max|p p|. */
static void square_up(long double q[N][N], long double p[N][N])
{
    long double most = 0;
    for (int i = 0; i < N; i++)
        for (int j = 0; j < N; j++) {
            q[i][j] = 0;
            for (int l = 0; l < N; l++) q[i][j] += p[i][l] * p[l][j];
            most = fmaxl(most, fabsl(q[i][j]));
        }
    for (int i = 0; i < N; i++)
        for (int j = 0; j < N; j++) q[i][j] /= most > 0 ? most : 1;
}

/* The top left vector: A A^T squared 16 times is a projection onto it; its longest column will do. */
static void top_vector(double *g, const blocks *b)
{
    long double a[N][HEADS * M], p[N][N] = { { 0 } }, q[N][N];
    explicit_matrix(a, b);
    for (int i = 0; i < N; i++)
        for (int j = 0; j < N; j++)
            for (int64_t l = 0; l < HEADS * M; l++) p[i][j] += a[i][l] * a[j][l];
    for (int k = 0; k < 16; k++) square_up(q, p), memcpy(p, q, sizeof p);
    int best = 0;
    for (int j = 1; j < b->n; j++)
        if (p[j][j] > p[best][best]) best = j;
    for (int64_t i = 0; i < b->n; i++) g[i] = p[best][best] > 0 ? (double)p[i][best] : 1;
}

static void make(blocks *b, int kind)
{
    *b = (blocks){ rng_int(1, N), rng_int(1, K), rng_int(1, M), rng_int(1, HEADS), { { 0 } }, { { 0 } }, { 0 } };
    for (int64_t h = 0; h < b->heads; h++) {
        b->c[h] = rng_int(0, 3) ? pow(10, rng_pm()) : rng_int(0, 1);
        const double size = kind == 2 ? pow(10, 6 * rng_pm()) : kind == 3 ? 1e-170 : 1;
        for (int64_t i = 0; i < b->n * b->k; i++) b->x[h][i] = taut_float32(rng_pm());
        for (int64_t i = 0; i < b->k * b->m; i++) b->y[h][i] = size * taut_float32(rng_pm());
        for (int64_t l = 1; kind == 1 && l < b->k; l += 2) { /* pairs of columns and rows that almost cancel */
            for (int64_t i = 0; i < b->n; i++) b->x[h][i * b->k + l] = -b->x[h][i * b->k + l - 1];
            for (int64_t j = 0; j < b->m; j++) {
                const float y = taut_float32(b->y[h][(l - 1) * b->m + j]);
                b->y[h][l * b->m + j] = rng_int(0, 1) ? y : nextafterf(y, 2);
            }
        }
        for (int64_t i = 0; kind == 4 && i < b->k * b->m; i++) b->y[h][i] = 0;
        for (int64_t i = 0; kind == 1 && b->k % 2 && i < b->n; i++) b->x[h][i * b->k + b->k - 1] = 0;
    }
}

static void check_one(int kind)
{
    blocks b;
    taut_pair p[HEADS];
    double g[N], one[] = { 1 };
    make(&b, kind);
    for (int64_t h = 0; h < b.heads; h++) p[h] = pair_of(b.x[h], b.y[h], b.n, b.k, b.m);
    top_vector(g, &b);
    const double lower = joint_witness(&b, g), up = up_joint_norm(p, b.c, b.heads).v;
    CHECK_LE(lower, up, "joint norm");
    if (kind != 1 && kind != 3 && lower > 0) CHECK_LE(up, lower * (1 + 1e-4), "is close");
    if (kind == 1 && lower > 1e-9) CHECK_LE(up, lower * 1.01 + 1e-14, "is close when factors cancel");
    if (kind == 4) CHECK(up == 0 && pair_is_zero(&p[0]) && est_pair(&p[0]) == 0, "zero factors");
    if (up > 0) worst = fmax(worst, lower / up);
    if (kind == 0 && lower > 0) loosest = fmax(loosest, up / lower - 1);
    if (kind == 0) CHECK_LE(est_pair(&p[0]) * (1 - 1e-6), up_joint_norm(p, one, 1).v, "the estimate is one");
    for (int64_t h = 0; h < b.heads; h++) pair_free(&p[h]);
}

static void check_memory(void)
{
    blocks b;
    double g[N];
    make(&b, 0);
    top_vector(g, &b);
    const double lower = joint_witness(&b, g);
    for (int n = 1; n < 40; n++) {
        taut_pair p[HEADS];
        taut_alloc_fail_at(n);
        for (int64_t h = 0; h < b.heads; h++) p[h] = pair_of(b.x[h], b.y[h], b.n, b.k, b.m);
        const double up = up_joint_norm(p, b.c, b.heads).v;
        taut_alloc_fail_at(0);
        CHECK_LE(lower, up, "no memory");
        for (int64_t h = 0; h < b.heads; h++) pair_free(&p[h]);
    }
    b.x[0][0] = NAN;
    taut_pair p = pair_of(b.x[0], b.y[0], b.n, b.k, b.m);
    CHECK(up_joint_norm(&p, (double[]){ 1 }, 1).v == INFINITY && !pair_is_zero(&p), "NaN");
    pair_free(&p);
}

int main(void)
{
    test_begin();
    const int cases = effort(2500);
    for (case_no = 0; case_no < cases; case_no++) check_one(case_no % 5);
    check_memory();
    flint_cleanup();
    return test_end("joint", "%d matrices, worst found/bound = %.15f, loosest bound +%.1e", cases, worst, loosest);
}
