/* Rotary positions (formula: ref/rope.c).
 *
 * The angles depend on position and pair alone: their sines are taken once, in double, into a table.
 * Poison    NaN and infinity reach their own pair and no other.  Aliasing: y may be x.
 * Error     |y - exact| <= 3 u (|x_i| + |x_{i+dh/2}|), u = 2^-24 (cuda64: 2^-53): cosine, sine, products and sum are
 *           rounded; the angle, in double, adds 2^-50 of itself. */
#include "kernels/cuda/each.h"

struct turn {
    real cosine, sine;
};

struct angles {
    turn *table;
    int64_t dh;
    double base, sign;
    divisor half;
    __device__ turn read(int64_t i) const
    {
        double s, c;
        sincos(sign * (double)half.quotient(i) * pow(base, -2.0 * (double)half.remainder(i) / (double)dh), &s, &c);
        return turn{ (real)c, (real)s };
    }
    __device__ void write(int64_t i, turn v) const { table[i] = v; }
};

struct both {
    real a, b;
};

/* Pair i of all pairs: of row, head, place. */
struct turned {
    real *y;
    const real *x;
    const turn *table;
    int64_t dh;
    divisor half, row, t;
    __device__ int64_t place(int64_t i) const { return half.quotient(i) * dh + half.remainder(i); }
    __device__ both read(int64_t i) const
    {
        const turn r = table[t.remainder(row.quotient(i)) * half.by + half.remainder(i)];
        const real a = x[place(i)], b = x[place(i) + half.by];
        return both{ r.cosine * a - r.sine * b, r.sine * a + r.cosine * b };
    }
    __device__ void write(int64_t i, both v) const { y[place(i)] = v.a, y[place(i) + half.by] = v.b; }
};

/* An odd dh leaves its last feature alone. */
struct last {
    real *y;
    const real *x;
    int64_t dh;
    __device__ real read(int64_t i) const { return x[i * dh + dh - 1]; }
    __device__ void write(int64_t i, real v) const { y[i * dh + dh - 1] = v; }
};

void CUDA(rope)(taut_real *y, const taut_real *x, int64_t rows, int64_t t, int64_t heads, int64_t dh, double base,
                double sign)
{
    const int64_t half = dh / 2, all = rows * heads * half;
    turn *table = (turn *)cuda_work((size_t)(t * half) * sizeof *table);
    if (all > 0 && table) {
        each(angles{ table, dh, base, sign, divisor(t * half, half) }, t * half);
        each(turned{ at(y), at(x), table, dh, divisor(all, half), divisor(all, heads * half), divisor(rows, t) }, all);
    }
    if (dh % 2) each(last{ at(y), at(x), dh }, rows * heads);
}
