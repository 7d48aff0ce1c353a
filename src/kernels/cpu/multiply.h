/* A product of matrices by one thread, for the kernels that cut the work themselves. */
#ifndef TAUT_KERNELS_CPU_MULTIPLY_H
#define TAUT_KERNELS_CPU_MULTIPLY_H
#include "kernels/cpu/cpu.h"

/* Of rows that begin `step` floats apart; `turned`: its transpose is meant. */
typedef struct {
    const float *at;
    int64_t step;
    bool turned;
} cpu_matrix;

/* The columns from `from` on, a multiple of CPU_PANEL, of a matrix with `whole` columns as the tiles read it: panels of columns,
 * CPU_DEPTH of k at a time. */
typedef struct {
    const float *at;
    int64_t whole, from;
} cpu_packed;
enum { CPU_DEPTH = 256, CPU_PANEL = 64 };

/* Rows of A that begin so far apart can be multiplied where they lie: no power of two, for the sake of the first cache. */
enum { CPU_STRIDE = 272 };

/* A mask as causal attention has it: of row i of the matrix that it covers, as it lies in memory, the first seen + i numbers
 * count.  Behind them A is 0, which need not be multiplied, and C is nobody's, so that it may be written or not. */
typedef enum { CPU_WHOLE, CPU_MASKED_A, CPU_MASKED_C } cpu_mask;

/* C (m,n) = alpha A B + beta C, or alpha A B + bias in every row; alpha is not 0, m, n and k are at least 1, beta is 0 with a
 * bias and 1 with a masked A.  Where beta is 0, C is not read. */
typedef struct {
    float *c;
    int64_t c_step;
    cpu_matrix a, b;
    cpu_packed packed; /* B once more; at NULL: it is not packed */
    bool tiled;        /* tiles, as the rest of a packed product has them, even for few rows or one column */
    cpu_mask mask;
    int64_t seen;
    int64_t m, n, k;
    float alpha, beta;
    const float *bias;            /* or NULL */
    const float *a_then, *b_then; /* where A and B of the next product begin, to be fetched meanwhile; or NULL */
} cpu_product;
void CPU(multiply)(const cpu_product *);

/* The length of a packed B, so that pieces of one product need not each pack it; 0: it would not pay for m rows, or there are no
 * tiles on this processor. */
int64_t CPU(packed)(int64_t m, int64_t n, int64_t k);
/* Panel number `task` of cpu_panels, written at its place. */
void CPU(pack)(float *packed, cpu_matrix b, int64_t n, int64_t k, int64_t task);
static inline int64_t cpu_panels(int64_t n, int64_t k)
{
    return (n + CPU_PANEL - 1) / CPU_PANEL * ((k + CPU_DEPTH - 1) / CPU_DEPTH);
}

/* A packed B begins with a line of the cache, of CPU_LINE floats: the first at or after x. */
enum { CPU_LINE = 16 };
static inline float *cpu_line(float *x) { return x + (CPU_LINE - (uintptr_t)x / sizeof(float) % CPU_LINE) % CPU_LINE; }

/* What becomes of a tile: C = alpha sum + beta plus; plus NULL: nothing is added. */
typedef struct {
    float alpha, beta;
    const float *plus;
    int64_t step;
} cpu_ending;

/* Of a strip's numbers of k, those from `from` on and before `to`; and how many of its columns. */
typedef struct {
    int64_t from, to, cols;
} cpu_span;

/* Rows that are read next, and are fetched into the second cache while tiles are multiplied. */
typedef struct {
    const float *at;
    int64_t step, rows;
} cpu_ahead;
#endif
