/* NumPy's files: an array in .npy bytes, and arrays by name in an .npz (a zip file) or in a folder of .npy files. */
#ifndef TAUT_DATA_NPY_H
#define TAUT_DATA_NPY_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

enum { TAUT_NPY_SIZES = 4 };

typedef struct {
    char kind;    /* 'u', 'i', 'f' or 'b' */
    int bytes;    /* of an element */
    bool swapped; /* big-endian */
    int dims;
    int64_t size[TAUT_NPY_SIZES], count; /* count: of all elements */
    const uint8_t *data;                 /* into the bytes that were read */
} taut_npy;

/* Everything is checked against len.  Column-major arrays with more than one size are refused. */
taut_status taut_npy_read(taut_npy *out, const uint8_t *bytes, size_t len, const char *name) TAUT_MUST_USE;
double taut_npy_at(const taut_npy *, int64_t index);

/* npz.c: the array NAME.npy of a zip file or a folder, in *bytes, which the caller frees; NULL where there is none of that
 * name. */
taut_status taut_npz_array(uint8_t **bytes, taut_npy *out, const char *path, const char *name) TAUT_MUST_USE;
#endif
