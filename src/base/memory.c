#include "base/memory.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* The number behind `key` in a file of "key: number kB" lines. */
static double meminfo(const char *key)
{
    FILE *f = fopen("/proc/meminfo", "r");
    double kilobytes = INFINITY;
    char line[256];
    while (f && fgets(line, sizeof line, f))
        if (strncmp(line, key, strlen(key)) == 0) sscanf(line + strlen(key), "%lf", &kilobytes);
    if (f) fclose(f);
    return kilobytes * 1024;
}

/* A file that holds one number; "max" and a missing file mean no limit. */
static double number_in(const char *path, double otherwise)
{
    FILE *f = fopen(path, "r");
    double v = otherwise;
    if (f && fscanf(f, "%lf", &v) != 1) v = otherwise;
    if (f) fclose(f);
    return v;
}

double taut_memory_available(void)
{
    const double group = number_in("/sys/fs/cgroup/memory.max", INFINITY) -
                         number_in("/sys/fs/cgroup/memory.current", 0);
    return fmin(meminfo("MemAvailable:"), group);
}

taut_status taut_memory_check(double needed, double available, const char *what)
{
    if (needed <= available) return TAUT_OK;
    return taut_fail(TAUT_NO_MEMORY, "%s needs %.1f GB of memory, %.1f GB are available", what, needed * 1e-9,
                     available * 1e-9);
}
