/* Threads that wait for one another sleep.  OpenMP's spin unless told otherwise: then they take processors from threads that
 * have work, and on a busy machine a short training took twenty times as long.  OpenBLAS has threads of its own, which nobody
 * uses here: each wants 128 MiB when it starts, and where that is not to be had (ulimit -v) it asks again for ever.  Both
 * read their settings before main begins, so the program starts itself again with the right ones; whoever has set one is left
 * alone. */
#include <stdlib.h>
#include <unistd.h>

#include "cli.h"

void cli_wait_asleep(char **argv)
{
    const bool waits = getenv("OMP_WAIT_POLICY") || getenv("GOMP_SPINCOUNT"), alone = getenv("OPENBLAS_NUM_THREADS");
    if (waits && alone) return;
    if (!waits && setenv("OMP_WAIT_POLICY", "passive", 1) != 0) return;
    if (!alone && setenv("OPENBLAS_NUM_THREADS", "1", 1) != 0) return;
    char path[4096]; /* its own name, so that ps and top show taut and not exe */
    const ssize_t len = readlink("/proc/self/exe", path, sizeof path - 1);
    if (len > 0) {
        path[len] = 0;
        execv(path, argv);
    }
    execv("/proc/self/exe", argv); /* it failed: go on, and spin */
}
