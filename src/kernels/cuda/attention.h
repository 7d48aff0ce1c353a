/* What the kernels of softmax attention share: whose turn a block is, logits, masks, memory for tiles. */
#ifndef TAUT_KERNELS_CUDA_ATTENTION_H
#define TAUT_KERNELS_CUDA_ATTENTION_H
#include "kernels/cuda/tile.h"

enum { KEYS = 128 / sizeof(real), CELLS = KEYS / 8, WIDEST = 256 }; /* of a tile that passes by */

static const real LOG2E = (real)1.4426950408889634, LN2 = (real)0.6931471805599453;

/* Logits are kept in units of ln 2, so that exp2 serves. */
struct attn {
    int64_t stride; /* from a token to the next */
    int tq, tk, heads, dh, lines;
    real scale, factor; /* of a product: scale, scale / ln 2 */
    bool causal, alibi;
};

static inline attn attn_of(const taut_attn *a)
{
    return { a->heads * a->dh, (int)a->tq,
             (int)a->tk,       (int)a->heads,
             (int)a->dh,       (int)(a->dh + LINE - 1) / LINE,
             (real)a->scale,   (real)(a->scale * 1.4426950408889634),
             a->causal,        a->alibi };
}

/* A block has `rows` rows of one head of one example; the last rows come first where they have most to do. */
struct place {
    int first, head;
    int64_t of; /* example * heads + head */
    real slope; /* ALiBi's, in units of ln 2 */
};

static __device__ inline place place_of(const attn &a, int t, int rows, bool backwards)
{
    const int blocks = (int)((t + rows - 1) / rows), b = blockIdx.x % blocks;
    place p = { (backwards ? blocks - 1 - b : b) * rows, (int)(blockIdx.x / blocks % a.heads), blockIdx.x / blocks, 0 };
    if (a.alibi) p.slope = (real)(exp2(-8.0 * (p.head + 1) / a.heads) * 1.4426950408889634);
    return p;
}

/* The head's part of token 0 of its example, in an array of t tokens. */
static __device__ inline int64_t head_at(const attn &a, const place &p, int64_t t)
{
    return (p.of / a.heads * t) * a.stride + (int64_t)p.head * a.dh;
}

static __device__ inline bool attn_sees(const attn &a, int i, int j)
{
    return j < a.tk && (!a.causal || j <= i + a.tk - a.tq);
}

static __device__ inline double attn_exp2(double x) { return exp2(x); }
static __device__ inline float attn_exp2(float x)
{
    float y;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}

/* How a lane's cell entry x of cell n stands: row and column inside the tile of rows and the tile that passes by. */
static __device__ inline int cell_row(int first, int m, int x) { return first + 16 * m + 8 * (x / 2) + lane_g(); }
static __device__ inline int cell_column(int n, int x) { return 8 * n + 2 * lane_t() + x % 2; }

/* ALiBi; and -inf where query and key do not meet, if `edge` says that this can be.  KEYED: rows are keys. */
template <bool KEYED, int M, int N>
static __device__ inline void attn_mask(cell (&s)[M][N], const attn &a, const place &p, int row, int column, bool edge)
{
    if (!a.alibi && !edge) return;
#pragma unroll
    for (int m = 0; m < M; m++)
#pragma unroll
        for (int n = 0; n < N; n++)
#pragma unroll
            for (int x = 0; x < 4; x++) {
                const int r = cell_row(row, m, x), c = column + cell_column(n, x);
                const int i = KEYED ? c : r, j = KEYED ? r : c;
                if (a.alibi) s[m][n].x[x] -= p.slope * (real)abs(i + a.tk - a.tq - j);
                if (edge && !(attn_sees(a, i, j) && i < a.tq)) s[m][n].x[x] = -INFINITY;
            }
}

/* Products become logits. */
template <bool KEYED, int M, int N>
static __device__ inline void attn_logits(cell (&s)[M][N], const attn &a, const place &p, int row, int column,
                                          bool edge)
{
#pragma unroll
    for (int m = 0; m < M; m++)
#pragma unroll
        for (int n = 0; n < 4 * N; n++) s[m][n / 4].x[n % 4] *= a.factor;
    attn_mask<KEYED>(s, a, p, row, column, edge);
}

/* Queries and keys that pass by: which keys the rows first .. first + rows - 1 see at all, whether they all see a
 * whole tile. */
static __device__ inline int keys_end(const attn &a, int first, int rows)
{
    const int64_t last = (int64_t)first + rows - 1 + a.tk - a.tq + 1;
    return a.causal && last < a.tk ? (last > 0 ? (int)last : 0) : a.tk;
}
static __device__ inline bool keys_partly(const attn &a, int first, int from)
{
    return a.causal && from + KEYS - 1 > first + a.tk - a.tq;
}

static inline int64_t attn_processors(void)
{
    int count = 1, device = 0;
    cuda_note(cudaGetDevice(&device), "attention");
    cuda_note(cudaDeviceGetAttribute(&count, cudaDevAttrMultiProcessorCount, device), "attention");
    return count;
}

/* A kernel's blocks: at most `warps` warps of `high` rows each, and the memory of their tiles in numbers per row and
 * beside rows. */
struct crew {
    int warps, high;
    size_t per_row, beside;
};

/* Launches a kernel with `across` blocks for every few of the t rows of every head of n examples.  Fewer warps than
 * asked for where fewer have all rows, or the memory of a processor is too small; bits do not depend on it. */
template <class... ARGS>
static void attn_launch(void (*kernel)(ARGS...), crew c, int64_t n, const attn &a, int64_t t, int64_t across,
                        ARGS... args)
{
    const auto room = [&] { return (c.per_row * c.warps * c.high + c.beside) * sizeof(real); };
    while (c.warps > 1 && (c.warps / 2 * c.high >= t || room() > SHARED_MOST)) c.warps /= 2;
    const int64_t rows = c.warps * c.high, blocks = n * a.heads * ((t + rows - 1) / rows);
    if (a.dh > WIDEST) cuda_fault("attention: heads wider than 256 are not for this device");
    if (blocks * across == 0 || cuda_failed()) return;
    cuda_note(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)room()), "attention");
    kernel<<<dim3((unsigned)blocks, (unsigned)across), 32 * c.warps, room(), cuda_stream()>>>(args...);
    cuda_note(cudaGetLastError(), "attention");
}

/* attention_half.cu, attention_bf16.cu and their vjp: attention of floats with heads of at most 128. */
void attention_by_halves(real *o, real *lse, const real *q, const real *k, const real *v, int64_t n, const attn &a);
void attention_by_bf16(real *o, real *lse, const real *q, const real *k, const real *v, int64_t n, const attn &a);

struct attn_back {
    real *gq, *gk, *gv;
    const real *go, *o, *lse, *q, *k, *v;
};
void attention_vjp_by_halves(const attn_back &, int64_t n, const attn &a);
void attention_vjp_by_bf16(const attn_back &, int64_t n, const attn &a);
#endif
