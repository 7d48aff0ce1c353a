/* Which table promises by which unit. */
#include "kernels/promise.h"

#include <string.h>

static const taut_promise promises[] = {
    { "cpu", 0x1p-24, 0x1p-24, false },
    { "wide", 0x1p-24, 0x1p-53, false },
    { "cuda", 0x1p-24, 0x1p-24, true },
    { "cuda64", 0x1p-51, 0x1p-51, true },
};

const taut_promise *taut_promise_find(const char *table)
{
    for (size_t i = 0; i < sizeof promises / sizeof *promises; i++)
        if (strcmp(promises[i].table, table) == 0) return &promises[i];
    return NULL;
}
