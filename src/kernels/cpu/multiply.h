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

/* C (m,n) = alpha A B + beta C, or alpha A B + bias in every row; alpha is not 0, m, n and k are at least 1, beta is 0 with a
 * bias.  bias NULL: none.  Where beta is 0, C is not read. */
void CPU(multiply)(float *c, int64_t c_step, cpu_matrix a, cpu_matrix b, int64_t m, int64_t n, int64_t k, float alpha,
                   float beta, const float *bias);

/* B (k,n) as the tiles read it, so that pieces of one product need not each do that: panels of columns, CPU_DEPTH of k at a time.
 * The length of such a copy; 0: it would not pay for m rows, or there are no tiles on this processor. */
enum { CPU_DEPTH = 256, CPU_PANEL = 64 };
int64_t CPU(packed)(int64_t m, int64_t n, int64_t k);
/* Panel number `task` of cpu_panels, written at its place. */
static inline int64_t cpu_panels(int64_t n, int64_t k)
{
    return (n + CPU_PANEL - 1) / CPU_PANEL * ((k + CPU_DEPTH - 1) / CPU_DEPTH);
}
void CPU(pack)(float *packed, cpu_matrix b, int64_t n, int64_t k, int64_t task);

/* The same product with the columns from `from` on, a multiple of CPU_PANEL, of a B (k,whole) that is packed. */
typedef struct {
    const float *at;
    int64_t whole, from;
} cpu_packed;
void CPU(multiply_packed)(float *c, int64_t c_step, cpu_matrix a, cpu_packed b, int64_t m, int64_t n, int64_t k,
                          float alpha, float beta, const float *bias);

/* What becomes of a tile: C = alpha sum + beta plus; plus NULL: nothing is added. */
typedef struct {
    float alpha, beta;
    const float *plus;
    int64_t step;
} cpu_ending;
#endif
