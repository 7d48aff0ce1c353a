/* Ctrl-C and SIGTERM where there is something to save: the first lets the step end, a second one ends the program at once. */
#include <signal.h>

#include "cli.h"

static volatile int stop; /* sig_atomic_t is an int wherever taut runs, and the library reads one */
_Static_assert(_Generic((sig_atomic_t)0, int : true), "a signal's number");

static void on_signal(int number)
{
    if (stop) {
        signal(number, SIG_DFL);
        raise(number);
    }
    stop = number;
}

void cli_stop_watch(void)
{
    signal(SIGINT, on_signal);
    signal(SIGTERM, on_signal);
}

void cli_stop_leave(void)
{
    signal(SIGINT, SIG_DFL);
    signal(SIGTERM, SIG_DFL);
}

int cli_stop_asked(void) { return stop; }
const volatile int *cli_stop_flag(void) { return &stop; }
