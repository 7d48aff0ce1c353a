/* Rotary positions (formula: ref/rope.c).
 *
 * The angles depend on the position alone, so a position is one thread's work: its sines are taken once, in
 * double, and serve every example and head.
 * Poison    NaN and infinity reach their own pair and no other.  Aliasing: y may be x.
 * Error     |y - exact| <= 3 * 2^-24 (|x_i| + |x_{i+dh/2}|): cosine, sine, products and sum are rounded;
 *           the angle, in double, adds 2^-50 of itself. */
#include <math.h>

#include "kernels/cpu/cpu.h"

enum { PAIRS = 64 }; /* angles held at a time, on the stack */

static void turn(float *y, const float *x, const float *cosine, const float *sine, int64_t half, int64_t pairs)
{
#pragma omp simd
    for (int64_t i = 0; i < pairs; i++) {
        const float a = x[i], b = x[i + half];
        y[i] = cosine[i] * a - sine[i] * b;
        y[i + half] = sine[i] * a + cosine[i] * b;
    }
}

/* Turns `pairs` pairs from `from` on, in every head of every row at one position. */
static void turn_position(float *y, const float *x, const double *rate, int64_t position, int64_t rows, int64_t t,
                          int64_t heads, int64_t dh, int64_t from, int64_t pairs)
{
    float cosine[PAIRS], sine[PAIRS];
    for (int64_t i = 0; i < pairs; i++) {
        const double angle = (double)position * rate[i];
        cosine[i] = (float)cos(angle);
        sine[i] = (float)sin(angle);
    }
    for (int64_t r = position; r < rows; r += t)
        for (int64_t h = 0; h < heads; h++) {
            const int64_t at = (r * heads + h) * dh + from;
            turn(y + at, x + at, cosine, sine, dh / 2, pairs);
        }
}

void CPU(rope)(taut_real *y_, const taut_real *x_, int64_t rows, int64_t t, int64_t heads, int64_t dh, double base,
               double sign)
{
    float *y = (float *)y_;
    const float *x = (const float *)x_;
    const int64_t half = dh / 2, len = rows * heads * dh;
    for (int64_t from = 0; from < half; from += PAIRS) {
        const int64_t pairs = cpu_min(PAIRS, half - from);
        double rate[PAIRS];
        for (int64_t i = 0; i < pairs; i++) rate[i] = sign * pow(base, -2.0 * (double)(from + i) / (double)dh);
#pragma omp parallel for schedule(static) if (len > CPU_CHUNK)
        for (int64_t position = 0; position < cpu_min(t, rows); position++)
            turn_position(y, x, rate, position, rows, t, heads, dh, from, pairs);
    }
    if (dh % 2)
        for (int64_t last = dh - 1; last < len; last += dh) y[last] = x[last];
}
