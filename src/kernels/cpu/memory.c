/* Memory: alloc gives zeroed, 64-byte aligned floats, or NULL when memory is out; put rounds doubles to
 * the nearest float (error 2^-24 relative, beyond FLT_MAX infinity), get is exact. */
#include <stdlib.h>

#include "base/alloc.h"
#include "kernels/cpu/cpu.h"

taut_real *CPU(alloc)(int64_t len)
{
    if (len < 0 || (uint64_t)len > SIZE_MAX / 2 / sizeof(float)) return NULL;
    return taut_malloc_aligned((size_t)len * sizeof(float));
}

void CPU(release)(taut_real *p) { free(p); }

void CPU(put)(taut_real *y, const double *x, int64_t len)
{
    for (int64_t i = 0; i < len; i++) ((float *)y)[i] = (float)x[i];
}

void CPU(get)(double *y, const taut_real *x, int64_t len)
{
    for (int64_t i = 0; i < len; i++) y[i] = ((const float *)x)[i];
}

taut_status CPU(sync)(void) { return TAUT_OK; }
