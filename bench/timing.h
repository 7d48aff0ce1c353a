/* How long something took, and the quantiles of many such numbers. */
#ifndef TAUT_BENCH_TIMING_H
#define TAUT_BENCH_TIMING_H

double bench_now(void); /* monotonic seconds */
void bench_rest(void);  /* until threads that spin after their work, as OpenBLAS's do, are asleep */
double bench_quantile(double *x, int n, double p); /* sorts x */
static inline double bench_median(double *x, int n) { return bench_quantile(x, n, 0.5); }
#endif
