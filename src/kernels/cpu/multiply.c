/* One thread's product of matrices, C = alpha A B + beta C, or with a bias.
 *
 * With AVX-512 our own: a tile of C, six rows by 64 columns, stays in registers while k runs.  The 64 columns of B that it
 * needs lie side by side in a panel, and the rows of A side by side too, DEPTH of k at a time: that much fits the second cache.
 * At blocks of some hundred rows and columns it takes 0.7 to 1 of the time of OpenBLAS 0.3.21, which also reads C first.
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
enum {
    WIDE = 16, /* numbers in a register */
    HIGH = 6,  /* rows of a tile */
    PANEL = CPU_PANEL,
    DEPTH = CPU_DEPTH,
    ROWS = 264, /* of A at a time: a multiple of HIGH */
    STRIDE =
        272, /* from one row of A to the next: more than DEPTH, and no power of two, for the sake of the first cache */
    EIGHT = 8,
    FEWEST = 16 /* rows that are worth a panel */
};
typedef float lane __attribute__((vector_size(64), aligned(4), may_alias));

/* What becomes of a tile: C = alpha sum + beta plus; plus NULL: nothing is added. */
typedef struct {
    float alpha, beta;
    const float *plus;
    int64_t step;
} ending;

/* The loops are short, and unrolled, or the sums would live in memory. */
#define ALL(i, count) _Pragma("GCC unroll 16") for (int i = 0; i < (count); i++)
typedef void run(float *c, int64_t c_step, const float *a, const float *panel, int64_t depth, ending);

/* `down` from one row of A to the next, `right` from one number of a row to the next. */
#define RUN(name, rows, lanes, down, right)                                                                           \
    static void name(float *c, int64_t c_step, const float *a, const float *panel, int64_t depth, ending e)           \
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
static void ragged(run *one, float *c, int64_t c_step, const float *a, const float *panel, int64_t depth, ending e,
                   int64_t rows, int64_t cols)
{
    float tile[HIGH * PANEL];
    one(tile, PANEL, a, panel, depth, (ending){ e.alpha, 0, NULL, 0 });
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < cols; j++)
            c[i * c_step + j] = tile[i * PANEL + j] + (e.plus ? e.beta * e.plus[i * e.step + j] : 0.0f);
}

/* Where the panel of the columns from j on, and of k from l on, of a B that is packed begins. */
static int64_t place(int64_t whole, int64_t k, int64_t l, int64_t j)
{
    return (whole + PANEL - 1) / PANEL * PANEL * l + j * cpu_min(DEPTH, k - l);
}

/* The rows from i on, k from l on: a panel at a time. */
static void block(const product *p, int64_t i, int64_t l, int64_t rows, const float *room, float *own)
{
    const int64_t depth = cpu_min(DEPTH, p->k - l);
    const bool first = l == 0, bias = first && p->bias;
    for (int64_t j = 0; j < p->n; j += PANEL) {
        const int64_t cols = cpu_min(PANEL, p->n - j);
        float *c = p->c + i * p->c_step + j;
        const cpu_packed *b = &p->packed;
        const float *panel = b->at ? b->at + place(b->whole, p->k, l, b->from + j) : own;
        if (!b->at) fill(own, p->b, l, j, depth, cols);
        for (int64_t r = 0; r < rows; r += HIGH) {
            const int64_t high = cpu_min(HIGH, rows - r);
            run *one = runs[p->a.turned][high - 1][(cols - 1) / WIDE];
            float *to = c + r * p->c_step;
            const ending e = { p->alpha, first && !bias ? p->beta : 1,
                               bias                    ? p->bias + j
                               : first && p->beta == 0 ? NULL
                                                       : to,
                               bias ? 0 : p->c_step };
            if (cols % WIDE)
                ragged(one, to, p->c_step, room + r * STRIDE, panel, depth, e, high, cols);
            else
                one(to, p->c_step, room + r * STRIDE, panel, depth, e);
        }
    }
}

static void by_tiles(const product *p)
{
    _Alignas(64) float room[ROWS * STRIDE], panel[DEPTH * PANEL];
    for (int64_t i = 0; i < p->m; i += ROWS)
        for (int64_t l = 0; l < p->k; l += DEPTH) {
            const int64_t rows = cpu_min(ROWS, p->m - i);
            gather(room, p->a, i, l, rows, cpu_min(DEPTH, p->k - l));
            block(p, i, l, rows, room, panel);
        }
}

int64_t CPU(packed)(int64_t m, int64_t n, int64_t k) { return m > ROWS && n > 1 ? place(n, k, k, 0) : 0; }

void CPU(pack)(float *packed, cpu_matrix b, int64_t n, int64_t k, int64_t task)
{
    const int64_t across = (n + PANEL - 1) / PANEL, l = task / across * DEPTH, j = task % across * PANEL;
    fill(packed + place(n, k, l, j), b, l, j, cpu_min(DEPTH, k - l), cpu_min(PANEL, n - j));
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
