/* The one device of this process: what all files of the backend share, whatever their element. */
#ifndef TAUT_KERNELS_CUDA_DEVICE_H
#define TAUT_KERNELS_CUDA_DEVICE_H
#include <cuda_runtime.h>

#include "kernels/library.h"

void cuda_enter(void);          /* a thread that is not the one that opened the device */
cudaStream_t cuda_stream(void); /* for one thing that is asked of the device: each is counted */
uint64_t cuda_asked(void);
const taut_host *cuda_host(void);

/* Remember the first error: of the runtime while `what` was done, or of a library. */
void cuda_note(cudaError_t error, const char *what);
void cuda_fault(const char *why);
bool cuda_failed(void);

/* Waits for the device, and tells whether anything failed since it was opened. */
taut_status cuda_wait(void);

/* Memory, or NULL, and no error is noted.  cuda_memory: `most` bytes or, if they are not to be had, `least`, and those perhaps
 * where factors stood as bf16 (lowered.h): *size of them. */
void *cuda_more(size_t bytes);
void *cuda_memory(size_t least, size_t most, size_t *size);

/* Memory until the next call of a slot; NULL, and an error noted, when there is none. */
void *cuda_work(size_t bytes);

/* Bytes between the host and the device through pinned memory.  cuda_up returns when `from` may be reused; cuda_down
 * waits, and is false after a failure.  `convert` fills (up) or empties (down) a piece of pinned memory. */
enum { CUDA_PIECE = 1 << 22 };
typedef void cuda_convert(void *to, const void *from, int64_t len);
void cuda_up(void *to, size_t elem, const void *from, size_t from_elem, int64_t len, cuda_convert *convert);
bool cuda_down(void *to, size_t to_elem, const void *from, size_t elem, int64_t len, cuda_convert *convert);
#endif
