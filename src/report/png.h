/* A small picture as the address of a PNG: data:image/png;base64,... */
#ifndef TAUT_REPORT_PNG_H
#define TAUT_REPORT_PNG_H
#include <stdint.h>

#include "report/markup.h"

/* rgba: width x height x 4 bytes, row by row. */
void taut_png_address(taut_markup *, const uint8_t *rgba, int width, int height);
#endif
