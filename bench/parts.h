/* A table that times itself: each of its slots passes on to the same slot of another table and adds the seconds that went by
 * to the part of the work that the slot belongs to.  It holds no slot twice, and no slot of the tables calls another one
 * through a table, so that no second is counted twice. */
#ifndef TAUT_BENCH_PARTS_H
#define TAUT_BENCH_PARTS_H
#include "kernels/kernels.h"

enum {
    PART_PRODUCTS,    /* gemm and affine; affine's bias is in it */
    PART_ATTENTION,   /* forward and backward */
    PART_NORMS,       /* layer norms: rows, gains, and the gradient of gains */
    PART_ACTIVATIONS, /* GELU and its slope */
    PART_ADDS,        /* biases and their gradients, residual sums, copies */
    PART_EMBEDDING,   /* gather and scatter */
    PART_LOSS,
    PART_OPTIMISER, /* AdamW or SGD, and the sums behind the clipping of gradients */
    PART_OTHER,     /* everything else: batches, the host, what no slot above does */
    PARTS
};
typedef struct {
    double seconds, processor; /* that went by; that all threads together were at work in them */
} bench_part;

extern const char *const bench_part_name[PARTS];

/* The table over `k`; its sums are 0.  There is one: the next call makes it anew. */
const taut_kernels *bench_parts_over(const taut_kernels *k);
/* What was added up since then, and since the last call: PART_OTHER is the rest of `whole`. */
void bench_parts_read(bench_part part[PARTS], bench_part whole);
bench_part bench_clock(void); /* now, of both kinds */
#endif
