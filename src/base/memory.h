/* How much memory this process may still take: what the machine has free, or less if its group or its addresses are limited. */
#ifndef TAUT_BASE_MEMORY_H
#define TAUT_BASE_MEMORY_H
#include "base/status.h"

double taut_memory_available(void); /* bytes; +inf when nobody knows */
double taut_memory_addresses(void); /* bytes that ulimit -v leaves; +inf without a limit */

/* Fails with the two figures when more is needed than there is. */
taut_status taut_memory_check(double needed, double available, const char *what) TAUT_MUST_USE;
#endif
