/* Who touched what, and whether that was settled before: races.cpp. */
#ifndef EMULATE_RACES_H
#define EMULATE_RACES_H
#include "cuda_runtime.h"

/* A thread between two meetings. */
struct emulate_moment {
    unsigned launch, block, meetings; /* of the block, and of the warp by __syncwarp: */
    unsigned warp_meetings;
    int thread;
};

/* Of the thread whose turn it is; false: nothing runs, or `address` is on a thread's own stack. */
bool emulate_moment_of(emulate_moment *now, const void *address);

void emulate_touch(const void *address, size_t size, bool writes, const void *from);
#endif
