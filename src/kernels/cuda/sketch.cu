/* TensorSketch by Fourier transforms (formulas: ref/sketch.c): a circular convolution is a product of spectra, and its
 * adjoint a product with conjugates.  A product that leaves one factor out is made from the others, never by a
 * division.
 *
 * A row is one warp's, in shared memory, or in the workspace if it is long.  The entries of a bucket are listed first,
 * so that a bucket is summed by one lane, in order.  Sizes that are powers of two are transformed in log2(size) rounds,
 * others by the definition.  Degree 1 needs no transform: it is the sum of each bucket.
 * Poison    NaN or infinity in a row makes the row of the result NaN (degree 1: its bucket).  Aliasing: none.
 * Error     with u = 2^-24 (cuda64: 2^-53), k the degree, e = (k + 1) (6 log2(size) + d + 8) u and |.|_1 the sum of
 *           sizes: z e |x|_1^k,  jvp k e |tx|_1 |x|_1^(k-1),  vjp 2 u |gx before| + k e |gz|_1 |x|_1^(k-1). */
#include "kernels/cuda/each.h"

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

static const int WARPS = 8, BUFFERS = 5; /* rows of a block at most; numbers of `size` that a row needs */
static const size_t SHARED = 48 << 10;

/* What all rows share. */
struct plan {
    int rows, d, size, degree, bits; /* bits: size = 2^bits; 0: no power of two */
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

/* Thread i < d of factor t finds the place of entry i among all, by bucket and then by index; thread d + b that of the first
 * entry of bucket b, as if it were entry 0 of that bucket. */
static __global__ void __launch_bounds__(THREADS)
    list_entries(int *order, int *start, const int32_t *hash, int d, int size, int blocks)
{
    __shared__ int bucket[THREADS];
    const int t = blockIdx.x / blocks, item = blockIdx.x % blocks * THREADS + threadIdx.x;
    const int i = item < d ? item : 0, own = item < d ? bucket_of(hash[t * d + i]) : item - d;
    int before = 0;
    for (int from = 0; from < d; from += THREADS) {
        const int there = min(THREADS, d - from);
        __syncthreads();
        if ((int)threadIdx.x < there) bucket[threadIdx.x] = bucket_of(hash[t * d + from + threadIdx.x]);
        __syncthreads();
        for (int j = 0; j < there; j++) before += bucket[j] < own || (bucket[j] == own && from + j < i);
    }
    if (item < d)
        order[t * d + before] = i;
    else if (own <= size)
        start[t * (size + 1) + own] = before;
}

/* A warp at work on its row. */
struct worker {
    const plan &p;
    wave *buffer, *other; /* what is transformed, and room for it */
    int lane;

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
            for (int k = lane; k < p.size / 2; k += WARP) {
                const int j = k & (half - 1), i = 2 * (k - j) + j;
                const wave a = buffer[i], b = p.turn[j * (p.size / (2 * half))] * buffer[i + half];
                buffer[i] = a + b;
                buffer[i + half] = a - b;
            }
            __syncwarp();
        }
    }

    __device__ void plainly(void) const
    {
        for (int f = lane; f < p.size; f += WARP) {
            double re = 0, im = 0;
            for (int b = 0; b < p.size; b++) {
                const wave w = p.turn[(int64_t)f * b % p.size] * buffer[b];
                re += (double)w.re, im += (double)w.im;
            }
            other[f] = wave{ (real)re, (real)im };
        }
        __syncwarp();
        for (int f = lane; f < p.size; f += WARP) buffer[f] = other[f];
        __syncwarp();
    }

    /* buffer, filled at place(b), becomes its transform. */
    __device__ void transform(void) const
    {
        __syncwarp();
        if (p.bits)
            rounds();
        else
            plainly();
    }

    __device__ void factor(const real *x, int t) const
    {
        for (int b = lane; b < p.size; b += WARP) buffer[place(b)] = wave{ bucket(x, t, b), 0 };
        transform();
    }

    /* The real part of buffer after this is size times the inverse transform of s. */
    __device__ void back(const wave *s) const
    {
        for (int f = lane; f < p.size; f += WARP) buffer[place(f)] = conj(s[f]);
        transform();
    }
};

/* Row and memory of this warp; false: there is no such row. */
__device__ static inline bool begin(int *row, wave **room, const plan &p)
{
    extern __shared__ char shared[];
    const int warps = blockDim.x / WARP, warp = threadIdx.x / WARP;
    *row = blockIdx.x * warps + warp;
    *room = p.room ? p.room + (int64_t)*row * BUFFERS * p.size : (wave *)shared + warp * BUFFERS * p.size;
    return *row < p.rows;
}

static __global__ void sketch_rows(real *z, const real *x, plan p)
{
    int row;
    wave *room;
    if (!begin(&row, &room, p)) return;
    const worker w = { p, room, room + p.size, (int)threadIdx.x % WARP };
    wave *all = room + 2 * p.size;
    x += (int64_t)row * p.d, z += (int64_t)row * p.size;
    if (p.degree == 1) {
        for (int b = w.lane; b < p.size; b += WARP) z[b] = w.bucket(x, 0, b);
        return;
    }
    for (int t = 0; t < p.degree; t++) {
        w.factor(x, t);
        for (int f = w.lane; f < p.size; f += WARP) all[f] = t ? all[f] * w.buffer[f] : w.buffer[f];
        __syncwarp();
    }
    w.back(all);
    for (int b = w.lane; b < p.size; b += WARP) z[b] = w.buffer[b].re / (real)p.size;
}

/* The product and its derivative grow together: T = T C + P TC, P = P C. */
static __global__ void sketch_jvp_rows(real *tz, const real *tx, const real *x, plan p)
{
    int row;
    wave *room;
    if (!begin(&row, &room, p)) return;
    const worker w = { p, room, room + p.size, (int)threadIdx.x % WARP };
    wave *all = room + 2 * p.size, *slope = room + 3 * p.size, *moved = room + 4 * p.size;
    x += (int64_t)row * p.d, tx += (int64_t)row * p.d, tz += (int64_t)row * p.size;
    if (p.degree == 1) {
        for (int b = w.lane; b < p.size; b += WARP) tz[b] = w.bucket(tx, 0, b);
        return;
    }
    for (int t = 0; t < p.degree; t++) {
        w.factor(tx, t);
        for (int f = w.lane; f < p.size; f += WARP) moved[f] = w.buffer[f];
        __syncwarp();
        w.factor(x, t);
        for (int f = w.lane; f < p.size; f += WARP) {
            slope[f] = t ? slope[f] * w.buffer[f] + all[f] * moved[f] : moved[f];
            all[f] = t ? all[f] * w.buffer[f] : w.buffer[f];
        }
        __syncwarp();
    }
    w.back(slope);
    for (int b = w.lane; b < p.size; b += WARP) tz[b] = w.buffer[b].re / (real)p.size;
}

static __global__ void sketch_vjp_rows(real *gx, const real *gz, const real *x, plan p)
{
    int row;
    wave *room;
    if (!begin(&row, &room, p)) return;
    const worker w = { p, room, room + p.size, (int)threadIdx.x % WARP };
    wave *rest = room + 2 * p.size, *asked = room + 3 * p.size;
    x += (int64_t)row * p.d, gx += (int64_t)row * p.d, gz += (int64_t)row * p.size;
    if (p.degree > 1) {
        for (int b = w.lane; b < p.size; b += WARP) w.buffer[w.place(b)] = wave{ gz[b], 0 };
        w.transform();
        for (int f = w.lane; f < p.size; f += WARP) asked[f] = w.buffer[f];
        __syncwarp();
    }
    for (int t = 0; t < p.degree; t++) {
        for (int f = w.lane; f < p.size; f += WARP) rest[f] = wave{ 1, 0 };
        for (int u = 0; u < p.degree; u++) {
            if (u == t) continue;
            w.factor(x, u);
            for (int f = w.lane; f < p.size; f += WARP) rest[f] = rest[f] * w.buffer[f];
            __syncwarp();
        }
        if (p.degree > 1) {
            for (int f = w.lane; f < p.size; f += WARP) rest[f] = asked[f] * conj(rest[f]);
            w.back(rest);
        }
        for (int i = w.lane; i < p.d; i += WARP) {
            const int32_t h = p.hash[t * p.d + i], b = bucket_of(h);
            const real g = p.degree > 1 ? w.buffer[b].re / (real)p.size : gz[b];
            gx[i] += h < 0 ? -g : g;
        }
        __syncwarp();
    }
}

/* Blocks, threads and shared memory of a launch; no blocks when there is nothing to do or no memory. */
struct launch {
    plan p;
    int64_t blocks;
    int threads;
    size_t shared;
};

static launch prepare(const taut_sketch_shape *s)
{
    const size_t row = (size_t)(BUFFERS * s->size) * sizeof(wave), lists = (size_t)(s->degree * (s->d + s->size + 1));
    const bool fits = row <= SHARED;
    const size_t warps = !fits ? WARPS : SHARED / row < WARPS ? SHARED / row : WARPS;
    const size_t waves = (size_t)s->size + (fits ? 0 : (size_t)(s->rows + WARPS) * BUFFERS * (size_t)s->size);
    launch l = { { (int)s->rows, (int)s->d, (int)s->size, s->degree, 0, at(s->hash), NULL, NULL, NULL, NULL },
                 blocks_for(s->rows, (int64_t)warps),
                 (int)warps * WARP,
                 fits ? warps * row : 0 };
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
    const int blocks = (int)blocks_for(s->d + s->size + 1, THREADS);
    CUDA_LAUNCH(list_entries, s->degree * blocks, THREADS, 0, order, start, l.p.hash, l.p.d, l.p.size, blocks);
    return l;
}

void CUDA(sketch)(taut_real *z, const taut_real *x, const taut_sketch_shape *s)
{
    const launch l = prepare(s);
    CUDA_LAUNCH(sketch_rows, l.blocks, l.threads, l.shared, at(z), at(x), l.p);
}

void CUDA(sketch_jvp)(taut_real *tz, const taut_real *tx, const taut_real *x, const taut_sketch_shape *s)
{
    const launch l = prepare(s);
    CUDA_LAUNCH(sketch_jvp_rows, l.blocks, l.threads, l.shared, at(tz), at(tx), at(x), l.p);
}

void CUDA(sketch_vjp)(taut_real *gx, const taut_real *gz, const taut_real *x, const taut_sketch_shape *s)
{
    const launch l = prepare(s);
    CUDA_LAUNCH(sketch_vjp_rows, l.blocks, l.threads, l.shared, at(gx), at(gz), at(x), l.p);
}
