/* Weights and optimiser state to and from a safetensors file. */
#ifndef TAUT_MODEL_SLABS_H
#define TAUT_MODEL_SLABS_H
#include "model/model.h"
#include "model/safetensors.h"

typedef struct {
    const taut_kernels *k;
    const taut_real *data;
} taut_slab_view;

/* An entry for the writer that reads p's numbers from view; view must live until the file is written. */
taut_st_entry taut_slab_entry(taut_slab_view *view, const char *name, const char *dtype, const taut_param *p);

/* Fill dst with the elements from first to before end of tensor `name`, which must have exactly p's shape. */
taut_status taut_slab_load(const taut_kernels *, taut_real *dst, const taut_safetensors *, const char *path,
                           const char *name, const taut_param *p, int64_t first, int64_t end) TAUT_MUST_USE;
#endif
