/* Specformer of matrices of several shapes at once, made of known singular vectors: the value and every gradient, each with its
 * own factor; no matrix touches another, be that zero or NaN; as many as there are; nothing behind the work is written.  On
 * ref and cpu, or on the table that TAUT_KERNELS names. */
#include "harness.h"
#include "train/constrain/hold.h"
#include "train/penalty/penalty.h"

enum { MOST = 80, GUARD = 64 };

static const taut_kernels *k;
static const double factor[3] = { 0.7, 0.3, 1.1 };
static const taut_penalty_spec all = { .kind = TAUT_SPECFORMER, .query = 0.7, .key = 0.3, .value = 1.1 };

typedef struct { /* a matrix, what its gradient was and is, and the truth: its top and that one's vectors */
    int64_t rows, cols;
    double *w, *before, *grad, *u, *v, top;
    int which; /* q, k or v; 3: none of them */
} matrix;

/* x becomes a unit vector across the `count` rows of `others`. */
static void across(double *x, const double *others, int64_t count, int64_t len)
{
    fill(x, len);
    for (int twice = 0; twice < 2; twice++)
        for (int64_t i = 0; i < count; i++) {
            const double along = dot(x, others + i * len, len);
            for (int64_t j = 0; j < len; j++) x[j] -= along * others[i * len + j];
        }
    const double size = norm(x, len);
    for (int64_t j = 0; j < len; j++) x[j] /= size;
}

/* W = sum_i s_i u_i v_i^T, at most four of them, where the first stands out. */
static matrix matrix_new(int64_t rows, int64_t cols, int which)
{
    const int64_t side = rows < cols ? rows : cols, len = rows * cols, rank = side < 4 ? side : 4;
    matrix x = { rows, cols, doubles(len), doubles(len), doubles(len), doubles(rank * rows), doubles(rank * cols),
                 0,    which };
    x.top = exp(2 * rng_pm());
    for (int64_t r = 0; r < rank; r++) {
        double *u = x.u + r * rows, *v = x.v + r * cols;
        const double s = r == 0 ? x.top : 0.8 * x.top * rng_unit();
        across(u, x.u, r, rows);
        across(v, x.v, r, cols);
        for (int64_t i = 0; i < len; i++) x.w[i] += s * u[i / cols] * v[i % cols];
    }
    fill(x.before, len);
    return x;
}

static void matrix_free(matrix *x) { free(x->w), free(x->before), free(x->grad), free(x->u), free(x->v); }

/* The penalty of the matrices x[0], x[1] ..., of a model that has no others; their gradients. */
static double penalty(matrix *x, int count, const taut_penalty_spec *s)
{
    static const char *const path[] = { "block.0.attn.q.weight", "block.0.attn.k.weight", "block.0.attn.v.weight",
                                        "block.0.attn.o.weight" };
    static taut_param param[MOST];
    static taut_weight weight[MOST];
    double value = NAN, guard[GUARD], after[GUARD];
    for (int i = 0; i < count; i++) {
        const int64_t len = x[i].rows * x[i].cols;
        param[i] = (taut_param){ .rows = x[i].rows, .cols = x[i].cols, .role = TAUT_MATRIX };
        param[i].value = taut_reals(k, len), param[i].grad = taut_reals(k, len);
        k->put(param[i].value, x[i].w, len);
        k->put(param[i].grad, x[i].before, len);
        weight[i] = (taut_weight){ .param = &param[i], .path = (char *)path[x[i].which] };
    }
    const taut_model m = { .k = k, .weight = weight, .weights = count };
    const int64_t need = taut_specformer_work(&m, s);
    taut_real *work = taut_reals(k, need + GUARD), *memory = taut_reals(k, taut_sums_len(1));
    for (int i = 0; i < GUARD; i++) guard[i] = i + 1;
    k->put(taut_at(k, work, need), guard, GUARD);
    k->put_sum((taut_sum *)memory, (double[]){ 5 }, 1);
    taut_specformer_add(&m, s, (taut_sum *)memory, (taut_span){ work, need, k->elem });
    CHECK(k->read(&value, (taut_sum *)memory, 1) == TAUT_OK, "the table works");
    k->get(after, taut_at(k, work, need), GUARD);
    CHECK(memcmp(after, guard, sizeof guard) == 0, "nothing behind the work is written");
    for (int i = 0; i < count; i++) {
        k->get(x[i].grad, param[i].grad, x[i].rows * x[i].cols);
        k->release(param[i].value), k->release(param[i].grad);
    }
    k->release(work), k->release(memory);
    return value - 5;
}

static bool same_bits(const double *a, const matrix *x)
{
    return memcmp(a, x->grad, (size_t)(x->rows * x->cols) * sizeof *a) == 0;
}

static double by_of(const matrix *x) { return x->which < 3 ? factor[x->which] : 0; }

static void gradient(const matrix *x, double tol)
{
    for (int64_t i = 0; i < x->rows * x->cols; i++) {
        const double want = x->before[i] + by_of(x) * x->u[i / x->cols] * x->v[i % x->cols];
        CHECK_NEAR(x->grad[i], want, tol, "by u v^T is added to the gradient");
    }
}

/* x[bad] is zero or has a NaN in it: the others' gradients keep the bits in `good`. */
static void one_bad(matrix *x, int count, int bad, double with, double *const *good, double sum)
{
    const int64_t len = x[bad].rows * x[bad].cols;
    double *keep = x[bad].w, *w = doubles(len);
    const double rest = sum - by_of(&x[bad]) * x[bad].top;
    memcpy(w, keep, (size_t)len * sizeof *w);
    for (int64_t i = 0; i < len; i++) w[i] = with == 0 ? 0 : i == len / 2 ? with : w[i];
    x[bad].w = w;
    const double value = penalty(x, count, &all);
    if (with == 0)
        CHECK_NEAR(value, rest, 2e-6 * sum, "a zero matrix has no penalty");
    else
        CHECK(isnan(value), "NaN is not hidden");
    for (int i = 0; i < count; i++)
        if (i != bad) CHECK(same_bits(good[i], &x[i]), "a bad matrix leaves the others alone");
    for (int64_t i = 0; i < len; i++)
        CHECK(with == 0 ? fabs(x[bad].grad[i] - x[bad].before[i]) <= k->unit : isnan(x[bad].grad[i]),
              "its own gradient");
    x[bad].w = keep;
    free(w);
}

/* Several shapes, one and its transpose among them, queries, keys, values and one that does not count, in any order. */
static void several(void)
{
    const int64_t side = rng_int(1, 70), less = rng_int(2, 30), more = rng_int(30, 90),
                  shape[4][2] = { { side, side }, { less, more }, { more, less }, { 90, 67 } };
    const double tol = 100 * k->unit;
    matrix x[12];
    double *good[12], sum = 0;
    for (int i = 0; i < 12; i++) {
        const int64_t s = rng_int(0, 12) / 4;
        x[i] = matrix_new(shape[s][0], shape[s][1], (int)rng_int(0, 11) % 4);
        sum += by_of(&x[i]) * x[i].top;
    }
    CHECK_NEAR(penalty(x, 12, &all), sum, tol * (5 + sum), "the sum of the tops, each by its factor");
    for (int i = 0; i < 12; i++) {
        const int64_t len = x[i].rows * x[i].cols;
        gradient(&x[i], 10 * tol);
        good[i] = doubles(len);
        memcpy(good[i], x[i].grad, (size_t)len * sizeof *good[i]);
    }
    for (int i = 0; i < 12; i++) {
        CHECK_NEAR(penalty(&x[i], 1, &all), by_of(&x[i]) * x[i].top, tol * (5 + x[i].top), "alone");
        CHECK(same_bits(good[i], &x[i]), "alone it has the same bits");
    }
    taut_penalty_spec no_key = all;
    no_key.key = 0;
    (void)penalty(x, 12, &no_key);
    for (int i = 0; i < 12; i++)
        if (x[i].which != 1) CHECK(same_bits(good[i], &x[i]), "without keys, queries and values are what they were");
    int bad = (int)rng_int(0, 11);
    while (x[bad].which == 3) bad = (bad + 1) % 12;
    one_bad(x, 12, bad, 0, good, sum);
    one_bad(x, 12, bad, NAN, good, sum);
    for (int i = 0; i < 12; i++) matrix_free(&x[i]), free(good[i]);
}

/* More than go side by side, by number and by size. */
static void many(int count, int64_t rows, int64_t cols)
{
    matrix x[MOST];
    double sum = 0;
    for (int i = 0; i < count; i++) x[i] = matrix_new(rows, cols, i % 3), sum += by_of(&x[i]) * x[i].top;
    const double tol = (100 + sqrt((double)(rows * cols))) *
                       k->unit; /* the truth, too, is a root of so many rounded squares */
    CHECK_NEAR(penalty(x, count, &all), sum, tol * (5 + sum), "the sum of many");
    for (int i = 0; i < count; i++) gradient(&x[i], 1000 * k->unit), matrix_free(&x[i]);
}

/* Any number of iterations, also one that ends in the other of two vectors; alone, and two of them. */
static void pairs(int64_t rows, int64_t cols, int iterations)
{
    const int64_t len = rows * cols, need = est_top_pairs_work(rows, cols, 2);
    matrix x[2] = { matrix_new(rows, cols, 0), matrix_new(rows, cols, 0) };
    taut_real *w = taut_reals(k, 2 * len), *u = taut_reals(k, 2 * rows), *v = taut_reals(k, 2 * cols);
    taut_real *work = taut_reals(k, need), *tops = taut_reals(k, taut_sums_len(2));
    double top[2], *vectors = doubles(rows + cols), *start = doubles(cols);
    fill(start, cols);
    for (int i = 0; i < 2; i++)
        k->put(taut_at(k, w, i * len), x[i].w, len), k->put(taut_at(k, v, i * cols), start, cols);
    est_top_pairs(k, (taut_sum *)tops, u, v, w, 2, rows, cols, iterations, (taut_span){ work, need, k->elem });
    CHECK(k->read(top, (taut_sum *)tops, 2) == TAUT_OK, "the table works");
    for (int i = 0; i < 2; i++) {
        k->get(vectors, taut_at(k, u, i * rows), rows);
        k->get(vectors + rows, taut_at(k, v, i * cols), cols);
        CHECK_NEAR(top[i], x[i].top, 100 * k->unit * x[i].top, "the top");
        CHECK_NEAR(fabs(dot(vectors, x[i].u, rows)), 1, 100 * k->unit, "its left vector");
        CHECK_NEAR(fabs(dot(vectors + rows, x[i].v, cols)), 1, 100 * k->unit, "its right vector");
        matrix_free(&x[i]);
    }
    k->release(w), k->release(u), k->release(v), k->release(work), k->release(tops);
    free(vectors), free(start);
}

/* Where all singular values are equal, powers of the Gram matrix become smallest. */
static void flat(int64_t side)
{
    const int64_t need = est_top_pairs_work(side, side, 1);
    taut_real *w = taut_reals(k, side * side), *u = taut_reals(k, side), *v = taut_reals(k, side);
    taut_real *work = taut_reals(k, need), *tops = taut_reals(k, taut_sums_len(1));
    double top, *rows = doubles(side * side);
    for (int64_t i = 0; i < side; i++) across(rows + i * side, rows, i, side);
    k->put(w, rows, side * side), k->put(v, rows, side);
    est_top_pairs(k, (taut_sum *)tops, u, v, w, 1, side, side, 32, (taut_span){ work, need, k->elem });
    CHECK(k->read(&top, (taut_sum *)tops, 1) == TAUT_OK, "the table works");
    CHECK_NEAR(top, 1, 100 * k->unit, "an orthogonal matrix");
    k->release(w), k->release(u), k->release(v), k->release(work), k->release(tops);
    free(rows);
}

int main(void)
{
    static const char *const both[] = { "ref", "cpu" };
    const char *name = getenv("TAUT_KERNELS");
    const bool one = name && *name;
    test_begin();
    for (int i = 0; i < (one ? 1 : 2); i++) {
        if (taut_kernels_open(&k, one ? name : both[i])) return test_skip(taut_last_error());
        for (case_no = 0; case_no < effort(10); case_no++) several();
        for (int n = 16; n < 34; n++) pairs(20, 9, n), pairs(9, 20, n);
        for (int n = 31; n < 34; n++) pairs(80, 70, n), pairs(70, 80, n);
        flat(64), flat(100);
        many(MOST, 4, 6);
        if (effort(10) > 1) many(2, 1, ((int64_t)1 << 22) + 1);
        const taut_penalty_spec none = { .kind = TAUT_NO_PENALTY, .query = 1 };
        matrix x = matrix_new(3, 3, 0);
        CHECK(penalty(&x, 1, &none) == 0, "no penalty, no value");
        x.which = 3; /* of which nothing is added */
        gradient(&x, k->unit);
        matrix_free(&x);
    }
    return test_end("specformer", "of known singular vectors");
}
