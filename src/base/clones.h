/* TAUT_CLONES before a function has gcc compile it for AVX2 and AVX-512 as well; the loader takes the best that the processor
 * has.  It reaches the function and what is inlined into it, not what that calls.  -ffp-contract=off holds in all versions: what
 * is no sum that may be taken in any order (omp simd reduction) is the same bits in each.
 *
 * Choosing takes GNU's ifunc, which runs before the sanitizers are ready; clang's leaves symbols that the library would export;
 * without optimisation there is no vector code.  Then, and on other processors, there is one version. */
#ifndef TAUT_BASE_CLONES_H
#define TAUT_BASE_CLONES_H
#include <stdlib.h> /* __GLIBC__ */

#if defined __x86_64__ && defined __GLIBC__ && defined __OPTIMIZE__ && !defined __clang__ && \
    !defined __SANITIZE_ADDRESS__ && !defined __SANITIZE_THREAD__
#define TAUT_CLONES __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define TAUT_CLONES
#endif
#endif
