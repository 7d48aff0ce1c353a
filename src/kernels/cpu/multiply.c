/* One thread's product of matrices, C = alpha A B + beta C, or with a bias.
 *
 * With AVX-512 or NEON our own (tiles_avx512.h, tiles_neon.h): a tile of C stays in registers while k runs.  The 64 columns of
 * B that it needs lie side by side in a panel, and the rows of A side by side too, CPU_DEPTH of k at a time: that much fits the
 * second cache.  At blocks of some hundred rows and columns it takes 0.7 to 1 of the time of OpenBLAS 0.3.21 with AVX-512, 0.5
 * to 1 with NEON.
 * Elsewhere, and where so few rows would not be worth a panel, OpenBLAS: neither alpha nor beta reaches it as 0, since its small
 * products on SkylakeX read A and B for alpha = 0, and C for beta = 0 (seen in 0.3.21).
 * Poison    NaN and infinity propagate from what is read.
 * Error     |C - exact| <= (k+8) 2^-24 (|alpha| |A| |B| + |beta C| + |bias|), entry by entry (no Strassen). */
#include "kernels/cpu/multiply.h"

#include <cblas.h>
#include <string.h>

typedef struct {
    float *c;
    int64_t c_step;
    cpu_matrix a, b;
    int64_t m, n, k;
    float alpha, beta;
    const float *bias;
    cpu_packed packed; /* at NULL: b is not */
} product;

/* One row or column: a matrix times a vector is four times faster than a matrix that thin. */
static void thin(const product *p)
{
    const bool column = p->n == 1;
    const cpu_matrix x = column ? p->a : p->b, by = column ? p->b : p->a;
    const bool across = column ? x.turned : !x.turned; /* the matrix lies with k as its rows */
    const int64_t len = column ? p->m : p->n, gap = column == by.turned ? 1 : by.step;
    cblas_sgemv(CblasRowMajor, across ? CblasTrans : CblasNoTrans, (int)(across ? p->k : len),
                (int)(across ? len : p->k), p->alpha, x.at, (int)x.step, by.at, (int)gap, p->beta, p->c,
                (int)(column ? p->c_step : 1));
}

static void by_blas(product *p)
{
    for (int64_t i = 0; p->beta == 0 && i < p->m; i++) {
        float *row = p->c + i * p->c_step;
        if (p->bias)
            memcpy(row, p->bias, (size_t)p->n * sizeof *row);
        else
            memset(row, 0, (size_t)p->n * sizeof *row);
    }
    if (p->beta == 0) p->beta = 1;
    if (p->m == 1 || p->n == 1)
        thin(p);
    else
        cblas_sgemm(CblasRowMajor, p->a.turned ? CblasTrans : CblasNoTrans, p->b.turned ? CblasTrans : CblasNoTrans,
                    (int)p->m, (int)p->n, (int)p->k, p->alpha, p->a.at, (int)p->a.step, p->b.at, (int)p->b.step,
                    p->beta, p->c, (int)p->c_step);
}

#if defined __AVX512F__
#include "kernels/cpu/tiles_avx512.h"
#elif defined __aarch64__ && defined __ARM_NEON
#include "kernels/cpu/tiles_neon.h"
#endif

#ifdef TAUT_KERNELS_CPU_TILES
/* Where the panel of the columns from j on, and of k from l on, of a B that is packed begins. */
static int64_t place(int64_t whole, int64_t k, int64_t l, int64_t j)
{
    return (whole + CPU_PANEL - 1) / CPU_PANEL * CPU_PANEL * l + j * cpu_min(CPU_DEPTH, k - l);
}

/* The rows from i on, k from l on: a panel at a time. */
static void block(const product *p, int64_t i, int64_t l, int64_t rows, const float *room, float *own)
{
    const int64_t depth = cpu_min(CPU_DEPTH, p->k - l);
    const bool first = l == 0, bias = first && p->bias;
    for (int64_t j = 0; j < p->n; j += CPU_PANEL) {
        const int64_t cols = cpu_min(CPU_PANEL, p->n - j);
        float *c = p->c + i * p->c_step + j;
        const cpu_packed *b = &p->packed;
        const float *panel = b->at ? b->at + place(b->whole, p->k, l, b->from + j) : own;
        if (!b->at) fill(own, p->b, l, j, depth, cols);
        const cpu_ending e = { p->alpha, first && !bias ? p->beta : 1,
                               bias                    ? p->bias + j
                               : first && p->beta == 0 ? NULL
                                                       : c,
                               bias ? 0 : p->c_step };
        tiles(c, p->c_step, room, p->a.turned, panel, rows, cols, depth, e);
    }
}

static void by_tiles(const product *p)
{
    _Alignas(64) float room[ROOM], panel[CPU_DEPTH * CPU_PANEL];
    for (int64_t i = 0; i < p->m; i += ROWS)
        for (int64_t l = 0; l < p->k; l += CPU_DEPTH) {
            const int64_t rows = cpu_min(ROWS, p->m - i);
            gather(room, p->a, i, l, rows, cpu_min(CPU_DEPTH, p->k - l));
            block(p, i, l, rows, room, panel);
        }
}

int64_t CPU(packed)(int64_t m, int64_t n, int64_t k) { return m > ROWS && n > 1 ? place(n, k, k, 0) : 0; }

void CPU(pack)(float *packed, cpu_matrix b, int64_t n, int64_t k, int64_t task)
{
    const int64_t across = (n + CPU_PANEL - 1) / CPU_PANEL, l = task / across * CPU_DEPTH,
                  j = task % across * CPU_PANEL;
    fill(packed + place(n, k, l, j), b, l, j, cpu_min(CPU_DEPTH, k - l), cpu_min(CPU_PANEL, n - j));
}
#else
enum { FEWEST = INT32_MAX };
static void by_tiles(const product *p) { (void)p; }
int64_t CPU(packed)(int64_t m, int64_t n, int64_t k) { return (void)m, (void)n, (void)k, 0; }
void CPU(pack)(float *packed, cpu_matrix b, int64_t n, int64_t k, int64_t task)
{
    (void)packed, (void)b, (void)n, (void)k, (void)task;
}
#endif

void CPU(multiply)(float *c, int64_t c_step, cpu_matrix a, cpu_matrix b, int64_t m, int64_t n, int64_t k, float alpha,
                   float beta, const float *bias)
{
    product p = { c, c_step, a, b, m, n, k, alpha, beta, bias, { 0 } };
    if (m < FEWEST || n == 1)
        by_blas(&p);
    else
        by_tiles(&p);
}

void CPU(multiply_packed)(float *c, int64_t c_step, cpu_matrix a, cpu_packed b, int64_t m, int64_t n, int64_t k,
                          float alpha, float beta, const float *bias)
{
    by_tiles(&(product){ c, c_step, a, { 0 }, m, n, k, alpha, beta, bias, b });
}
