/* How much memory this process may still take: what the machine has free, or less if its group is limited. */
#ifndef TAUT_BASE_MEMORY_H
#define TAUT_BASE_MEMORY_H
#include "base/status.h"

/* Fails with the two figures when `bytes` more will not fit. */
taut_status taut_memory_check(double bytes, const char *what) TAUT_MUST_USE;
#endif
