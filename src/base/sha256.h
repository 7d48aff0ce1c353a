/* SHA-256 (FIPS 180-4), so that a certificate can name the bytes it is about. */
#ifndef TAUT_BASE_SHA256_H
#define TAUT_BASE_SHA256_H
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

typedef struct {
    uint32_t h[8];
    uint64_t bytes;
    unsigned char block[64];
} taut_sha256;

void taut_sha256_begin(taut_sha256 *);
void taut_sha256_add(taut_sha256 *, const void *data, size_t len);
void taut_sha256_end(taut_sha256 *, char hex[65]);

/* Of a whole file; bytes becomes its length. */
taut_status taut_sha256_file(char hex[65], uint64_t *bytes, const char *path) TAUT_MUST_USE;
#endif
