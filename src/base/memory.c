#include "base/memory.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

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

double taut_memory_addresses(void)
{
    struct rlimit most;
    if (getrlimit(RLIMIT_AS, &most) || most.rlim_cur == RLIM_INFINITY) return INFINITY;
    return fmax(0, (double)most.rlim_cur - number_in("/proc/self/statm", 0) * (double)sysconf(_SC_PAGESIZE));
}

double taut_memory_available(void)
{
    const double group = number_in("/sys/fs/cgroup/memory.max", INFINITY) -
                         number_in("/sys/fs/cgroup/memory.current", 0);
    return fmin(fmin(meminfo("MemAvailable:"), group), taut_memory_addresses());
}

taut_status taut_memory_check(double needed, double available, const char *what)
{
    if (needed <= available) return TAUT_OK;
    return taut_fail(TAUT_NO_MEMORY, "%s needs %.1f GB of memory, %.1f GB are available", what, needed * 1e-9,
                     available * 1e-9);
}
