/* The cpu backend: float, OpenMP and OpenBLAS.  Every file here is compiled once for each instruction set
 * (TAUT_VARIANT), so external names go through CPU(): taut_cpu_v3_gemm.  Declarations are
 * made of the list of slots, so a definition that drifts from the contract does not compile.
 *
 * Same bits for any thread count: work is always cut at borders that depend on sizes alone, every piece is
 * one thread's, and pieces are added up in order. */
#ifndef TAUT_KERNELS_CPU_H
#define TAUT_KERNELS_CPU_H
#include "kernels/kernels.h"

/* A sanitizer build has no vectors, and clang warns of every loop that asks for them. */
#if defined __clang__
#pragma clang diagnostic ignored "-Wpass-failed"
#endif

#define CPU_PASTE(variant, slot) taut_cpu_##variant##_##slot
#define CPU_NAME(variant, slot)  CPU_PASTE(variant, slot)
#define CPU(slot)                CPU_NAME(TAUT_VARIANT, slot)

enum { CPU_CHUNK = 8192 }; /* elements one thread takes at a time: worth a fork, small in cache */

static inline int64_t cpu_min(int64_t a, int64_t b) { return a < b ? a : b; }

static inline double cpu_factor(taut_factor f, int64_t e)
{
    return f.by && f.value != 0 ? f.value * ((const double *)f.by)[e] : f.value;
}

#define SLOT(result, name, arguments) result CPU(name) arguments;
#include "kernels/slots.def"
#endif
