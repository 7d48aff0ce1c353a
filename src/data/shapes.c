/* A shape is where a number is >= 0: with (u, v) the place relative to the shape's middle in units of its size,
 *     disc 1 - r,   square 0.8 - max(|u|, |v|),   triangle, plus, ring 0.3 - |r - 0.7|,   stripes
 * r = sqrt(u^2 + v^2).  The edge is one pixel soft, and every pixel has noise of its own. */
#include "data/shapes.h"

#include <math.h>

#include "base/rng.h"

enum { DRAWS = 16 }; /* counters an image takes before its pixels' */

static double inside(int kind, double u, double v)
{
    const double r = sqrt(u * u + v * v), a = fabs(u), b = fabs(v);
    switch (kind) {
    case 0:
        return 1 - r;
    case 1:
        return 0.8 - fmax(a, b);
    case 2:
        return fmin(0.7 - v, (v + 0.9) / 2 - a);
    case 3:
        return fmax(fmin(0.9 - a, 0.3 - b), fmin(0.9 - b, 0.3 - a));
    case 4:
        return 0.25 - fabs(r - 0.75);
    default:
        return fmin(0.9 - fmax(a, b), fabs(fmod(v + 3, 0.9) - 0.45) - 0.2);
    }
}

static double clamp(double x) { return x < 0 ? 0 : x > 1 ? 1 : x; }

int taut_shapes_draw(uint8_t *pixels, uint64_t seed, int64_t index)
{
    enum { S = TAUT_SHAPES_SIDE, C = TAUT_SHAPES_CHANNELS };
    const uint64_t key = taut_rng_key(seed, TAUT_RNG_DATA, (uint64_t)index);
    const int kind = (int)taut_rng_below(key, 0, TAUT_SHAPES_CLASSES);
    const double size = 4 + 3 * taut_rng_unit(key, 1), room = S - 2 * size;
    const double x = size + room * taut_rng_unit(key, 2), y = size + room * taut_rng_unit(key, 3);
    double ground[C], ink[C];
    for (uint64_t c = 0; c < C; c++) {
        ground[c] = taut_rng_unit(key, 4 + c);
        const double other = ground[c] + 0.25 + 0.5 * taut_rng_unit(key, 8 + c);
        ink[c] = other > 1 ? other - 1 : other; /* a quarter away at least */
    }
    for (uint64_t i = 0; i < S * S; i++) {
        const double u = ((double)(i % S) + 0.5 - x) / size, v = ((double)(i / S) + 0.5 - y) / size;
        const double cover = clamp(0.5 + size * inside(kind, u, v));
        for (uint64_t c = 0; c < C; c++) {
            const double noise = 0.1 * (taut_rng_unit(key, DRAWS + C * i + c) - 0.5);
            pixels[C * i + c] = (uint8_t)(255 * clamp(ground[c] + cover * (ink[c] - ground[c]) + noise) + 0.5);
        }
    }
    return kind;
}
