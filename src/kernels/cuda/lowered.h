/* Floats that stand as bf16 beside themselves, for products that are told to be bf16: whoever writes what a product will read
 * may leave it so at once, which saves reading it again, and what a product had to convert serves the next one.
 *
 * What stands is believed as long as every slot since has said what it writes; one that says nothing ends it. */
#ifndef TAUT_KERNELS_CUDA_LOWERED_H
#define TAUT_KERNELS_CUDA_LOWERED_H
#include <cuda_bf16.h>

#include "kernels/cuda/products.h"

void cuda_lowered_begin(void);
void cuda_lowered_wrote(const void *y, size_t bytes);
void cuda_lowered_end(void);

/* Where `count` arrays of `len` floats each are to be left as bf16 as well, 256-byte aligned.  false: nobody would read them, or
 * there is no room. */
bool cuda_lowered_places(void **place, const void *const *x, int count, int64_t len);

/* Memory that others need: what stands is forgotten.  false: there was none. */
bool cuda_lowered_give_back(void);
size_t cuda_lowered_size(void);

/* A slot that says what it writes has one of these while it asks the device for things, and calls no other slot meanwhile.  Its
 * writings are named, and its workspace is there, before it asks for places. */
struct cuda_says {
    cuda_says() { cuda_lowered_begin(); }
    ~cuda_says() { cuda_lowered_end(); }
    cuda_says(const cuda_says &) = delete;
    template <class T> void writes(const T *y, int64_t len) const { cuda_lowered_wrote(y, (size_t)len * sizeof *y); }
    /* The same of all of y; its place as bf16, or NULL. */
    template <class T> void *lowers(const T *y, int64_t len) const
    {
        const void *x = y;
        void *place = NULL;
        writes(y, len);
        return sizeof *y == sizeof(float) && cuda_lowered_places(&place, &x, 1, len) ? place : NULL;
    }
};

/* Both factors of a product as bf16, and how their rows and matrices then follow each other; false: there is no memory. */
typedef struct {
    const void *x;
    int64_t rows, cols, count;
    cuda_steps steps;
} cuda_floats;
bool cuda_lowered_pair(cuda_floats *a, cuda_floats *b);

/* `len` numbers behind a place. */
static __host__ __device__ inline void *low_behind(void *place, int64_t len)
{
    return place ? (char *)place + 2 * len : NULL;
}

/* Group i of an array, in its place as bf16, if there is one; doubles have none. */
template <int G, class T> static __device__ inline void lower_group(void *place, int64_t i, const T (&x)[G])
{
    if constexpr (sizeof(T) == sizeof(float)) {
        struct alignas(2 * G) {
            __nv_bfloat16 x[G];
        } y;
        if (!place) return;
#pragma unroll
        for (int g = 0; g < G; g++) y.x[g] = __float2bfloat16(x[g]);
        ((decltype(y) *)place)[i] = y;
    }
}
#endif
