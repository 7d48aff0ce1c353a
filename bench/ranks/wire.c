/* What a message costs here: two ranks exchange pieces of growing size, both ways at once as a step does, the best of many.
 *   mpicc -O2 -o wire bench/ranks/wire.c && mpirun -n 2 ./wire */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { MOST = 1 << 26, ROUNDS = 20 };

int main(int argc, char **argv)
{
    int rank;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    char *out = calloc(MOST, 1), *in = calloc(MOST, 1);
    if (!out || !in) MPI_Abort(MPI_COMM_WORLD, 1);
    for (int bytes = 1; bytes <= MOST; bytes *= 8) {
        double best = 1e9;
        for (int i = 0; i < ROUNDS; i++) {
            MPI_Request both[2];
            MPI_Barrier(MPI_COMM_WORLD);
            const double start = MPI_Wtime();
            MPI_Irecv(in, bytes, MPI_BYTE, 1 - rank, 0, MPI_COMM_WORLD, &both[0]);
            MPI_Isend(out, bytes, MPI_BYTE, 1 - rank, 0, MPI_COMM_WORLD, &both[1]);
            MPI_Waitall(2, both, MPI_STATUSES_IGNORE);
            const double took = MPI_Wtime() - start;
            if (took < best) best = took;
        }
        if (rank == 0) printf("%9d bytes each way  %10.1f us  %8.3f GB/s\n", bytes, 1e6 * best, 1e-9 * bytes / best);
    }
    free(out), free(in);
    return MPI_Finalize();
}
