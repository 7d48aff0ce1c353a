/* What the ranks of a training send each other, and how long they wait for it: to be preloaded (LD_PRELOAD), so that each rank
 * prints one line at its end.  MPI offers every function under a second name for this. */
#include <mpi.h>
#include <stdio.h>
#include <time.h>

static double sent, waited, started;
static long messages;

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

int MPI_Init_thread(int *argc, char ***argv, int required, int *provided)
{
    started = now();
    return PMPI_Init_thread(argc, argv, required, provided);
}

int MPI_Isend(const void *x, int count, MPI_Datatype type, int to, int tag, MPI_Comm all, MPI_Request *request)
{
    const double begin = now();
    const int r = PMPI_Isend(x, count, type, to, tag, all, request);
    waited += now() - begin, sent += count, messages++;
    return r;
}

int MPI_Waitall(int count, MPI_Request *requests, MPI_Status *statuses)
{
    const double begin = now();
    const int r = PMPI_Waitall(count, requests, statuses);
    waited += now() - begin;
    return r;
}

int MPI_Finalize(void)
{
    int rank;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    fprintf(stderr, "rank %d sent %.0f bytes in %ld messages, waited %.4f s of %.4f s\n", rank, sent, messages, waited,
            now() - started);
    return PMPI_Finalize();
}
