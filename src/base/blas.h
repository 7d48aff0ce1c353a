/* OpenBLAS keeps one number of threads for the whole process.  taut sets it to 1, once, and never changes it: all that runs in
 * parallel is cut by taut itself, at borders that depend on sizes alone, so the same bits come out for any number of threads
 * and two callers do not meet. */
#ifndef TAUT_BASE_BLAS_H
#define TAUT_BASE_BLAS_H
#include "base/status.h"

/* Have so many threads room for what OpenBLAS takes?  Where there is none it does not fail, but asks for ever. */
taut_status taut_blas_room(int threads) TAUT_MUST_USE;
void taut_blas_single(void); /* before the first product; any number of times, from any thread */
#endif
