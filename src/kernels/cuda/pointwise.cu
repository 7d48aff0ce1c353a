/* y = f(x) and y = f'(x) t (formulas: ref/pointwise.c), from the functions of CUDA's library.
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

#define ROOT_2_PI 0.79788456080286535588
#define CUBIC     0.044715

/* The normal distribution.  In double as ref has it, so that both round the argument alike. */
template <class T> __device__ static inline T normal(T x)
{
    if constexpr (sizeof(T) == sizeof(float))
        return normcdff(x);
    else
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
        return x * normal(x);
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
    case TAUT_GELU:
        return normal(x) + x * exp((real)-0.5 * x * x) * (real)(0.5 * ROOT_2_PI);
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

template <int CURVE> struct values {
    real *y;
    const real *x;
    __device__ real read(int64_t i) const { return value<CURVE>(x[i]); }
    __device__ void write(int64_t i, real v) const { y[i] = v; }
};

template <int CURVE> struct slopes {
    real *y;
    const real *t, *x;
    __device__ real read(int64_t i) const { return slope<CURVE>(x[i]) * t[i]; }
    __device__ void write(int64_t i, real v) const { y[i] = v; }
};

#define CURVES(of) of(TAUT_GELU) of(TAUT_GELU_TANH) of(TAUT_RELU) of(TAUT_SILU) of(TAUT_TANH) of(TAUT_ABS) of(TAUT_ELU)

void CUDA(pointwise)(taut_real *y, const taut_real *x, taut_curve f, int64_t len)
{
    switch (f) {
#define VALUES(curve)                             \
    case curve:                                   \
        each(values<curve>{ at(y), at(x) }, len); \
        break;
        CURVES(VALUES)
    }
}

void CUDA(pointwise_slope)(taut_real *y, const taut_real *t, const taut_real *x, taut_curve f, int64_t len)
{
    switch (f) {
#define SLOPES(curve)                                    \
    case curve:                                          \
        each(slopes<curve>{ at(y), at(t), at(x) }, len); \
        break;
        CURVES(SLOPES)
    }
}
