#include "base/blas.h"

#include <cblas.h>
#include <pthread.h>

static void set(void) { openblas_set_num_threads(1); }

void taut_blas_single(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, set);
}
