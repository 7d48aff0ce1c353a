/* Is every rank alive?  A thread of each writes a number into a file of their shared folder every few seconds, and looks at
 * those of the others.  A rank whose number stands still for most of a minute, by the watcher's own clock, is stopped, hangs
 * with its machine, or has lost the folder: nobody would ever hear of it, and MPI would wait for it for good.  So the others
 * end, and the first of them says which it was.  A rank that is slow goes on writing. */
#ifndef TAUT_BASE_PULSE_H
#define TAUT_BASE_PULSE_H
#include "base/ranks.h"

typedef struct taut_pulse taut_pulse;

/* After all ranks have the folder.  One rank has none, and NULL is fine. */
taut_status taut_pulse_start(taut_pulse **out, const taut_ranks *, const char *folder) TAUT_MUST_USE;
void taut_pulse_sweep(const char *folder); /* removes the files of ranks that were killed; before any is alive */
void taut_pulse_stop(taut_pulse *);        /* when all ranks are at the end: its files are gone then */
#endif
