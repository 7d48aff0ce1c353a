/* What the files of the emulated device share: the thread whose turn it is, those that it meets, and what it touches. */
#ifndef EMULATE_MACHINE_H
#define EMULATE_MACHINE_H
#include "cuda_runtime.h"

/* A thread between two meetings. */
struct emulate_moment {
    unsigned launch, block;
    unsigned meetings, warp_meetings; /* so far: of its block, and of its warp by __syncwarp */
    int thread;
};

/* Of the thread whose turn it is; false: nothing runs, or `address` is on a thread's own stack. */
bool emulate_moment_of(emulate_moment *now, const void *address);

[[noreturn]] void emulate_fault(const char *why);

/* Where a warp's lanes leave what the others read after their next meeting, WARP * EMULATE_MOST bytes. */
int emulate_lane(void);
char *emulate_board(void);
void emulate_meet_warp(void);

/* The thread reads or writes there, by the instruction at `from`. */
void emulate_touch(const void *address, size_t size, bool writes, const void *from);
#endif
