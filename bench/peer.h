/* A peer program beside us: it says "ready", then answers every line with the seconds that the work took. */
#ifndef TAUT_BENCH_PEER_H
#define TAUT_BENCH_PEER_H
#include <stdbool.h>
#include <stdio.h>
#include <sys/types.h>

typedef struct {
    pid_t pid;
    FILE *to, *from;
} bench_peer;

/* python3 (or $TAUT_PYTHON) SCRIPT ARGS...; args ends with NULL, at most 6.  false: it is not there, or did not get
 * ready. */
bool bench_peer_start(bench_peer *, const char *script, const char *const *args);
double bench_peer_ask(bench_peer *, const char *line); /* seconds; NaN when it died */
void bench_peer_stop(bench_peer *);
#endif
