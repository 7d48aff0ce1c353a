/* One function per figure: it measures and describes, NULL with a last error when it could not. */
#ifndef TAUT_BENCH_BENCH_H
#define TAUT_BENCH_BENCH_H
#include <cjson/cJSON.h>

#include "base/status.h"
#include "cli/cli.h"
#include "kernels/kernels.h"

cJSON *bench_train(void);
cJSON *bench_train_parts(bool small); /* small: a tiny model, to see that it works */
cJSON *bench_growth(bool small);      /* small: two sizes a curve, to see that it works */
cJSON *bench_attention(void);
cJSON *bench_certify(void);
cJSON *bench_attlip(void);
cJSON *bench_plash(void);
cJSON *bench_measure(void);
cJSON *bench_attack(void);
cJSON *bench_gpu(void);
cJSON *bench_gpu_layers(void); /* parts of it */
cJSON *bench_gpu_train(void);
cJSON *bench_gpu_ranks(void);
cJSON *bench_gpu_attack(void);
cJSON *bench_gpu_certify(void);

/* Parts of two figures: they add their fields. */
taut_status bench_enforce(cJSON *); /* enforce_share: Muon and soft cap, of a step; in train */
taut_status bench_norm(cJSON *);    /* a certified norm beside LAPACK's SVD; in certify */

/* The median seconds on any table of what two figures measure; NaN when it could not be done. */
double bench_attlip_seconds(const taut_kernels *, int64_t tokens, double tol); /* forward, to |residual| <= tol */
double bench_measure_seconds(const taut_kernels *, int64_t n);                 /* one product with J^T J */

/* tools.c: a line of /proc/self/status in bytes, "VmHWM" being the peak since the mark; setting the mark answers what is
 * resident now, NaN where the kernel does not let us. */
double bench_memory(const char *what);
double bench_memory_mark(void);

/* This very program with other arguments: what it took, and its exit code; -1: it was not run.  Its output goes nowhere. */
typedef struct {
    double seconds, processor, bytes; /* by the clock, of all processors, at most */
    int code;
} bench_cost;
bench_cost bench_self(const char *const *argv);
void bench_remove(const char *folder); /* with all that is in it */
#endif
