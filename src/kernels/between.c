#include "kernels/between.h"

#include "base/alloc.h"
#include "base/library.h"

taut_status taut_between(const taut_messages **out, const taut_kernels *k, const taut_ranks *r)
{
    static const taut_host host = { taut_fail, taut_alloc_fails };
    taut_between_open *open;
    const char *why;
    *out = k->host ? r->m : NULL;
    if (k->host) return TAUT_OK;
    if (!taut_library_function(&open, "libtaut_cuda.so", "taut_cuda_between", false, &why))
        return taut_fail(TAUT_DEVICE, "kernels %s: %s", k->name, why);
    *out = open(TAUT_MESSAGES, r, &host);
    return *out ? TAUT_OK : TAUT_DEVICE;
}
