/* What the measurements share: how much memory was used at most. */
#include <malloc.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/bench.h"

double bench_memory(const char *what)
{
    FILE *f = fopen("/proc/self/status", "r");
    char line[256];
    double kb = NAN;
    while (f && fgets(line, sizeof line, f))
        if (strncmp(line, what, strlen(what)) == 0) kb = atof(line + strlen(what) + 1);
    if (f) fclose(f);
    return 1024 * kb;
}

double bench_memory_mark(void)
{
    FILE *f = fopen("/proc/self/clear_refs", "w");
    malloc_trim(0);
    const bool done = f && fputs("5", f) >= 0;
    return f && fclose(f) == 0 && done ? bench_memory("VmRSS") : NAN;
}
