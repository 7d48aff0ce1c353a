/* Pictures and arrays for tests: PNG and JPEG made by their own libraries, NumPy's .npy and .npz written by hand. */
#ifndef PICTURES_H
#define PICTURES_H
#include <png.h>
#include <turbojpeg.h>
#include <zlib.h>

#include "harness.h"

typedef struct {
    uint8_t bytes[1 << 15];
    size_t len;
} made;

/* format: PNG_FORMAT_GRAY, _RGB, _RGBA, ... */
static inline void make_png(made *out, const void *pixels, unsigned width, unsigned height, unsigned format)
{
    png_image image = { .version = PNG_IMAGE_VERSION, .width = width, .height = height, .format = format };
    png_alloc_size_t len = sizeof out->bytes;
    if (!png_image_write_to_memory(&image, out->bytes, &len, 0, pixels, 0, NULL)) abort();
    out->len = len;
}

static inline void make_jpeg(made *out, const uint8_t *pixels, int width, int height, int format)
{
    tjhandle h = tjInitCompress();
    unsigned char *bytes = NULL;
    unsigned long len = 0;
    const int sampling = format == TJPF_GRAY ? TJSAMP_GRAY : TJSAMP_444;
    if (!h || tjCompress2(h, pixels, width, 0, height, format, &bytes, &len, sampling, 100, 0)) abort();
    if (len > sizeof out->bytes) abort();
    memcpy(out->bytes, bytes, out->len = len);
    tjFree(bytes);
    tjDestroy(h);
}

/* descr: "|u1", "<f4", ...; shape: "(2, 3)". */
static inline void make_npy(made *out, const char *descr, const char *shape, const void *data, size_t len)
{
    char head[128];
    const int n = snprintf(head, sizeof head, "{'descr': '%s', 'fortran_order': False, 'shape': %s, }\n", descr, shape);
    memcpy(out->bytes, "\x93NUMPY\x01\x00", 8);
    out->bytes[8] = (uint8_t)n;
    out->bytes[9] = 0;
    memcpy(out->bytes + 10, head, (size_t)n);
    memcpy(out->bytes + 10 + n, data, len);
    out->len = 10 + (size_t)n + len;
}

static inline void put_little(made *m, uint64_t v, int bytes)
{
    for (int i = 0; i < bytes; i++) m->bytes[m->len++] = i < 8 ? (uint8_t)(v >> 8 * i) : 0;
}

/* A zip file with `count` members, deflated or stored. */
static inline void make_zip(made *out, const char *const *name, const made *of, int count, bool deflated)
{
    static made packed;
    size_t start[8], size[8];
    out->len = 0;
    for (int pass = 0; pass < 2; pass++) {
        const size_t directory = out->len;
        for (int i = 0; i < count; i++) {
            const uint64_t crc = crc32(0, of[i].bytes, (unsigned)of[i].len), name_len = strlen(name[i]);
            z_stream z = { .next_in = (uint8_t *)(uintptr_t)of[i].bytes,
                           .avail_in = (unsigned)of[i].len,
                           .next_out = packed.bytes,
                           .avail_out = sizeof packed.bytes };
            if (deflateInit2(&z, 9, Z_DEFLATED, -15, 8, 0) != Z_OK || deflate(&z, Z_FINISH) != Z_STREAM_END) abort();
            size[i] = deflated ? z.total_out : of[i].len;
            deflateEnd(&z);
            if (pass == 0) start[i] = out->len;
            put_little(out, pass ? 0x02014b50 : 0x04034b50, 4);
            if (pass) put_little(out, 20, 2);
            put_little(out, 20, 2);
            put_little(out, 0, 2);
            put_little(out, deflated ? 8 : 0, 2);
            put_little(out, 0, 4);
            put_little(out, crc, 4);
            put_little(out, size[i], 4);
            put_little(out, of[i].len, 4);
            put_little(out, name_len, 2);
            put_little(out, 0, 2);
            if (pass) put_little(out, 0, 10);
            if (pass) put_little(out, start[i], 4);
            memcpy(out->bytes + out->len, name[i], name_len);
            out->len += name_len;
            if (!pass) memcpy(out->bytes + out->len, deflated ? packed.bytes : of[i].bytes, size[i]);
            if (!pass) out->len += size[i];
        }
        if (!pass) continue;
        const size_t end = out->len;
        put_little(out, 0x06054b50, 4);
        put_little(out, 0, 4);
        put_little(out, (uint64_t)count, 2);
        put_little(out, (uint64_t)count, 2);
        put_little(out, end - directory, 4);
        put_little(out, directory, 4);
        put_little(out, 0, 2);
    }
}
#endif
