/* What the measurements share: how much memory was used at most, and what a command of ours took. */
#include <ftw.h>
#include <malloc.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench/bench.h"
#include "bench/timing.h"

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

static double seconds_of(struct timeval t) { return (double)t.tv_sec + 1e-6 * (double)t.tv_usec; }

bench_cost bench_self(const char *const *argv)
{
    struct rusage use = { 0 };
    bench_cost c = { .code = -1 };
    int status = 0;
    const double start = bench_now();
    const pid_t pid = fork();
    if (pid == 0) {
        if (!freopen("/dev/null", "w", stdout)) _exit(127);
        execv("/proc/self/exe", (char *const *)argv);
        _exit(127);
    }
    if (pid > 0 && wait4(pid, &status, 0, &use) == pid && WIFEXITED(status)) c.code = WEXITSTATUS(status);
    c.seconds = bench_now() - start;
    c.processor = seconds_of(use.ru_utime) + seconds_of(use.ru_stime);
    c.bytes = 1024 * (double)use.ru_maxrss;
    return c;
}

static int drop(const char *path, const struct stat *at, int kind, struct FTW *where)
{
    (void)at, (void)kind, (void)where;
    return remove(path);
}

void bench_remove(const char *folder) { (void)nftw(folder, drop, 8, FTW_DEPTH | FTW_PHYS); }
