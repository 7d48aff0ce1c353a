/* C (m,n) = A B in double, as forward passes of ref need it: every entry is its sum over the k products in order, each
 * product rounded and then each sum, from 0 on.  So the bits depend neither on the processor nor on the number of threads. */
#ifndef TAUT_KERNELS_TILE_H
#define TAUT_KERNELS_TILE_H
#include <stdbool.h>
#include <stdint.h>

typedef struct {
    int64_t m, n, k;
    int64_t c, a;        /* from one row of C to the next, of A; both lie along their rows */
    int64_t down, right; /* from one row of B to the next, from one column to the next */
} taut_steps;

void taut_tiles(double *c, const double *a, const double *b, taut_steps);
/* The same by the instructions of the kind `which` alone, from 0 (any processor) up; false: there is none, or not on this one. */
bool taut_tiles_by(int which, double *c, const double *a, const double *b, taut_steps);
#endif
