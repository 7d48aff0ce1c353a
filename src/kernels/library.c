/* Opens libtaut_cuda.so, which lies beside the program or where the loader looks. */
#include "kernels/library.h"

#include <dlfcn.h>
#include <string.h>

#include "base/alloc.h"

const taut_kernels *taut_library_find(const char *name)
{
    static const taut_host host = { taut_fail, taut_alloc_fails };
    void *library = dlopen("libtaut_cuda.so", RTLD_NOW | RTLD_LOCAL);
    taut_library_open *open = NULL;
    if (library) {
        void *symbol = dlsym(library, "taut_cuda_open");
        memcpy(&open, &symbol, sizeof open); /* ISO C has no cast from an object to a function */
    }
    if (!open) {
        (void)taut_fail(TAUT_DEVICE, "kernels %s: %s (make CUDA=1 builds it)", name, dlerror());
        return NULL;
    }
    return open(name, TAUT_TABLE, &host); /* the library stays open until the end */
}
