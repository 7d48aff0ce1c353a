/* A device that fails: the tables of ref and cpu under the names of a device's, until as many products were made as
 * FAIL_AFTER says, or as many arrays got as FAIL_GETS does (without one there is no end, and the numbers are told at the
 * end).  From then on whatever is got is NaN, and a read says why: what src/kernels/cuda/device.cu does.  t_failing.sh
 * puts it in libtaut_cuda.so's place. */
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
