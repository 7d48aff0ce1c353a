/* The cuda backend: files here are compiled twice, as `cuda` in float and as `cuda64` in double (TAUT_VARIANT and
 * TAUT_ELEMENT; device, products and between once, far in double alone), so external names go through CUDA():
 * taut_cuda_gemm, taut_cuda64_gemm.  A declaration takes its type from the list of slots, so a definition that drifts
 * from the contract does not compile.
 *
 * Everything runs on one stream, in order.  No slot that computes waits; `get` and `read` do, `release`, a workspace
 * that grows, and `put` for a free piece of pinned memory.  An error stays: what follows it does not matter, and `read`
 * tells.  Same bits for every run on one chip and library: work is cut at borders that depend on sizes alone, sums are
 * fixed trees, no number is added atomically. */
#ifndef TAUT_KERNELS_CUDA_H
#define TAUT_KERNELS_CUDA_H
#include <math.h>

#include "kernels/cuda/device.h"

#define CUDA_PASTE(variant, slot) taut_##variant##_##slot
#define CUDA_NAME(variant, slot)  CUDA_PASTE(variant, slot)
#define CUDA(slot)                CUDA_NAME(TAUT_VARIANT, slot)

extern "C" {
#define SLOT(result, name, arguments) result CUDA(name) arguments;
#include "kernels/slots.def"
}

typedef TAUT_ELEMENT real;

static const int THREADS = 256; /* of a block, where nothing speaks for another number */
static const int WARP = 32;
static const size_t SHARED = 48 << 10,
                    SHARED_MOST = 227 << 10; /* bytes of shared memory that a block has, and can ask for */

#define CUDA_LAUNCH(kernel, blocks, threads, shared, ...)                                   \
    do {                                                                                    \
        const int64_t blocks_ = (blocks);                                                   \
        if (blocks_ > 0 && !cuda_failed()) { /* what was to be read may not be there */     \
            kernel<<<(unsigned)blocks_, (threads), (shared), cuda_stream()>>>(__VA_ARGS__); \
            cuda_note(cudaGetLastError(), #kernel);                                         \
        }                                                                                   \
    } while (0)

static inline int64_t blocks_for(int64_t len, int64_t each) { return (len + each - 1) / each; }

static inline real *at(taut_real *x) { return (real *)x; }
static inline const real *at(const taut_real *x) { return (const real *)x; }
static inline double *at(taut_sum *x) { return (double *)x; }
static inline const double *at(const taut_sum *x) { return (const double *)x; }
static inline const int32_t *at(const taut_index *x) { return (const int32_t *)x; }

/* Whole-number division on the device.  Where all numerators are below 2^31 it is a product and a shift, which is much
 * faster: with 2^shift >= by and factor = 2^32 (2^shift - by) / by + 1, rounded down, q = (high half of factor i + i) /
 * 2^shift. */
struct divisor {
    int64_t by;
    uint32_t factor;
    int shift;
    bool small;
    divisor(int64_t most, int64_t by) : by(by), factor(0), shift(0), small(most < INT32_MAX && 0 < by && by < INT32_MAX)
    {
        if (!small) return;
        while ((int64_t)1 << shift < by) shift++;
        factor = (uint32_t)((((uint64_t)1 << shift) - (uint64_t)by << 32) / (uint64_t)by + 1);
    }
    __device__ int64_t quotient(int64_t i) const
    {
        return small ? (int64_t)((__umulhi(factor, (uint32_t)i) + (uint32_t)i) >> shift) : i / by;
    }
    __device__ int64_t remainder(int64_t i) const { return i - quotient(i) * by; }
};
#endif
