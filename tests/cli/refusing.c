/* A device's library that says so when it is asked for a table, and has none.  t_library.sh and t_no_device.sh put it in
 * libtaut_cuda.so's place; it is many pages long, at whose end are words that the loader moves. */
#include "kernels/library.h"

static int numbers[100000] = { 1 };
int *first = numbers;

const taut_kernels *taut_cuda_open(const char *name, unsigned long build, const taut_host *host)
{
    (void)host->fail(TAUT_DEVICE, "kernels %s: the library was asked, by build %lu", name, build);
    return (void *)0;
}
