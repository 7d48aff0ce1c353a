/* JaSMin of one row of attention, by a warp: what kernels/jasmin.h, where the formulas are, does by one thread.  A lane has every
 * WARP-th entry; all lanes come along and get the same numbers. */
#ifndef TAUT_KERNELS_CUDA_JASMIN_ROW_H
#define TAUT_KERNELS_CUDA_JASMIN_ROW_H
#include "kernels/cuda/reduce.h"
#include "kernels/jasmin.h"

/* An entry of a row and its place: the larger one is ahead, of equal ones the first. */
struct entry {
    double x;
    int64_t j;
};
static __device__ inline bool ahead(entry a, entry b) { return a.x > b.x || (a.x == b.x && a.j < b.j); }

/* The entry that follows `last` in that order; beyond the row where everything is NaN. */
static __device__ inline entry follower(const double *x, int64_t n, entry last)
{
    entry best = { -INFINITY, n };
    for (int64_t j = threadIdx.x % WARP; j < n; j += WARP) {
        const entry mine = { x[j], j };
        if (ahead(last, mine) && ahead(mine, best)) best = mine;
    }
    for (int far = WARP / 2; far > 0; far /= 2) {
        const entry other = { __shfl_xor_sync(~0u, best.x, far), __shfl_xor_sync(~0u, best.j, far) };
        if (ahead(other, best)) best = other;
    }
    return best;
}

/* Lanes add what they say of their entries; all get the sum. */
template <class EACH> static __device__ inline double over_row(int64_t n, const EACH &each)
{
    double sum = 0;
    for (int64_t j = threadIdx.x % WARP; j < n; j += WARP) sum += each(j);
    return warp_sum(sum);
}

/* sign ln(g_m + eps) and its derivative by entry j, m ahead of `next`. */
struct bound {
    entry m, next;
    double over, f, value;
    __device__ bound(double sign, const double *x, int64_t n, entry m, entry next, double eps) : m(m), next(next)
    {
        over = over_row(n, [&](int64_t j) { return j == m.j ? 0 : x[j]; }) + next.x;
        f = sign / (m.x * over + eps), value = sign * log(m.x * over + eps);
    }
    __device__ double slope(int64_t j) const
    {
        return f * m.x + (j == m.j ? f * (over - m.x) : j == next.j ? f * m.x : 0);
    }
};

static __device__ inline double root(const double *x, int64_t n, entry first, entry second)
{
    const auto c = [&](int64_t j) { return j == first.j || !(x[j] > 0) ? 0 : x[j] * (first.x - x[j]); };
    const double all = over_row(n, c), along = over_row(n, [&](int64_t j) { return c(j) * x[j]; });
    const double beside = over_row(n, [&](int64_t j) { return x[j] == second.x ? c(j) : 0; });
    double l = fmax(second.x + beside, all > 0 ? all + along / all : 0);
    for (int i = 0; i < 60; i++) {
        const double sum = over_row(n, [&](int64_t j) { return c(j) == 0 ? 0 : c(j) / (l - x[j]); });
        const double square = over_row(n, [&](int64_t j) { return c(j) == 0 ? 0 : c(j) / ((l - x[j]) * (l - x[j])); });
        const double step = sum * (sum - 1) / square;
        if (!(step > 1e-16 * l)) break;
        l = fmin(l + step, first.x);
    }
    return l;
}

/* ln(s_1 + eps) and its derivative by entry j. */
struct exact {
    entry first, second;
    const double *x;
    double s, size, eps, value;
    bool tie;
    __device__ exact(const double *x, int64_t n, entry first, entry second, double eps)
        : first(first), second(second), x(x), s(0), size(INFINITY), eps(eps),
          tie(!(first.x - second.x > 1e-12 * first.x))
    {
        if (tie) s = first.x;
        if (!tie && second.x > 0) {
            s = root(x, n, first, second);
            size = over_row(n, [&](int64_t j) { return x[j] / (x[j] - s) * (x[j] / (x[j] - s)); });
        }
        value = log(s + eps); /* one-hot: nothing moves it */
    }
    __device__ double slope(int64_t j) const
    {
        const double w = s > 0 && !tie ? x[j] / (x[j] - s) : 0;
        return (tie ? (j == first.j || j == second.j ? 0.5 : 0) : (w * w - 2 * w) / size) / (s + eps);
    }
};

/* gz = x (G - x.G), G the sum of the slopes of both terms. */
template <class FIRST>
static __device__ inline double slopes(double *gz, const double *x, int64_t n, const FIRST &one, const bound *other)
{
    const auto both = [&](int64_t j) { return one.slope(j) + (other ? other->slope(j) : 0); };
    const double along = over_row(n, [&](int64_t j) { return x[j] * both(j); });
    for (int64_t j = threadIdx.x % WARP; j < n; j += WARP) gz[j] = x[j] * (both(j) - along);
    return one.value + (other ? other->value : 0);
}

/* JaSMin of the row, and gz = its derivative by the logits. */
static __device__ inline double row_penalty(double *gz, const double *x, int64_t n, const taut_jasmin &p)
{
    const entry first = follower(x, n, { INFINITY, -1 }), second = follower(x, n, first);
    entry m = first, next = second;
    for (int64_t i = 2; i <= p.k; i++) m = next, next = follower(x, n, m);
    const bound minus(-1, x, p.k > 1 ? n : 0, m, next, p.eps), *other = p.k > 1 ? &minus : NULL;
    return p.exact ? slopes(gz, x, n, exact(x, n, first, second, p.eps), other)
                   : slopes(gz, x, n, bound(1, x, n, first, second, p.eps), other);
}
#endif
