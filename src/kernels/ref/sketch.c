/* TensorSketch, straight from its definition, convolutions term by term:
 *     c_t[b] = sum of +-x_i over the i in bucket b of factor t
 *     z      = c_1 * ... * c_k                            (circular convolution)
 *     jvp    = sum_t  tc_t * prod over u != t of c_u       tc_t made of tx
 *     vjp    gx_i += sum_t +- gc_t[bucket of i],  gc_t[a] = sum_b gz[b] (prod over u != t of c_u)[b - a]
 * Poison: NaN in a row makes the row of the result NaN where it reaches.  Aliasing: none. */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "kernels/ref/ref.h"

static void bucket_sums(double *c, const double *x, const int32_t *hash, int64_t d, int64_t size)
{
    memset(c, 0, (size_t)size * sizeof *c);
    for (int64_t i = 0; i < d; i++) {
        if (hash[i] >= 0)
            c[hash[i]] += x[i];
        else
            c[~hash[i]] -= x[i];
    }
}

/* a = a * c, room for `size` numbers at `sum` */
static void convolve(double *a, const double *c, double *sum, int64_t size)
{
    memset(sum, 0, (size_t)size * sizeof *sum);
    for (int64_t i = 0; i < size; i++)
        for (int64_t j = 0; j < size; j++) sum[(i + j) % size] += a[i] * c[j];
    memcpy(a, sum, (size_t)size * sizeof *sum);
}

/* product = the convolution of all c_u, u != skip (skip = -1: of all); with `c` and `sum` as room */
static void product_of(double *product, double *c, double *sum, const double *x, const taut_sketch_shape *s, int skip)
{
    memset(product, 0, (size_t)s->size * sizeof *product);
    product[0] = 1;
    for (int u = 0; u < s->degree; u++) {
        if (u == skip) continue;
        bucket_sums(c, x, (const int32_t *)s->hash + u * s->d, s->d, s->size);
        convolve(product, c, sum, s->size);
    }
}

static double *room(const taut_sketch_shape *s)
{
    double *p = taut_malloc((size_t)(4 * s->size) * sizeof *p);
    TAUT_CHECK(p, "sketch: no memory for a row");
    return p;
}

void taut_ref_sketch(taut_real *z, const taut_real *x, const taut_sketch_shape *s)
{
    double *c = room(s);
    for (int64_t r = 0; r < s->rows; r++)
        product_of((double *)z + r * s->size, c, c + s->size, (const double *)x + r * s->d, s, -1);
    free(c);
}

void taut_ref_sketch_jvp(taut_real *tz_, const taut_real *tx, const taut_real *x, const taut_sketch_shape *s)
{
    double *c = room(s), *sum = c + s->size, *product = sum + s->size;
    for (int64_t r = 0; r < s->rows; r++) {
        double *tz = (double *)tz_ + r * s->size;
        memset(tz, 0, (size_t)s->size * sizeof *tz);
        for (int t = 0; t < s->degree; t++) {
            product_of(product, c, sum, (const double *)x + r * s->d, s, t);
            bucket_sums(c, (const double *)tx + r * s->d, (const int32_t *)s->hash + t * s->d, s->d, s->size);
            convolve(product, c, sum, s->size);
            for (int64_t b = 0; b < s->size; b++) tz[b] += product[b];
        }
    }
    free(c);
}

void taut_ref_sketch_vjp(taut_real *gx_, const taut_real *gz_, const taut_real *x, const taut_sketch_shape *s)
{
    double *c = room(s), *sum = c + s->size, *product = sum + s->size;
    for (int64_t r = 0; r < s->rows; r++) {
        double *gx = (double *)gx_ + r * s->d;
        const double *gz = (const double *)gz_ + r * s->size;
        for (int t = 0; t < s->degree; t++) {
            const int32_t *hash = (const int32_t *)s->hash + t * s->d;
            product_of(product, c, sum, (const double *)x + r * s->d, s, t);
            for (int64_t a = 0; a < s->size; a++) {
                c[a] = 0;
                for (int64_t b = 0; b < s->size; b++) c[a] += gz[b] * product[(b - a + s->size) % s->size];
            }
            for (int64_t i = 0; i < s->d; i++) gx[i] += hash[i] >= 0 ? c[hash[i]] : -c[~hash[i]];
        }
    }
    free(c);
}
