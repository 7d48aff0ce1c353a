/* Memory: alloc gives zeroed, 64-byte aligned bytes, or NULL when memory is out; put and get copy between plain doubles
 * and elements, which are doubles here, as sums are; indices are int32.  Nothing is ever under way, and nothing fails. */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/memory.h"
#include "kernels/ref/ref.h"

void *taut_ref_alloc(size_t bytes) { return taut_malloc_aligned(bytes); }

void taut_ref_release(void *p) { free(p); }

double taut_ref_available(void) { return taut_memory_available(); }

void taut_ref_put(taut_real *y, const double *x, int64_t len)
{
    if (len > 0) memcpy(y, x, (size_t)len * sizeof(double));
}

void taut_ref_put_index(taut_index *y, const int32_t *x, int64_t len)
{
    if (len > 0) memcpy(y, x, (size_t)len * sizeof *x);
}

void taut_ref_put_sum(taut_sum *y, const double *x, int64_t n)
{
    for (int64_t i = 0; i < n; i++) ((double *)y)[i] = x ? x[i] : 0;
}

void taut_ref_get(double *y, const taut_real *x, int64_t len)
{
    if (len > 0) memcpy(y, x, (size_t)len * sizeof(double));
}

taut_status taut_ref_read(double *y, const taut_sum *x, int64_t n)
{
    if (n > 0) memcpy(y, x, (size_t)n * sizeof(double));
    return TAUT_OK;
}
