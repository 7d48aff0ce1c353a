/* A sweep: every combination of the values of some keys of one recipe. */
#ifndef TAUT_CLI_SWEEP_H
#define TAUT_CLI_SWEEP_H
#include <sys/types.h>
#include <time.h>

#include "cli.h"

enum {
    SWEEP_AXES = 16,
    SWEEP_VALUES = 64,
    SWEEP_RUNS = 1000,
    SWEEP_LEN = 256,
    SWEEP_PATH = 2048,
    SWEEP_WORDS = 160,
    SWEEP_CLAIM = 256
};

typedef struct {
    char key[64], value[SWEEP_VALUES][64];
    int count;
    bool mean; /* no choice: settings are judged by the mean over it */
} sweep_axis;

/* One run as this worker sees it. */
typedef struct {
    enum { SWEEP_OPEN, SWEEP_TRAINS, SWEEP_CERTIFIES, SWEEP_DONE, SWEEP_LOST } stage; /* LOST: it failed */
    pid_t child;                                                                      /* 0: none */
    int fd, number, beat;   /* of the claim; fd -1: not ours */
    double next_beat;       /* when the claim is written to again */
    char seen[SWEEP_CLAIM]; /* another's claim when it was looked at, */
    double since;           /* unchanged since then */
} sweep_point;

typedef struct {
    const cli_args *args;
    const char *recipe, *out;
    sweep_axis axis[SWEEP_AXES];
    int axes, runs, threads; /* threads per run; 0: nothing is said */
    double stale;            /* seconds */
    struct timespec began;   /* in the file system's clock */
    sweep_point point[SWEEP_RUNS];
} sweep;

/* sweep_grid.c.  read: the grid and what is averaged over, from the arguments; EXIT_DONE, or a code after one clear line. */
int sweep_read(sweep *, const cli_args *);
const char *sweep_value(const sweep *, int run, int axis);
void sweep_folder(const sweep *, int run,
                  char path[SWEEP_PATH]); /* named by the values alone, keys in alphabetical order */
/* The overrides of a run, "section.key=value": --seed, --set, then what the grid says; returns how many. */
int sweep_sets(const sweep *, int run, const char *set[64], char room[SWEEP_AXES + 1][SWEEP_LEN]);
/* Is the run that is in its folder, if there is one, of the recipe that is asked for?  EXIT_DONE, or EXIT_BAD after a line. */
int sweep_same(const sweep *, int run);
/* Before the first run: is every combination a recipe, and is what is there already of that recipe? */
int sweep_check(const sweep *);

/* sweep_claim.c.  open: can files be locked in the sweep's folder?  EXIT_DONE, or EXIT_BAD after a line. */
typedef enum { SWEEP_FREE, SWEEP_HELD, SWEEP_FAILED } sweep_claim; /* FAILED: since this worker began */
double sweep_now(void);                                            /* seconds */
int sweep_claim_open(sweep *);
sweep_claim sweep_claim_look(const sweep *, int run, sweep_point *);
int sweep_claim_take(const sweep *, int run, sweep_point *);  /* 1; 0: another was faster; -1: it cannot be made */
bool sweep_claim_beat(const sweep *, int run, sweep_point *); /* false: another has it, who thought us dead */
/* "free": somebody go on with it; "failed"; NULL: it is done, and no claim is needed. */
void sweep_claim_end(const sweep *, int run, sweep_point *, const char *state);

/* sweep_run.c: one worker: trains and certifies what is not done and nobody has, until all is done; with --leave, until nothing
 * can be taken.  EXIT_DONE, EXIT_BAD, or 128 and the number of the signal that stopped it. */
int sweep_run(sweep *);
cJSON *sweep_look(const char *folder); /* what the run's folder says of itself; NULL: there is none */

int sweep_slurm(const sweep *, const char *path); /* sweep_slurm.c: writes an array job of workers and submits it */
int sweep_tell(const sweep *); /* sweep_tell.c: one line per run, the settings by their means, the frontier's page */
#endif
