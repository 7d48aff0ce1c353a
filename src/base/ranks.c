#include "base/ranks.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/library.h"

/* Open MPI, MPICH and its kin, Slurm, torchrun: how many processes there are, and which this is. */
static const char *const names[][2] = { { "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK" },
                                        { "PMI_SIZE", "PMI_RANK" },
                                        { "SLURM_STEP_NUM_TASKS", "SLURM_PROCID" },
                                        { "WORLD_SIZE", "RANK" } };
enum { LAUNCHERS = sizeof names / sizeof *names };

/* A number of processes or of one; -1: it is none. */
static int whole(const char *text)
{
    char *end;
    const long n = strtol(text, &end, 10);
    return *text && !*end && n >= 0 && n <= 1000000 ? (int)n : -1;
}

/* What launcher i says: 0 when it says nothing, -1 when that makes no sense. */
static int told(int i, int *rank)
{
    const char *all = getenv(names[i][0]), *which = getenv(names[i][1]);
    if (!all || !which) return 0;
    const int count = whole(all);
    *rank = whole(which);
    return count < 1 || *rank < 0 || *rank >= count ? -1 : count;
}

/* Which launcher tells of several processes; -1: none does.  Where Open MPI's says that there is one, others tell of something
 * else. */
static int launcher(int *rank, int *count)
{
    for (int i = 0; i < LAUNCHERS; i++) {
        if ((*count = told(i, rank)) > 1) return i;
        if (i == 0 && *count == 1) break;
    }
    *rank = 0, *count = 1;
    return -1;
}

int taut_ranks_here(int *count)
{
    int rank;
    (void)launcher(&rank, count);
    return rank;
}

static taut_status open_library(const taut_messages **out, int rank, int count)
{
    taut_messages_open *open;
    const char *why; /* shared: Open MPI's own parts look for it in turn */
    if (!taut_library_function(&open, "libtaut_mpi.so", "taut_mpi_open", true, &why))
        return taut_fail(TAUT_BAD_CONFIG, "%d processes were started together: %s (make MPI=1 builds it)", count, why);
    *out = open(TAUT_MESSAGES, rank);
    return *out ? TAUT_OK : taut_fail(TAUT_BAD_CONFIG, "libtaut_mpi.so is of another build: make MPI=1 again");
}

taut_status taut_ranks_open(taut_ranks *r)
{
    int here, count;
    const int by = launcher(&here, &count);
    *r = (taut_ranks){ .rank = here, .count = 1 };
    for (int i = 0, rank; count == 1 && i < LAUNCHERS; i++)
        if (told(i, &rank) < 0)
            return taut_fail(TAUT_BAD_CONFIG, "%s = %s and %s = %s are no number of processes and of one of them",
                             names[i][0], getenv(names[i][0]), names[i][1], getenv(names[i][1]));
    if (count == 1) return TAUT_OK;
    const char *silence = getenv("TAUT_SILENCE");
    if (silence && (whole(silence) < 5 || whole(silence) > 3600))
        return taut_fail(TAUT_BAD_CONFIG, "TAUT_SILENCE = %s is no number of seconds from 5 to 3600", silence);
    const taut_status s = open_library(&r->m, r->rank, count);
    if (s) return s;
    r->rank = r->m->rank, r->count = r->m->count;
    if (r->count == count) return TAUT_OK;
    return taut_fail(
        TAUT_BAD_CONFIG,
        "%d processes were started together (%s = %s), and MPI sees %d of them: start them by mpirun, or by "
        "srun --mpi=pmix (torchrun and plain srun bring no MPI), with the MPI of libtaut_mpi.so",
        count, names[by][0], getenv(names[by][0]), r->count);
}

void taut_ranks_close(taut_ranks *r)
{
    if (r->m) r->m->close();
    *r = (taut_ranks){ .rank = r->rank, .count = 1 };
}

/* Room for one block of each rank, zeros; a rank that has no memory for that ends them all. */
static void *blocks(const taut_ranks *r, size_t size)
{
    void *all = calloc((size_t)r->count, size);
    if (!all) abort();
    return all;
}

static bool agreed;

bool taut_ranks_agreed(void) { return agreed; }

taut_status taut_ranks_agree(const taut_ranks *r, taut_status mine)
{
    typedef struct {
        int status;
        char text[508];
    } block;
    if (r->count == 1) return mine;
    block *all = blocks(r, sizeof *all);
    all[r->rank].status = (int)mine;
    if (mine) snprintf(all[r->rank].text, sizeof all->text, "%s", taut_last_error());
    r->m->gather(all, sizeof *all);
    taut_status s = TAUT_OK;
    bool same = true; /* all of them say so: it is not about a rank */
    for (int i = 1; i < r->count; i++) same &= all[i].status == all[0].status;
    for (int i = 0; i < r->count && !s; i++)
        if (all[i].status)
            s = same ? taut_fail((taut_status)all[i].status, "%s", all[i].text)
                     : taut_fail((taut_status)all[i].status, "rank %d: %s", i, all[i].text);
    agreed = s != TAUT_OK;
    free(all);
    return s;
}

int64_t taut_ranks_sum(const taut_ranks *r, int64_t mine)
{
    if (r->count == 1) return mine;
    int64_t *all = blocks(r, sizeof *all), sum = 0;
    all[r->rank] = mine;
    r->m->gather(all, sizeof *all);
    for (int i = 0; i < r->count; i++) sum += all[i];
    free(all);
    return sum;
}

bool taut_ranks_any(const taut_ranks *r, bool mine) { return taut_ranks_sum(r, mine) > 0; }

taut_status taut_ranks_same(const taut_ranks *r, const char *what, const char hash[65])
{
    if (r->count == 1) return TAUT_OK;
    char(*all)[65] = blocks(r, sizeof *all);
    taut_status s = TAUT_OK;
    memcpy(all[r->rank], hash, sizeof *all);
    r->m->gather(all, sizeof *all);
    for (int i = 1; i < r->count && !s; i++)
        if (memcmp(all[0], all[i], sizeof *all) != 0)
            s = taut_fail(TAUT_BAD_CONFIG, "rank %d has not the %s of rank 0: all ranks must have the same", i, what);
    agreed = s != TAUT_OK;
    free(all);
    return s;
}
