/* A bug in taut itself, never bad input.  Stays on in release builds. */
#ifndef TAUT_BASE_CHECK_H
#define TAUT_BASE_CHECK_H
#include <stdio.h>
#include <stdlib.h>

#define TAUT_CHECK(cond, what)                                                    \
    do {                                                                          \
        if (!(cond)) {                                                            \
            fprintf(stderr, "%s:%d: %s (%s)\n", __FILE__, __LINE__, what, #cond); \
            abort();                                                              \
        }                                                                         \
    } while (0)
#endif
