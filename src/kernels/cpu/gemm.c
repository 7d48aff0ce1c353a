/* C (m,n) = alpha op(A) op(B) + beta C, row-major: one thread a piece (multiply.h).
 *
 * A piece is a block of C and a slice of k; the cut depends on m, n and k alone, so the same bits come out
 * for any thread count.  Blocks should be large, since a piece packs its strips of A and B anew: 256 x 256
 * where there is enough of C.  With tiles of our own, a B that several rows of pieces meet is packed once for all, and rows
 * are cut first, so that A is packed few times.  Where C is small and k long (weight gradients), k is cut too: slice 0 goes
 * to C, the others to scratch, and they are added to C in order.
 * Poison    NaN and infinity propagate; with alpha = 0 nothing in A and B does, with beta = 0 nothing in C.
 * Error     |C - exact| <= (k+8) 2^-24 (|alpha| |op A| |op B| + |beta C| + |bias|), entry by entry (no Strassen). */
#include <omp.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "kernels/cpu/multiply.h"

typedef struct {
    float *c, *scratch, *packed; /* packed: B, slice behind slice; or NULL */
    const float *a, *b, *bias;   /* bias: of a column; or NULL */
    int64_t m, n, k;
    bool ta, tb;
    float alpha, beta;
    int64_t rows, cols, depth; /* of a piece */
    int64_t packs;             /* the length of B when it is packed; 0: it is not */
} product;

static int64_t pieces(int64_t whole, int64_t part) { return part > 0 ? (whole + part - 1) / part : 1; }

/* About half, but a multiple of what inner kernels like. */
static int64_t half(int64_t x, int64_t like) { return ((x + 1) / 2 + like - 1) / like * like; }

static int64_t tasks(const product *p)
{
    return pieces(p->m, p->rows) * pieces(p->n, p->cols) * pieces(p->k, p->depth);
}

static void halve_block(product *p)
{
    if (p->rows >= p->cols)
        p->rows = half(p->rows, 16);
    else
        p->cols = half(p->cols, CPU_PANEL);
}

static void cut(product *p)
{
    enum { ENOUGH = 16, FEW = 4, HEIGHT = 256, BLOCK = 256 * 256, SIDE = 64, DEPTH = 512, WORTH = 1 << 21 };
    p->rows = p->m;
    p->cols = p->n;
    p->depth = p->k;
    while (p->packs > 0 && tasks(p) < ENOUGH && p->rows >= 2 * HEIGHT) p->rows = half(p->rows, 16);
    while (tasks(p) < ENOUGH && p->rows * p->cols > BLOCK) halve_block(p);
    while (tasks(p) < ENOUGH && p->depth >= 2 * DEPTH) p->depth = half(p->depth, 16);
    while (tasks(p) < FEW && p->rows + p->cols > 2 * SIDE && p->rows * p->cols * p->depth > WORTH) halve_block(p);
}

/* B from row l and column j on. */
static cpu_matrix b_from(const product *p, int64_t l, int64_t j)
{
    const int64_t ldb = p->tb ? p->k : p->n;
    return (cpu_matrix){ p->b + (p->tb ? j * ldb + l : l * ldb + j), ldb, p->tb };
}

static float *packed_slice(const product *p, int64_t l) { return p->packed + p->packs / p->k * l; }

static cpu_product piece(const product *p, int64_t task)
{
    const int64_t across = pieces(p->n, p->cols), down = pieces(p->m, p->rows), lda = p->ta ? p->m : p->k;
    const int64_t j = task % across * p->cols, i = task / across % down * p->rows, slice = task / across / down;
    const int64_t l = slice * p->depth;
    return (cpu_product){ .c = (slice ? p->scratch + (slice - 1) * p->m * p->n : p->c) + i * p->n + j,
                          .c_step = p->n,
                          .a = { p->a + (p->ta ? l * lda + i : i * lda + l), lda, p->ta },
                          .b = b_from(p, l, j),
                          .packed = { p->packed ? packed_slice(p, l) : NULL, p->n, j },
                          .tiled = p->packs > 0,
                          .m = cpu_min(p->rows, p->m - i),
                          .n = cpu_min(p->cols, p->n - j),
                          .k = cpu_min(p->depth, p->k - l),
                          .alpha = p->alpha,
                          .beta = slice ? 0 : p->beta,
                          .bias = p->bias && !slice ? p->bias + j : NULL };
}

/* A thread that is done with this piece will take the one that many places behind it, if all are equally fast. */
static void multiply_piece(const product *p, int64_t task, int64_t count)
{
    cpu_product now = piece(p, task);
    const int64_t threads = omp_get_num_threads();
    if (task + threads < count) {
        const cpu_product then = piece(p, task + threads);
        now.a_then = then.a.at;
        now.b_then = then.b.at;
    }
    CPU(multiply)(&now);
}

static void pack_all(const product *p, int64_t slices)
{
    for (int64_t slice = 0; slice < slices; slice++) {
        const int64_t l = slice * p->depth, depth = cpu_min(p->depth, p->k - l);
#pragma omp for schedule(static)
        for (int64_t task = 0; task < cpu_panels(p->n, depth); task++)
            CPU(pack)(packed_slice(p, l), b_from(p, l, 0), p->n, depth, task);
    }
}

static void add_slices(const product *p, int64_t slices)
{
    const int64_t len = p->m * p->n;
#pragma omp for schedule(static)
    for (int64_t from = 0; from < len; from += CPU_CHUNK)
        for (int64_t slice = 1; slice < slices; slice++) {
            const float *add = p->scratch + (slice - 1) * len;
#pragma omp simd
            for (int64_t i = from; i < cpu_min(len, from + CPU_CHUNK); i++) p->c[i] += add[i];
        }
}

static void multiply(product p)
{
    p.packs = CPU(packed)(p.m, p.n, p.k);
    cut(&p);
    if (p.m <= p.rows) p.packs = 0; /* no panel of B serves two pieces: each packs its own when it comes to it */
    const int64_t count = tasks(&p), slices = pieces(p.k, p.depth);
    if (count == 1) {
        p.packs = 0;
        multiply_piece(&p, 0, 1);
        return;
    }
    float *room = p.packs ? taut_malloc((size_t)(p.packs + CPU_LINE) * sizeof(float)) : NULL;
    if (room) p.packed = cpu_line(room); /* without memory every piece packs its own: the same bits */
    if (slices > 1) {
        p.scratch = taut_malloc((size_t)((slices - 1) * p.m * p.n) * sizeof(float));
        TAUT_CHECK(p.scratch, "gemm: no memory for the slices");
    }
#pragma omp parallel
    {
        if (p.packed) pack_all(&p, slices);
#pragma omp for schedule(dynamic)
        for (int64_t task = 0; task < count; task++) multiply_piece(&p, task, count);
        if (slices > 1) add_slices(&p, slices);
    }
    free(p.scratch);
    free(room);
}

void CPU(gemm)(taut_real *c, const taut_real *a, const taut_real *b, int64_t m, int64_t n, int64_t k, bool ta, bool tb,
               double alpha, double beta)
{
    if (m <= 0 || n <= 0) return;
    if ((float)alpha == 0 || k <= 0) {
        CPU(axpby)(c, 0, c, beta, m * n);
        return;
    }
    multiply((product){ .c = (float *)c,
                        .a = (const float *)a,
                        .b = (const float *)b,
                        .m = m,
                        .n = n,
                        .k = k,
                        .ta = ta,
                        .tb = tb,
                        .alpha = (float)alpha,
                        .beta = (float)beta });
}

void CPU(gemm_by)(taut_real *c, const taut_real *a, const taut_real *b, int64_t m, int64_t n, int64_t k, bool ta,
                  bool tb, taut_factor alpha, double beta)
{
    CPU(gemm)(c, a, b, m, n, k, ta, tb, cpu_factor(alpha, 0), beta);
}

void CPU(gemm_each)(taut_real *c, const taut_real *p, const taut_real *a, const taut_real *b, int64_t count, int64_t m,
                    int64_t n, int64_t k, bool ta, bool tb, double alpha, double beta)
{
    if (p != c && beta != 0) CPU(axpby)(c, 1, p, 0, count * m * n);
    for (int64_t i = 0; i < count; i++) CPU(gemm)
    ((taut_real *)((float *)c + i * m * n), (const taut_real *)((const float *)a + i * m * k),
     (const taut_real *)((const float *)b + i * k * n), m, n, k, ta, tb, alpha, beta);
}

void CPU(affine)(taut_real *y, const taut_real *x, const taut_real *w, const taut_real *b, int64_t rows, int64_t out,
                 int64_t in, double alpha)
{
    if (rows <= 0 || out <= 0) return;
    if ((float)alpha == 0 || in <= 0) {
        CPU(axpby)(y, 0, y, 0, rows * out);
        if (b) CPU(add_rows)(y, y, b, rows, out, 1);
        return;
    }
    multiply((product){ .c = (float *)y,
                        .a = (const float *)x,
                        .b = (const float *)w,
                        .bias = (const float *)b,
                        .m = rows,
                        .n = out,
                        .k = in,
                        .tb = true,
                        .alpha = (float)alpha });
}

taut_status CPU(products)(taut_products how)
{
    if (how == TAUT_PRODUCTS_FP32) return TAUT_OK;
    return taut_fail(TAUT_BAD_CONFIG, "kernels cpu make products in full precision only, not in tf32 or bf16");
}
