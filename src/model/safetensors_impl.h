/* What the parts of safetensors share: the dtypes and the parsed header; nobody else includes it. */
#ifndef TAUT_MODEL_SAFETENSORS_IMPL_H
#define TAUT_MODEL_SAFETENSORS_IMPL_H
#include <stddef.h>

#include "model/safetensors.h"

enum { TAUT_ST_HEADER_MAX = 100000000 };

/* OTHER: its size is known, so that a file with it is understood, but we do not read its numbers. */
typedef enum { TAUT_ST_FLOAT, TAUT_ST_SIGNED, TAUT_ST_UNSIGNED, TAUT_ST_BOOL, TAUT_ST_OTHER } taut_st_kind;

typedef struct {
    const char *name;
    int bits;
    taut_st_kind kind;
    int mantissa; /* explicit bits, for FLOAT */
} taut_st_dtype;

const taut_st_dtype *taut_st_dtype_find(const char *name); /* or NULL */

/* Strings point into text, which is decoded in place. */
typedef struct {
    char *text;
    taut_st_tensor *tensors;
    taut_st_meta *metas;
    int count, room, meta_count, meta_room;
    char why[256]; /* what is wrong, when a call below failed */
} taut_st_header;

/* Fills tensors and metas, in the order of the text, from h->text[0 .. len), where text[len] is ours too.
 * Checks everything that one tensor can get wrong by itself. */
taut_status taut_st_header_parse(taut_st_header *h, size_t len) TAUT_MUST_USE;
/* A name fit for one line of an error. */
const char *taut_st_show(char dst[80], const char *name);

uint64_t taut_st_load(const unsigned char *bytes, int size); /* little-endian */
void taut_st_store(unsigned char *bytes, uint64_t raw, int size);
/* Both return how many numbers went through; the next one does not fit the other type. */
int64_t taut_st_unpack(double *dst, const unsigned char *src, int64_t count, const taut_st_dtype *dtype);
int64_t taut_st_pack(unsigned char *dst, const double *src, int64_t count, const taut_st_dtype *dtype);
#endif
