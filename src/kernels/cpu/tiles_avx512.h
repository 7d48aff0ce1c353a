/* Tiles of a product with AVX-512, for multiply.c: fourteen rows by 32 columns of C stay in registers while k runs.  The columns
 * of B that they need lie side by side, two halves to a panel, and the rows of A side by side too.  A panel comes from the second
 * cache, so it is fetched ahead; with 64 columns a tile would need more of it than that gives. */
#ifndef TAUT_KERNELS_CPU_TILES_AVX512_H
#define TAUT_KERNELS_CPU_TILES_AVX512_H
#define TAUT_KERNELS_CPU_TILES
#include "kernels/cpu/multiply.h"

#include <string.h>

enum {
    WIDE = 16, /* numbers in a register */
    HIGH = 14, /* rows of a tile */
    HALF = CPU_PANEL / 2,
    ROWS = 266,          /* of A at a time: a multiple of HIGH */
    STRIDE = CPU_STRIDE, /* from one row of A to the next */
    COLUMNS = 512,       /* of B that a strip of A meets at a time */
    OWN = 256,           /* the same where B is not packed before */
    AHEAD = 8,           /* numbers of k by which a panel is fetched ahead */
    STEP = 16,           /* numbers of k after which more of what comes next is fetched */
    WHOLE = HALF,        /* columns that a mask is rounded up to */
    ROOM = ROWS * STRIDE,
    FEWEST = 16 /* rows that are worth a panel */
};
typedef float lane __attribute__((vector_size(64), aligned(4), may_alias));

/* The loops are short, and unrolled, or the sums would live in memory. */
#define ALL(i, count) _Pragma("GCC unroll 16") for (int i = 0; i < (count); i++)
typedef void run(float *c, int64_t c_step, const float *a, int64_t right, const float *panel, int64_t depth, cpu_ending,
                 const cpu_ahead next[2]);

/* Two rows of each, a line of the cache at a time. */
static inline void fetch(const cpu_ahead next[2], int64_t line)
{
    ALL(x, 2) ALL(row, 2) __builtin_prefetch(next[x].at + row * next[x].step + line * WIDE, 0, 2);
}

/* `down` from one row of A to the next, `move` from one number of a row to the next: 1, or what `right` says. */
#define RUN(name, rows, lanes, down, move)                                                                            \
    static void name(float *c, int64_t c_step, const float *a, int64_t right, const float *panel, int64_t depth,      \
                     cpu_ending e, const cpu_ahead next[2])                                                           \
    {                                                                                                                 \
        lane sum[rows][lanes] = { 0 }, b[lanes];                                                                      \
        (void)right;                                                                                                  \
        for (int64_t l = 0, line = 0; l < depth; line++) {                                                            \
            const float *row = c + cpu_min(line, (rows)-1) * c_step;                                                  \
            ALL(j, lanes) __builtin_prefetch(row + j * WIDE, 1);                                                      \
            fetch(next, line);                                                                                        \
            for (const int64_t end = cpu_min(depth, l + STEP); l < end; l++, panel += HALF, a += (move)) {            \
                ALL(j, lanes) __builtin_prefetch(panel + AHEAD * HALF + j * WIDE);                                    \
                ALL(j, lanes) b[j] = *(const lane *)(panel + j * WIDE);                                               \
                ALL(i, rows)                                                                                          \
                {                                                                                                     \
                    const lane x = a[i * (down)] - (lane){ 0 };                                                       \
                    ALL(j, lanes) sum[i][j] += x * b[j];                                                              \
                }                                                                                                     \
            }                                                                                                         \
        }                                                                                                             \
        ALL(i, rows) ALL(j, lanes) sum[i][j] *= e.alpha;                                                              \
        if (e.plus) ALL(i, rows) ALL(j, lanes) sum[i][j] += e.beta * *(const lane *)(e.plus + i * e.step + j * WIDE); \
        ALL(i, rows) ALL(j, lanes) { *(lane *)(c + i * c_step + j * WIDE) = sum[i][j]; }                              \
    }
#define RUNS(rows)                          \
    RUN(along##rows##1, rows, 1, STRIDE, 1) \
    RUN(along##rows##2, rows, 2, STRIDE, 1) \
    RUN(across##rows##1, rows, 1, 1, right) \
    RUN(across##rows##2, rows, 2, 1, right)
RUNS(1)
RUNS(2)
RUNS(3)
RUNS(4)
RUNS(5)
RUNS(6)
RUNS(7)
RUNS(8)
RUNS(9)
RUNS(10)
RUNS(11)
RUNS(12)
RUNS(13)
RUNS(14)
#define OF(way, rows)              \
    {                              \
        way##rows##1, way##rows##2 \
    }
#define ROWS_OF(way)                                                                                                \
    {                                                                                                               \
        OF(way, 1), OF(way, 2), OF(way, 3), OF(way, 4), OF(way, 5), OF(way, 6), OF(way, 7), OF(way, 8), OF(way, 9), \
            OF(way, 10), OF(way, 11), OF(way, 12), OF(way, 13), OF(way, 14)                                         \
    }
/* Of A as it is, and of A turned; by rows and lanes of the tile. */
static run *const runs[2][HIGH][HALF / WIDE] = { ROWS_OF(along), ROWS_OF(across) };

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
    ALL(i, WIDE) { *(lane *)(y + i * HALF) = x[i]; }
}

/* Half a panel: the columns from j on, and k from l on; what its last lane lacks is 0. */
static void fill_half(float *panel, cpu_matrix b, int64_t l, int64_t j, int64_t depth, int64_t cols)
{
    if (cols % WIDE) memset(panel, 0, (size_t)(depth * HALF) * sizeof *panel);
    if (!b.turned) {
        const float *from = b.at + l * b.step + j;
        if (cols == HALF)
            for (int64_t i = 0; i < depth; i++) memcpy(panel + i * HALF, from + i * b.step, HALF * sizeof *panel);
        else
            for (int64_t i = 0; i < depth; i++)
                memcpy(panel + i * HALF, from + i * b.step, (size_t)cols * sizeof *panel);
        return;
    }
    for (int64_t x = 0; x < cols; x += WIDE)
        for (int64_t i = 0; i < depth; i += WIDE) {
            const float *from = b.at + (j + x) * b.step + l + i;
            if (x + WIDE <= cols && i + WIDE <= depth)
                turn(panel + i * HALF + x, from, b.step);
            else
                for (int64_t r = 0; r < cpu_min(WIDE, cols - x); r++)
                    for (int64_t s = 0; s < cpu_min(WIDE, depth - i); s++)
                        panel[(i + s) * HALF + x + r] = from[r * b.step + s];
        }
}

/* The panel of the columns from j on, and of k from l on: its halves one behind the other. */
static void fill(float *panel, cpu_matrix b, int64_t l, int64_t j, int64_t depth, int64_t cols)
{
    for (int64_t x = 0; x < cols; x += HALF) fill_half(panel + x * depth, b, l, j + x, depth, cpu_min(HALF, cols - x));
}

/* The rows of a turned A from i on: strips of HIGH rows, in which the rows' numbers alternate.  Where A's rows begin STRIDE apart
 * neither this nor strip() copies it. */
static void gather(float *room, cpu_matrix a, int64_t i, int64_t l, int64_t rows, int64_t depth)
{
    for (int64_t s = 0; a.turned && a.step != STRIDE && s < depth; s++) {
        const float *from = a.at + (l + s) * a.step + i;
        int64_t r = 0;
        for (; r + WIDE <= rows; r += HIGH) /* a whole register; the two numbers too many are written over */
            memcpy(room + r * STRIDE + s * HIGH, from + r, WIDE * sizeof *room);
        for (; r + HIGH <= rows; r += HIGH) memcpy(room + r * STRIDE + s * HIGH, from + r, HIGH * sizeof *room);
        for (int64_t last = r; r < rows; r++) room[last * STRIDE + s * HIGH + r - last] = from[r];
    }
}

/* The strip of `high` rows of A from i on.  A turned A has been gathered, and has it at row r of the room; another comes into the
 * room now, row behind row. */
static const float *strip(float *room, cpu_matrix a, int64_t i, int64_t l, int64_t r, int64_t high, int64_t depth)
{
    if (a.step == STRIDE) return a.at + (a.turned ? l * STRIDE + i : i * STRIDE + l);
    if (a.turned) return room + r * STRIDE;
    for (int64_t x = 0; x < high; x++) {
        float *to = room + x * STRIDE;
        const float *from = a.at + (i + x) * a.step + l;
#pragma omp simd
        for (int64_t s = 0; s < depth; s++) to[s] = from[s];
    }
    return room;
}

/* A tile whose columns are no whole lanes: by way of one that is. */
static void ragged(run *one, float *c, int64_t c_step, const float *a, int64_t right, const float *panel, int64_t depth,
                   cpu_ending e, const cpu_ahead next[2], int64_t rows, int64_t cols)
{
    float tile[HIGH * HALF];
    one(tile, HALF, a, right, panel, depth, (cpu_ending){ e.alpha, 0, NULL, 0 }, next);
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < cols; j++)
            c[i * c_step + j] = tile[i * HALF + j] + (e.plus ? e.beta * e.plus[i * e.step + j] : 0.0f);
}

/* A strip's rows of C: the columns and numbers of k of a span. */
static void tiles(float *c, int64_t c_step, const float *a, cpu_matrix of, const float *panels, int64_t high,
                  int64_t depth, cpu_span s, cpu_ending e, cpu_ahead next[2])
{
    const int64_t right = !of.turned ? 1 : of.step == STRIDE ? STRIDE : HIGH;
    a += s.from * right;
    for (int64_t j = 0; j < s.cols; j += HALF) {
        const int64_t wide = cpu_min(HALF, s.cols - j);
        run *one = runs[of.turned][high - 1][(wide - 1) / WIDE];
        const cpu_ending here = { e.alpha, e.beta, e.plus ? e.plus + j : NULL, e.step };
        const float *panel = panels + j * depth + s.from * HALF;
        if (wide % WIDE)
            ragged(one, c + j, c_step, a, right, panel, s.to - s.from, here, next, high, wide);
        else
            one(c + j, c_step, a, right, panel, s.to - s.from, here, next);
        for (cpu_ahead *x = next; x < next + 2; x++)
            if (x->rows > 2) x->at += 2 * x->step, x->rows -= 2;
    }
}
#endif
