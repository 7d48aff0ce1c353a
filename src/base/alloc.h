/* Every allocation of the library goes through here, so that a test can make the n-th one fail. */
#ifndef TAUT_BASE_ALLOC_H
#define TAUT_BASE_ALLOC_H
#include <stdbool.h>
#include <stddef.h>

#include "base/status.h"

void *taut_malloc(size_t size);
void *taut_calloc(size_t count, size_t size);
void *taut_realloc(void *p, size_t size);
void *taut_malloc_aligned(size_t size); /* 64-byte aligned, zeroed */
char *taut_strdup(const char *s);
/* All of these are released with free(). */

/* How many allocations have failed so far, in all threads of the process; and TAUT_NO_MEMORY when one has since there were
 * `before`.  A bound that cannot get memory is +inf: whoever asks for a proof looks at this before believing that. */
long taut_alloc_failures(void);
taut_status taut_alloc_lasted(long before, const char *what) TAUT_MUST_USE;

/* Test hook: allocation number n from now on fails (1 is the next); 0 switches this off. */
void taut_alloc_fail_at(long n);

/* For memory that is not the host's: counts as an allocation, and says whether it is to fail. */
bool taut_alloc_fails(void);
#endif
