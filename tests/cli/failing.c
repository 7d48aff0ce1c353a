/* A device that fails: the tables of ref and cpu under the names of a device's, and what proofs ask of one, until as many
 * products were made as FAIL_AFTER says, or as many arrays got as FAIL_GETS does (without one there is no end, and the
 * numbers are told at the end).  From then on whatever is got is NaN, no product is made for a proof, and a read says why:
 * what src/kernels/cuda/device.cu does.  t_failing.sh puts it in libtaut_cuda.so's place. */
#include <cblas.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/library.h"

static const taut_host *host;
static const taut_kernels *true_table;
static taut_kernels table;
static long left, gets; /* how many of each go well */

static bool works(void) { return left >= 0 && gets >= 0; }

static void get(double *y, const taut_real *x, int64_t len)
{
    gets--;
    if (works()) true_table->get(y, x, len);
    for (int64_t i = 0; !works() && i < len; i++) y[i] = NAN;
}

static taut_status read(double *y, const taut_sum *x, int64_t len)
{
    if (works()) return true_table->read(y, x, len);
    for (int64_t i = 0; i < len; i++) y[i] = NAN;
    return host->fail(TAUT_DEVICE, "the device failed on purpose");
}

static void gemm(taut_real *c, const taut_real *a, const taut_real *b, int64_t m, int64_t n, int64_t k, bool ta,
                 bool tb, double alpha, double beta)
{
    left--;
    if (works()) true_table->gemm(c, a, b, m, n, k, ta, tb, alpha, beta);
}

static void affine(taut_real *y, const taut_real *x, const taut_real *w, const taut_real *b, int64_t rows, int64_t out,
                   int64_t in, double alpha)
{
    left--;
    if (works()) true_table->affine(y, x, w, b, rows, out, in, alpha);
}

/* For proofs, by OpenBLAS. */
extern void dpotrf_(const char *uplo, const int *n, double *a, const int *lda, int *info);

static struct {
    int64_t n;
    double *g, *s, *l;
} held;

static bool far_gemm(double *c, const double *a, bool ta, const double *b, bool tb, int64_t m, int64_t n, int64_t k,
                     double alpha, double beta)
{
    left--;
    if (works())
        cblas_dgemm(CblasRowMajor, ta ? CblasTrans : CblasNoTrans, tb ? CblasTrans : CblasNoTrans, (int)m, (int)n,
                    (int)k, alpha, a, (int)(ta ? m : k), b, (int)(tb ? k : n), beta, c, (int)n);
    return works();
}

static bool hold(double *diagonal, const double *w, int64_t rows, int64_t cols)
{
    const bool tall = rows >= cols;
    const int64_t n = tall ? cols : rows, len = n * n;
    free(held.g);
    held.n = n, held.g = malloc((size_t)(3 * len) * sizeof *held.g);
    if (!held.g) return false;
    held.s = held.g + len, held.l = held.s + len, *diagonal = 0;
    if (!far_gemm(held.g, w, tall, w, !tall, n, n, tall ? rows : cols, 1, 0)) return false;
    for (int64_t i = 0; i < n; i++) *diagonal = fmax(*diagonal, held.g[i * n + i]);
    return true;
}

/* Without it a proof begins higher, and is as good. */
static bool lanczos(double *alpha, double *beta, const double *start, int from, int to)
{
    (void)alpha, (void)beta, (void)start, (void)from, (void)to;
    return false;
}

static bool prove(taut_far_proof *p, double mu)
{
    const int n = (int)held.n;
    const int64_t len = held.n * held.n;
    int info = 0;
    *p = (taut_far_proof){ 0 };
    for (int64_t i = 0; i < len; i++) {
        held.l[i] = held.s[i] = (i / n == i % n ? mu : 0) - held.g[i];
        p->s += held.s[i] * held.s[i];
        if (i / n == i % n) p->diagonal = fmax(p->diagonal, fabs(held.s[i]));
    }
    dpotrf_("U", &n, held.l, &n, &info); /* column-major upper: row-major lower */
    for (int64_t i = 0; i < len; i++) {
        if (i % n > i / n) held.l[i] = 0;
        p->r += held.l[i] * held.l[i];
    }
    if (info || !far_gemm(held.s, held.l, false, held.l, true, n, n, n, -1, 1)) return false;
    for (int64_t i = 0; i < len; i++) p->t += held.s[i] * held.s[i];
    return true;
}

__attribute__((visibility("default"))) const taut_far *taut_cuda_far(const taut_host *caller)
{
    static const taut_far far = { far_gemm, hold, lanczos, prove };
    (void)caller;
    return &far;
}

static void tell(void) { fprintf(stderr, "products %ld\ngets %ld\n", LONG_MAX - left, LONG_MAX - gets); }

static long end_of(const char *name)
{
    const char *after = getenv(name);
    return after ? atol(after) : LONG_MAX;
}

__attribute__((visibility("default"))) const taut_kernels *taut_cuda_open(const char *name, unsigned long build,
                                                                          const taut_host *caller)
{
    (void)build;
    if (host) return &table;
    host = caller;
    left = end_of("FAIL_AFTER"), gets = end_of("FAIL_GETS");
    if (left == LONG_MAX && gets == LONG_MAX) (void)atexit(tell);
    true_table = taut_kernels_find(strcmp(name, "cuda") == 0 ? "cpu" : "ref");
    table = *true_table;
    table.name = strcmp(name, "cuda") == 0 ? "cuda" : "cuda64";
    table.host = table.rigorous = false;
    table.get = get, table.read = read, table.gemm = gemm, table.affine = affine;
    return &table;
}
