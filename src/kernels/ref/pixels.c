/* Pixels to patches and back.  Patch (a, b) of an image holds the pixels (a ph + i, b pw + j), by rows:
 *     pixels       y[e][a][b][i][j][c] = scale[c] x[e][a ph + i][b pw + j][c]  (+ shift[c])
 *     pixels_vjp   its adjoint, overwriting
 * Aliasing: none.  NaN stays where it is. */
#include "kernels/ref/ref.h"

/* The place in x of entry i of y: y counts (e, a, b, i, j, c). */
static int64_t place(const taut_pixels *p, int64_t i)
{
    const int64_t across = p->width / p->pw, down = p->height / p->ph;
    const int64_t c = i % p->channels, j = i / p->channels;
    const int64_t in = j % (p->ph * p->pw), patch = j / (p->ph * p->pw);
    const int64_t b = patch % across, a = patch / across % down, e = patch / across / down;
    const int64_t row = a * p->ph + in / p->pw, col = b * p->pw + in % p->pw;
    return ((e * p->height + row) * p->width + col) * p->channels + c;
}

void taut_ref_pixels(taut_real *y_, const taut_real *x_, const taut_pixels *p, bool shifted)
{
    double *y = (double *)y_;
    const double *x = (const double *)x_;
    for (int64_t i = 0; i < p->n * p->height * p->width * p->channels; i++)
        y[i] = p->scale[i % p->channels] * x[place(p, i)] + (shifted ? p->shift[i % p->channels] : 0);
}

void taut_ref_pixels_vjp(taut_real *gx_, const taut_real *gy_, const taut_pixels *p)
{
    double *gx = (double *)gx_;
    const double *gy = (const double *)gy_;
    for (int64_t i = 0; i < p->n * p->height * p->width * p->channels; i++)
        gx[place(p, i)] = p->scale[i % p->channels] * gy[i];
}
