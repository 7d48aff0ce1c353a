/* Cross entropy with its gradient (formulas: ref/cross_entropy.c).
 *
 * A row is one warp's, or one block's if it is long; rows are added up by one block, in a fixed tree.  The largest
 * entry is subtracted first, so nothing overflows; sums and the loss are double.  Rows of LONG_ROW bytes and more that
 * fit stay in a processor's own memory: read once, written once, and their exponentials are made once.
 * Poison    NaN or +inf in a counted row makes the loss NaN, that row of g NaN, and the row not correct.
 * Aliasing  g may be x.
 * Error     with u = 2^-24 (cuda64: 2^-53): the loss of a row is off by (4 + ln classes) u plus 2^-48 (|loss| +
 *           |max|), since exp is good to 2 u and its argument to u times itself: all arguments together, each times its p,
 *           are at most ln classes; g: 8 u weight.  Shared: the same times the sum of a row's shares, and the
 *           shares' terms of the loss to 2^-50 of each. */
#include "kernels/cuda/each.h"
#include "kernels/cuda/reduce.h"
#include "kernels/cuda/tile.h"

static const int HOLDERS = 512;           /* threads of a block that keeps a row */
static const int64_t LONG_ROW = 32 << 10; /* below it the device's cache keeps the rows under way by itself */

/* An entry and where it is; the larger one, the first of equals, and NaN never. */
struct peak {
    real value;
    int64_t at;
};

__device__ static inline peak higher(peak a, peak b)
{
    return b.value > a.value || (b.value == a.value && b.at < a.at) ? b : a;
}

__device__ static inline peak warp_peak(peak p)
{
#pragma unroll
    for (int step = WARP / 2; step > 0; step /= 2)
        p = higher(p, peak{ __shfl_xor_sync(0xffffffffu, p.value, step), __shfl_xor_sync(0xffffffffu, p.at, step) });
    return p;
}

template <int TEAM> __device__ static inline peak team_peak(peak p)
{
    p = warp_peak(p);
    if (TEAM == WARP) return p;
    __shared__ peak part[TEAM / WARP];
    const int lane = threadIdx.x % WARP;
    __syncthreads(); /* whoever read `part` before is done */
    if (lane == 0) part[threadIdx.x / WARP] = p;
    __syncthreads();
    return warp_peak(part[lane < TEAM / WARP ? lane : 0]);
}

template <int TEAM> __device__ static inline peak row_peak(const real *x, int64_t classes, int lane)
{
    peak p = { (real)-INFINITY, classes };
    for (int64_t c = lane; c < classes; c += TEAM) p = higher(p, peak{ x[c], c });
    return team_peak<TEAM>(p);
}

template <int TEAM> __device__ static inline double exp_sum(const real *x, real max, int64_t classes, int lane)
{
    double sum = 0;
    for (int64_t c = lane; c < classes; c += TEAM) sum += (double)exp(x[c] - max);
    return team_sum<TEAM>(sum);
}

struct loss {
    double *loss, *right; /* of each row */
    real *g;
    const real *x;
    int64_t rows, classes;
    double weight;
};

template <int TEAM> static __global__ void __launch_bounds__(THREADS) row_losses(loss l, const int32_t *target)
{
    const int64_t row = team_row<TEAM>(), first = row * l.classes;
    const int lane = team_lane<TEAM>();
    if (row >= l.rows) return;
    const int32_t want = target[row];
    const real *x = l.x + first;
    double value = 0, right = 0;
    if (want >= 0) {
        const peak top = row_peak<TEAM>(x, l.classes, lane);
        const double gap = (double)x[want] - (double)top.value, sum = exp_sum<TEAM>(x, top.value, l.classes, lane);
        const real scale = (real)(l.weight / sum);
        value = log(sum) - gap;
        right = top.at == want && !isnan(value);
        __syncwarp(); /* g may be x: all have read x[want] */
        for (int64_t c = lane; l.g && c < l.classes; c += TEAM)
            l.g[first + c] = exp(x[c] - top.value) * scale - (c == want ? (real)l.weight : (real)0);
    } else
        for (int64_t c = lane; l.g && c < l.classes; c += TEAM) l.g[first + c] = 0;
    if (lane == 0) l.loss[row] = value, l.right[row] = right;
}

/* A row that is kept is cut into groups of G neighbours, of which A can be read at once; group k is thread k % HOLDERS's,
 * which alone touches it.  It is copied in parts, and a part is looked at while the next ones are on their way. */
static const int PARTS = 4;

template <int G, int A> __device__ static inline void start_part(group<G> *held, const real *x, int from, int to)
{
    for (int k = from + (int)threadIdx.x; k < to; k += HOLDERS)
#pragma unroll
        for (int j = 0; j < G; j += A) copy_async<A * sizeof(real)>(held[k].x + j, x + (int64_t)k * G + j, true);
    tile_start();
}

/* Of a part, when all but LEFT of them are there: is an entry larger than the largest so far? */
template <int LEFT, int G>
__device__ static inline void look(real &most, int &at, const group<G> *held, int from, int to)
{
    asm volatile("cp.async.wait_group %0;" ::"n"(LEFT) : "memory");
#pragma unroll 4
    for (int k = from + (int)threadIdx.x; k < to; k += HOLDERS) {
        const group<G> v = held[k];
#pragma unroll
        for (int j = 0; j < G; j++)
            if (v.x[j] > most) most = v.x[j], at = k * G + j; /* of equals the first */
    }
}

/* Reads a row into `held`; the first largest of the thread's entries. */
template <int G, int A> __device__ static inline peak hold(group<G> *held, const real *x, int groups)
{
    const int part = (groups + PARTS * HOLDERS - 1) / (PARTS * HOLDERS) * HOLDERS;
    real most = (real)-INFINITY;
    int at = groups * G;
    for (int i = 0; i < PARTS; i++) start_part<G, A>(held, x, i * part, min(groups, (i + 1) * part));
    look<3>(most, at, held, 0, min(groups, part));
    look<2>(most, at, held, part, min(groups, 2 * part));
    look<1>(most, at, held, 2 * part, min(groups, 3 * part));
    look<0>(most, at, held, 3 * part, groups);
    return peak{ most, at };
}

/* The thread's entries become exponentials; the sum of these. */
template <int G> __device__ static inline double raise(group<G> *held, real max, int groups)
{
    double sum = 0;
#pragma unroll 2
    for (int k = threadIdx.x; k < groups; k += HOLDERS) {
        group<G> v = held[k];
#pragma unroll
        for (int j = 0; j < G; j++) v.x[j] = exp(v.x[j] - max), sum += (double)v.x[j];
        held[k] = v;
    }
    return sum;
}

template <int A, int G> __device__ static inline void store(real *y, const group<G> &v)
{
#pragma unroll
    for (int j = 0; j < G; j += A) *(group<A> *)(y + j) = *(const group<A> *)(v.x + j);
}

template <int G, int A>
__device__ static inline void put_slopes(real *g, const group<G> *held, real scale, int groups, int32_t want,
                                         real weight)
{
#pragma unroll 4
    for (int k = threadIdx.x; k < groups; k += HOLDERS) {
        group<G> v = held[k];
#pragma unroll
        for (int j = 0; j < G; j++) v.x[j] *= scale;
        store<A>(g + (int64_t)k * G, v);
    }
    if (want / G % HOLDERS == (int)threadIdx.x)
        g[want] = held[want / G].x[want % G] * scale - weight; /* written once more */
}

/* row_losses of rows that fit. */
template <int G, int A> static __global__ void __launch_bounds__(HOLDERS) held_losses(loss l, const int32_t *target)
{
    extern __shared__ __align__(16) unsigned char memory[];
    group<G> *held = (group<G> *)memory;
    const int groups = (int)(l.classes / G);
    for (int64_t row = blockIdx.x; row < l.rows; row += gridDim.x) {
        const int32_t want = target[row];
        const real *x = l.x + row * l.classes;
        real *g = l.g ? l.g + row * l.classes : NULL;
        double value = 0, right = 0;
        if (want >= 0) {
            const double wanted = (double)x[want]; /* before g, which may be x, is written */
            const peak top = team_peak<HOLDERS>(hold<G, A>(held, x, groups));
            const double sum = block_sum(raise<G>(held, top.value, groups));
            if (g) put_slopes<G, A>(g, held, (real)(l.weight / sum), groups, want, (real)l.weight);
            if (threadIdx.x == 0) value = log(sum) - (wanted - (double)top.value);
            right = top.at == want && !isnan(value);
        } else
            for (int k = threadIdx.x; g && k < groups; k += HOLDERS) store<A>(g + (int64_t)k * G, group<G>{});
        if (threadIdx.x == 0) l.loss[row] = value, l.right[row] = right;
    }
}

template <int TEAM> static __global__ void __launch_bounds__(THREADS) shared_losses(loss l, const real *q)
{
    const int64_t row = team_row<TEAM>(), first = row * l.classes;
    const int lane = team_lane<TEAM>();
    if (row >= l.rows) return;
    const real *x = l.x + first;
    q += first;
    const peak top = row_peak<TEAM>(x, l.classes, lane), most = row_peak<TEAM>(q, l.classes, lane);
    double all = 0, share = 0;
    for (int64_t c = lane; c < l.classes; c += TEAM) {
        all += (double)q[c];
        if (q[c] != 0) share += (double)q[c] * ((double)x[c] - (double)top.value);
    }
    all = team_sum<TEAM>(all), share = team_sum<TEAM>(share);
    const double sum = exp_sum<TEAM>(x, top.value, l.classes, lane), value = all * log(sum) - share;
    for (int64_t c = lane; l.g && c < l.classes; c += TEAM)
        l.g[first + c] = (real)(l.weight * (all * (double)exp(x[c] - top.value) / sum - (double)q[c]));
    if (lane == 0) l.loss[row] = value, l.right[row] = top.at == most.at && !isnan(value);
}

static __global__ void __launch_bounds__(1024)
    add_up(double *sums, const double *loss, const double *right, int64_t rows)
{
    double a = 0, b = 0;
    for (int64_t r = threadIdx.x; r < rows; r += blockDim.x) a += loss[r], b += right[r];
    a = block_sum(a), b = block_sum(b);
    if (threadIdx.x == 0) sums[0] += a, sums[1] += b;
}

static loss loss_of(taut_real *g, const taut_real *x, int64_t rows, int64_t classes, double weight)
{
    double *work = (double *)cuda_work((size_t)(2 * rows) * sizeof *work);
    return loss{ work, work + rows, g ? at(g) : NULL, at(x), work ? rows : 0, classes, weight };
}

/* False: rows are too short to be kept, or too long.  How they are cut depends on their length alone. */
static bool keep_rows(const loss &l, const int32_t *target)
{
    static const char what[] = "cross entropy";
    const bool aligned = ((uintptr_t)l.x | (uintptr_t)l.g) % 16 == 0;
    const auto losses = l.classes % WIDE ? held_losses<1, 1> : aligned ? held_losses<WIDE, WIDE> : held_losses<WIDE, 1>;
    const int64_t bytes = l.classes * (int64_t)sizeof(real), beside = 2 << 10; /* what the sums need */
    int device = 0, room = 0, processors = 1, each = 1;
    if (bytes < LONG_ROW) return false;
    cuda_note(cudaGetDevice(&device), what);
    cuda_note(cudaDeviceGetAttribute(&room, cudaDevAttrMaxSharedMemoryPerBlockOptin, device), what);
    cuda_note(cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, device), what);
    if (bytes > room - beside) return false;
    cuda_note(cudaFuncSetAttribute(losses, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)bytes), what);
    cuda_note(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&each, losses, HOLDERS, (size_t)bytes), what);
    const int64_t blocks = (int64_t)processors * (each > 0 ? each : 1);
    CUDA_LAUNCH(losses, l.rows < blocks ? l.rows : blocks, HOLDERS, (size_t)bytes, l, target);
    return true;
}

void CUDA(cross_entropy)(taut_real *g, taut_sum *sums, const taut_real *x, const taut_index *target, int64_t rows,
                         int64_t classes, double weight)
{
    const loss l = loss_of(g, x, rows, classes, weight);
    const cuda_says says;
    if (g) says.writes(at(g), rows * classes);
    says.writes(at(sums), 2);
    if (l.rows <= 0) return;
    if (!keep_rows(l, at(target))) CUDA_ROWS(row_losses, rows, classes, l, at(target));
    CUDA_LAUNCH(add_up, 1, 1024, 0, at(sums), l.loss, l.right, rows);
}

void CUDA(shared_cross_entropy)(taut_real *g, taut_sum *sums, const taut_real *x, const taut_real *q, int64_t rows,
                                int64_t classes, double weight)
{
    const loss l = loss_of(g, x, rows, classes, weight);
    if (l.rows <= 0) return;
    CUDA_ROWS(shared_losses, rows, classes, l, at(q));
    CUDA_LAUNCH(add_up, 1, 1024, 0, at(sums), l.loss, l.right, rows);
}
