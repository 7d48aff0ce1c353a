/* Opens libtaut_cuda.so, which lies beside the program or where the loader looks. */
#include "kernels/library.h"

#include <string.h>

#include "base/alloc.h"
#include "base/library.h"

static const taut_host host = { taut_fail, taut_alloc_fails };

/* false: the reason is in taut_last_error. */
static bool function(void *out, const char *symbol, const char *name)
{
    const char *why;
    if (taut_library_function(out, "libtaut_cuda.so", symbol, false, &why)) return true;
    const bool itself = strncmp(why, "libtaut_cuda.so: cannot open", 28) == 0; /* not a library that it needs */
    (void)taut_fail(TAUT_DEVICE, "kernels %s: %s%s", name, why, itself ? " (make CUDA=1 builds it)" : "");
    return false;
}

const taut_kernels *taut_library_find(const char *name)
{
    taut_library_open *open;
    return function(&open, "taut_cuda_open", name) ? open(name, TAUT_TABLE, &host) : NULL;
}

const taut_far *taut_library_far(void)
{
    taut_library_far_open *open;
    return taut_library_find("cuda64") && function(&open, "taut_cuda_far", "cuda64") ? open(&host) : NULL;
}
