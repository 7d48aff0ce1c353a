/* y = f(x) and y = f'(x) t (formulas: ref/pointwise.c), from the functions of CUDA's library, and GELU of floats from
 * its exp: the library's normal distribution takes longer than the memory.
 *
 * The curves are the real ones, not tables or staircases: a bound on f's slope holds for this code up to the errors
 * below.
 * Poison    NaN gives NaN; f(+inf), f(-inf) as in ref; slopes are defined for finite x only.
 * Aliasing  y may be x, and y may be t.
 * Error     in units of u = 2^-24 (cuda64: 2^-53), u' = 2^-119 standing for what underflows:
 *           value  GELU (10 + x^2/2) u |y| + u';  GELU_TANH (8 + 6 |w|) u |y| + u',
 *                  w = 2 sqrt(2/pi)(x + 0.044715 x^3): exp magnifies the rounding of x^2 and w;
 *                  RELU and ABS 0;  SILU 6 u |y| + u';  TANH 5 u |y|;  ELU 10 u |y| + u'
 *           slope  16 u |t| for every curve (RELU, ABS: 0): near the zeros of f' it is absolute. */
#include "kernels/cuda/each.h"
#include "kernels/cuda/lowered.h"

#define ROOT_2_PI 0.79788456080286535588
#define CUBIC     0.044715

__device__ static inline real bell(real x) { return exp((real)-0.5 * x * x); }

/* The normal distribution, by e = bell(x); in double as ref has it, so that both round the argument alike.
 *
 * Its left tail is e R(|x|), where R falls slowly, from 1/2 to 0.03 at 13: t = 1 / (1 + 0.54 |x|) times the best
 * polynomial of degree 9 in s, the line that takes the values of t between 0 and 13.1 to [-1, 1]; off by 1.1 u.  Beyond
 * that all of it is below what underflows.  The chip's 1/d is good to one unit in the last place, and a step of Newton's
 * makes it better.  If it is off by that one, and exp by two, always to the worse, x normal(x) is off by at most
 * (9.5 + x^2/2) u of itself: every float from 2^-14 to 14.6 was tried, and one of a thousand elsewhere. */
template <class T> __device__ static inline T normal(T x, T e)
{
    if constexpr (sizeof(T) == sizeof(float)) {
        const float d = fmaf(0.54f, fminf(fabsf(x), 16), 1);
        float t, r = -4.48532082e-05f;
        asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(t) : "f"(d));
        t = fmaf(t, fmaf(-d, t, 1), t);
        const float s = fmaf(2.28272557f, t, -1.28272545f);
        r = fmaf(r, s, 8.37714906e-05f);
        r = fmaf(r, s, 1.3994379e-04f);
        r = fmaf(r, s, -7.29525578e-04f);
        r = fmaf(r, s, 8.27206706e-04f);
        r = fmaf(r, s, 2.81188358e-03f);
        r = fmaf(r, s, -1.18616987e-02f);
        r = fmaf(r, s, -5.3837467e-03f);
        r = fmaf(r, s, 1.38702393e-01f);
        r = fmaf(r, s, 3.75454605e-01f) * t;
        return x < 0 ? r * e : fmaf(-r, e, 1);
    } else
        return 0.5 * erfc(-x * M_SQRT1_2);
}

/* s(x); of e = exp(-|x|) nothing overflows, and neither side is a difference. */
__device__ static inline real sigmoid(real x)
{
    const real e = exp(-fabs(x));
    return (x < 0 ? e : (real)1) / (1 + e);
}

__device__ static inline real cubic(real x) { return (real)(2 * ROOT_2_PI) * (x + (real)CUBIC * x * x * x); }

/* Beyond 40 the second term is 0, and the cut keeps its factors finite. */
__device__ static inline real gelu_tanh_slope(real x)
{
    const real c = fmin(fmax(x, (real)-40), (real)40), u = cubic(c), s = sigmoid(u);
    return s + c * (s * sigmoid(-u)) * (real)(2 * ROOT_2_PI) * (1 + 3 * (real)CUBIC * c * c) + (x - x);
}

/* 1 - tanh^2 = 4 e/(1+e)^2 with e = exp(-2|x|). */
__device__ static inline real tanh_slope(real x)
{
    const real e = exp(-2 * fabs(x)), r = 1 / (1 + e);
    return 4 * (e * r) * r;
}

template <int CURVE> __device__ static inline real value(real x)
{
    switch (CURVE) {
    case TAUT_GELU:
        return x * normal(x, bell(x));
    case TAUT_GELU_TANH:
        return x * sigmoid(cubic(x));
    case TAUT_RELU:
        return x <= 0 ? 0 : x;
    case TAUT_SILU:
        return x * sigmoid(x);
    case TAUT_TANH:
        return tanh(x);
    case TAUT_ABS:
        return fabs(x);
    default:
        return x > 0 ? x : expm1(x);
    }
}

template <int CURVE> __device__ static inline real slope(real x)
{
    switch (CURVE) {
    case TAUT_GELU: {
        const real e = bell(x);
        return normal(x, e) + x * e * (real)(0.5 * ROOT_2_PI);
    }
    case TAUT_GELU_TANH:
        return gelu_tanh_slope(x);
    case TAUT_RELU:
        return isnan(x) ? x : (real)(x > 0);
    case TAUT_SILU:
        return sigmoid(x) * (1 + x * sigmoid(-x));
    case TAUT_TANH:
        return tanh_slope(x);
    case TAUT_ABS:
        return isnan(x) ? x : (real)((x > 0) - (x < 0));
    default:
        return x > 0 ? (real)1 : exp(x);
    }
}

/* low: y as bf16 (lowered.h), or NULL */
template <int CURVE, int G> struct values {
    real *y;
    void *low;
    const real *x;
    __device__ group<G> read(int64_t i) const
    {
        group<G> v = ((const group<G> *)x)[i];
#pragma unroll
        for (int g = 0; g < G; g++) v.x[g] = value<CURVE>(v.x[g]);
        return v;
    }
    __device__ void write(int64_t i, const group<G> &v) const
    {
        ((group<G> *)y)[i] = v;
        lower_group<G>(low, i, v.x);
    }
};

template <int CURVE, int G> struct slopes {
    real *y;
    void *low;
    const real *t, *x;
    __device__ group<G> read(int64_t i) const
    {
        const group<G> at = ((const group<G> *)x)[i];
        group<G> v = ((const group<G> *)t)[i];
#pragma unroll
        for (int g = 0; g < G; g++) v.x[g] *= slope<CURVE>(at.x[g]);
        return v;
    }
    __device__ void write(int64_t i, const group<G> &v) const
    {
        ((group<G> *)y)[i] = v;
        lower_group<G>(low, i, v.x);
    }
};

template <int CURVE> static void all_values(real *y, void *low, const real *x, int64_t len)
{
    const int64_t wide = wide_part(len, x, y);
    each(values<CURVE, WIDE>{ y, low, x }, wide / WIDE);
    each(values<CURVE, 1>{ y + wide, low_behind(low, wide), x + wide }, len - wide);
}

template <int CURVE> static void all_slopes(real *y, void *low, const real *t, const real *x, int64_t len)
{
    const int64_t wide = wide_part(len, x, y, t);
    each(slopes<CURVE, WIDE>{ y, low, t, x }, wide / WIDE);
    each(slopes<CURVE, 1>{ y + wide, low_behind(low, wide), t + wide, x + wide }, len - wide);
}

#define CURVES(of) of(TAUT_GELU) of(TAUT_GELU_TANH) of(TAUT_RELU) of(TAUT_SILU) of(TAUT_TANH) of(TAUT_ABS) of(TAUT_ELU)

void CUDA(pointwise)(taut_real *y, const taut_real *x, taut_curve f, int64_t len)
{
    const cuda_says says;
    void *const low = says.lowers(at(y), len);
    switch (f) {
#define VALUES(curve)                              \
    case curve:                                    \
        all_values<curve>(at(y), low, at(x), len); \
        break;
        CURVES(VALUES)
    }
}

void CUDA(pointwise_slope)(taut_real *y, const taut_real *t, const taut_real *x, taut_curve f, int64_t len)
{
    const cuda_says says;
    void *const low = says.lowers(at(y), len);
    switch (f) {
#define SLOPES(curve)                                     \
    case curve:                                           \
        all_slopes<curve>(at(y), low, at(t), at(x), len); \
        break;
        CURVES(SLOPES)
    }
}
