/* PLASH's rivals on the queries, keys and values of one size: time, memory, and how far from softmax attention. */
#ifndef TAUT_BENCH_RIVALS_H
#define TAUT_BENCH_RIVALS_H
#include <cjson/cJSON.h>

#include "kernels/kernels.h"

/* Adds an object a rival to the list; false with a last error: no memory.  M is the number of features, landmarks or tokens of a
 * window. */
bool race_rivals(cJSON *list, const taut_kernels *, int64_t tokens, int64_t m, int rounds);
#endif
