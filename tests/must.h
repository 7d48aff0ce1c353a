/* A test that cannot be set up has failed, not skipped. */
#ifndef MUST_H
#define MUST_H
#include <stdio.h>
#include <stdlib.h>

#include "taut.h"

static inline void must(taut_status s)
{
    if (!s) return;
    fprintf(stderr, "FAIL cannot set the test up (from the root of the repository?): %s\n", taut_last_error());
    exit(1);
}
#endif
