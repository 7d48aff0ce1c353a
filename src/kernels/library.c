/* Opens libtaut_cuda.so, which lies beside the program or where the loader looks. */
#include "kernels/library.h"

#include "base/alloc.h"
#include "base/library.h"

const taut_kernels *taut_library_find(const char *name)
{
    static const taut_host host = { taut_fail, taut_alloc_fails };
    taut_library_open *open;
    const char *why;
    if (!taut_library_function(&open, "libtaut_cuda.so", "taut_cuda_open", false, &why)) {
        (void)taut_fail(TAUT_DEVICE, "kernels %s: %s (make CUDA=1 builds it)", name, why);
        return NULL;
    }
    return open(name, TAUT_TABLE, &host);
}
