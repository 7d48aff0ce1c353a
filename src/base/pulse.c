#include "base/pulse.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/alloc.h"

enum { EVERY = 2, STILL = 40, PATH = 4352 }; /* seconds */

typedef struct {
    long beat;
    char who[64]; /* its machine and process */
    double since; /* unchanged */
} seen;

struct taut_pulse {
    taut_ranks ranks;
    char *folder;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t wake;
    bool over;
    seen *rank;
};

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static char *path_of(const taut_pulse *p, char path[PATH], int rank)
{
    snprintf(path, PATH, "%s/rank-%d.alive", p->folder, rank);
    return path;
}

static void write_own(const taut_pulse *p, long beat)
{
    char path[PATH], host[48] = "";
    (void)gethostname(host, sizeof host - 1);
    FILE *f = fopen(path_of(p, path, p->ranks.rank), "w");
    if (!f) return; /* the others will see */
    fprintf(f, "%ld %s, process %ld\n", beat, host, (long)getpid());
    fclose(f);
}

static void look(const taut_pulse *p, int rank)
{
    char path[PATH], who[64] = "";
    long beat = -1;
    seen *s = &p->rank[rank];
    FILE *f = fopen(path_of(p, path, rank), "r");
    const bool read = f && fscanf(f, "%ld %63[^\n]", &beat, who) == 2;
    if (f) fclose(f);
    if (!read || beat == s->beat) return;
    s->beat = beat, s->since = now();
    memcpy(s->who, who, sizeof s->who);
}

/* The first of those that are left speaks, to whoever started it; the launcher ends the rest. */
static void end(const taut_pulse *p, int lost)
{
    const seen *s = &p->rank[lost];
    const bool first = p->ranks.rank == (lost == 0 ? 1 : 0);
    if (!first) sleep(5);
    dprintf(2, "taut: rank %d (%s) has given no sign of life for %d s: the others stop; what was saved is whole\n",
            lost, *s->who ? s->who : "never seen", STILL);
    _exit(1);
}

static void *beat(void *arg)
{
    taut_pulse *p = arg;
    double before = now();
    pthread_mutex_lock(&p->lock);
    for (long number = 1; !p->over; number++) {
        struct timespec until;
        const bool slept = now() - before > 5 * EVERY; /* it was this one that was stopped */
        before = now();
        write_own(p, number);
        for (int i = 0; i < p->ranks.count; i++) {
            if (slept) p->rank[i].since = before;
            if (i == p->ranks.rank) continue;
            look(p, i);
            if (now() - p->rank[i].since > STILL) end(p, i);
        }
        clock_gettime(CLOCK_REALTIME, &until);
        until.tv_sec += EVERY;
        pthread_cond_timedwait(&p->wake, &p->lock, &until);
    }
    pthread_mutex_unlock(&p->lock);
    return NULL;
}

void taut_pulse_sweep(const char *folder)
{
    const taut_pulse p = { .folder = (char *)folder };
    char path[PATH];
    for (int rank = 0; rank < 4096; rank++) (void)unlink(path_of(&p, path, rank));
}

taut_status taut_pulse_start(taut_pulse **out, const taut_ranks *r, const char *folder)
{
    *out = NULL;
    if (r->count == 1) return TAUT_OK;
    taut_pulse *p = taut_calloc(1, sizeof *p);
    if (!p) return taut_no_memory("a pulse");
    p->ranks = *r;
    p->folder = taut_strdup(folder);
    p->rank = taut_calloc((size_t)r->count, sizeof *p->rank);
    pthread_mutex_init(&p->lock, NULL);
    pthread_cond_init(&p->wake, NULL);
    for (int i = 0; p->rank && i < r->count; i++) p->rank[i] = (seen){ .beat = -1, .since = now() };
    if (p->folder && p->rank && pthread_create(&p->thread, NULL, beat, p) == 0) {
        *out = p;
        return TAUT_OK;
    }
    free(p->folder);
    free(p->rank);
    free(p);
    return taut_no_memory("a pulse");
}

void taut_pulse_stop(taut_pulse *p)
{
    char path[PATH];
    if (!p) return;
    pthread_mutex_lock(&p->lock);
    p->over = true;
    pthread_cond_signal(&p->wake);
    pthread_mutex_unlock(&p->lock);
    pthread_join(p->thread, NULL);
    (void)unlink(path_of(p, path, p->ranks.rank));
    pthread_mutex_destroy(&p->lock);
    pthread_cond_destroy(&p->wake);
    free(p->folder);
    free(p->rank);
    free(p);
}
