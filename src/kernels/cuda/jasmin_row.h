/* JaSMin of one row of attention, by a warp: what kernels/jasmin.h, where the formulas are, does by one thread.  A lane has every
 * WARP-th entry; all lanes come along and get the same numbers. */
#ifndef TAUT_KERNELS_CUDA_JASMIN_ROW_H
#define TAUT_KERNELS_CUDA_JASMIN_ROW_H
#include "kernels/cuda/reduce.h"
#include "kernels/jasmin.h"

/* An entry of a row and its place: the larger one is ahead, of equal ones the first.  None is negative, so that their bits are
 * ordered as they are, with NaN ahead of all. */
struct entry {
    double x;
    int j;
};
static __device__ inline bool ahead(entry a, entry b)
{
    const long long x = __double_as_longlong(a.x), y = __double_as_longlong(b.x);
    return x > y || (x == y && a.j < b.j);
}

/* Of the lanes' entries that which is ahead: by the upper half of its bits, then by the lower, then by its place. */
static __device__ inline entry warp_first(entry mine)
{
    const unsigned long long bits = (unsigned long long)__double_as_longlong(mine.x);
    const unsigned upper = (unsigned)(bits >> 32), lower = (unsigned)bits;
    const unsigned most = __reduce_max_sync(~0u, upper);
    const unsigned then = __reduce_max_sync(~0u, upper == most ? lower : 0);
    const bool best = upper == most && lower == then;
    const int j = (int)__reduce_min_sync(~0u, best ? (unsigned)mine.j : ~0u);
    return { __longlong_as_double((long long)((unsigned long long)most << 32 | then)), j };
}

/* The entry that follows `last` in that order. */
static __device__ inline entry follower(const double *x, int n, entry last)
{
    entry best = { 0, n };
    for (int j = threadIdx.x % WARP; j < n; j += WARP) {
        const entry mine = { x[j], j };
        if (ahead(last, mine) && ahead(mine, best)) best = mine;
    }
    return warp_first(best);
}

/* Lanes add what they say of their entries; all get the sum. */
template <class EACH> static __device__ inline double over_row(int n, const EACH &each)
{
    double sum = 0;
    for (int j = threadIdx.x % WARP; j < n; j += WARP) sum += each(j);
    return warp_sum(sum);
}

/* sign ln(g_m + eps) and its derivative by entry j, m ahead of `next`. */
struct bound {
    entry m, next;
    double over, f, value;
    __device__ bound(double sign, const double *x, int n, entry m, entry next, double eps) : m(m), next(next)
    {
        over = over_row(n, [&](int j) { return j == m.j ? 0 : x[j]; }) + next.x;
        f = sign / (m.x * over + eps), value = sign * log(m.x * over + eps);
    }
    __device__ double slope(int j) const { return f * m.x + (j == m.j ? f * (over - m.x) : j == next.j ? f * m.x : 0); }
};

static __device__ inline double root(const double *x, int n, entry first, entry second)
{
    const auto c = [&](int j) { return j == first.j || !(x[j] > 0) ? 0 : x[j] * (first.x - x[j]); };
    const double all = over_row(n, c), along = over_row(n, [&](int j) { return c(j) * x[j]; });
    const double beside = over_row(n, [&](int j) { return x[j] == second.x ? c(j) : 0; });
    double l = fmax(second.x + beside, all > 0 ? all + along / all : 0);
    for (int i = 0; i < 60; i++) {
        const double sum = over_row(n, [&](int j) { return c(j) == 0 ? 0 : c(j) / (l - x[j]); });
        const double square = over_row(n, [&](int j) { return c(j) == 0 ? 0 : c(j) / ((l - x[j]) * (l - x[j])); });
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
    __device__ exact(const double *x, int n, entry first, entry second, double eps)
        : first(first), second(second), x(x), s(0), size(INFINITY), eps(eps),
          tie(!(first.x - second.x > 1e-12 * first.x))
    {
        if (tie) s = first.x;
        if (!tie && second.x > 0) {
            s = root(x, n, first, second);
            size = over_row(n, [&](int j) { return x[j] / (x[j] - s) * (x[j] / (x[j] - s)); });
        }
        value = log(s + eps); /* one-hot: s is 0, and nothing moves it */
    }
    __device__ double slope(int j) const
    {
        const double w = s > 0 && !tie ? x[j] / (x[j] - s) : 0;
        return (tie ? (j == first.j || j == second.j ? 0.5 : 0) : (w * w - 2 * w) / size) / (s + eps);
    }
};

/* x becomes x (G - x.G), G the slope, which looks at no entry but its own. */
template <class SLOPE> static __device__ inline void project(double *x, int n, const SLOPE &slope)
{
    const double along = over_row(n, [&](int j) { return x[j] * slope(j); });
    for (int j = threadIdx.x % WARP; j < n; j += WARP) x[j] *= slope(j) - along;
}

/* The sum of the first term and, where k says that there is one, the second, of entry m, which `next` follows; x as in
 * row_penalty. */
template <class FIRST>
static __device__ inline double slopes(double *x, int n, const FIRST &one, const taut_jasmin &p, entry m, entry next)
{
    if (p.k <= 1) {
        project(x, n, [&](int j) { return one.slope(j); });
        return one.value;
    }
    const bound two(-1, x, n, m, next, p.eps);
    project(x, n, [&](int j) { return one.slope(j) + two.slope(j); });
    return one.value + two.value;
}

/* JaSMin of the row, whose weights x become its derivative by the logits. */
static __device__ inline double row_penalty(double *x, int n, const taut_jasmin &p)
{
    const entry first = follower(x, n, { __longlong_as_double(~0ull >> 1), -1 }), second = follower(x, n, first);
    entry m = first, next = second;
    for (int i = 2; i <= p.k; i++) m = next, next = follower(x, n, m);
    if (p.exact) return slopes(x, n, exact(x, n, first, second, p.eps), p, m, next);
    return slopes(x, n, bound(1, x, n, first, second, p.eps), p, m, next);
}
#endif
