/* TensorSketch by Fourier transforms (formulas: ref/sketch.c): a circular convolution is a product of spectra, and its
 * adjoint a product with conjugates.  A product that leaves one factor out is made from the others, never by a
 * division.
 *
 * A row is a block's, in shared memory, or in the workspace if it is long.  The entries of a bucket are listed first,
 * so that a bucket is summed by one thread, in order.  Sizes that are powers of two are transformed in log2(size) rounds,
 * others by the definition.  Degree 1 needs no transform: it is the sum of each bucket.
 * Poison    NaN or infinity in a row makes the row of the result NaN (degree 1: its bucket).  Aliasing: none.
 * Error     with u = 2^-24 (cuda64: 2^-53), k the degree, e = (k + 1) (6 log2(size) + d + 8) u and |.|_1 the sum of
 *           sizes: z e |x|_1^k,  jvp k e |tx|_1 |x|_1^(k-1),  vjp 2 u |gx before| + k e |gz|_1 |x|_1^(k-1). */
#include "kernels/cuda/each.h"
#include "kernels/cuda/reduce.h"

struct wave {
    real re, im;
};

__device__ static inline wave operator*(wave a, wave b)
{
    return wave{ a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re };
}
__device__ static inline wave operator+(wave a, wave b) { return wave{ a.re + b.re, a.im + b.im }; }
__device__ static inline wave operator-(wave a, wave b) { return wave{ a.re - b.re, a.im - b.im }; }
__device__ static inline wave conj(wave a) { return wave{ a.re, -a.im }; }

static const int TEAM = 64, BUFFERS = 5; /* threads of a row; numbers of `size` that it needs */

/* What all rows share. */
struct plan {
    int d, size, degree, bits; /* bits: size = 2^bits; 0: no power of two */
    const int32_t *hash;
    const int *order, *start; /* of factor t: its entries by bucket, t * d; where bucket b begins, t * (size + 1) */
    const wave *turn;         /* exp(-2 pi i j / size) */
    wave *room;               /* of the workspace; NULL: shared memory */
};

struct turns {
    wave *turn;
    int size;
    __device__ wave read(int64_t j) const
    {
        double s, c;
        sincospi(-2.0 * (double)j / size, &s, &c);
        return wave{ (real)c, (real)s };
    }
    __device__ void write(int64_t j, wave v) const { turn[j] = v; }
};

__device__ static inline int bucket_of(int32_t h) { return h < 0 ? ~h : h; }

/* Warp i < d of factor t finds the place of entry i among all, by bucket and then by index; warp d + b that of the first entry of
 * bucket b. */
static __global__ void __launch_bounds__(THREADS) list_entries(int *order, int *start, const plan p)
{
    const int64_t warp = team_row<WARP>(), each = p.d + p.size + 1;
    const int t = (int)(warp / each), i = (int)(warp % each), lane = team_lane<WARP>();
    if (t >= p.degree) return;
    const int32_t *hash = p.hash + t * p.d;
    const int own = i < p.d ? bucket_of(hash[i]) : i - p.d, entry = i < p.d ? i : 0;
    int before = 0;
    for (int j = lane; j < p.d; j += WARP) {
        const int b = bucket_of(hash[j]);
        before += b < own || (b == own && j < entry);
    }
    before = warp_sum(before);
    if (lane == 0 && i < p.d) order[t * p.d + before] = i;
    if (lane == 0 && i >= p.d) start[t * (p.size + 1) + own] = before;
}

/* A thread at work on its row. */
struct worker {
    const plan &p;
    wave *buffer, *other; /* what is transformed, and room for it */
    int lane;             /* of TEAM */

    __device__ int place(int b) const { return p.bits ? (int)(__brev((unsigned)b) >> (32 - p.bits)) : b; }

    __device__ real bucket(const real *x, int t, int b) const
    {
        const int *start = p.start + t * (p.size + 1), *order = p.order + t * p.d;
        const int32_t *hash = p.hash + t * p.d;
        real sum = 0;
        for (int k = start[b]; k < start[b + 1]; k++) sum += hash[order[k]] < 0 ? -x[order[k]] : x[order[k]];
        return sum;
    }

    __device__ void rounds(void) const
    {
        for (int half = 1; half < p.size; half *= 2) {
            for (int k = lane; k < p.size / 2; k += TEAM) {
                const int j = k & (half - 1), i = 2 * (k - j) + j;
                const wave a = buffer[i], b = p.turn[j * (p.size / (2 * half))] * buffer[i + half];
                buffer[i] = a + b;
                buffer[i + half] = a - b;
            }
            __syncthreads();
        }
    }

    __device__ void plainly(void) const
    {
        for (int f = lane; f < p.size; f += TEAM) {
            double re = 0, im = 0;
            for (int b = 0; b < p.size; b++) {
                const wave w = p.turn[(int64_t)f * b % p.size] * buffer[b];
                re += (double)w.re, im += (double)w.im;
            }
            other[f] = wave{ (real)re, (real)im };
        }
        __syncthreads();
        for (int f = lane; f < p.size; f += TEAM) buffer[f] = other[f];
        __syncthreads();
    }

    /* buffer, filled at place(b), becomes its transform. */
    __device__ void transform(void) const
    {
        __syncthreads();
        if (p.bits)
            rounds();
        else
            plainly();
    }

    __device__ void factor(const real *x, int t) const
    {
        for (int b = lane; b < p.size; b += TEAM) buffer[place(b)] = wave{ bucket(x, t, b), 0 };
        transform();
    }

    /* The real part of buffer after this is size times the inverse transform of s. */
    __device__ void back(const wave *s) const
    {
        for (int f = lane; f < p.size; f += TEAM) buffer[place(f)] = conj(s[f]);
        transform();
    }
};

/* The row of this block, and its memory. */
__device__ static inline wave *begin(int64_t *row, const plan &p)
{
    extern __shared__ char shared[];
    *row = blockIdx.x;
    return p.room ? p.room + *row * BUFFERS * p.size : (wave *)shared;
}

static __global__ void __launch_bounds__(TEAM) sketch_rows(real *z, const real *x, plan p)
{
    int64_t row;
    wave *room = begin(&row, p);
    const worker w = { p, room, room + p.size, (int)threadIdx.x };
    wave *all = room + 2 * p.size;
    x += row * p.d, z += row * p.size;
    if (p.degree == 1) {
        for (int b = w.lane; b < p.size; b += TEAM) z[b] = w.bucket(x, 0, b);
        return;
    }
    for (int t = 0; t < p.degree; t++) {
        w.factor(x, t);
        for (int f = w.lane; f < p.size; f += TEAM) all[f] = t ? all[f] * w.buffer[f] : w.buffer[f];
        __syncthreads();
    }
    w.back(all);
    for (int b = w.lane; b < p.size; b += TEAM) z[b] = w.buffer[b].re / (real)p.size;
}

/* The product and its derivative grow together: T = T C + P TC, P = P C. */
static __global__ void __launch_bounds__(TEAM) sketch_jvp_rows(real *tz, const real *tx, const real *x, plan p)
{
    int64_t row;
    wave *room = begin(&row, p);
    const worker w = { p, room, room + p.size, (int)threadIdx.x };
    wave *all = room + 2 * p.size, *slope = room + 3 * p.size, *moved = room + 4 * p.size;
    x += row * p.d, tx += row * p.d, tz += row * p.size;
    if (p.degree == 1) {
        for (int b = w.lane; b < p.size; b += TEAM) tz[b] = w.bucket(tx, 0, b);
        return;
    }
    for (int t = 0; t < p.degree; t++) {
        w.factor(tx, t);
        for (int f = w.lane; f < p.size; f += TEAM) moved[f] = w.buffer[f];
        __syncthreads();
        w.factor(x, t);
        for (int f = w.lane; f < p.size; f += TEAM) {
            slope[f] = t ? slope[f] * w.buffer[f] + all[f] * moved[f] : moved[f];
            all[f] = t ? all[f] * w.buffer[f] : w.buffer[f];
        }
        __syncthreads();
    }
    w.back(slope);
    for (int b = w.lane; b < p.size; b += TEAM) tz[b] = w.buffer[b].re / (real)p.size;
}

static __global__ void __launch_bounds__(TEAM) sketch_vjp_rows(real *gx, const real *gz, const real *x, plan p)
{
    int64_t row;
    wave *room = begin(&row, p);
    const worker w = { p, room, room + p.size, (int)threadIdx.x };
    wave *rest = room + 2 * p.size, *asked = room + 3 * p.size;
    x += row * p.d, gx += row * p.d, gz += row * p.size;
    if (p.degree > 1) {
        for (int b = w.lane; b < p.size; b += TEAM) w.buffer[w.place(b)] = wave{ gz[b], 0 };
        w.transform();
        for (int f = w.lane; f < p.size; f += TEAM) asked[f] = w.buffer[f];
        __syncthreads();
    }
    for (int t = 0; t < p.degree; t++) {
        for (int f = w.lane; f < p.size; f += TEAM) rest[f] = wave{ 1, 0 };
        for (int u = 0; u < p.degree; u++) {
            if (u == t) continue;
            w.factor(x, u);
            for (int f = w.lane; f < p.size; f += TEAM) rest[f] = rest[f] * w.buffer[f];
            __syncthreads();
        }
        if (p.degree > 1) {
            for (int f = w.lane; f < p.size; f += TEAM) rest[f] = asked[f] * conj(rest[f]);
            w.back(rest);
        }
        for (int i = w.lane; i < p.d; i += TEAM) {
            const int32_t h = p.hash[t * p.d + i], b = bucket_of(h);
            const real g = p.degree > 1 ? w.buffer[b].re / (real)p.size : gz[b];
            gx[i] += h < 0 ? -g : g;
        }
        __syncthreads();
    }
}

/* Blocks and shared memory of a launch; no blocks when there is nothing to do or no memory. */
struct launch {
    plan p;
    int64_t blocks;
    size_t shared;
};

static launch prepare(const taut_sketch_shape *s)
{
    const size_t row = (size_t)(BUFFERS * s->size) * sizeof(wave), lists = (size_t)(s->degree * (s->d + s->size + 1));
    const bool fits = row <= SHARED;
    const size_t waves = (size_t)s->size + (fits ? 0 : (size_t)(s->rows * BUFFERS * s->size));
    launch l = { { (int)s->d, (int)s->size, s->degree, 0, at(s->hash), NULL, NULL, NULL, NULL },
                 s->rows,
                 fits ? row : 0 };
    while ((int64_t)1 << l.p.bits < s->size) l.p.bits++;
    if ((int64_t)1 << l.p.bits != s->size) l.p.bits = 0;
    wave *turn = s->rows > 0 ? (wave *)cuda_work(waves * sizeof *turn + lists * sizeof(int)) : NULL;
    if (!turn) {
        l.blocks = 0;
        return l;
    }
    int *order = (int *)(turn + waves), *start = order + s->degree * s->d;
    l.p.order = order, l.p.start = start, l.p.turn = turn, l.p.room = fits ? NULL : turn + s->size;
    each(turns{ turn, l.p.size }, s->size);
    CUDA_LAUNCH(list_entries, blocks_for((int64_t)lists, THREADS / WARP), THREADS, 0, order, start, l.p);
    return l;
}

void CUDA(sketch)(taut_real *z, const taut_real *x, const taut_sketch_shape *s)
{
    const launch l = prepare(s);
    CUDA_LAUNCH(sketch_rows, l.blocks, TEAM, l.shared, at(z), at(x), l.p);
}

void CUDA(sketch_jvp)(taut_real *tz, const taut_real *tx, const taut_real *x, const taut_sketch_shape *s)
{
    const launch l = prepare(s);
    CUDA_LAUNCH(sketch_jvp_rows, l.blocks, TEAM, l.shared, at(tz), at(tx), at(x), l.p);
}

void CUDA(sketch_vjp)(taut_real *gx, const taut_real *gz, const taut_real *x, const taut_sketch_shape *s)
{
    const launch l = prepare(s);
    CUDA_LAUNCH(sketch_vjp_rows, l.blocks, TEAM, l.shared, at(gx), at(gz), at(x), l.p);
}
