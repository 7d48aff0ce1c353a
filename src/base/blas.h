/* OpenBLAS keeps one number of threads for the whole process.  taut sets it to 1, once, and never changes it: all that runs in
 * parallel is cut by taut itself, at borders that depend on sizes alone, so the same bits come out for any number of threads
 * and two callers do not meet. */
#ifndef TAUT_BASE_BLAS_H
#define TAUT_BASE_BLAS_H

void taut_blas_single(void); /* before the first product; any number of times, from any thread */
#endif
