/* y = a x + b y, where a = 0 means that x is not read and b = 0 that y is not, by numbers of the host or of the device;
 * sums of several vectors; and dot products in double.
 *
 * Aliasing  y may be an x.  Poison: NaN and infinity propagate from what is read.
 * Error     with u = 2^-24 (cuda64: 2^-53): axpby, axpby_by: 3 u (|a x| + |b y|): a and b rounded, products, sum;
 *           blend: (count + 1) u sum_j |a_j x_j|.
 *           dot: (len/4096 + 1100) 2^-53 sum |x_i y_i| (cuda64: and 2^-53 of each product): a thread adds at most 32
 *           terms in sequence, a tree adds the threads, and pieces are added by 256 threads and a tree. */
#include "kernels/cuda/each.h"
#include "kernels/cuda/reduce.h"

/* One expression for both slots: an axpby of many is bit for bit many of one. */
__device__ static inline real combine(double a, const real *x, double b, const real *y)
{
    if (a == 0) return b == 0 ? (real)0 : (real)b * *y;
    return b == 0 ? (real)a * *x : fma((real)a, *x, (real)b * *y);
}

template <int G> struct axpby_of {
    real *y;
    const real *x;
    double a, b;
    __device__ group<G> read(int64_t i) const
    {
        group<G> u = {}, v = {};
        if (a != 0) u = ((const group<G> *)x)[i];
        if (b != 0) v = ((const group<G> *)y)[i];
#pragma unroll
        for (int g = 0; g < G; g++) u.x[g] = combine(a, u.x + g, b, v.x + g);
        return u;
    }
    __device__ void write(int64_t i, const group<G> &v) const { ((group<G> *)y)[i] = v; }
};

void CUDA(axpby)(taut_real *y, double a, const taut_real *x, double b, int64_t len)
{
    const int64_t wide = wide_part(len, y, a == 0 ? NULL : x);
    each(axpby_of<WIDE>{ at(y), at(x), a, b }, wide / WIDE);
    each(axpby_of<1>{ at(y) + wide, at(x) + wide, a, b }, len - wide);
}

struct factor {
    double value;
    const double *by;
    __device__ double of(int64_t e) const { return value == 0 || !by ? value : value * by[e]; }
};

struct axpby_each {
    real *y;
    int64_t y_stride;
    factor a;
    const real *x;
    int64_t x_stride;
    factor b;
    divisor len;
    __device__ real read(int64_t i) const
    {
        const int64_t e = len.quotient(i), j = len.remainder(i);
        return combine(a.of(e), x + e * x_stride + j, b.of(e), y + e * y_stride + j);
    }
    __device__ void write(int64_t i, real v) const { y[len.quotient(i) * y_stride + len.remainder(i)] = v; }
};

void CUDA(axpby_by)(taut_real *y, int64_t y_stride, taut_factor a, const taut_real *x, int64_t x_stride, taut_factor b,
                    int64_t n, int64_t len)
{
    const factor f = { a.value, at(a.by) }, g = { b.value, at(b.by) };
    each(axpby_each{ at(y), y_stride, f, at(x), x_stride, g, divisor(n * len, len) }, n * len);
}

/* G numbers at a time; len counts such groups. */
template <int G> struct blend_of {
    real *y;
    int64_t y_stride;
    const real *x[TAUT_TERMS];
    int64_t stride[TAUT_TERMS];
    factor by[TAUT_TERMS];
    int count;
    divisor len;
    __device__ group<G> read(int64_t i) const
    {
        const int64_t e = len.quotient(i), from = len.remainder(i);
        group<G> sum = {};
        for (int j = 0; j < count; j++) {
            const double a = by[j].of(e);
            if (a == 0) continue;
            const group<G> v = ((const group<G> *)(x[j] + e * stride[j]))[from];
#pragma unroll
            for (int g = 0; g < G; g++) sum.x[g] = fma((real)a, v.x[g], sum.x[g]);
        }
        return sum;
    }
    __device__ void write(int64_t i, const group<G> &v) const
    {
        ((group<G> *)(y + len.quotient(i) * y_stride))[len.remainder(i)] = v;
    }
};

/* From element `from` of every vector on. */
template <int G>
static void blend_from(taut_real *y, int64_t y_stride, const taut_term *terms, int count, int64_t n, int64_t from,
                       int64_t len)
{
    blend_of<G> f = { at(y) + from, y_stride, {}, {}, {}, 0, divisor(n * len / G, len / G) };
    for (int j = 0; j < count; j++) {
        if (terms[j].by.value == 0) continue;
        f.x[f.count] = at(terms[j].x) + from, f.stride[f.count] = terms[j].stride;
        f.by[f.count++] = { terms[j].by.value, at(terms[j].by.by) };
    }
    each(f, n * len / G);
}

void CUDA(blend)(taut_real *y, int64_t y_stride, const taut_term *terms, int count, int64_t n, int64_t len)
{
    int64_t wide = wide_part(len, y, NULL), strides = n > 1 ? y_stride : 0;
    for (int j = 0; j < count; j++)
        if (terms[j].by.value != 0) {
            wide = min(wide, wide_part(len, y, terms[j].x));
            strides |= n > 1 ? terms[j].stride : 0;
        }
    if (strides % WIDE != 0) wide = 0; /* WIDE is a power of two */
    if (wide > 0) blend_from<WIDE>(y, y_stride, terms, count, n, 0, wide);
    if (len > wide) blend_from<1>(y, y_stride, terms, count, n, wide, len - wide);
}

static const int64_t PIECE = 32 * THREADS;

/* Block e pieces + i makes piece i of dot e. */
static __global__ void __launch_bounds__(THREADS) dot_pieces(double *part, const real *x, const real *y, int64_t len,
                                                             int64_t x_stride, int64_t y_stride, int64_t pieces)
{
    const int64_t from = blockIdx.x % pieces * PIECE, to = min(len, from + PIECE), e = blockIdx.x / pieces;
    x += e * x_stride;
    y += e * y_stride;
    double sum = 0;
#pragma unroll 8
    for (int64_t i = from + threadIdx.x; i < to; i += THREADS) sum += (double)x[i] * (double)y[i];
    sum = block_sum(sum);
    if (threadIdx.x == 0) part[blockIdx.x] = sum;
}

static __global__ void __launch_bounds__(THREADS) dot_sum(double *s, const double *part, int64_t pieces)
{
    double sum = 0;
    for (int64_t i = threadIdx.x; i < pieces; i += THREADS) sum += part[blockIdx.x * pieces + i];
    sum = block_sum(sum);
    if (threadIdx.x == 0) s[blockIdx.x] = sum;
}

void CUDA(dot)(taut_sum *s, const taut_real *x, int64_t x_stride, const taut_real *y, int64_t y_stride, int64_t n,
               int64_t len)
{
    const int64_t pieces = len > 0 ? blocks_for(len, PIECE) : 1;
    double *part = pieces > 1 ? (double *)cuda_work((size_t)(n * pieces) * sizeof *part) : at(s);
    if (!part) return;
    CUDA_LAUNCH(dot_pieces, n * pieces, THREADS, 0, part, at(x), at(y), len, x_stride, y_stride, pieces);
    if (pieces > 1) CUDA_LAUNCH(dot_sum, n, THREADS, 0, at(s), part, pieces);
}
