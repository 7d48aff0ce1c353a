/* The wide table: cpu, but that products of matrices are added up in double.  About half as fast, and what it
 * computes is so near to real arithmetic that a certificate for it (taut certify --for wide) costs next to nothing.
 *
 * Both factors are copied to double, where a product of two floats is exact; OpenBLAS multiplies block by block of C,
 * whose borders depend on m, n and k alone; the bias is added and the sum is rounded once.
 * Threads   one thread has one block: the same bits for any number of them.
 * Poison    as in gemm.c: with alpha = 0 nothing in A and B, with beta = 0 nothing in C.
 * Error     promise_product and promise_product_result of kernels/promise.h. */
#include <cblas.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "kernels/wide.h"

enum { ROWS = 128, COLS = 128, QUERIES = 64, CHUNK = 8192 };

static taut_kernels wide; /* once taut_wide_make has run */

static int64_t less(int64_t a, int64_t b) { return a < b ? a : b; }

typedef struct {
    float *c;
    const float *bias; /* of a column; or NULL */
    const double *a, *b;
    int64_t m, n, k;
    bool ta, tb;
    double alpha, beta;
} product;

static void copy(double *y, const taut_real *x, int64_t len)
{
#pragma omp parallel for schedule(static) if (len > CHUNK)
    for (int64_t from = 0; from < len; from += CHUNK)
        for (int64_t i = from; i < less(len, from + CHUNK); i++) y[i] = ((const float *)x)[i];
}

static void block(const product *p, int64_t task, double *sum)
{
    const int64_t across = (p->n + COLS - 1) / COLS, i = task / across * ROWS, j = task % across * COLS;
    const int64_t rows = less(ROWS, p->m - i), cols = less(COLS, p->n - j);
    const int64_t lda = p->ta ? p->m : p->k, ldb = p->tb ? p->k : p->n;
    for (int64_t s = 0; s < rows * cols; s++) sum[s] = 0;
    cblas_dgemm(CblasRowMajor, p->ta ? CblasTrans : CblasNoTrans, p->tb ? CblasTrans : CblasNoTrans, (int)rows,
                (int)cols, (int)p->k, 1, p->a + (p->ta ? i : i * lda), (int)lda, p->b + (p->tb ? j * ldb : j), (int)ldb,
                1, sum, (int)cols);
    for (int64_t r = 0; r < rows; r++)
        for (int64_t s = 0; s < cols; s++) {
            float *c = p->c + (i + r) * p->n + j + s;
            const double old = p->beta == 0 ? 0 : p->beta * *c, add = p->bias ? p->bias[j + s] : 0;
            *c = (float)(p->alpha * sum[r * cols + s] + old + add);
        }
}

static void multiply(product p, const taut_real *a, const taut_real *b)
{
    const int64_t across = (p.n + COLS - 1) / COLS, down = (p.m + ROWS - 1) / ROWS;
    double *both = taut_malloc((size_t)(p.m * p.k + p.k * p.n) * sizeof *both);
    TAUT_CHECK(both, "wide: no memory for the factors as doubles");
    copy(both, a, p.m * p.k);
    copy(both + p.m * p.k, b, p.k * p.n);
    p.a = both;
    p.b = both + p.m * p.k;
#pragma omp parallel if (across * down > 1)
    {
        double *sum = taut_malloc((size_t)(ROWS * COLS) * sizeof *sum);
        TAUT_CHECK(sum, "wide: no memory for a block");
#pragma omp for schedule(dynamic)
        for (int64_t task = 0; task < across * down; task++) block(&p, task, sum);
        free(sum);
    }
    free(both);
}

static void gemm(taut_real *c, const taut_real *a, const taut_real *b, int64_t m, int64_t n, int64_t k, bool ta,
                 bool tb, double alpha, double beta)
{
    if (m <= 0 || n <= 0) return;
    if (alpha == 0 || k <= 0)
        wide.axpby(c, 0, c, beta, m * n);
    else
        multiply((product){ (float *)c, NULL, NULL, NULL, m, n, k, ta, tb, alpha, beta }, a, b);
}

static void gemm_by(taut_real *c, const taut_real *a, const taut_real *b, int64_t m, int64_t n, int64_t k, bool ta,
                    bool tb, taut_factor alpha, double beta)
{
    gemm(c, a, b, m, n, k, ta, tb, alpha.by && alpha.value != 0 ? alpha.value * *(const double *)alpha.by : alpha.value,
         beta);
}

static void gemm_each(taut_real *c, const taut_real *p, const taut_real *a, const taut_real *b, int64_t count,
                      int64_t m, int64_t n, int64_t k, bool ta, bool tb, double alpha, double beta)
{
    if (p != c && beta != 0) wide.axpby(c, 1, p, 0, count * m * n);
    for (int64_t i = 0; i < count; i++)
        gemm((taut_real *)((float *)c + i * m * n), (const taut_real *)((const float *)a + i * m * k),
             (const taut_real *)((const float *)b + i * k * n), m, n, k, ta, tb, alpha, beta);
}

static void affine(taut_real *y, const taut_real *x, const taut_real *w, const taut_real *b, int64_t rows, int64_t out,
                   int64_t in, double alpha)
{
    if (rows <= 0 || out <= 0) return;
    if (alpha != 0 && in > 0) {
        multiply((product){ (float *)y, (const float *)b, NULL, NULL, rows, out, in, false, true, alpha, 0 }, x, w);
        return;
    }
    wide.axpby(y, 0, y, 0, rows * out);
    if (b) wide.add_rows(y, y, b, rows, out, 1);
}

/* p v, or p^T v, of the queries (keys, backwards) first .. end of one head of one example, leaving out the keys that
 * none of them sees. `room` is for (t + 64) (t + 2 dh) doubles. */
static void mix(float *o, const float *p, const float *v, const taut_distance *a, int64_t first, bool back,
                double *room)
{
    const int64_t d = a->heads * a->dh, count = less(QUERIES, a->t - first), end = first + count;
    const int64_t from = a->causal && back ? first : 0, keys = (a->causal && !back ? end : a->t) - from;
    double *weight = room, *value = weight + count * keys, *sum = value + keys * a->dh;
    for (int64_t i = 0; i < count; i++)
        for (int64_t j = 0; j < keys; j++)
            weight[i * keys + j] = back ? p[(from + j) * a->t + first + i] : p[(first + i) * a->t + from + j];
    for (int64_t j = 0; j < keys; j++)
        for (int64_t c = 0; c < a->dh; c++) value[j * a->dh + c] = v[(from + j) * d + c];
    for (int64_t i = 0; i < count * a->dh; i++) sum[i] = 0;
    cblas_dgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, (int)count, (int)a->dh, (int)keys, 1, weight, (int)keys,
                value, (int)a->dh, 1, sum, (int)a->dh);
    for (int64_t i = 0; i < count; i++)
        for (int64_t c = 0; c < a->dh; c++) o[(first + i) * d + c] = (float)sum[i * a->dh + c];
}

static void distance_mix(taut_real *o, const taut_real *p, const taut_real *v, const taut_distance *a, bool back)
{
    const int64_t down = (a->t + QUERIES - 1) / QUERIES, tasks = a->n * a->heads * down;
#pragma omp parallel if (tasks > 1)
    {
        double *room = taut_malloc((size_t)((a->t + QUERIES) * (a->t + 2 * a->dh) + 1) * sizeof *room);
        TAUT_CHECK(room, "wide: no memory for a head's weights as doubles");
#pragma omp for schedule(static)
        for (int64_t task = 0; task < tasks; task++) {
            const int64_t h = task / down % a->heads, at = task / down / a->heads * a->t * a->heads * a->dh + h * a->dh;
            mix((float *)o + at, (const float *)p + h * a->t * a->t, (const float *)v + at, a, task % down * QUERIES,
                back, room);
        }
        free(room);
    }
}

static taut_status products(taut_products how)
{
    if (how == TAUT_PRODUCTS_FP32) return TAUT_OK;
    return taut_fail(TAUT_BAD_CONFIG, "kernels wide make products of floats in double only, not in tf32 or bf16");
}

const taut_kernels *taut_wide_make(const taut_kernels *cpu)
{
    wide = *cpu;
    wide.name = "wide";
    wide.gemm = gemm;
    wide.gemm_by = gemm_by;
    wide.gemm_each = gemm_each;
    wide.affine = affine;
    wide.distance_mix = distance_mix;
    wide.products = products;
    return &wide;
}
