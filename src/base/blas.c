#include "base/blas.h"

#include "base/memory.h"

#include <cblas.h>
#include <pthread.h>

static void set(void) { openblas_set_num_threads(1); }

taut_status taut_blas_room(int threads)
{
    const double each = 144.0 * (1 << 20), left = taut_memory_addresses(); /* 128 MiB to pack into, a stack */
    if (!(left < each * threads)) return TAUT_OK;
    return taut_fail(TAUT_NO_MEMORY,
                     "%.0f MB of addresses are left (ulimit -v), and %d thread%s of OpenBLAS take%s %.0f MB%s",
                     left * 1e-6, threads, threads == 1 ? "" : "s", threads == 1 ? "s" : "", each * threads * 1e-6,
                     threads == 1 ? "" : ": raise the limit, or try --threads 1");
}

void taut_blas_single(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, set);
}
