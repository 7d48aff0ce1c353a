/* PNG (ISO 15948): a signature, then chunks of length, name, data and CRC.  Eight bits a channel, no filter, one zlib stream. */
#include "report/png.h"

#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "base/alloc.h"

static void base64(taut_markup *t, const uint8_t *data, size_t len)
{
    static const char digit[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    for (size_t i = 0; i < len; i += 3) {
        const unsigned left = len - i < 3 ? (unsigned)(len - i) : 3;
        const unsigned v = (unsigned)data[i] << 16 | (left > 1 ? (unsigned)data[i + 1] << 8 : 0) |
                           (left > 2 ? data[i + 2] : 0U);
        const char four[] = { digit[v >> 18], digit[v >> 12 & 63], left > 1 ? digit[v >> 6 & 63] : '=',
                              left > 2 ? digit[v & 63] : '=' };
        taut_markup_put(t, four, 4);
    }
}

static uint8_t *put32(uint8_t *at, unsigned long v)
{
    for (int i = 0; i < 4; i++) *at++ = (uint8_t)(v >> (24 - 8 * i));
    return at;
}

/* Length, name, data, and the CRC of the last two. */
static uint8_t *chunk(uint8_t *at, const char *name, const uint8_t *data, size_t len)
{
    at = put32(at, (unsigned long)len);
    memcpy(at, name, 4);
    if (len) memmove(at + 4, data, len);
    return put32(at + 4 + len, crc32(crc32(0, NULL, 0), at, (uInt)(len + 4)));
}

void taut_png_address(taut_markup *t, const uint8_t *rgba, int width, int height)
{
    static const uint8_t signature[] = { 0x89, 'P', 'N', 'G', '\r', '\n', 0x1a, '\n' };
    const size_t row = 4 * (size_t)width, raw = (row + 1) * (size_t)height;
    uLongf packed = compressBound((uLong)raw);
    uint8_t *lines = taut_malloc(raw + 1), *zip = taut_malloc(packed), *file = taut_malloc(packed + 80), *at = file;
    uint8_t head[13] = { [8] = 8, [9] = 6 }; /* eight bits, red green blue alpha */
    t->failed |= !lines || !zip || !file;
    for (int y = 0; !t->failed && y < height; y++) {
        lines[(size_t)y * (row + 1)] = 0; /* no filter */
        memcpy(lines + (size_t)y * (row + 1) + 1, rgba + (size_t)y * row, row);
    }
    if (!t->failed && compress2(zip, &packed, lines, (uLong)raw, 9) == Z_OK) {
        put32(put32(head, (unsigned long)width), (unsigned long)height);
        memcpy(at, signature, sizeof signature);
        at = chunk(at + sizeof signature, "IHDR", head, sizeof head);
        at = chunk(at, "IDAT", zip, packed);
        at = chunk(at, "IEND", NULL, 0);
        taut_markup_add(t, "data:image/png;base64,");
        base64(t, file, (size_t)(at - file));
    }
    free(lines);
    free(zip);
    free(file);
}
