#include "base/alloc.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

static atomic_long countdown, failures;

void taut_alloc_fail_at(long n) { atomic_store(&countdown, n); }

static void *counted(void *p)
{
    if (!p) atomic_fetch_add(&failures, 1);
    return p;
}

bool taut_alloc_fails(void)
{
    const bool fails = atomic_load(&countdown) > 0 && atomic_fetch_sub(&countdown, 1) == 1;
    if (fails) atomic_fetch_add(&failures, 1);
    return fails;
}

long taut_alloc_failures(void) { return atomic_load(&failures); }

taut_status taut_alloc_lasted(long before, const char *what)
{
    return taut_alloc_failures() == before ? TAUT_OK : taut_no_memory(what);
}

void *taut_malloc(size_t size) { return taut_alloc_fails() ? NULL : counted(malloc(size ? size : 1)); }

void *taut_calloc(size_t count, size_t size)
{
    return taut_alloc_fails() ? NULL : counted(calloc(count ? count : 1, size ? size : 1));
}

void *taut_realloc(void *p, size_t size) { return taut_alloc_fails() ? NULL : counted(realloc(p, size ? size : 1)); }

enum { LINE = 64, PAGE = 2 << 20 }; /* a line of the cache; a large page */

/* By all threads where there is much: the system gives a page away when it is first written to, and that takes its time. */
static void clear(char *p, size_t size)
{
#pragma omp parallel for schedule(static) if (size >= 64 * (size_t)PAGE)
    for (size_t at = 0; at < size; at += PAGE) memset(p + at, 0, size - at < PAGE ? size - at : PAGE);
}

void *taut_malloc_aligned(size_t size)
{
    const size_t align = size >= 2 * (size_t)PAGE ? PAGE : LINE, whole = (size + align - 1) / align * align;
    if (taut_alloc_fails()) return NULL;
    void *p = counted(whole < size ? NULL : aligned_alloc(align, whole ? whole : align));
    if (p && align == PAGE) madvise(p, whole, MADV_HUGEPAGE); /* refused: small pages serve, more slowly */
    if (p) clear(p, whole);
    return p;
}

char *taut_strdup(const char *s)
{
    const size_t size = strlen(s) + 1;
    char *copy = taut_malloc(size);
    return copy ? memcpy(copy, s, size) : NULL;
}
