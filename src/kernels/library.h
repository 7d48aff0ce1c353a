/* How the program and the library of a device meet.  libtaut_cuda.so is opened when one of its tables is asked for, so
 * one program serves machines with a device and without. */
#ifndef TAUT_KERNELS_LIBRARY_H
#define TAUT_KERNELS_LIBRARY_H
#include "base/far.h"
#include "kernels/kernels.h"

/* What the library may call. */
typedef struct {
    taut_status (*fail)(taut_status, const char *format, ...);
    bool (*alloc_fails)(void); /* a test wants this allocation to fail */
} taut_host;

/* What the library exports as taut_cuda_open: the table called `name`; NULL, and the reason told to host->fail, where
 * there is no device that it can use, or where `build` is not the library's own TAUT_TABLE: a sum over the files that
 * say what a table is and those of the library, so that one from another build is refused. */
typedef const taut_kernels *taut_library_open(const char *name, unsigned long build, const taut_host *host);

/* What it exports as taut_cuda_far: what the device does for proofs, once a table is open. */
typedef const taut_far *taut_library_far_open(const taut_host *host);

/* "cuda" or "cuda64"; NULL leaves the reason in taut_last_error. */
const taut_kernels *taut_library_find(const char *name);
const taut_far *taut_library_far(void); /* the same of what it does for proofs */
#endif
