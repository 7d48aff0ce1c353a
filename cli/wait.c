/* Threads that wait for one another sleep.  OpenMP's spin unless told otherwise: then they take processors from threads that
 * have work, and on a busy machine a short training took twenty times as long.  The runtime reads its settings before main
 * begins, so the program starts itself again with the right one; whoever has set it is left alone. */
#include <stdlib.h>
#include <unistd.h>

#include "cli.h"

void cli_wait_asleep(char **argv)
{
    if (getenv("OMP_WAIT_POLICY") || getenv("GOMP_SPINCOUNT")) return;
    if (setenv("OMP_WAIT_POLICY", "passive", 1) == 0) execv("/proc/self/exe", argv); /* it failed: go on, and spin */
}
