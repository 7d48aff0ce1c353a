/* y[r] = table[ids[r]], and its adjoint table[ids[r]] += y[r].  Every id is in range.
 *
 * scatter puts the rows in the order of their ids (equal ones in row order): runs of them first, then a row's place is the
 * number of rows before it, which is looked up in every run.  Pieces of SPAN places are added up, in double and in
 * order; an id that ends where it began is added to the table at once, the others' parts are added up by the piece
 * where the id begins.
 * Error     gather: none; scatter: (c+1) u (|table| + sum |y|) where an entry is met c times, u = 2^-24 (cuda64:
 *           2^-53). */
#include "kernels/cuda/each.h"
#include "kernels/cuda/lowered.h"

struct gathered {
    real *y;
    const real *table;
    const int32_t *ids;
    divisor d;
    __device__ real read(int64_t i) const { return table[(int64_t)ids[d.quotient(i)] * d.by + d.remainder(i)]; }
    __device__ void write(int64_t i, real v) const { y[i] = v; }
};

void CUDA(gather)(taut_real *y, const taut_real *table, const taut_index *ids, int64_t rows, int64_t d)
{
    const cuda_says says;
    says.writes(at(y), rows * d);
    each(gathered{ at(y), at(table), at(ids), divisor(rows * d, d) }, rows * d);
}

static const int SPAN = 32, RUN = 1024, LANES = 8;

/* Runs of RUN rows, each put in order by itself (Batcher's bitonic sort): id and row, which no two share. */
static __global__ void __launch_bounds__(RUN) sort_runs(uint64_t *sorted, const int32_t *ids, int rows)
{
    __shared__ uint64_t key[RUN];
    const int i = threadIdx.x, row = blockIdx.x * RUN + i;
    key[i] = row < rows ? (uint64_t)ids[row] << 32 | (uint32_t)row : UINT64_MAX;
    for (int size = 2; size <= RUN; size *= 2)
        for (int far = size / 2; far > 0; far /= 2) {
            const int other = i ^ far;
            __syncthreads();
            if (other < i) continue;
            const uint64_t a = key[i], b = key[other];
            if ((a > b) == !(i & size)) key[i] = b, key[other] = a;
        }
    __syncthreads();
    if (row < rows) sorted[row] = key[i];
}

/* How many of `len` keys in order are below `own`. */
__device__ static inline int below(const uint64_t *key, int len, uint64_t own)
{
    int from = 0;
    while (len > 0) {
        const int half = len / 2;
        if (key[from + half] < own)
            from += half + 1, len -= half + 1;
        else
            len = half;
    }
    return from;
}

/* A row's place among all is the number of keys below its own: LANES threads a row, which share the runs out. */
static __global__ void __launch_bounds__(THREADS) merge_runs(uint64_t *order, const uint64_t *sorted, int rows)
{
    const int at = (int)(blockIdx.x * (THREADS / LANES) + threadIdx.x / LANES);
    const uint64_t own = at < rows ? sorted[at] : 0;
    int place = 0;
    for (int run = threadIdx.x % LANES * RUN; run < rows; run += LANES * RUN)
        place += below(sorted + run, min(RUN, rows - run), own);
    for (int far = 1; far < LANES; far *= 2) place += __shfl_xor_sync(~0u, place, far);
    if (at < rows && threadIdx.x % LANES == 0) order[place] = own;
}

struct scene {
    real *table;
    const real *y;
    const uint64_t *order; /* ids and rows by their ids */
    double *head,
        *tail; /* (pieces, d): what a piece has of the id that goes on from the piece before, and into the next */
    int rows;
    int64_t d;
    __device__ int64_t id(int place) const { return (int64_t)(order[place] >> 32); }
    __device__ int64_t row(int place) const { return (int64_t)(uint32_t)order[place]; }
    __device__ bool goes_on(int place) const { return place > 0 && place < rows && id(place) == id(place - 1); }
};

/* Block: a piece; a thread: columns of it. */
static __global__ void __launch_bounds__(THREADS) add_pieces(scene s, int64_t across)
{
    const int piece = (int)(blockIdx.x / across), from = piece * SPAN, to = min(s.rows, from + SPAN);
    const int64_t c = blockIdx.x % across * THREADS + threadIdx.x;
    if (c >= s.d) return;
    bool first = s.goes_on(from);
    double sum = 0;
    for (int p = from; p < to; p++) {
        sum += (double)s.y[s.row(p) * s.d + c];
        if (p + 1 < to && s.goes_on(p + 1)) continue;
        const bool last = p + 1 == to && s.goes_on(to);
        if (first || last)
            (first ? s.head : s.tail)[piece * s.d + c] = sum;
        else {
            real *entry = s.table + s.id(p) * s.d + c;
            *entry = (real)((double)*entry + sum);
        }
        first = false, sum = 0;
    }
}

/* The id that goes on behind the end of a piece where it began. */
static __global__ void __launch_bounds__(THREADS) add_long(scene s, int64_t across)
{
    const int piece = (int)(blockIdx.x / across), end = piece * SPAN + SPAN;
    const int64_t c = blockIdx.x % across * THREADS + threadIdx.x;
    if (c >= s.d || end >= s.rows || !s.goes_on(end)) return;
    const int64_t id = s.id(end);
    if (s.id(piece * SPAN) == id && s.goes_on(piece * SPAN)) return; /* it began before */
    const int behind = end + below(s.order + end, s.rows - end, (uint64_t)(id + 1) << 32);
    double sum = s.tail[piece * s.d + c];
#pragma unroll 8
    for (int p = end; p < behind; p += SPAN) sum += s.head[p / SPAN * s.d + c];
    real *entry = s.table + id * s.d + c;
    *entry = (real)((double)*entry + sum);
}

void CUDA(scatter)(taut_real *table, int64_t entries, const taut_real *y, const taut_index *ids, int64_t rows,
                   int64_t d)
{
    const int64_t pieces = blocks_for(rows, SPAN), across = blocks_for(d, THREADS);
    const size_t parts = (size_t)(pieces * d) * sizeof(double), keys = (size_t)rows * sizeof(uint64_t);
    if (rows <= 0 || d <= 0) return;
    char *work = (char *)cuda_work(2 * parts + 2 * keys);
    if (!work) return;
    const cuda_says says;
    says.writes(at(table), entries * d);
    uint64_t *sorted = (uint64_t *)(work + 2 * parts), *order = sorted + rows;
    const scene s = { at(table), at(y), order, (double *)work, (double *)(work + parts), (int)rows, d };
    CUDA_LAUNCH(sort_runs, blocks_for(rows, RUN), RUN, 0, sorted, at(ids), s.rows);
    CUDA_LAUNCH(merge_runs, blocks_for(rows, THREADS / LANES), THREADS, 0, order, sorted, s.rows);
    CUDA_LAUNCH(add_pieces, pieces * across, THREADS, 0, s, across);
    CUDA_LAUNCH(add_long, pieces * across, THREADS, 0, s, across);
}
