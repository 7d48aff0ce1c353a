/* Pixels to patches and back (formulas: ref/pixels.c).
 *
 * Error     with u = 2^-24 (cuda64: 2^-53): pixels: 2 u (|scale x| + |shift|), the two constants as elements;
 *           pixels_vjp: 2 u |gx|.  Aliasing: none.  NaN stays where it is. */
#include "kernels/cuda/each.h"

struct patches {
    real *y;
    const real *x;
    taut_pixels p;
    bool back, shifted;
    /* The place in the image of entry i of the patches, which count (e, a, b, i, j, c). */
    __device__ int64_t place(int64_t i) const
    {
        const int64_t across = p.width / p.pw, down = p.height / p.ph, c = i % p.channels, j = i / p.channels;
        const int64_t in = j % (p.ph * p.pw), patch = j / (p.ph * p.pw);
        const int64_t b = patch % across, a = patch / across % down, e = patch / across / down;
        return ((e * p.height + a * p.ph + in / p.pw) * p.width + b * p.pw + in % p.pw) * p.channels + c;
    }
    __device__ real read(int64_t i) const
    {
        const int64_t c = i % p.channels;
        const real scaled = (real)p.scale[c] * x[back ? i : place(i)];
        return shifted ? scaled + (real)p.shift[c] : scaled;
    }
    __device__ void write(int64_t i, real v) const { y[back ? place(i) : i] = v; }
};

static int64_t length(const taut_pixels *p) { return p->n * p->height * p->width * p->channels; }

void CUDA(pixels)(taut_real *y, const taut_real *x, const taut_pixels *p, bool shifted)
{
    each(patches{ at(y), at(x), *p, false, shifted }, length(p));
}

void CUDA(pixels_vjp)(taut_real *gx, const taut_real *gy, const taut_pixels *p)
{
    each(patches{ at(gx), at(gy), *p, true, false }, length(p));
}
