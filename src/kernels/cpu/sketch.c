/* TensorSketch by Fourier transforms (formulas: ref/sketch.c): a circular convolution is a product of
 * spectra, and its adjoint a product with conjugates.  A product that leaves one factor out is made from
 * the others, never by a division.  KissFFT in float; a row is one thread's.
 *
 * Degree 1 needs no transform: it is the sum of each bucket.
 * Poison    NaN or infinity in a row makes the row of the result NaN (degree 1: its bucket).  Aliasing: none.
 * Error     with u = 2^-24, k the degree, e = (k + 1) (6 log2(size) + d + 8) u and |.|_1 the sum of sizes:
 *           z e |x|_1^k,  jvp k e |tx|_1 |x|_1^(k-1),  vjp 2 u |gx before| + k e |gz|_1 |x|_1^(k-1). */
#include <kissfft/kiss_fftr.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "kernels/cpu/cpu.h"

typedef struct {
    kiss_fftr_cfg there, back;
    kiss_fft_cpx *spectrum, *rest, *gone; /* of every factor; of all but one; what is transformed now */
    float *c;                             /* size numbers */
    int64_t bins;                         /* size/2 + 1 */
} worker;

static worker worker_new(const taut_sketch_shape *s)
{
    worker w = { .bins = s->size / 2 + 1 };
    const size_t bins = (size_t)w.bins;
    w.c = taut_malloc((size_t)s->size * sizeof *w.c);
    if (s->degree > 1) {
        w.there = kiss_fftr_alloc((int)s->size, 0, NULL, NULL);
        w.back = kiss_fftr_alloc((int)s->size, 1, NULL, NULL);
        w.spectrum = taut_malloc(bins * (size_t)(s->degree + 2) * sizeof *w.spectrum);
        w.rest = w.spectrum + (s->degree) * w.bins;
        w.gone = w.rest + w.bins;
    }
    TAUT_CHECK(w.c && (s->degree == 1 || (w.there && w.back && w.spectrum)), "sketch: no memory for a row");
    return w;
}

static void worker_free(worker *w)
{
    kiss_fftr_free(w->there);
    kiss_fftr_free(w->back);
    free(w->spectrum);
    free(w->c);
}

static void bucket_sums(float *c, const float *x, const int32_t *hash, const taut_sketch_shape *s)
{
    memset(c, 0, (size_t)s->size * sizeof *c);
    for (int64_t i = 0; i < s->d; i++) {
        const int32_t h = hash[i], b = h < 0 ? ~h : h;
        c[b] += h < 0 ? -x[i] : x[i];
    }
}

static void spread(float *gx, const float *c, const int32_t *hash, int64_t d)
{
    for (int64_t i = 0; i < d; i++) gx[i] += hash[i] >= 0 ? c[hash[i]] : -c[~hash[i]];
}

static void transform(kiss_fft_cpx *f, worker *w, const float *x, const int32_t *hash, const taut_sketch_shape *s)
{
    bucket_sums(w->c, x, hash, s);
    kiss_fftr(w->there, w->c, f);
}

/* y *= x, or its conjugate */
static void times(kiss_fft_cpx *y, const kiss_fft_cpx *x, float sign, int64_t bins)
{
    for (int64_t i = 0; i < bins; i++) {
        const kiss_fft_cpx a = y[i], b = { x[i].r, sign * x[i].i };
        y[i] = (kiss_fft_cpx){ a.r * b.r - a.i * b.i, a.r * b.i + a.i * b.r };
    }
}

static void all_spectra(worker *w, const float *x, const taut_sketch_shape *s)
{
    for (int t = 0; t < s->degree; t++)
        transform(w->spectrum + t * w->bins, w, x, (const int32_t *)s->hash + t * s->d, s);
}

/* gone *= every spectrum but number t's, conjugated when sign is -1 */
static void times_others(worker *w, const taut_sketch_shape *s, int t, float sign)
{
    bool first = true;
    for (int u = 0; u < s->degree; u++) {
        if (u == t) continue;
        if (first)
            memcpy(w->rest, w->spectrum + u * w->bins, (size_t)w->bins * sizeof *w->rest);
        else
            times(w->rest, w->spectrum + u * w->bins, 1, w->bins);
        first = false;
    }
    times(w->gone, w->rest, sign, w->bins);
}

/* y = or += the transform of `gone` back, divided by its length */
static void back_to(float *y, worker *w, int64_t size, bool more)
{
    const float scale = 1.0f / (float)size;
    kiss_fftri(w->back, w->gone, w->c);
    for (int64_t b = 0; b < size; b++) y[b] = w->c[b] * scale + (more ? y[b] : 0);
}

void CPU(sketch)(taut_real *z_, const taut_real *x_, const taut_sketch_shape *s)
{
#pragma omp parallel if (s->rows > 1 && s->rows * s->size > CPU_CHUNK / 8)
    {
        worker w = worker_new(s);
#pragma omp for schedule(static)
        for (int64_t r = 0; r < s->rows; r++) {
            const float *x = (const float *)x_ + r * s->d;
            float *z = (float *)z_ + r * s->size;
            if (s->degree == 1) {
                bucket_sums(z, x, (const int32_t *)s->hash, s);
                continue;
            }
            all_spectra(&w, x, s);
            memcpy(w.gone, w.spectrum, (size_t)w.bins * sizeof *w.gone);
            times_others(&w, s, 0, 1);
            back_to(z, &w, s->size, false);
        }
        worker_free(&w);
    }
}

void CPU(sketch_jvp)(taut_real *tz_, const taut_real *tx_, const taut_real *x_, const taut_sketch_shape *s)
{
#pragma omp parallel if (s->rows > 1 && s->rows * s->size > CPU_CHUNK / 8)
    {
        worker w = worker_new(s);
#pragma omp for schedule(static)
        for (int64_t r = 0; r < s->rows; r++) {
            const float *tx = (const float *)tx_ + r * s->d;
            float *tz = (float *)tz_ + r * s->size;
            if (s->degree == 1) {
                bucket_sums(tz, tx, (const int32_t *)s->hash, s);
                continue;
            }
            all_spectra(&w, (const float *)x_ + r * s->d, s);
            for (int t = 0; t < s->degree; t++) {
                transform(w.gone, &w, tx, (const int32_t *)s->hash + t * s->d, s);
                times_others(&w, s, t, 1);
                back_to(tz, &w, s->size, t > 0);
            }
        }
        worker_free(&w);
    }
}

void CPU(sketch_vjp)(taut_real *gx_, const taut_real *gz_, const taut_real *x_, const taut_sketch_shape *s)
{
#pragma omp parallel if (s->rows > 1 && s->rows * s->size > CPU_CHUNK / 8)
    {
        worker w = worker_new(s);
#pragma omp for schedule(static)
        for (int64_t r = 0; r < s->rows; r++) {
            float *gx = (float *)gx_ + r * s->d;
            const float *gz = (const float *)gz_ + r * s->size;
            if (s->degree == 1) {
                spread(gx, gz, (const int32_t *)s->hash, s->d);
                continue;
            }
            all_spectra(&w, (const float *)x_ + r * s->d, s);
            for (int t = 0; t < s->degree; t++) {
                kiss_fftr(w.there, gz, w.gone);
                times_others(&w, s, t, -1);
                back_to(w.c, &w, s->size, false);
                spread(gx, w.c, (const int32_t *)s->hash + t * s->d, s->d);
            }
        }
        worker_free(&w);
    }
}
