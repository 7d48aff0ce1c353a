/* Memory: alloc gives zeroed, 64-byte aligned elements, or NULL when memory is out; put and get copy
 * between plain doubles and elements, which are doubles here. */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "kernels/ref/ref.h"

taut_real *taut_ref_alloc(int64_t len)
{
    if (len < 0 || (uint64_t)len > SIZE_MAX / 2 / sizeof(double)) return NULL;
    return taut_malloc_aligned((size_t)len * sizeof(double));
}

void taut_ref_release(taut_real *p) { free(p); }

void taut_ref_put(taut_real *y, const double *x, int64_t len)
{
    if (len > 0) memcpy(y, x, (size_t)len * sizeof(double));
}

void taut_ref_get(double *y, const taut_real *x, int64_t len)
{
    if (len > 0) memcpy(y, x, (size_t)len * sizeof(double));
}

taut_status taut_ref_sync(void) { return TAUT_OK; }
