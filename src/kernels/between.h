/* Messages between ranks about memory of a table: by MPI where it is the host's, by NCCL between devices. */
#ifndef TAUT_KERNELS_BETWEEN_H
#define TAUT_KERNELS_BETWEEN_H
#include "base/ranks.h"
#include "kernels/library.h"

/* Only send, receive, wait and close are there.  NCCL's come after what the device was asked for before, and before what it is
 * asked for later; the host waits for nothing.  All ranks call this together; `ranks` must live as long. */
taut_status taut_between(const taut_messages **out, const taut_kernels *, const taut_ranks *) TAUT_MUST_USE;

/* What libtaut_cuda.so exports as taut_cuda_between; NULL, and the reason told to host->fail. */
typedef const taut_messages *taut_between_open(int layout, const taut_ranks *, const taut_host *host);
#endif
