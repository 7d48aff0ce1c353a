/* The table called wide: a table of floats on the host whose products of matrices are added up in double. */
#ifndef TAUT_KERNELS_WIDE_H
#define TAUT_KERNELS_WIDE_H
#include "kernels/kernels.h"

/* The one such table, all its other slots being those of `cpu`; to be called once. */
const taut_kernels *taut_wide_make(const taut_kernels *cpu);
#endif
