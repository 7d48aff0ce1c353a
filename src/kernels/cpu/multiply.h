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
#endif
