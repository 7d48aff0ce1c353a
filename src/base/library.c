#include "base/library.h"

#include <dlfcn.h>
#include <string.h>

bool taut_library_function(void *function, const char *library, const char *symbol, bool shared, const char **why)
{
    void *open = dlopen(library, RTLD_NOW | (shared ? RTLD_GLOBAL : RTLD_LOCAL));
    void *found = open ? dlsym(open, symbol) : NULL;
    *why = found ? NULL : dlerror();
    memcpy(function, &found, sizeof found); /* ISO C has no cast from an object to a function */
    return found != NULL;
}
