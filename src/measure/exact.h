/* A captured layer once more, in double: the same float32 weights, read exactly, on the ref kernels.  What is found in
 * float is evaluated here, and what is proved starts from here. */
#ifndef TAUT_MEASURE_EXACT_H
#define TAUT_MEASURE_EXACT_H
#include "bound/attention.h"
#include "model/capture.h"

typedef struct {
    const taut_kernels *k;     /* ref */
    taut_attention_weights w;  /* tq and tk as asked; self-attention */
    taut_module *attention;    /* owns the doubles behind w */
    taut_module *norm;         /* the norm of this layer, or NULL */
    const double *gain, *bias; /* its weights; bias NULL: none */
    bool centre, before;       /* LayerNorm, not RMSNorm; before the branch, not behind the residual */
    double eps, keep, mix;
    taut_module *map; /* the map that is measured */
} taut_exact;

/* Refused: layers with parts that are not softmax attention, LayerNorm, RMSNorm and a residual, for the maps that
 * contain them. */
taut_status taut_exact_create(taut_exact *, const taut_capture *, int layer, taut_map, int64_t tokens) TAUT_MUST_USE;
void taut_exact_free(taut_exact *);
#endif
