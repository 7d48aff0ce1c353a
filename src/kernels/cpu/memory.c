/* Memory: alloc gives zeroed, 64-byte aligned bytes, or NULL when memory is out; put rounds doubles to
 * the nearest float (error 2^-24 relative, beyond FLT_MAX infinity), get is exact.  Sums are doubles here and indices
 * int32; nothing is ever under way, and nothing fails. */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/memory.h"
#include "kernels/cpu/cpu.h"

void *CPU(alloc)(size_t bytes) { return taut_malloc_aligned(bytes); }

void CPU(release)(void *p) { free(p); }

double CPU(available)(void) { return taut_memory_available(); }

void CPU(put)(taut_real *y, const double *x, int64_t len)
{
    for (int64_t i = 0; i < len; i++) ((float *)y)[i] = (float)x[i];
}

void CPU(put_index)(taut_index *y, const int32_t *x, int64_t len)
{
    if (len > 0) memcpy(y, x, (size_t)len * sizeof *x);
}

void CPU(put_sum)(taut_sum *y, const double *x, int64_t n)
{
    for (int64_t i = 0; i < n; i++) ((double *)y)[i] = x ? x[i] : 0;
}

void CPU(get)(double *y, const taut_real *x, int64_t len)
{
    for (int64_t i = 0; i < len; i++) y[i] = ((const float *)x)[i];
}

taut_status CPU(read)(double *y, const taut_sum *x, int64_t n)
{
    if (n > 0) memcpy(y, x, (size_t)n * sizeof(double));
    return TAUT_OK;
}
