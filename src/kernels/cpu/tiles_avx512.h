/* Tiles of a product with AVX-512, for multiply.c: six rows by 64 columns of C stay in registers while k runs.  The 64 columns of
 * B that they need lie side by side in a panel, and the rows of A side by side too. */
#ifndef TAUT_KERNELS_CPU_TILES_AVX512_H
#define TAUT_KERNELS_CPU_TILES_AVX512_H
#define TAUT_KERNELS_CPU_TILES
#include "kernels/cpu/multiply.h"

#include <string.h>

enum {
    WIDE = 16, /* numbers in a register */
    HIGH = 6,  /* rows of a tile */
    PANEL = CPU_PANEL,
    DEPTH = CPU_DEPTH,
    ROWS = 264, /* of A at a time: a multiple of HIGH */
    STRIDE =
        272, /* from one row of A to the next: more than DEPTH, and no power of two, for the sake of the first cache */
    EIGHT = 8,
    ROOM = ROWS * STRIDE,
    FEWEST = 16 /* rows that are worth a panel */
};
typedef float lane __attribute__((vector_size(64), aligned(4), may_alias));

/* The loops are short, and unrolled, or the sums would live in memory. */
#define ALL(i, count) _Pragma("GCC unroll 16") for (int i = 0; i < (count); i++)
typedef void run(float *c, int64_t c_step, const float *a, const float *panel, int64_t depth, cpu_ending);

/* `down` from one row of A to the next, `right` from one number of a row to the next. */
#define RUN(name, rows, lanes, down, right)                                                                           \
    static void name(float *c, int64_t c_step, const float *a, const float *panel, int64_t depth, cpu_ending e)       \
    {                                                                                                                 \
        lane sum[rows][lanes] = { 0 }, b[lanes];                                                                      \
        ALL(i, rows) ALL(j, lanes) __builtin_prefetch(c + i * c_step + j * WIDE, 1);                                  \
        for (int64_t l = 0; l < depth; l++, panel += PANEL, a += (right)) {                                           \
            ALL(j, lanes) b[j] = *(const lane *)(panel + j * WIDE);                                                   \
            ALL(i, rows)                                                                                              \
            {                                                                                                         \
                const lane x = a[i * (down)] - (lane){ 0 };                                                           \
                ALL(j, lanes) sum[i][j] += x * b[j];                                                                  \
            }                                                                                                         \
        }                                                                                                             \
        ALL(i, rows) ALL(j, lanes) sum[i][j] *= e.alpha;                                                              \
        if (e.plus) ALL(i, rows) ALL(j, lanes) sum[i][j] += e.beta * *(const lane *)(e.plus + i * e.step + j * WIDE); \
        ALL(i, rows) ALL(j, lanes) { *(lane *)(c + i * c_step + j * WIDE) = sum[i][j]; }                              \
    }
#define RUNS(rows)                          \
    RUN(along##rows##1, rows, 1, STRIDE, 1) \
    RUN(along##rows##2, rows, 2, STRIDE, 1) \
    RUN(along##rows##3, rows, 3, STRIDE, 1) \
    RUN(along##rows##4, rows, 4, STRIDE, 1) \
    RUN(across##rows##1, rows, 1, 1, HIGH)  \
    RUN(across##rows##2, rows, 2, 1, HIGH)  \
    RUN(across##rows##3, rows, 3, 1, HIGH)  \
    RUN(across##rows##4, rows, 4, 1, HIGH)
RUNS(1)
RUNS(2)
RUNS(3)
RUNS(4)
RUNS(5)
RUNS(6)
#define OF(way, rows)                                          \
    {                                                          \
        way##rows##1, way##rows##2, way##rows##3, way##rows##4 \
    }
/* Of A as it is, and of A turned; by rows and lanes of the tile. */
static run *const runs[2][HIGH][PANEL / WIDE] = {
    { OF(along, 1), OF(along, 2), OF(along, 3), OF(along, 4), OF(along, 5), OF(along, 6) },
    { OF(across, 1), OF(across, 2), OF(across, 3), OF(across, 4), OF(across, 5), OF(across, 6) },
};

/* 16 x 16 numbers change places with their transpose: step s swaps bit s of a number's row with that of its column. */
#define LOW(j, s)   ((j) & (s) ? WIDE + (j) - (s) : (j))
#define UPPER(j, s) ((j) & (s) ? WIDE + (j) : (j) + (s))
#define EACH(of, s)                                                                                                \
    of(0, s), of(1, s), of(2, s), of(3, s), of(4, s), of(5, s), of(6, s), of(7, s), of(8, s), of(9, s), of(10, s), \
        of(11, s), of(12, s), of(13, s), of(14, s), of(15, s)
#define SWAP(s)                                                                   \
    ALL(i, WIDE)                                                                  \
    if (!(i & (s))) {                                                             \
        const lane low = __builtin_shufflevector(x[i], x[i + (s)], EACH(LOW, s)); \
        x[i + (s)] = __builtin_shufflevector(x[i], x[i + (s)], EACH(UPPER, s));   \
        x[i] = low;                                                               \
    }
static inline void turn(float *y, const float *from, int64_t step)
{
    lane x[WIDE];
    ALL(i, WIDE) x[i] = *(const lane *)(from + i * step);
    SWAP(8)
    SWAP(4)
    SWAP(2)
    SWAP(1)
    ALL(i, WIDE) { *(lane *)(y + i * PANEL) = x[i]; }
}

/* The panel of the columns from j on, and of k from l on; what its last lane lacks is 0. */
static void fill(float *panel, cpu_matrix b, int64_t l, int64_t j, int64_t depth, int64_t cols)
{
    if (cols % WIDE) memset(panel, 0, (size_t)(depth * PANEL) * sizeof *panel);
    if (!b.turned) {
        const float *from = b.at + l * b.step + j;
        if (cols == PANEL)
            for (int64_t i = 0; i < depth; i++) memcpy(panel + i * PANEL, from + i * b.step, PANEL * sizeof *panel);
        else
            for (int64_t i = 0; i < depth; i++)
                memcpy(panel + i * PANEL, from + i * b.step, (size_t)cols * sizeof *panel);
        return;
    }
    for (int64_t x = 0; x < cols; x += WIDE)
        for (int64_t i = 0; i < depth; i += WIDE) {
            const float *from = b.at + (j + x) * b.step + l + i;
            if (x + WIDE <= cols && i + WIDE <= depth)
                turn(panel + i * PANEL + x, from, b.step);
            else
                for (int64_t r = 0; r < cpu_min(WIDE, cols - x); r++)
                    for (int64_t s = 0; s < cpu_min(WIDE, depth - i); s++)
                        panel[(i + s) * PANEL + x + r] = from[r * b.step + s];
        }
}

/* The rows of A from i on: row behind row, or, turned, strips of HIGH rows, in which the rows' numbers alternate. */
static void gather(float *room, cpu_matrix a, int64_t i, int64_t l, int64_t rows, int64_t depth)
{
    if (!a.turned) {
        for (int64_t r = 0; r < rows; r++) {
            float *to = room + r * STRIDE;
            const float *from = a.at + (i + r) * a.step + l;
#pragma omp simd
            for (int64_t s = 0; s < depth; s++) to[s] = from[s];
        }
        return;
    }
    for (int64_t s = 0; s < depth; s++) {
        const float *from = a.at + (l + s) * a.step + i;
        int64_t r = 0;
        for (; r + EIGHT <= rows; r += HIGH) /* eight are copied as fast as six; the two too many are written over */
            memcpy(room + r * STRIDE + s * HIGH, from + r, EIGHT * sizeof *room);
        for (; r + HIGH <= rows; r += HIGH) memcpy(room + r * STRIDE + s * HIGH, from + r, HIGH * sizeof *room);
        for (int64_t last = r; r < rows; r++) room[last * STRIDE + s * HIGH + r - last] = from[r];
    }
}

/* One panel's columns of C, which are no whole lanes: by way of a tile that is. */
static void ragged(run *one, float *c, int64_t c_step, const float *a, const float *panel, int64_t depth, cpu_ending e,
                   int64_t rows, int64_t cols)
{
    float tile[HIGH * PANEL];
    one(tile, PANEL, a, panel, depth, (cpu_ending){ e.alpha, 0, NULL, 0 });
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < cols; j++)
            c[i * c_step + j] = tile[i * PANEL + j] + (e.plus ? e.beta * e.plus[i * e.step + j] : 0.0f);
}

/* A panel's columns of C, all rows that are gathered. */
static void tiles(float *c, int64_t c_step, const float *room, bool turned, const float *panel, int64_t rows,
                  int64_t cols, int64_t depth, cpu_ending e)
{
    for (int64_t r = 0; r < rows; r += HIGH) {
        const int64_t high = cpu_min(HIGH, rows - r);
        run *one = runs[turned][high - 1][(cols - 1) / WIDE];
        float *to = c + r * c_step;
        const cpu_ending here = { e.alpha, e.beta, e.plus ? e.plus + r * e.step : NULL, e.step };
        if (cols % WIDE)
            ragged(one, to, c_step, room + r * STRIDE, panel, depth, here, high, cols);
        else
            one(to, c_step, room + r * STRIDE, panel, depth, here);
    }
}
#endif
