/* y[r] = table[ids[r]], and its adjoint table[ids[r]] += y[r].  Every id is in range.
 *
 * scatter puts the rows in the order of their ids (equal ones in row order): a row's place is the number of rows before
 * it, which is counted.  Pieces of SPAN places are added up, in double and in order; an id that ends where it began is
 * added to the table at once, the others' parts are added up by the piece where the id begins.
 * Error     gather: none; scatter: (c+1) u (|table| + sum |y|) where an entry is met c times, u = 2^-24 (cuda64:
 *           2^-53). */
#include "kernels/cuda/each.h"

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
    each(gathered{ at(y), at(table), at(ids), divisor(rows * d, d) }, rows * d);
}

static const int SPAN = 32, STRETCH = 4096;

/* place[r] += how many of the rows in this block's stretch come before row r: whole numbers, so the order does not
 * matter. */
static __global__ void __launch_bounds__(THREADS) count_before(int *place, const int32_t *ids, int rows, int stretches)
{
    __shared__ int32_t other[THREADS];
    const int r = (int)(blockIdx.x / stretches) * THREADS + threadIdx.x, from = (int)(blockIdx.x % stretches) * STRETCH;
    const int32_t own = r < rows ? ids[r] : 0;
    int before = 0;
    for (int at = from; at < min(rows, from + STRETCH); at += THREADS) {
        const int part = min(THREADS, min(rows, from + STRETCH) - at);
        __syncthreads();
        if (threadIdx.x < part) other[threadIdx.x] = ids[at + threadIdx.x];
        __syncthreads();
        for (int j = 0; j < part; j++) before += other[j] < own || (other[j] == own && at + j < r);
    }
    if (r < rows && before > 0) atomicAdd(&place[r], before);
}

struct placed {
    int *order;
    const int *place;
    __device__ int read(int64_t r) const { return place[r]; }
    __device__ void write(int64_t r, int v) const { order[v] = (int)r; }
};

struct scene {
    real *table;
    const real *y;
    const int32_t *ids;
    const int *order; /* rows by their ids */
    double *head,
        *tail; /* (pieces, d): what a piece has of the id that goes on from the piece before, and into the next */
    int rows;
    int64_t d;
    __device__ int32_t id(int place) const { return ids[order[place]]; }
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
        sum += (double)s.y[s.order[p] * s.d + c];
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
    const int32_t id = s.id(end);
    if (s.id(piece * SPAN) == id && s.goes_on(piece * SPAN)) return; /* it began before */
    double sum = s.tail[piece * s.d + c];
    for (int p = end; p < s.rows && s.id(p) == id; p += SPAN) sum += s.head[p / SPAN * s.d + c];
    real *entry = s.table + id * s.d + c;
    *entry = (real)((double)*entry + sum);
}

void CUDA(scatter)(taut_real *table, const taut_real *y, const taut_index *ids, int64_t rows, int64_t d)
{
    const int64_t pieces = blocks_for(rows, SPAN), across = blocks_for(d, THREADS),
                  stretches = blocks_for(rows, STRETCH);
    const size_t parts = (size_t)(pieces * d) * sizeof(double), numbers = (size_t)rows * sizeof(int);
    if (rows <= 0 || d <= 0) return;
    char *work = (char *)cuda_work(2 * parts + 2 * numbers);
    if (!work) return;
    int *place = (int *)(work + 2 * parts), *order = place + rows;
    const scene s = { at(table), at(y), at(ids), order, (double *)work, (double *)(work + parts), (int)rows, d };
    cuda_note(cudaMemsetAsync(place, 0, numbers, cuda_stream()), "scatter");
    CUDA_LAUNCH(count_before, blocks_for(rows, THREADS) * stretches, THREADS, 0, place, s.ids, s.rows, (int)stretches);
    each(placed{ order, place }, rows);
    CUDA_LAUNCH(add_pieces, pieces * across, THREADS, 0, s, across);
    CUDA_LAUNCH(add_long, pieces * across, THREADS, 0, s, across);
}
