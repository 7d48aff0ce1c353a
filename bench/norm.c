/* The certified norm of a 768 x 3072 matrix of normal numbers, its second opinion by Gram iteration, and LAPACK's singular
 * values (dgesdd), in turns, all with all threads: seconds, and how far the certified norms lie above the largest singular
 * value, relative to it. */
#include <cblas.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/rng.h"
#include "bench/bench.h"
#include "bench/timing.h"
#include "bound/norm.h"
#include "kernels/kernels.h"

extern void dgesdd_(const char *job, const blasint *m, const blasint *n, double *a, const blasint *lda, double *s,
                    double *u, const blasint *ldu, double *vt, const blasint *ldvt, double *work, const blasint *lwork,
                    blasint *iwork, blasint *info);

enum { ROWS = 768, COLS = 3072, ROUNDS = 3, WORK = 64 * COLS, LEN = ROWS * COLS };

typedef struct {
    double w[LEN], copy[LEN], s[ROWS], work[WORK];
    blasint iwork[8 * ROWS];
} room;

/* Row-major W is LAPACK's W^T, which has the same singular values. */
static double svd_top(room *r)
{
    const blasint m = COLS, n = ROWS, one = 1, work = WORK;
    blasint info = 0;
    double none = 0;
    memcpy(r->copy, r->w, sizeof r->w);
    dgesdd_("N", &m, &n, r->copy, &m, r->s, &none, &one, &none, &one, r->work, &work, r->iwork, &info);
    return info == 0 ? r->s[0] : NAN;
}

taut_status bench_norm(cJSON *o)
{
    room *r = taut_malloc(sizeof *r);
    double ours = INFINITY, second = INFINITY, theirs = INFINITY, norm = NAN, gram = NAN, top = NAN;
    if (!r) return taut_no_memory("a matrix");
    for (int64_t i = 0; i < LEN; i++) r->w[i] = taut_rng_normal(taut_rng_key(1, TAUT_RNG_INIT, 0), (uint64_t)i);
    for (int i = 0; i < ROUNDS; i++) {
        const double start = bench_now();
        norm = up_norm(r->w, ROWS, COLS).v;
        const double between = bench_now();
        gram = up_norm_gram(r->w, ROWS, COLS).v;
        const double last = bench_now();
        openblas_set_num_threads(taut_threads());
        top = svd_top(r);
        openblas_set_num_threads(1);
        ours = fmin(ours, between - start);
        second = fmin(second, last - between);
        theirs = fmin(theirs, bench_now() - last);
    }
    free(r);
    cJSON_AddNumberToObject(o, "norm_seconds", ours);
    cJSON_AddNumberToObject(o, "gram_seconds", second);
    cJSON_AddNumberToObject(o, "svd_seconds", theirs);
    cJSON_AddNumberToObject(o, "norm_above_svd", norm / top - 1);
    cJSON_AddNumberToObject(o, "gram_above_svd", gram / top - 1);
    return TAUT_OK;
}
