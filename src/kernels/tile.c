/* A tile of C, some rows by some columns, stays in registers while k runs; the columns of B that it needs lie side by side in
 * a panel.  What differs between processors is how many numbers a register holds, and how many registers there are.  Products
 * and sums are two instructions: fused ones would be other bits. */
#include "kernels/tile.h"

#include <string.h>

/* So much of k at a time that a panel fits the first cache, and a line of a cache. */
enum { SLICE = 256, MOST_ROWS = 8, MOST_COLS = 16, LINE = 8 };

typedef void run(double *c, int64_t n, const double *a, int64_t k, const double *panel, int64_t depth);
typedef struct {
    int64_t rows, cols;
    run *tile, *row; /* C += A panel: of so many rows; of one */
    bool (*there)(void);
} kind;

/* Lanes lie anywhere in memory. */
typedef double lane2 __attribute__((vector_size(16), aligned(8), may_alias));

/* The loops are short, and unrolled, or the sums would live in memory. */
#define ALL(i, count) _Pragma("GCC unroll 8") for (int i = 0; i < (count); i++)
#define RUN(name, target, lane, rows, cols)                                                                       \
    target static void name(double *c, int64_t n, const double *a, int64_t k, const double *panel, int64_t depth) \
    {                                                                                                             \
        enum { WIDE = sizeof(lane) / sizeof(double), LANES = (cols) / WIDE };                                     \
        lane sum[rows][LANES];                                                                                    \
        ALL(i, rows) ALL(j, LANES) sum[i][j] = *(const lane *)(c + i * n + j * WIDE);                             \
        for (int64_t l = 0; l < depth; l++, panel += (cols))                                                      \
            ALL(i, rows) ALL(j, LANES) sum[i][j] += a[i * k + l] * *(const lane *)(panel + j * WIDE);             \
        ALL(i, rows) ALL(j, LANES) { *(lane *)(c + i * n + j * WIDE) = sum[i][j]; }                               \
    }

RUN(tile_any, , lane2, 4, 8)
RUN(row_any, , lane2, 1, 8)
static bool any(void) { return true; }

#if defined __x86_64__
typedef double lane4 __attribute__((vector_size(32), aligned(8), may_alias));
typedef double lane8 __attribute__((vector_size(64), aligned(8), may_alias));
RUN(tile_avx2, __attribute__((target("avx2"))), lane4, 4, 8)
RUN(row_avx2, __attribute__((target("avx2"))), lane4, 1, 8)
RUN(tile_avx512, __attribute__((target("avx512f"))), lane8, 8, 16)
RUN(row_avx512, __attribute__((target("avx512f"))), lane8, 1, 16)
static bool avx2(void) { return __builtin_cpu_supports("avx2"); }
static bool avx512(void) { return __builtin_cpu_supports("avx512f"); }
#endif

static const kind kinds[] = {
    { 4, 8, tile_any, row_any, any },
#if defined __x86_64__
    { 4, 8, tile_avx2, row_avx2, avx2 },
    { 8, 16, tile_avx512, row_avx512, avx512 },
#endif
};
enum { KINDS = sizeof kinds / sizeof *kinds };

/* The columns of C from the first of the panel on, `cols` of them; those that the panel has beyond are made, and dropped. */
static void column(const kind *by, double *c, const double *a, taut_steps s, const double *panel, int64_t depth,
                   int64_t cols)
{
    double some[MOST_ROWS * MOST_COLS] = { 0 };
    for (int64_t i = 0, rows; i < s.m; i += rows) {
        rows = s.m - i < by->rows ? 1 : by->rows;
        run *const one = rows == 1 ? by->row : by->tile;
        if (cols == by->cols) {
            one(c + i * s.c, s.c, a + i * s.a, s.a, panel, depth);
            continue;
        }
        for (int64_t r = 0; r < rows; r++) memcpy(some + r * by->cols, c + (i + r) * s.c, (size_t)cols * sizeof *some);
        one(some, by->cols, a + i * s.a, s.a, panel, depth);
        for (int64_t r = 0; r < rows; r++) memcpy(c + (i + r) * s.c, some + r * by->cols, (size_t)cols * sizeof *some);
    }
}

/* What a panel lacks at the right edge of B is 0. */
static void fill(double *panel, int64_t wide, const double *b, taut_steps s, int64_t depth, int64_t cols)
{
    if (cols < wide) memset(panel, 0, (size_t)(depth * wide) * sizeof *panel);
    if (s.right == 1)
        for (int64_t l = 0; l < depth; l++) memcpy(panel + l * wide, b + l * s.down, (size_t)cols * sizeof *panel);
    else
        for (int64_t l = 0; l < depth; l += LINE)
            for (int64_t x = 0; x < cols; x++)
                for (int64_t i = l; i < depth && i < l + LINE; i++) panel[i * wide + x] = b[i * s.down + x * s.right];
}

/* The columns of C from j on that a panel holds. */
static void columns(const kind *by, double *c, const double *a, const double *b, taut_steps s, int64_t j)
{
    _Alignas(64) double panel[SLICE * MOST_COLS];
    const int64_t cols = s.n - j < by->cols ? s.n - j : by->cols;
    for (int64_t from = 0; from < s.k; from += SLICE) {
        const int64_t depth = s.k - from < SLICE ? s.k - from : SLICE;
        fill(panel, by->cols, b + from * s.down + j * s.right, s, depth, cols);
        column(by, c + j, a + from, s, panel, depth, cols);
    }
}

static void all(const kind *by, double *c, const double *a, const double *b, taut_steps s)
{
    for (int64_t i = 0; i < s.m; i++) memset(c + i * s.c, 0, (size_t)s.n * sizeof *c);
    if (s.m * s.n * s.k <= 100000) { /* a parallel region costs a call of the system even if its `if` says no */
        for (int64_t j = 0; j < s.n; j += by->cols) columns(by, c, a, b, s, j);
        return;
    }
#pragma omp parallel for schedule(static)
    for (int64_t j = 0; j < s.n; j += by->cols) columns(by, c, a, b, s, j);
}

bool taut_tiles_by(int which, double *c, const double *a, const double *b, taut_steps s)
{
    if (which < 0 || which >= KINDS || !kinds[which].there()) return false;
    all(&kinds[which], c, a, b, s);
    return true;
}

void taut_tiles(double *c, const double *a, const double *b, taut_steps s)
{
    int best = KINDS - 1;
    while (!taut_tiles_by(best, c, a, b, s)) best--;
}
