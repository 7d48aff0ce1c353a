/* What every attention layer reads when a batch runs through a model, and the maps around it that can be measured.
 *
 *     taut_capture_create(&c, model, n, t);
 *     taut_capture_run(c, ids, n, t);            the embedding and the blocks; no head  (_real: images)
 *     c->layer[l].z                              what attention layer l read: behind its norm, if one stands before
 *     c->layer[l].x                              what its residual branch read: before that norm
 *     taut_capture_map(&map, c, l, TAUT_MAP_RESIDUAL);     a module of its own, to be asked at the tensor below
 *     taut_capture_input(c, l, TAUT_MAP_RESIDUAL);         x or z
 *
 * Tensors belong to the capture and hold until the next run; they are on the model's kernels.  Maps share the model's
 * weights, which must outlive them. */
#ifndef TAUT_MODEL_CAPTURE_H
#define TAUT_MODEL_CAPTURE_H
#include "model/pass.h"

/* norm_place = pre, then post:
 *     bare       the heads side by side, no output projection, at z
 *     attention  the attention module, output projection included, at z
 *     branch     attention(norm(x))                     attention(x)
 *     residual   x + attention(norm(x))                 x + attention(x)
 *     block      the same                               norm(x + attention(x))
 * each with the weights, mixing factors and channel factors of the model. */
typedef enum { TAUT_MAP_BARE, TAUT_MAP_ATTENTION, TAUT_MAP_BRANCH, TAUT_MAP_RESIDUAL, TAUT_MAP_BLOCK } taut_map;
enum { TAUT_MAPS = 5 };
extern const char *const taut_map_names[TAUT_MAPS]; /* "bare", ... */

typedef struct {
    const taut_module *attention, *branch, *residual; /* parts of the model */
    const taut_module *norm;                          /* behind the residual; NULL: none */
    taut_tensor x, z;
} taut_layer;

typedef struct taut_capture {
    taut_model *m;
    int layers; /* 0 before a run, and for a model without attention */
    taut_layer *layer;
    int64_t largest;   /* tokens it was made for */
    taut_real *memory; /* embeddings, last features, trace, scratch */
    double *host;      /* what the body plans there */
    taut_tensor embedded, features;
} taut_capture;

taut_status taut_capture_create(taut_capture **out, taut_model *, int64_t n, int64_t t) TAUT_MUST_USE;
void taut_capture_free(taut_capture *);
/* n * t at most what it was made for; a model that reads reals has t = m->in.t. */
void taut_capture_run(taut_capture *, const int32_t *ids, int64_t n, int64_t t);
void taut_capture_run_real(taut_capture *, const double *reals, int64_t n);

taut_tensor taut_capture_input(const taut_capture *, int layer, taut_map);
/* The caller frees it.  Refused: `bare` of an attention that is not softmax attention. */
taut_status taut_capture_map(taut_module **out, const taut_capture *, int layer, taut_map) TAUT_MUST_USE;
#endif
