/* What the sources of the cuda backend see of CUDA where no device is: its language and the part of its runtime that they
 * use, for a C++ compiler of the host.  The other files here do the work; `translate` takes care of what C++ cannot spell.
 *
 * A block's threads take turns on one thread of the host: each runs until it waits for others, in an order that
 * EMULATE_SEED shuffles.  Copies that are asynchronous arrive when they are waited for, never sooner. */
#ifndef EMULATE_CUDA_RUNTIME_H
#define EMULATE_CUDA_RUNTIME_H
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <math.h> /* C++ has one function of a name for float and double here */

#define __global__
#define __device__
#define __host__
#define __shared__ static
#define __grid_constant__
#define __launch_bounds__(...)
#define __align__(n)   alignas(n)
#define CUDART_VERSION 13000

struct dim3 {
    unsigned x, y, z;
    dim3(unsigned x = 1, unsigned y = 1, unsigned z = 1) : x(x), y(y), z(z) {}
};
struct alignas(8) float2 {
    float x, y;
};
struct alignas(16) float4 {
    float x, y, z, w;
};
struct alignas(8) uint2 {
    unsigned x, y;
};
struct alignas(16) uint4 {
    unsigned x, y, z, w;
};
static inline float2 make_float2(float x, float y) { return { x, y }; }
static inline float4 make_float4(float x, float y, float z, float w) { return { x, y, z, w }; }

/* The thread whose turn it is. */
extern dim3 threadIdx, blockIdx, blockDim, gridDim;

/* Memory that a launch asks for; full of NaN when a block begins. */
enum { EMULATE_ROOM = 228 << 10 };
extern char emulate_room[EMULATE_ROOM];

/* Runs body once for every thread of every block. */
struct emulate_body {
    virtual void run() const = 0;
};
void emulate_launch(dim3 blocks, dim3 threads, size_t shared, const emulate_body &body);
template <class F> static void emulate_launch(dim3 blocks, dim3 threads, size_t shared, void *, const F &f)
{
    struct body : emulate_body {
        const F &f;
        explicit body(const F &f) : f(f) {}
        void run() const override { f(); }
    };
    emulate_launch(blocks, threads, shared, body(f));
}

/* All threads of the block come here; the or of their words. */
bool emulate_meet(bool word);
static inline void __syncthreads(void) { (void)emulate_meet(false); }
static inline int __syncthreads_or(int word) { return emulate_meet(word != 0); }
static inline void __threadfence(void) {}

/* All threads of the warp come here, each with `size` bytes; the bytes of lane j then begin at j * EMULATE_MOST, until the
 * warp's next meeting but one. */
enum { EMULATE_MOST = 64 };
const char *emulate_exchange(const void *mine, size_t size);
static inline void __syncwarp(void) { (void)emulate_exchange(nullptr, 0); }
template <class T> static inline T __shfl_xor_sync(unsigned, T x, int lanes)
{
    const char *all = emulate_exchange(&x, sizeof x);
    memcpy(&x, all + (threadIdx.x % 32 ^ lanes) * EMULATE_MOST, sizeof x);
    return x;
}
/* The best of the lanes' numbers. */
template <class BETTER> static inline unsigned emulate_reduce(unsigned x, const BETTER &better)
{
    const char *all = emulate_exchange(&x, sizeof x);
    for (int lane = 0; lane < 32; lane++) {
        unsigned other;
        memcpy(&other, all + lane * EMULATE_MOST, sizeof other);
        if (better(other, x)) x = other;
    }
    return x;
}
static inline unsigned __reduce_max_sync(unsigned, unsigned x)
{
    return emulate_reduce(x, [](unsigned a, unsigned b) { return a > b; });
}
static inline unsigned __reduce_min_sync(unsigned, unsigned x)
{
    return emulate_reduce(x, [](unsigned a, unsigned b) { return a < b; });
}

__attribute__((no_sanitize("thread"))) static inline unsigned atomicInc(unsigned *at, unsigned most)
{
    const unsigned old = *at;
    *at = old >= most ? 0 : old + 1;
    return old;
}
static inline unsigned __umulhi(unsigned a, unsigned b) { return (unsigned)((uint64_t)a * b >> 32); }
static inline unsigned __brev(unsigned x)
{
    unsigned y = 0;
    for (int i = 0; i < 32; i++) y |= (x >> i & 1) << (31 - i);
    return y;
}
static inline unsigned __float_as_uint(float x)
{
    unsigned y;
    memcpy(&y, &x, sizeof y);
    return y;
}
static inline float __uint_as_float(unsigned x)
{
    float y;
    memcpy(&y, &x, sizeof y);
    return y;
}
static inline long long __double_as_longlong(double x)
{
    long long y;
    memcpy(&y, &x, sizeof y);
    return y;
}
static inline double __longlong_as_double(long long x)
{
    double y;
    memcpy(&y, &x, sizeof y);
    return y;
}
template <class T> __attribute__((no_sanitize("thread"))) static inline T __ldcg(const T *x) { return *x; }

template <class A, class B> static inline auto min(A a, B b) { return a < b ? a : b; }
template <class A, class B> static inline auto max(A a, B b) { return a > b ? a : b; }
static inline void sincospi(double x, double *s, double *c) { *s = sin(M_PI * x), *c = cos(M_PI * x); }

/* Instructions that the sources spell in the chip's own language. */
void emulate_copy(void *to, const void *from, size_t size, size_t there); /* what is not there becomes 0 */
void emulate_copies_end(void);                                            /* of a group of copies */
void emulate_copies_wait(int but);                                        /* for all groups but the last few */
void emulate_multiply(double (&c)[4], const double (&a)[4], const double (&b)[2]);
void emulate_multiply(float (&c)[4], const unsigned (&a)[4], const unsigned (&b)[2]); /* tf32 */
void emulate_multiply16(float (&c)[4], const unsigned (&a)[4], unsigned b0, unsigned b1,
                        bool brain); /* halves or bf16 */
void emulate_blocks(unsigned (&x)[4], const void *row, bool turned);
static inline float emulate_exp2(float x) { return exp2f(x); }
static inline float emulate_inverse(float x) { return 1 / x; }

/* The runtime: memory is the host's, and everything is done when it is asked for. */
enum cudaError_t {
    cudaSuccess,
    cudaErrorMemoryAllocation = 2,
    cudaErrorNoDevice = 100,
    cudaErrorNoKernelImageForDevice = 209
};
enum { cudaMemcpyHostToDevice, cudaMemcpyDeviceToHost, cudaMemcpyDeviceToDevice };
enum { cudaStreamNonBlocking, cudaEventDisableTiming };
enum { cudaFuncAttributeMaxDynamicSharedMemorySize };
enum { cudaDevAttrMultiProcessorCount, cudaDevAttrMaxSharedMemoryPerBlockOptin };
typedef void *cudaStream_t, *cudaEvent_t;
struct cudaFuncAttributes {
};
cudaError_t cudaMalloc(void **p, size_t size);
cudaError_t cudaFree(void *p);
cudaError_t cudaDeviceGetAttribute(int *value, int what, int device);
static inline cudaError_t cudaMallocHost(void **p, size_t size) { return cudaMalloc(p, size); }
static inline cudaError_t cudaMemsetAsync(void *p, int byte, size_t size, cudaStream_t)
{
    if (size > 0) memset(p, byte, size);
    return cudaSuccess;
}
static inline cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t size, int, cudaStream_t)
{
    if (size > 0) memcpy(to, from, size);
    return cudaSuccess;
}
static inline cudaError_t cudaMemcpy2DAsync(void *to, size_t to_step, const void *from, size_t from_step, size_t wide,
                                            size_t high, int, cudaStream_t)
{
    for (size_t i = 0; i < high; i++) memcpy((char *)to + i * to_step, (const char *)from + i * from_step, wide);
    return cudaSuccess;
}
static inline cudaError_t cudaMemGetInfo(size_t *free, size_t *total)
{
    *free = *total = (size_t)8 << 30;
    return cudaSuccess;
}
static inline cudaError_t cudaGetLastError(void) { return cudaSuccess; }
static inline const char *cudaGetErrorString(cudaError_t) { return "out of memory"; }
static inline cudaError_t cudaGetDeviceCount(int *count) { return *count = 1, cudaSuccess; }
static inline cudaError_t cudaGetDevice(int *device) { return *device = 0, cudaSuccess; }
static inline cudaError_t cudaSetDevice(int) { return cudaSuccess; }
static inline cudaError_t cudaDriverGetVersion(int *version) { return *version = CUDART_VERSION, cudaSuccess; }
static inline cudaError_t cudaStreamCreateWithFlags(cudaStream_t *s, int) { return *s = nullptr, cudaSuccess; }
static inline cudaError_t cudaStreamSynchronize(cudaStream_t) { return cudaSuccess; }
static inline cudaError_t cudaEventCreateWithFlags(cudaEvent_t *e, int) { return *e = nullptr, cudaSuccess; }
static inline cudaError_t cudaEventSynchronize(cudaEvent_t) { return cudaSuccess; }
static inline cudaError_t cudaEventRecord(cudaEvent_t, cudaStream_t) { return cudaSuccess; }
template <class K> static cudaError_t cudaFuncGetAttributes(cudaFuncAttributes *, K) { return cudaSuccess; }
template <class K> static cudaError_t cudaFuncSetAttribute(K, int, int) { return cudaSuccess; }
template <class K> static cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int *count, K, int, size_t)
{
    return *count = 2, cudaSuccess;
}
template <class T> static cudaError_t cudaGetSymbolAddress(void **p, T &x) { return *p = (void *)&x, cudaSuccess; }
#endif
