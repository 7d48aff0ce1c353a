/* Rotary positions (formula: ref/rope.c).
 *
 * The angles depend on position and pair alone: their sines are taken once, in double, into a table.
 * Poison    NaN and infinity reach their own pair and no other.  Aliasing: y may be x.
 * Error     |y - exact| <= 3 u (|x_i| + |x_{i+dh/2}|), u = 2^-24 (cuda64: 2^-53): cosine, sine, products and sum are
 *           rounded; the angle, in double, adds 2^-50 of itself. */
#include "kernels/cuda/each.h"
#include "kernels/cuda/lowered.h"

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

template <int G> struct both {
    group<G> a, b;
};
template <int G> struct alignas(G > 1 ? 16 : sizeof(turn)) turns {
    turn x[G];
};

/* Group i of all groups of G pairs: of row, head, place. */
template <int G> struct turned {
    real *y;
    void *low; /* y as bf16 (lowered.h), or NULL */
    const real *x;
    const turn *table;
    int64_t dh;
    divisor half, row, t; /* half: in groups */
    __device__ int64_t place(int64_t i) const { return half.quotient(i) * dh + half.remainder(i) * G; }
    __device__ both<G> read(int64_t i) const
    {
        const turns<G> r = *(const turns<G> *)(table +
                                               (t.remainder(row.quotient(i)) * half.by + half.remainder(i)) * G);
        const group<G> a = *(const group<G> *)(x + place(i)), b = *(const group<G> *)(x + place(i) + half.by * G);
        both<G> z;
#pragma unroll
        for (int g = 0; g < G; g++) {
            z.a.x[g] = r.x[g].cosine * a.x[g] - r.x[g].sine * b.x[g];
            z.b.x[g] = r.x[g].sine * a.x[g] + r.x[g].cosine * b.x[g];
        }
        return z;
    }
    __device__ void write(int64_t i, const both<G> &v) const
    {
        *(group<G> *)(y + place(i)) = v.a, *(group<G> *)(y + place(i) + half.by * G) = v.b;
        lower_group<G>(low, place(i) / G, v.a.x), lower_group<G>(low, place(i) / G + half.by, v.b.x);
    }
};

template <int G>
static void turn_all(real *y, void *low, const real *x, const turn *table, int64_t rows, int64_t t, int64_t heads,
                     int64_t dh)
{
    const int64_t half = dh / 2 / G, all = rows * heads * half;
    each(turned<G>{ y, low, x, table, dh, divisor(all, half), divisor(all, heads * half), divisor(rows, t) }, all);
}

/* An odd dh leaves its last feature alone. */
struct last {
    real *y;
    void *low;
    const real *x;
    int64_t dh;
    __device__ real read(int64_t i) const { return x[i * dh + dh - 1]; }
    __device__ void write(int64_t i, real v) const
    {
        const real one[1] = { y[i * dh + dh - 1] = v };
        lower_group<1>(low, i * dh + dh - 1, one);
    }
};

void CUDA(rope)(taut_real *y, const taut_real *x, int64_t rows, int64_t t, int64_t heads, int64_t dh, double base,
                double sign)
{
    const int64_t half = dh / 2;
    const bool wide = dh % (2 * WIDE) == 0 && ((uintptr_t)y | (uintptr_t)x) % 16 == 0;
    const int64_t len = rows * heads * dh;
    turn *table = (turn *)cuda_work((size_t)(t * half) * sizeof *table);
    const cuda_says says;
    says.writes(at(y), len);
    void *const low = sign < 0 ? says.lowers(at(y), len) : NULL; /* on the way back a product comes next */
    if (rows * heads * half > 0 && table) {
        each(angles{ table, dh, base, sign, divisor(t * half, half) }, t * half);
        (wide ? turn_all<WIDE> : turn_all<1>)(at(y), low, at(x), table, rows, t, heads, dh);
    }
    if (dh % 2) each(last{ at(y), low, at(x), dh }, rows * heads);
}
