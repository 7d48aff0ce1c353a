#include "base/program.h"

#include <dlfcn.h>
#include <stdbool.h>
#include <string.h>

#include "base/sha256.h"

taut_status taut_program_hash(char hex[65])
{
    static const char here;
    Dl_info from;
    uint64_t bytes;
    const bool library = dladdr(&here, &from) && from.dli_fname && strstr(from.dli_fname, ".so");
    return taut_sha256_file(hex, &bytes, library ? from.dli_fname : "/proc/self/exe");
}
