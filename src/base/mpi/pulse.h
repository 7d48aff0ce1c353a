/* Is every rank alive?  MPI waits for good for one that is stopped, or hangs with its machine.  So a thread of each rank sends
 * the first one a byte every few seconds, and the first answers all of them; where nothing comes for TAUT_SILENCE seconds, by the
 * watcher's own clock, one line says which rank it was, and the job ends.  A rank that is slow goes on sending. */
#ifndef TAUT_BASE_MPI_PULSE_H
#define TAUT_BASE_MPI_PULSE_H
/* Before MPI_Init, which waits for all ranks too, and after it.  Where this MPI is not for several threads there are no signs. */
void taut_pulse_await(int rank);
void taut_pulse_start(int is_threaded);
void taut_pulse_stop(void); /* before MPI_Finalize; returns when all ranks are there */
#endif
