/* Tiles of a product with NEON, for multiply.c: twelve rows by eight columns of C stay in registers while k runs.  Both factors
 * lie as they are read, strips of twelve rows of A and of eight columns of B, k by k: a number of A is then a lane of a register,
 * and multiplies without an instruction of its own to spread it. */
#ifndef TAUT_KERNELS_CPU_TILES_NEON_H
#define TAUT_KERNELS_CPU_TILES_NEON_H
#define TAUT_KERNELS_CPU_TILES
#include <arm_neon.h>
#include <string.h>

#include "kernels/cpu/multiply.h"

enum {
    FOUR = 4,   /* numbers in a register */
    EIGHT = 8,  /* columns of a tile */
    HIGH = 12,  /* rows of a tile; at the end of A also 8 or 4 */
    ROWS = 264, /* of A at a time: a multiple of HIGH, and with CPU_DEPTH of k no more than the second cache holds */
    ROOM = ROWS * CPU_DEPTH,
    COLUMNS = CPU_PANEL, /* of B that a strip of A meets at a time */
    OWN = CPU_PANEL,     /* the same where B is not packed before */
    WHOLE = EIGHT,       /* columns that a mask is rounded up to */
    FEWEST = 16          /* rows that are worth a panel */
};

/* Four lines of four numbers change places with their transpose; lines of y begin `apart` apart. */
static inline void turn(float *y, int64_t apart, const float *const from[FOUR])
{
    const float32x4_t x0 = vld1q_f32(from[0]), x1 = vld1q_f32(from[1]), x2 = vld1q_f32(from[2]),
                      x3 = vld1q_f32(from[3]);
    const float32x4_t even0 = vzip1q_f32(x0, x2), even1 = vzip2q_f32(x0, x2);
    const float32x4_t odd0 = vzip1q_f32(x1, x3), odd1 = vzip2q_f32(x1, x3);
    vst1q_f32(y, vzip1q_f32(even0, odd0));
    vst1q_f32(y + apart, vzip2q_f32(even0, odd0));
    vst1q_f32(y + 2 * apart, vzip1q_f32(even1, odd1));
    vst1q_f32(y + 3 * apart, vzip2q_f32(even1, odd1));
}

/* A strip: `count` lines of `depth` numbers that begin `step` apart, beside each other, `wide` of them (a multiple of four, and
 * the last line again where there are too few: what comes of those is not kept). */
static void lines_to_strip(float *strip, int64_t wide, const float *from, int64_t step, int64_t count, int64_t depth)
{
    for (int64_t x = 0; x < wide; x += FOUR) {
        const float *line[FOUR];
        for (int64_t i = 0; i < FOUR; i++) line[i] = from + cpu_min(x + i, count - 1) * step;
        int64_t l = 0;
        for (; l + FOUR <= depth; l += FOUR) {
            turn(strip + l * wide + x, wide, line);
            for (int64_t i = 0; i < FOUR; i++) line[i] += FOUR;
        }
        for (int64_t i = 0; i < FOUR; i++)
            for (int64_t s = l; s < depth; s++) strip[s * wide + x + i] = line[i][s - l];
    }
}

/* A strip of a matrix that has k as its lines: `count` numbers of each, and zeros up to `wide`. */
static void numbers_to_strip(float *strip, int64_t wide, const float *from, int64_t step, int64_t count, int64_t depth)
{
    for (int64_t l = 0; l < depth; l++, strip += wide, from += step) {
        if (count == HIGH)
            memcpy(strip, from, HIGH * sizeof *strip);
        else if (count == EIGHT)
            memcpy(strip, from, EIGHT * sizeof *strip);
        else
            for (int64_t i = 0; i < wide; i++) strip[i] = i < count ? from[i] : 0.0f;
    }
}

/* The panel of the columns from j on, and of k from l on: strips of eight. */
static void fill(float *panel, cpu_matrix b, int64_t l, int64_t j, int64_t depth, int64_t cols)
{
    for (int64_t x = 0; x < cols; x += EIGHT, panel += EIGHT * depth) {
        const int64_t count = cpu_min(EIGHT, cols - x);
        if (b.turned)
            lines_to_strip(panel, EIGHT, b.at + (j + x) * b.step + l, b.step, count, depth);
        else
            numbers_to_strip(panel, EIGHT, b.at + l * b.step + j + x, b.step, count, depth);
    }
}

/* The rows of A from i on: strips of twelve, the last of twelve, eight or four. */
static void gather(float *room, cpu_matrix a, int64_t i, int64_t l, int64_t rows, int64_t depth)
{
    for (int64_t r = 0; r < rows; r += HIGH, room += HIGH * depth) {
        const int64_t count = cpu_min(HIGH, rows - r), wide = (count + FOUR - 1) / FOUR * FOUR;
        if (a.turned)
            numbers_to_strip(room, wide, a.at + l * a.step + i + r, a.step, count, depth);
        else
            lines_to_strip(room, wide, a.at + (i + r) * a.step + l, a.step, count, depth);
    }
}

/* The loops are short, and unrolled, or the sums would live in memory. */
#define ALL(i, count) _Pragma("GCC unroll 12") for (int i = 0; i < (count); i++)
#define LINE(i, x, lane)                                 \
    sum[i][0] = vfmaq_laneq_f32(sum[i][0], b0, x, lane); \
    sum[i][1] = vfmaq_laneq_f32(sum[i][1], b1, x, lane);
#define LINES(i, x) LINE(i, x, 0) LINE(i + 1, x, 1) LINE(i + 2, x, 2) LINE(i + 3, x, 3)
#define RUN(name, high, lines)                                                                              \
    static void name(float *c, int64_t c_step, const float *a, const float *b, int64_t depth, cpu_ending e) \
    {                                                                                                       \
        float32x4_t sum[high][2];                                                                           \
        ALL(i, high) sum[i][0] = sum[i][1] = vdupq_n_f32(0);                                                \
        ALL(i, high) __builtin_prefetch(c + i * c_step, 1);                                                 \
        for (int64_t l = 0; l < depth; l++, a += (high), b += EIGHT) {                                      \
            const float32x4_t b0 = vld1q_f32(b), b1 = vld1q_f32(b + FOUR);                                  \
            lines                                                                                           \
        }                                                                                                   \
        ALL(i, high) ALL(j, 2) sum[i][j] = vmulq_n_f32(sum[i][j], e.alpha);                                 \
        if (e.plus) ALL(i, high)                                                                            \
        ALL(j, 2) sum[i][j] = vfmaq_n_f32(sum[i][j], vld1q_f32(e.plus + i * e.step + j * FOUR), e.beta);    \
        ALL(i, high) ALL(j, 2) vst1q_f32(c + i * c_step + j * FOUR, sum[i][j]);                             \
    }
RUN(run4, 4, LINES(0, vld1q_f32(a)))
RUN(run8, 8, LINES(0, vld1q_f32(a)) LINES(4, vld1q_f32(a + 4)))
RUN(run12, 12, LINES(0, vld1q_f32(a)) LINES(4, vld1q_f32(a + 4)) LINES(8, vld1q_f32(a + 8)))

/* A tile at the edge of C: by way of a whole one. */
static void ragged(float *c, int64_t c_step, const float *a, const float *b, int64_t rows, int64_t cols, int64_t depth,
                   cpu_ending e)
{
    float tile[HIGH * EIGHT];
    (rows > EIGHT ? run12 : rows > FOUR ? run8 : run4)(tile, EIGHT, a, b, depth, (cpu_ending){ e.alpha, 0, NULL, 0 });
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < cols; j++)
            c[i * c_step + j] = tile[i * EIGHT + j] + (e.plus ? e.beta * e.plus[i * e.step + j] : 0.0f);
}

/* The strip that begins with row r of those gathered. */
static const float *strip(float *room, cpu_matrix a, int64_t i, int64_t l, int64_t r, int64_t high, int64_t depth)
{
    (void)a, (void)i, (void)l, (void)high;
    return room + r * depth;
}

/* A strip's rows of C: the columns and numbers of k of a span.  Both kinds of A lie the same way by now, and what comes next is
 * left to the processor to fetch. */
static void tiles(float *c, int64_t c_step, const float *a, cpu_matrix of, const float *panels, int64_t high,
                  int64_t depth, cpu_span s, cpu_ending e, cpu_ahead next[2])
{
    (void)of, (void)next;
    a += s.from * ((high + FOUR - 1) / FOUR * FOUR);
    for (int64_t j = 0; j < s.cols; j += EIGHT) {
        const int64_t wide = cpu_min(EIGHT, s.cols - j), deep = s.to - s.from;
        const cpu_ending here = { e.alpha, e.beta, e.plus ? e.plus + j : NULL, e.step };
        const float *b = panels + j * depth + s.from * EIGHT;
        if (wide < EIGHT || high % FOUR)
            ragged(c + j, c_step, a, b, high, wide, deep, here);
        else
            (high == HIGH ? run12 : high == EIGHT ? run8 : run4)(c + j, c_step, a, b, deep, here);
    }
}
#endif
