/* The tensors of a checkpoint folder: model.safetensors, or the files that model.safetensors.index.json names; or of one
 * file, which may be such an index (*.index.json) or an ONNX file (*.onnx) too.
 *
 * Strict as the reader of one file is: every name in the index lies in the file that it says, every tensor of a file is
 * in the index, no name comes twice, and a file's name is a plain name (no folder can be left). */
#ifndef TAUT_MODEL_SHARDS_H
#define TAUT_MODEL_SHARDS_H
#include "model/onnx.h"

typedef struct {
    const taut_st_tensor *tensor;
    const taut_safetensors *file; /* or NULL, and */
    const taut_onnx *onnx;
    const char *file_name;
} taut_shard_tensor;

typedef struct taut_shards taut_shards;

taut_status taut_shards_open(taut_shards **out, const char *path) TAUT_MUST_USE;
void taut_shards_close(taut_shards *);
int taut_shards_count(const taut_shards *); /* of tensors */
int taut_shards_files(const taut_shards *);
const taut_shard_tensor *taut_shards_at(const taut_shards *, int index);          /* in order of names */
const taut_shard_tensor *taut_shards_find(const taut_shards *, const char *name); /* or NULL */
const taut_onnx *taut_shards_onnx(const taut_shards *);                           /* or NULL */
taut_status taut_shards_read(const taut_shard_tensor *, double *dst, int64_t first, int64_t count) TAUT_MUST_USE;
#endif
