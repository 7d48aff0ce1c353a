#include "bench/timing.h"

#include <stdlib.h>
#include <time.h>

#include "base/ascending.h"

double bench_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

void bench_rest(void)
{
    enum { TENTH = 100000000 }; /* of a second: OpenBLAS's spin for 2^26 cycles */
    nanosleep(&(struct timespec){ 0, TENTH }, NULL);
}

double bench_quantile(double *x, int n, double p)
{
    qsort(x, (size_t)n, sizeof *x, taut_ascending);
    return x[(int)(p * (n - 1) + 0.5)];
}
