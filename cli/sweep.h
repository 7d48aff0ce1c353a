/* A sweep: every combination of the values of some keys of one recipe. */
#ifndef TAUT_CLI_SWEEP_H
#define TAUT_CLI_SWEEP_H
#include <sys/types.h>

#include "cli.h"

enum { SWEEP_AXES = 16, SWEEP_VALUES = 64, SWEEP_RUNS = 1000, SWEEP_LEN = 256, SWEEP_PATH = 2048, SWEEP_WORDS = 160 };

typedef struct {
    char key[64], value[SWEEP_VALUES][64];
    int count;
    bool mean; /* no choice: settings are judged by the mean over it */
} sweep_axis;

typedef struct {
    const cli_args *args;
    const char *recipe, *out;
    sweep_axis axis[SWEEP_AXES];
    int axes, runs, threads; /* threads per run; 0: nothing is said */
    pid_t child[SWEEP_RUNS]; /* 0: not running */
} sweep;

/* sweep_grid.c.  read: the grid and what is averaged over, from the arguments; EXIT_DONE, or a code after one clear line. */
int sweep_read(sweep *, const cli_args *);
const char *sweep_value(const sweep *, int run, int axis);
void sweep_folder(const sweep *, int run,
                  char path[SWEEP_PATH]); /* named by the values alone, keys in alphabetical order */
/* The overrides of a run, "section.key=value": what the grid says, then --set; returns how many. */
int sweep_sets(const sweep *, int run, const char *set[64], char room[SWEEP_AXES][SWEEP_LEN]);
/* Before the first run: is every combination a recipe, and is a run that is there already of that recipe? */
int sweep_check(const sweep *);

/* sweep_run.c: trains and certifies what is not done yet.  EXIT_DONE, EXIT_BAD, or 128 and the number of the signal that
 * stopped it. */
int sweep_run(sweep *);
void sweep_words(const sweep *, int run, const char *folder, const char *word[SWEEP_WORDS],
                 char room[SWEEP_AXES][SWEEP_LEN]);
cJSON *sweep_look(const char *folder); /* what the run's folder says of itself; NULL: there is none */

int sweep_tell(const sweep *); /* sweep_tell.c: one line per run, the settings by their means, the frontier's page */
#endif
