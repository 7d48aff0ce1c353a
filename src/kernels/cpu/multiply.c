/* One thread's product of matrices, C = alpha A B + beta C, or with a bias.
 *
 * With AVX-512 or NEON our own (tiles_avx512.h, tiles_neon.h): a tile of C stays in registers while k runs.  The columns of
 * B that it needs lie side by side in a panel, and the rows of A in a strip, CPU_DEPTH of k at a time.  A strip meets all panels
 * that the second cache holds; with AVX-512 what A and B have next is fetched meanwhile, since a core waits long for memory.
 * Elsewhere, and where so few rows would not be worth a panel, OpenBLAS: neither alpha nor beta reaches it as 0, since its small
 * products on SkylakeX read A and B for alpha = 0, and C for beta = 0 (seen in 0.3.21).
 * Poison    NaN and infinity propagate from what is read.
 * Error     |C - exact| <= (k+8) 2^-24 (|alpha| |A| |B| + |beta C| + |bias|), entry by entry (no Strassen). */
#include "kernels/cpu/multiply.h"

#include <cblas.h>
#include <string.h>

/* One row or column: a matrix times a vector is four times faster than a matrix that thin. */
static void thin(const cpu_product *p)
{
    const bool column = p->n == 1;
    const cpu_matrix x = column ? p->a : p->b, by = column ? p->b : p->a;
    const bool across = column ? x.turned : !x.turned; /* the matrix lies with k as its rows */
    const int64_t len = column ? p->m : p->n, gap = column == by.turned ? 1 : by.step;
    cblas_sgemv(CblasRowMajor, across ? CblasTrans : CblasNoTrans, (int)(across ? p->k : len),
                (int)(across ? len : p->k), p->alpha, x.at, (int)x.step, by.at, (int)gap, p->beta, p->c,
                (int)(column ? p->c_step : 1));
}

static void by_blas(cpu_product p)
{
    for (int64_t i = 0; p.beta == 0 && i < p.m; i++) {
        float *row = p.c + i * p.c_step;
        if (p.bias)
            memcpy(row, p.bias, (size_t)p.n * sizeof *row);
        else
            memset(row, 0, (size_t)p.n * sizeof *row);
    }
    if (p.beta == 0) p.beta = 1;
    if (p.m == 1 || p.n == 1)
        thin(&p);
    else
        cblas_sgemm(CblasRowMajor, p.a.turned ? CblasTrans : CblasNoTrans, p.b.turned ? CblasTrans : CblasNoTrans,
                    (int)p.m, (int)p.n, (int)p.k, p.alpha, p.a.at, (int)p.a.step, p.b.at, (int)p.b.step, p.beta, p.c,
                    (int)p.c_step);
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

/* The blocks of A and of a B that is not packed that come after those at row i and number l of k. */
static void look_ahead(cpu_ahead next[2], const cpu_product *p, int64_t i, int64_t l)
{
    const bool deeper = l + CPU_DEPTH < p->k, last = !deeper && i + ROWS >= p->m;
    const int64_t row = deeper ? i : i + ROWS, depth = deeper ? l + CPU_DEPTH : 0;
    const cpu_matrix a = p->a, b = p->b;
    const float *at = last ? p->a_then : a.at + (a.turned ? depth * a.step + row : row * a.step + depth);
    next[0] = next[1] = (cpu_ahead){ p->c, 0, 0 }; /* what is there anyway */
    if (at) next[0] = (cpu_ahead){ at, a.step, a.turned ? CPU_DEPTH : ROWS };
    if (p->packed.at || b.turned) return;
    at = last ? p->b_then : b.at + depth * b.step;
    if (at) next[1] = (cpu_ahead){ at, b.step, CPU_DEPTH };
}

/* How a tile at the columns from j on ends: bias and beta belong to the first numbers of k. */
static cpu_ending ending(const cpu_product *p, const float *c, int64_t l, int64_t j)
{
    if (l > 0) return (cpu_ending){ p->alpha, 1, c, p->c_step };
    if (p->bias) return (cpu_ending){ p->alpha, 1, p->bias + j, 0 };
    return (cpu_ending){ p->alpha, p->beta, p->beta == 0 ? NULL : c, p->c_step };
}

/* What the mask leaves of the strip of `high` rows from i on: of `depth` numbers of k from l on, of `cols` columns from j on. */
static cpu_span span(const cpu_product *p, int64_t i, int64_t high, int64_t l, int64_t depth, int64_t j, int64_t cols)
{
    const int64_t end = p->seen + i + high - 1; /* of the last row */
    if (p->mask == CPU_MASKED_C) return (cpu_span){ 0, depth, cpu_min(cols, (end - j + WHOLE - 1) / WHOLE * WHOLE) };
    if (p->mask == CPU_MASKED_A && p->a.turned) return (cpu_span){ -cpu_min(0, l - (i - p->seen + 1)), depth, cols };
    if (p->mask == CPU_MASKED_A) return (cpu_span){ 0, cpu_min(depth, end - l), cols };
    return (cpu_span){ 0, depth, cols };
}

/* The rows from i on, k from l on: as many columns at a time as the second cache holds of B. */
static void block(const cpu_product *p, int64_t i, int64_t l, float *room, float *own)
{
    const int64_t depth = cpu_min(CPU_DEPTH, p->k - l), rows = cpu_min(ROWS, p->m - i);
    const cpu_packed *b = &p->packed;
    const int64_t most = b->at ? COLUMNS : OWN;
    cpu_ahead next[2];
    look_ahead(next, p, i, l);
    gather(room, p->a, i, l, rows, depth);
    for (int64_t j = 0; j < p->n; j += most) {
        const int64_t cols = cpu_min(most, p->n - j);
        const float *panels = b->at ? b->at + place(b->whole, p->k, l, b->from + j) : own;
        for (int64_t x = 0; !b->at && x < cols; x += CPU_PANEL)
            fill(own + x * depth, p->b, l, j + x, depth, cpu_min(CPU_PANEL, cols - x));
        for (int64_t r = 0; r < rows; r += HIGH) {
            const int64_t high = cpu_min(HIGH, rows - r);
            const cpu_span s = span(p, i + r, high, l, depth, j, cols);
            if (s.from >= s.to || s.cols <= 0) continue;
            const float *a = strip(room, p->a, i + r, l, r, high, depth);
            float *c = p->c + (i + r) * p->c_step + j;
            tiles(c, p->c_step, a, p->a, panels, high, depth, s, ending(p, c, l, j), next);
        }
    }
}

static void by_tiles(const cpu_product *p)
{
    _Alignas(64) float room[ROOM], own[CPU_DEPTH * OWN];
    for (int64_t i = 0; i < p->m; i += ROWS)
        for (int64_t l = 0; l < p->k; l += CPU_DEPTH) block(p, i, l, room, own);
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
static void by_tiles(const cpu_product *p) { (void)p; }
int64_t CPU(packed)(int64_t m, int64_t n, int64_t k) { return (void)m, (void)n, (void)k, 0; }
void CPU(pack)(float *packed, cpu_matrix b, int64_t n, int64_t k, int64_t task)
{
    (void)packed, (void)b, (void)n, (void)k, (void)task;
}
#endif

void CPU(multiply)(const cpu_product *p)
{
    if (p->tiled || (p->m >= FEWEST && p->n > 1))
        by_tiles(p);
    else
        by_blas(*p);
}
