/* The weights of an ONNX file: its initializers, under their names.  One that the exporter left without a name
 * ("onnx::MatMul_209") is found under the output of the node that reads it, less "_output_0".
 *
 * The graph is not run, and nothing is said about the function: whoever reads weights from here knows it (hf_names.c).
 * The reader is strict: bytes that are no protobuf, a tensor whose size is not its shape's, two of one name are refused;
 * F32, F64, F16 and BF16 in raw_data are read. */
#ifndef TAUT_MODEL_ONNX_H
#define TAUT_MODEL_ONNX_H
#include <stdbool.h>

#include "model/safetensors.h"

typedef struct taut_onnx taut_onnx;

taut_status taut_onnx_open(taut_onnx **out, const char *path) TAUT_MUST_USE;
void taut_onnx_close(taut_onnx *);
int taut_onnx_count(const taut_onnx *);
const taut_st_tensor *taut_onnx_at(const taut_onnx *, int index);
void taut_onnx_read(const taut_onnx *, const taut_st_tensor *, double *dst, int64_t first, int64_t count);
/* The first kind of node that is none of `kinds` ("|Add|MatMul|"); NULL: there is none. */
const char *taut_onnx_other_node(const taut_onnx *, const char *kinds);
#endif
