/* Memory of the device: alloc gives zeroed bytes, aligned to 256, or NULL when memory is out.  Reals, sums and indices
 * travel through pinned memory; put rounds doubles to the nearest element (float: 2^-24 relative, beyond FLT_MAX
 * infinity), get is exact.  After a failure get gives NaN. */
#include "kernels/cuda/cuda.h"
#include "kernels/cuda/lowered.h"

#include <string.h>

void *CUDA(alloc)(size_t bytes)
{
    size_t size;
    void *p = cuda_memory(bytes > 0 ? bytes : 1, bytes > 0 ? bytes : 1, &size);
    if (!p) return NULL; /* the caller's affair, and no fault of the device */
    cuda_note(cudaMemsetAsync(p, 0, bytes, cuda_stream()), "alloc");
    return p;
}

void CUDA(release)(void *p) { cuda_note(cudaFree(p), "release"); }

static void to_real(void *to, const void *from, int64_t len)
{
    for (int64_t i = 0; i < len; i++) ((real *)to)[i] = (real)((const double *)from)[i];
}

static void to_double(void *to, const void *from, int64_t len)
{
    for (int64_t i = 0; i < len; i++) ((double *)to)[i] = (double)((const real *)from)[i];
}

static void as_double(void *to, const void *from, int64_t len) { memcpy(to, from, (size_t)len * sizeof(double)); }

static void as_index(void *to, const void *from, int64_t len) { memcpy(to, from, (size_t)len * sizeof(int32_t)); }

static void poison(double *y, int64_t len)
{
    for (int64_t i = 0; i < len; i++) y[i] = NAN;
}

void CUDA(put)(taut_real *y, const double *x, int64_t len)
{
    cuda_up(y, sizeof(real), x, sizeof(double), len, to_real);
}

void CUDA(get)(double *y, const taut_real *x, int64_t len)
{
    if (!cuda_down(y, sizeof(double), x, sizeof(real), len, to_double)) poison(y, len);
}

void CUDA(put_index)(taut_index *y, const int32_t *x, int64_t len)
{
    const cuda_says says;
    says.writes(at(y), len);
    cuda_up(y, sizeof(int32_t), x, sizeof(int32_t), len, as_index);
}

void CUDA(put_sum)(taut_sum *y, const double *x, int64_t n)
{
    if (x)
        cuda_up(y, sizeof(double), x, sizeof(double), n, as_double);
    else if (n > 0)
        cuda_note(cudaMemsetAsync(y, 0, (size_t)n * sizeof(double), cuda_stream()), "put_sum");
}

taut_status CUDA(read)(double *y, const taut_sum *x, int64_t n)
{
    (void)cuda_down(y, sizeof(double), x, sizeof(double), n, as_double);
    const taut_status s = cuda_wait();
    if (s) poison(y, n);
    return s;
}

double CUDA(available)(void)
{
    size_t free = 0, total = 0;
    return cudaMemGetInfo(&free, &total) == cudaSuccess ? (double)(free + cuda_lowered_size()) : (double)INFINITY;
}
