/* The safetensors file format: a strict reader and a writer that gives the same bytes for the same content.
 *
 * The reader trusts nothing: it refuses every file that the format forbids (header over 100,000,000 bytes,
 * not a JSON object, bad UTF-8, duplicate names, unknown dtype, size that is not product(shape) * bits / 8,
 * overflow, overlap, hole, buffer that does not end at the file's end) and, beyond the format, rank above 8,
 * a NUL in a name and unknown fields of a tensor.  It assumes no alignment and works on any host.
 * Numbers go through double: exact for every value of the dtypes it reads, NaN payloads included. */
#ifndef TAUT_MODEL_SAFETENSORS_H
#define TAUT_MODEL_SAFETENSORS_H
#include <stdint.h>

#include "base/status.h"

enum { TAUT_ST_RANK = 8 };

typedef struct {
    const char *name, *dtype;
    int rank;
    int64_t shape[TAUT_ST_RANK];
    uint64_t begin, end; /* bytes, from the start of the buffer behind the header */
    int64_t count;       /* product of shape; 1 for rank 0 */
} taut_st_tensor;

typedef struct taut_safetensors taut_safetensors;

taut_status taut_safetensors_open(taut_safetensors **out, const char *path) TAUT_MUST_USE;
int taut_safetensors_count(const taut_safetensors *st);
const taut_st_tensor *taut_safetensors_at(const taut_safetensors *st, int index);          /* in order of begin */
const taut_st_tensor *taut_safetensors_find(const taut_safetensors *st, const char *name); /* or NULL */
const char *taut_safetensors_meta(const taut_safetensors *st, const char *key);            /* or NULL */
/* Elements first .. first+count-1.  F64 F32 F16 BF16 BOOL and the integers; an integer that is no double
 * and any other dtype is an error. */
taut_status taut_safetensors_read(const taut_safetensors *st, const taut_st_tensor *tensor, double *dst, int64_t first,
                                  int64_t count) TAUT_MUST_USE;
void taut_safetensors_close(taut_safetensors *st);

typedef struct {
    const char *name, *dtype; /* "F32" or "F64" */
    int rank;
    int64_t shape[TAUT_ST_RANK];
    /* called in order, in chunks; where it fails the old file stays */
    taut_status (*fetch)(void *arg, double *dst, int64_t first, int64_t count);
    void *arg;
} taut_st_entry;

typedef struct {
    const char *key, *value;
} taut_st_meta;

/* Atomic: the old file stays until the new one is whole.  Order of entries and metas does not matter.
 * A finite number that F32 cannot hold is an error. */
taut_status taut_safetensors_write(const char *path, const taut_st_entry *entries, int count, const taut_st_meta *metas,
                                   int meta_count) TAUT_MUST_USE;
#endif
