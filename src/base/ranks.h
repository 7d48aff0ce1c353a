/* The processes of one training.  Each is a rank; mpirun or srun has started them, and a library that was built for their MPI
 * carries what they tell each other: libtaut_mpi.so (base/mpi/), opened when there is more than one.  Rank 0 alone writes. */
#ifndef TAUT_BASE_RANKS_H
#define TAUT_BASE_RANKS_H
#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"

enum { TAUT_MESSAGES = 3 }; /* the layout of what follows: program and library must have been built from the same */
typedef struct {
    int rank, count;
    /* Begin to send and to receive; wait until all that was begun is done.  Between two ranks, in the order they were begun.
     * Where a message cannot be sent, the whole job is ended. */
    void (*send)(const void *, int64_t bytes, int to);
    void (*receive)(void *, int64_t bytes, int from);
    void (*wait)(void);
    /* `count` blocks, of which this rank has filled its own: afterwards all are there. */
    void (*gather)(void *blocks, int64_t bytes);
    void (*close)(void);
} taut_messages;
/* What the library exports as taut_mpi_open; NULL where `layout` is not its own TAUT_MESSAGES.  rank: as the launcher says. */
typedef const taut_messages *taut_messages_open(int layout, int rank);

typedef struct {
    int rank, count;
    const taut_messages *m; /* NULL: there is one rank */
    bool to_itself;         /* one rank sends its gradients to itself: to measure what messages between devices cost */
} taut_ranks;

/* This process among those that were started together, by what their launcher says in the environment. */
int taut_ranks_here(int *count);
taut_status taut_ranks_open(taut_ranks *) TAUT_MUST_USE;
void taut_ranks_close(taut_ranks *);

/* All ranks come here together, and all leave with the same status: the first failure that there is, which says whose it was. */
taut_status taut_ranks_agree(const taut_ranks *, taut_status) TAUT_MUST_USE;
bool taut_ranks_agreed(void); /* have they left with a failure, so that the first may speak for all? */
bool taut_ranks_any(const taut_ranks *, bool);
int64_t taut_ranks_sum(const taut_ranks *, int64_t);
/* Fails everywhere where a rank has another text than rank 0; `what` names it: "recipe". */
taut_status taut_ranks_same(const taut_ranks *, const char *what, const char hash[65]) TAUT_MUST_USE;
#endif
