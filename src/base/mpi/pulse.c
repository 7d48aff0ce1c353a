#include "base/mpi/pulse.h"

#include <mpi.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

enum { EVERY = 2, LATER = 5, NAME = 64 }; /* seconds; LATER: to begin they have so many more */
enum { ALIVE = 1, LAST = 2 };             /* what the byte says */

typedef struct {
    int rank;
    char sent, got;
    MPI_Request out, in;
    bool told, over; /* it has our last byte; we have its */
    double since;    /* the last that came */
} peer;

static pthread_t thread;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t wake = PTHREAD_COND_INITIALIZER;
static bool waits, beats, done; /* waits: the thread is that of await; done: it may end */
static MPI_Comm between;
static int rank, peers, silence = 40; /* seconds */
static peer *list;
static char (*who)[NAME]; /* machine and process of every rank */

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Until `seconds` have passed, or the lock's owner calls. */
static void rest(double seconds)
{
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    const double end = (double)until.tv_nsec * 1e-9 + seconds;
    until.tv_sec += (time_t)end;
    until.tv_nsec = (long)((end - (double)(time_t)end) * 1e9);
    pthread_cond_timedwait(&wake, &lock, &until);
}

/* The first of those that wait speaks; the launcher ends the rest. */
static void *await(void *arg)
{
    int left = silence + LATER + 3 * (rank < 2 ? rank : 2); /* seconds in which it was not stopped itself */
    (void)arg;
    pthread_mutex_lock(&lock);
    for (; !done && left > 0; left--) rest(1);
    const bool began = done;
    pthread_mutex_unlock(&lock);
    if (began) return NULL;
    dprintf(2, "taut: rank %d has waited %d s for the others to begin: one of them is stopped or has failed\n", rank,
            silence + LATER);
    _exit(1);
}

static void end_thread(void)
{
    pthread_mutex_lock(&lock);
    done = true;
    pthread_cond_signal(&wake);
    pthread_mutex_unlock(&lock);
    pthread_join(thread, NULL);
    done = false;
}

void taut_pulse_await(int of)
{
    rank = of;
    if (getenv("TAUT_SILENCE")) silence = atoi(getenv("TAUT_SILENCE")); /* taut_ranks_open has looked at it */
    waits = pthread_create(&thread, NULL, await, NULL) == 0;
}

static void end(const peer *p)
{
    const bool first = rank == (p->rank == 0 ? 1 : 0);
    if (!first) sleep(LATER);
    dprintf(2, "taut: rank %d (%s) has given no sign of life for %d s: the others stop; what was saved is whole\n",
            p->rank, who[p->rank], silence);
    _exit(1);
}

static void expect(peer *p) { MPI_Irecv(&p->got, 1, MPI_BYTE, p->rank, 0, between, &p->in); }

static void look(peer *p, bool last)
{
    int sent = 0, came = 0;
    MPI_Test(&p->out, &sent, MPI_STATUS_IGNORE);
    if (sent && !p->told) {
        p->sent = last ? LAST : ALIVE, p->told = last;
        MPI_Isend(&p->sent, 1, MPI_BYTE, p->rank, 0, between, &p->out);
    }
    while (!p->over && (MPI_Test(&p->in, &came, MPI_STATUS_IGNORE), came)) {
        p->since = now(), p->over = p->got == LAST;
        if (!p->over) expect(p);
    }
}

static void *beat(void *arg)
{
    double before = now();
    bool together = false; /* all have said their last */
    (void)arg;
    pthread_mutex_lock(&lock);
    while (!together) {
        const bool last = done, slept = now() - before > 5 * EVERY; /* slept: it was this one that was stopped */
        before = now();
        together = last;
        for (peer *p = list; p < list + peers; p++) {
            if (slept) p->since = before;
            look(p, last);
            if (!p->over && now() - p->since > silence) end(p);
            together &= p->told && p->over;
        }
        if (!together) rest(last ? 0.01 : EVERY);
    }
    pthread_mutex_unlock(&lock);
    for (peer *p = list; p < list + peers; p++) MPI_Wait(&p->out, MPI_STATUS_IGNORE);
    return NULL;
}

void taut_pulse_start(int is_threaded)
{
    int count;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &count);
    peers = rank == 0 ? count - 1 : 1;
    if (!is_threaded || count == 1) {
        if (waits) end_thread();
        return;
    }
    who = calloc((size_t)count, sizeof *who);
    list = calloc((size_t)peers, sizeof *list);
    if (!who || !list) MPI_Abort(MPI_COMM_WORLD, 1);
    char host[NAME / 2] = "";
    (void)gethostname(host, sizeof host - 1);
    snprintf(who[rank], NAME, "%s, process %ld", host, (long)getpid());
    MPI_Comm_dup(MPI_COMM_WORLD, &between);
    MPI_Allgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, who, NAME, MPI_BYTE, between);
    if (waits) end_thread(); /* not before: a rank can stop between MPI_Init and here */
    for (int i = 0; i < peers; i++) {
        list[i] = (peer){ .rank = rank == 0 ? i + 1 : 0, .out = MPI_REQUEST_NULL, .since = now() };
        expect(&list[i]);
    }
    beats = pthread_create(&thread, NULL, beat, NULL) == 0;
    if (!beats) MPI_Abort(MPI_COMM_WORLD, 1);
}

void taut_pulse_stop(void)
{
    if (!beats) return;
    end_thread();
    MPI_Comm_free(&between);
    free(who);
    free(list);
    beats = false;
}
