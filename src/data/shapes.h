/* Built-in images: six shapes of any place, size and colours on a noisy ground. */
#ifndef TAUT_DATA_SHAPES_H
#define TAUT_DATA_SHAPES_H
#include <stdint.h>

enum { TAUT_SHAPES_SIDE = 16, TAUT_SHAPES_CHANNELS = 3, TAUT_SHAPES_CLASSES = 6 };

/* Image number `index` (side, side, channels) of the set named by seed; returns its class: disc, square, triangle, plus,
 * ring, stripes. */
int taut_shapes_draw(uint8_t *pixels, uint64_t seed, int64_t index);
#endif
