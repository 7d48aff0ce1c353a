/* A file, compressed or not. */
#ifndef TAUT_DATA_GZIP_H
#define TAUT_DATA_GZIP_H
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

/* folder/name.gz, else folder/name, unpacked; at most `most` bytes.  The caller frees.  A damaged or truncated stream, a
 * missing file, one that is too large: an error that names it. */
taut_status taut_gzip_read(uint8_t **data, size_t *len, const char *folder, const char *name,
                           size_t most) TAUT_MUST_USE;
#endif
