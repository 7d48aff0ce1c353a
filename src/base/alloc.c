#include "base/alloc.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

static atomic_long countdown;

void taut_alloc_fail_at(long n) { atomic_store(&countdown, n); }

bool taut_alloc_fails(void) { return atomic_load(&countdown) > 0 && atomic_fetch_sub(&countdown, 1) == 1; }

void *taut_malloc(size_t size) { return taut_alloc_fails() ? NULL : malloc(size ? size : 1); }

void *taut_calloc(size_t count, size_t size)
{
    return taut_alloc_fails() ? NULL : calloc(count ? count : 1, size ? size : 1);
}

void *taut_realloc(void *p, size_t size) { return taut_alloc_fails() ? NULL : realloc(p, size ? size : 1); }

void *taut_malloc_aligned(size_t size)
{
    const size_t whole = (size + 63) / 64 * 64;
    void *p = taut_alloc_fails() || whole < size ? NULL : aligned_alloc(64, whole ? whole : 64);
    return p ? memset(p, 0, whole) : NULL;
}

char *taut_strdup(const char *s)
{
    const size_t size = strlen(s) + 1;
    char *copy = taut_malloc(size);
    return copy ? memcpy(copy, s, size) : NULL;
}
