/* y = f(x) and y = f'(x) t (formulas: ref/pointwise.c), from the branch-free functions of vmath.h.
 *
 * The curves are the real ones, not tables or staircases: a bound on f's slope holds for this code up to
 * the errors below.
 * Poison    NaN gives NaN; f(+inf), f(-inf) as in ref; slopes are defined for finite x only.
 * Aliasing  y may be x, and y may be t.  Cut into fixed chunks: same bits for any thread count.
 * Error     in units of u = 2^-24, u' = 2^-119 standing for what underflows:
 *           value  GELU (10 + x^2/2) u |y| + u';  GELU_TANH (8 + 6 |w|) u |y| + u',
 *                  w = 2 sqrt(2/pi)(x + 0.044715 x^3): exp magnifies the rounding of x^2 and w;
 *                  RELU and ABS 0;  SILU 6 u |y| + u';  TANH 5 u |y|;  ELU 10 u |y| + u'
 *           slope  16 u |t| for every curve (RELU, ABS: 0): near the zeros of f' it is absolute.
 */
#include "kernels/cpu/cpu.h"
#include "kernels/cpu/vmath.h"

#define ROOT_2_PI 0.797884561f
#define CUBIC     0.044715f

/* max(x, 0) - a Phi(-a), a = |x|; max as x/2 + |x|/2, so that NaN stays. */
static inline float gelu(float x)
{
    const vm_normal p = vm_tail(x);
    const float half = 0.5f * x;
    return (half + fabsf(half)) - p.a * (p.e * p.mills);
}

/* x - x is 0, or NaN where x is not finite. */
static inline float gelu_slope(float x)
{
    const vm_normal p = vm_tail(x);
    const float w = p.e * (p.mills - p.a * (0.5f * ROOT_2_PI));
    return (x > 0 ? 1.0f - w : w) + (x - x);
}

/* s(x) and s(-x), neither of them a difference; NaN is taken for a large number. */
typedef struct {
    float up, down;
} sigmoids;

static inline sigmoids sigmoid(float x)
{
    const float e = vm_exp_core(-vm_cut(x, 88.0f)), r = 1.0f / (1.0f + e), er = e * r;
    return (sigmoids){ x < 0 ? er : r, x < 0 ? r : er };
}

static inline float silu(float x) { return x * sigmoid(x).up; }

static inline float silu_slope(float x)
{
    const sigmoids s = sigmoid(x);
    return s.up + x * (s.up * s.down);
}

static inline float gelu_tanh(float x) { return x * sigmoid(2.0f * ROOT_2_PI * (x + CUBIC * x * x * x)).up; }

/* Beyond 40 the second term is 0, and the cut keeps its factors finite. */
static inline float gelu_tanh_slope(float x)
{
    const float c = copysignf(vm_cut(x, 40.0f), x), c2 = CUBIC * c * c;
    const sigmoids s = sigmoid(2.0f * ROOT_2_PI * (c + c2 * c));
    return s.up + c * (s.up * s.down) * (2.0f * ROOT_2_PI * (1.0f + 3.0f * c2)) + (x - x);
}

/* 1 - tanh^2 = 4 e/(1+e)^2 with e = exp(-2|x|). */
static inline float tanh_slope(float x)
{
    const float e = vm_exp_core(-2.0f * vm_cut(x, 44.0f)), r = 1.0f / (1.0f + e);
    return 4.0f * (e * r) * r + (x - x);
}

/* e^x - 1 = 2 h/(1 - h), h = tanh(x/2) in [-1, 0]: no difference of numbers near 1. */
static inline float elu(float x)
{
    const float h = vm_tanh(0.5f * (x > 0 ? 0.0f : x)), low = 2.0f * h / (1.0f - h);
    return x > 0 ? x : low;
}

static inline float elu_slope(float x) { return x > 0 ? 1.0f + (x - x) : vm_exp(x); }

/* A block of lanes at a time: several vectors side by side hide each other's latency.  The input is copied
 * first, so the compiler need not fear that y is x.  The last block is filled up with zeros.  One function
 * a curve, because a call inside the loop would not become vector code. */
enum { LANES = 16 };

#define VALUES_OF(name, f)                                       \
    static void name(float *y, const float *x, int64_t len)      \
    {                                                            \
        float in[LANES] = { 0 }, out[LANES];                     \
        int64_t i = 0;                                           \
        for (; i + LANES <= len; i += LANES) {                   \
            memcpy(in, x + i, sizeof in);                        \
            for (int l = 0; l < LANES; l++) y[i + l] = f(in[l]); \
        }                                                        \
        memcpy(in, x + i, (size_t)(len - i) * sizeof(float));    \
        for (int l = 0; l < LANES; l++) out[l] = f(in[l]);       \
        memcpy(y + i, out, (size_t)(len - i) * sizeof(float));   \
    }
VALUES_OF(gelu_values, gelu)
VALUES_OF(gelu_tanh_values, gelu_tanh)
VALUES_OF(silu_values, silu)
VALUES_OF(tanh_values, vm_tanh)
VALUES_OF(elu_values, elu)

#define SLOPES_OF(name, f)                                                  \
    static void name(float *y, const float *t, const float *x, int64_t len) \
    {                                                                       \
        float in[LANES] = { 0 }, by[LANES] = { 0 }, out[LANES];             \
        int64_t i = 0;                                                      \
        for (; i + LANES <= len; i += LANES) {                              \
            memcpy(in, x + i, sizeof in);                                   \
            memcpy(by, t + i, sizeof by);                                   \
            for (int l = 0; l < LANES; l++) y[i + l] = f(in[l]) * by[l];    \
        }                                                                   \
        memcpy(in, x + i, (size_t)(len - i) * sizeof(float));               \
        memcpy(by, t + i, (size_t)(len - i) * sizeof(float));               \
        for (int l = 0; l < LANES; l++) out[l] = f(in[l]) * by[l];          \
        memcpy(y + i, out, (size_t)(len - i) * sizeof(float));              \
    }
SLOPES_OF(gelu_slopes, gelu_slope)
SLOPES_OF(gelu_tanh_slopes, gelu_tanh_slope)
SLOPES_OF(silu_slopes, silu_slope)
SLOPES_OF(tanh_slopes, tanh_slope)
SLOPES_OF(elu_slopes, elu_slope)

static void relu_values(float *y, const float *x, int64_t len)
{
#pragma omp simd
    for (int64_t i = 0; i < len; i++) y[i] = x[i] <= 0 ? 0.0f : x[i];
}

static void relu_slopes(float *y, const float *t, const float *x, int64_t len)
{
#pragma omp simd
    for (int64_t i = 0; i < len; i++) y[i] = (x[i] > 0 ? 1.0f : 0.0f) * t[i] + (x[i] - x[i]);
}

static void abs_values(float *y, const float *x, int64_t len)
{
#pragma omp simd
    for (int64_t i = 0; i < len; i++) y[i] = fabsf(x[i]);
}

static void abs_slopes(float *y, const float *t, const float *x, int64_t len)
{
#pragma omp simd
    for (int64_t i = 0; i < len; i++) y[i] = (x[i] == 0 ? 0.0f : copysignf(1.0f, x[i])) * t[i] + (x[i] - x[i]);
}

typedef void values_fn(float *, const float *, int64_t);
typedef void slopes_fn(float *, const float *, const float *, int64_t);
static values_fn *const VALUES[] = {
    [TAUT_GELU] = gelu_values, [TAUT_GELU_TANH] = gelu_tanh_values, [TAUT_RELU] = relu_values,
    [TAUT_SILU] = silu_values, [TAUT_TANH] = tanh_values,           [TAUT_ABS] = abs_values,
    [TAUT_ELU] = elu_values
};
static slopes_fn *const SLOPES[] = {
    [TAUT_GELU] = gelu_slopes, [TAUT_GELU_TANH] = gelu_tanh_slopes, [TAUT_RELU] = relu_slopes,
    [TAUT_SILU] = silu_slopes, [TAUT_TANH] = tanh_slopes,           [TAUT_ABS] = abs_slopes,
    [TAUT_ELU] = elu_slopes
};

void CPU(pointwise)(taut_real *y, const taut_real *x, taut_curve f, int64_t len)
{
#pragma omp parallel for schedule(static) if (len > CPU_CHUNK)
    for (int64_t from = 0; from < len; from += CPU_CHUNK)
        VALUES[f]((float *)y + from, (const float *)x + from, cpu_min(CPU_CHUNK, len - from));
}

void CPU(pointwise_slope)(taut_real *y, const taut_real *t, const taut_real *x, taut_curve f, int64_t len)
{
#pragma omp parallel for schedule(static) if (len > CPU_CHUNK)
    for (int64_t from = 0; from < len; from += CPU_CHUNK)
        SLOPES[f]((float *)y + from, (const float *)t + from, (const float *)x + from, cpu_min(CPU_CHUNK, len - from));
}
