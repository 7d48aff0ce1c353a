/* y = a x + b y, where a = 0 means that x is not read and b = 0 that y is not, by numbers of the host or of the device;
 * sums of several vectors; and dot products in double.
 *
 * Aliasing  y may be an x.  Poison: NaN and infinity propagate from what is read.
 * Error     with u = 2^-24 (cuda64: 2^-53): axpby, axpby_by: 3 u (|a x| + |b y|): a and b rounded, products, sum;
 *           blend: (count + 1) u sum_j |a_j x_j|.
 *           dot: (len/4096 + 1100) 2^-53 sum |x_i y_i| (cuda64: and 2^-53 of each product): a thread adds at most 32
 *           terms in sequence, a tree adds the threads, and pieces are added by 256 threads and a tree. */
#include "kernels/cuda/each.h"
#include "kernels/cuda/lowered.h"
#include "kernels/cuda/reduce.h"

/* What a factor is for vector e, and whether it is 0.  Without `by` it is rounded already: kernels that move memory have no time
 * for doubles. */
struct scale {
    real by;
    bool none;
};
struct factor {
    double value;
    const double *by;
    scale plain;
    factor() : factor({ 0, NULL }) {}
    factor(taut_factor f) : value(f.value), by(f.value == 0 ? NULL : at(f.by)), plain({ (real)f.value, f.value == 0 })
    {
    }
    __device__ scale of(int64_t e) const
    {
        const double own = by ? value * by[e] : 0;
        return by ? scale{ (real)own, own == 0 } : plain;
    }
};

/* How many numbers of each of n vectors come in groups of WIDE: `strides` and `places` are all of them, or'ed. */
static int64_t wide_of_each(int64_t n, int64_t len, int64_t strides, uintptr_t places)
{
    if (n == 1) return wide_part(len, (const void *)places, NULL);
    return (strides | len) % WIDE == 0 && wide_part(n * len, (const void *)places, NULL) > 0 ? len : 0;
}

/* Group `from` of s x + t y. */
template <int G>
__device__ static inline group<G> combined(scale s, const real *x, scale t, const real *y, int64_t from)
{
    group<G> u = {}, v = {};
    if (!s.none) u = ((const group<G> *)x)[from];
    if (!t.none) v = ((const group<G> *)y)[from];
#pragma unroll
    for (int g = 0; g < G; g++)
        u.x[g] = s.none ? (t.none ? (real)0 : t.by * v.x[g])
                        : (t.none ? s.by * u.x[g] : fma(s.by, u.x[g], t.by * v.x[g]));
    return u;
}

/* G numbers at a time; len counts such groups. */
template <int G> struct axpby_of {
    real *y;
    int64_t y_stride;
    factor a;
    const real *x;
    int64_t x_stride;
    factor b;
    divisor len;
    __device__ group<G> read(int64_t i) const
    {
        const int64_t e = len.quotient(i), from = len.remainder(i);
        return combined<G>(a.of(e), x + e * x_stride, b.of(e), y + e * y_stride, from);
    }
    __device__ void write(int64_t i, const group<G> &v) const
    {
        ((group<G> *)(y + len.quotient(i) * y_stride))[len.remainder(i)] = v;
    }
};

void CUDA(axpby_by)(taut_real *y, int64_t y_stride, taut_factor a, const taut_real *x, int64_t x_stride, taut_factor b,
                    int64_t n, int64_t len)
{
    const int64_t strides = y_stride | (a.value == 0 ? 0 : x_stride);
    const int64_t wide = wide_of_each(n, len, strides, (uintptr_t)y | (a.value == 0 ? 0 : (uintptr_t)x)),
                  rest = len - wide;
    const cuda_says says;
    if (n > 0) says.writes(at(y), (n - 1) * y_stride + len);
    if (wide > 0)
        each(axpby_of<WIDE>{ at(y), y_stride, a, at(x), x_stride, b, divisor(n * wide / WIDE, wide / WIDE) },
             n * wide / WIDE);
    if (rest > 0)
        each(axpby_of<1>{ at(y) + wide, y_stride, a, at(x) + wide, x_stride, b, divisor(n * rest, rest) }, n * rest);
}

void CUDA(axpby)(taut_real *y, double a, const taut_real *x, double b, int64_t len)
{
    CUDA(axpby_by)(y, 0, { a, NULL }, x, 0, { b, NULL }, 1, len);
}

template <int G> struct axpby_many {
    real *y[TAUT_MANY];
    const real *x[TAUT_MANY];
    factor a, b;
    divisor len;
    int64_t from; /* in numbers */
    __device__ group<G> read(int64_t i) const
    {
        const int64_t e = len.quotient(i);
        return combined<G>(a.of(0), x[e] + from, b.of(0), y[e] + from, len.remainder(i));
    }
    __device__ void write(int64_t i, const group<G> &v) const
    {
        ((group<G> *)(y[len.quotient(i)] + from))[len.remainder(i)] = v;
    }
};

template <int G>
static void axpby_part(taut_real *const *y, double a, taut_real *const *x, double b, int n, int64_t from, int64_t len)
{
    axpby_many<G> f = {
        .a = factor({ a, NULL }), .b = factor({ b, NULL }), .len = divisor(n * len, len), .from = from
    };
    for (int e = 0; e < n; e++) f.y[e] = at(y[e]), f.x[e] = a == 0 ? NULL : at(x[e]);
    each(f, n * len);
}

void CUDA(axpby_all)(taut_real *const *y, double a, taut_real *const *x, double b, int n, int64_t len)
{
    uintptr_t places = 0;
    for (int e = 0; e < n; e++) places |= (uintptr_t)y[e] | (a == 0 ? 0 : (uintptr_t)x[e]);
    const int64_t wide = places % 16 == 0 ? len - len % WIDE : 0;
    const cuda_says says;
    for (int e = 0; e < n; e++) says.writes(at(y[e]), len);
    if (wide > 0) axpby_part<WIDE>(y, a, x, b, n, 0, wide / WIDE);
    if (len > wide) axpby_part<1>(y, a, x, b, n, wide, len - wide);
}

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
            const scale a = by[j].of(e);
            if (a.none) continue;
            const group<G> v = ((const group<G> *)(x[j] + e * stride[j]))[from];
#pragma unroll
            for (int g = 0; g < G; g++) sum.x[g] = fma(a.by, v.x[g], sum.x[g]);
        }
        return sum;
    }
    __device__ void write(int64_t i, const group<G> &v) const
    {
        ((group<G> *)(y + len.quotient(i) * y_stride))[len.remainder(i)] = v;
    }
};

/* `len` numbers of every vector, from `from` on. */
template <int G>
static void blend_from(taut_real *y, int64_t y_stride, const taut_term *terms, int count, int64_t n, int64_t from,
                       int64_t len)
{
    blend_of<G> f = { at(y) + from, y_stride, {}, {}, {}, 0, divisor(n * len / G, len / G) };
    for (int j = 0; j < count; j++) {
        if (terms[j].by.value == 0) continue;
        f.x[f.count] = at(terms[j].x) + from, f.stride[f.count] = terms[j].stride;
        f.by[f.count++] = terms[j].by;
    }
    each(f, n * len / G);
}

void CUDA(blend)(taut_real *y, int64_t y_stride, const taut_term *terms, int count, int64_t n, int64_t len)
{
    int64_t strides = y_stride;
    uintptr_t places = (uintptr_t)y;
    for (int j = 0; j < count; j++)
        if (terms[j].by.value != 0) strides |= terms[j].stride, places |= (uintptr_t)terms[j].x;
    const int64_t wide = wide_of_each(n, len, strides, places);
    const cuda_says says;
    if (n > 0) says.writes(at(y), (n - 1) * y_stride + len);
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
    const cuda_says says;
    says.writes(at(s), n);
    CUDA_LAUNCH(dot_pieces, n * pieces, THREADS, 0, part, at(x), at(y), len, x_stride, y_stride, pieces);
    if (pieces > 1) CUDA_LAUNCH(dot_sum, n, THREADS, 0, at(s), part, pieces);
}
