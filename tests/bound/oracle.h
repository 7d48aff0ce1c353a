/* A rigorous LOWER bound of a matrix norm that shares no code with src/bound: one-sided Jacobi in long
 * double finds the top singular vector, and Arb evaluates |W v| / |v| at that vector as an interval. */
#ifndef BOUND_ORACLE_H
#define BOUND_ORACLE_H
#include "bound/arb_include.h"
#include "harness.h"

enum { ORACLE_BITS = 4400 }; /* products of two doubles, summed, are exact: exponents span 4300 bits */

static inline double arb_low(const arb_t x) /* the largest double known to be below x */
{
    arf_t end;
    arf_init(end);
    arb_get_lbound_arf(end, x, 128);
    const double r = arf_get_d(end, ARF_RND_FLOOR);
    arf_clear(end);
    return r;
}

static inline double arb_high(const arb_t x)
{
    arf_t end;
    arf_init(end);
    arb_get_ubound_arf(end, x, 128);
    const double r = arf_get_d(end, ARF_RND_CEIL);
    arf_clear(end);
    return r;
}

/* |W v| / |v| from below. */
static inline double witness(const double *w, int64_t rows, int64_t cols, const double *v)
{
    arb_t top, bottom, sum, a, b;
    arb_init(top), arb_init(bottom), arb_init(sum), arb_init(a), arb_init(b);
    for (int64_t i = 0; i < rows; i++) {
        arb_zero(sum);
        for (int64_t j = 0; j < cols; j++) {
            arb_set_d(a, w[i * cols + j]);
            arb_set_d(b, v[j]);
            arb_addmul(sum, a, b, ORACLE_BITS);
        }
        arb_addmul(top, sum, sum, 256);
    }
    for (int64_t j = 0; j < cols; j++) {
        arb_set_d(b, v[j]);
        arb_addmul(bottom, b, b, 256);
    }
    arb_div(top, top, bottom, 256);
    arb_sqrtpos(top, top, 256);
    const double r = arb_low(top);
    arb_clear(top), arb_clear(bottom), arb_clear(sum), arb_clear(a), arb_clear(b);
    return isfinite(r) && r > 0 ? r : 0;
}

/* Turns columns p and q of u (rows x cols) and of v (cols x cols) until they are orthogonal in u. */
static inline bool jacobi_turn(long double *u, long double *v, int64_t rows, int64_t cols, int64_t p, int64_t q)
{
    long double a = 0, b = 0, c = 0;
    for (int64_t i = 0; i < rows; i++) {
        a += u[i * cols + p] * u[i * cols + p];
        b += u[i * cols + q] * u[i * cols + q];
        c += u[i * cols + p] * u[i * cols + q];
    }
    if (!(fabsl(c) > 1e-18L * sqrtl(a) * sqrtl(b))) return false;
    const long double z = (b - a) / (2 * c), t = (z >= 0 ? 1 : -1) / (fabsl(z) + sqrtl(1 + z * z));
    const long double cs = 1 / sqrtl(1 + t * t), sn = cs * t;
    for (int64_t i = 0; i < rows + cols; i++) {
        long double *row = i < rows ? u + i * cols : v + (i - rows) * cols, x = row[p], y = row[q];
        row[p] = cs * x - sn * y;
        row[q] = sn * x + cs * y;
    }
    return true;
}

/* The spectral norm from below, and sharp; keep the sizes small. */
static inline double oracle_norm(const double *w, int64_t rows, int64_t cols)
{
    long double *u = calloc((size_t)(rows * cols), sizeof *u), *v = calloc((size_t)(cols * cols), sizeof *v);
    double *top = doubles(cols), most = -1;
    for (int64_t i = 0; i < rows * cols; i++) u[i] = w[i];
    for (int64_t j = 0; j < cols; j++) v[j * cols + j] = 1;
    bool turned = true;
    for (int sweep = 0; turned && sweep < 30; sweep++) {
        turned = false;
        for (int64_t p = 0; p < cols; p++)
            for (int64_t q = p + 1; q < cols; q++) turned |= jacobi_turn(u, v, rows, cols, p, q);
    }
    for (int64_t j = 0; j < cols; j++) {
        long double sum = 0;
        for (int64_t i = 0; i < rows; i++) sum += u[i * cols + j] * u[i * cols + j];
        if ((double)sqrtl(sum) <= most) continue;
        most = (double)sqrtl(sum);
        for (int64_t i = 0; i < cols; i++) top[i] = (double)v[i * cols + j];
    }
    const double r = witness(w, rows, cols, top);
    free(u), free(v), free(top);
    return r;
}
#endif
