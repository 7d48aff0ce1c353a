/* Pixels to patches and back (formulas: ref/pixels.c), one row of one patch at a time.
 *
 * Error     pixels: two roundings at most, 2^-23 (|scale x| + |shift|), the two constants as floats;
 *           pixels_vjp: one, 2^-23 |gx|.  Aliasing: none.  NaN stays where it is. */
#include "kernels/cpu/cpu.h"

typedef struct {
    int64_t y, x, len; /* where a run of pixels is in both, and how many numbers it has */
} run;

/* Run number i of an example: row i / across of the image, patch i % across along it. */
static run run_of(const taut_pixels *p, int64_t e, int64_t i)
{
    const int64_t across = p->width / p->pw, row = i / across, b = i % across, len = p->pw * p->channels;
    const int64_t patch = row / p->ph * across + b, image = p->height * p->width * p->channels;
    return (run){ e * image + (patch * p->ph + row % p->ph) * len, e * image + i * len, len };
}

void CPU(pixels)(taut_real *y_, const taut_real *x_, const taut_pixels *p, bool shifted)
{
    const int64_t runs = p->height * (p->width / p->pw);
#pragma omp parallel for collapse(2) schedule(static) if (p->n * runs * p->pw * p->channels > CPU_CHUNK)
    for (int64_t e = 0; e < p->n; e++)
        for (int64_t i = 0; i < runs; i++) {
            const run r = run_of(p, e, i);
            float *y = (float *)y_ + r.y;
            const float *x = (const float *)x_ + r.x;
            for (int64_t c = 0; c < p->channels; c++) {
                const float scale = (float)p->scale[c], shift = shifted ? (float)p->shift[c] : 0;
                for (int64_t j = c; j < r.len; j += p->channels) y[j] = scale * x[j] + shift;
            }
        }
}

void CPU(pixels_vjp)(taut_real *gx_, const taut_real *gy_, const taut_pixels *p)
{
    const int64_t runs = p->height * (p->width / p->pw);
#pragma omp parallel for collapse(2) schedule(static) if (p->n * runs * p->pw * p->channels > CPU_CHUNK)
    for (int64_t e = 0; e < p->n; e++)
        for (int64_t i = 0; i < runs; i++) {
            const run r = run_of(p, e, i);
            float *gx = (float *)gx_ + r.x;
            const float *gy = (const float *)gy_ + r.y;
            for (int64_t c = 0; c < p->channels; c++) {
                const float scale = (float)p->scale[c];
                for (int64_t j = c; j < r.len; j += p->channels) gx[j] = scale * gy[j];
            }
        }
}
