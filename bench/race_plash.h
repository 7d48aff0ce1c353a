/* PLASH, clustered and exact attention on the same queries, keys and values, in turns: what bench plash and the
 * paper's efficiency figures measure. */
#ifndef TAUT_BENCH_RACE_PLASH_H
#define TAUT_BENCH_RACE_PLASH_H
#include "kernels/kernels.h"

enum { RACE_HEADS = 4, RACE_WIDTH = 512 };

typedef struct {
    double low, median, high; /* quartiles, seconds */
} race_time;

typedef struct {
    race_time plash, exact, certificate;
    double plash_peak, exact_peak; /* of the host, beyond q, k, v and the output; NaN: not measured */
    double deviation;              /* certified, Frobenius; NaN: not asked for */
} race_result;

typedef struct {
    int64_t n, groups, size;  /* tokens; M; D of degrees 1 and 2 */
    int rounds, exact_rounds; /* 0 exact rounds: not measured */
    bool certify;
} race_plan;

bool race_plash(race_result *, const taut_kernels *, const race_plan *); /* false with a last error: no memory */
#endif
