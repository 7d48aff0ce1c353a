/* Messages between the ranks of a training by MPI: libtaut_mpi.so. */
#include <mpi.h>
#include <stdlib.h>

#include "base/mpi/pulse.h"
#include "base/ranks.h"

enum { PIECE = 1 << 30 }; /* bytes; MPI counts in int */

static MPI_Request *begun;
static int count, room;

static MPI_Request *another(void)
{
    if (count == room) {
        room = room ? 2 * room : 64;
        begun = realloc(begun, (size_t)room * sizeof *begun);
        if (!begun) MPI_Abort(MPI_COMM_WORLD, 1);
    }
    return &begun[count++];
}

static int piece(int64_t left) { return left < PIECE ? (int)left : PIECE; }

static void send(const void *x, int64_t bytes, int to)
{
    for (const char *at = x; bytes > 0; at += PIECE, bytes -= PIECE)
        MPI_Isend(at, piece(bytes), MPI_BYTE, to, 0, MPI_COMM_WORLD, another());
}

static void receive(void *x, int64_t bytes, int from)
{
    for (char *at = x; bytes > 0; at += PIECE, bytes -= PIECE)
        MPI_Irecv(at, piece(bytes), MPI_BYTE, from, 0, MPI_COMM_WORLD, another());
}

static void wait_all(void)
{
    MPI_Waitall(count, begun, MPI_STATUSES_IGNORE);
    count = 0;
}

static void gather(void *blocks, int64_t bytes)
{
    MPI_Allgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, blocks, (int)bytes, MPI_BYTE, MPI_COMM_WORLD);
}

static void close_all(void)
{
    free(begun);
    begun = NULL, room = 0;
}

/* At the end of the process, since MPI cannot be begun twice in one. */
static void finish(void)
{
    int is_over = 0;
    MPI_Finalized(&is_over);
    if (is_over) return;
    taut_pulse_stop();
    MPI_Finalize();
}

__attribute__((visibility("default"))) const taut_messages *taut_mpi_open(int layout, int rank)
{
    static taut_messages m = { 0, 0, send, receive, wait_all, gather, close_all };
    int provided, is_on = 0;
    if (layout != TAUT_MESSAGES) return NULL;
    MPI_Initialized(&is_on);
    if (!is_on) {
        taut_pulse_await(rank);
        MPI_Init_thread(NULL, NULL, MPI_THREAD_MULTIPLE, &provided); /* one speaks, one gives signs of life */
        taut_pulse_start(provided == MPI_THREAD_MULTIPLE);
        atexit(finish);
    }
    MPI_Comm_rank(MPI_COMM_WORLD, &m.rank);
    MPI_Comm_size(MPI_COMM_WORLD, &m.count);
    return &m;
}
