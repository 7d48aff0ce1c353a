#include "data/augment.h"

#include <math.h>

#include "base/rng.h"

enum { FLIP, DOWN, RIGHT, KIND, CORNER_Y, CORNER_X, SHARE = 16 }; /* counters of the draws */

void taut_augment_image(double *out, const uint8_t *pixels, taut_frame f, const taut_augment *a, uint64_t key)
{
    const uint64_t ways = (uint64_t)(2 * a->crop + 1);
    const bool flip = a->flip && taut_rng_unit(key, FLIP) < 0.5;
    const int64_t down = (int64_t)taut_rng_below(key, DOWN, ways) - a->crop;
    const int64_t right = (int64_t)taut_rng_below(key, RIGHT, ways) - a->crop;
    for (int64_t y = 0; y < f.height; y++)
        for (int64_t x = 0; x < f.width; x++) {
            const int64_t fy = y + down, turned = x + right, fx = flip ? f.width - 1 - turned : turned;
            const bool in = fy >= 0 && fy < f.height && fx >= 0 && fx < f.width;
            const uint8_t *from = in ? pixels + (fy * f.width + fx) * f.channels : NULL;
            for (int64_t c = 0; c < f.channels; c++) *out++ = from ? from[c] / 255.0 : 0;
        }
}

/* Beta(alpha, alpha) by Joehnk's method: (u, v) uniform until u^(1/alpha) + v^(1/alpha) <= 1, then the first over the sum.
 * Alpha up to 4 is accepted once in 70 tries at worst; after 4096 of them it is 1/2. */
static double beta(double alpha, uint64_t key)
{
    for (uint64_t i = 0; i < 4096; i++) {
        const double u = pow(taut_rng_unit(key, SHARE + 2 * i), 1 / alpha);
        const double v = pow(taut_rng_unit(key, SHARE + 2 * i + 1), 1 / alpha);
        if (u + v <= 1 && u + v > 0) return u / (u + v);
    }
    return 0.5;
}

/* A box of area 1 - share, as far as whole pixels go, around any pixel, cut off at the border. */
static double paste(double *a, const double *b, taut_frame f, double share, uint64_t key)
{
    const double side = sqrt(1 - share);
    const int64_t high = (int64_t)(side * (double)f.height + 0.5), wide = (int64_t)(side * (double)f.width + 0.5);
    const int64_t y = (int64_t)taut_rng_below(key, CORNER_Y, (uint64_t)f.height) - high / 2;
    const int64_t x = (int64_t)taut_rng_below(key, CORNER_X, (uint64_t)f.width) - wide / 2;
    int64_t pasted = 0;
    for (int64_t i = y < 0 ? 0 : y; i < y + high && i < f.height; i++)
        for (int64_t j = x < 0 ? 0 : x; j < x + wide && j < f.width; j++, pasted++)
            for (int64_t c = 0; c < f.channels; c++) {
                const int64_t at = (i * f.width + j) * f.channels + c;
                a[at] = b[at];
            }
    return 1 - (double)pasted / (double)(f.height * f.width);
}

double taut_augment_mix(double *a, const double *b, taut_frame f, const taut_augment *s, uint64_t key)
{
    const bool cut = s->cutmix > 0 && (s->mixup == 0 || taut_rng_unit(key, KIND) < 0.5);
    const double share = beta(cut ? s->cutmix : s->mixup, key);
    if (cut) return paste(a, b, f, share, key);
    for (int64_t i = 0; i < taut_frame_len(f); i++) a[i] = share * a[i] + (1 - share) * b[i];
    return share;
}
