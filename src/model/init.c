/* Random first weights.  Weight number i draws from its own stream, so adding one at the end changes no other.
 * Orthogonal: Gram-Schmidt, twice, on a Gaussian matrix, so that every singular value is `gain`; long rows by panels.
 * Near and far: minus three a token away from where the head looks, a wider peak beyond 8 tokens, never below -12; where
 * keys may come after their query, every second head looks ahead.
 * Spectral: Gaussian, divided by its largest singular value as Lanczos finds it. */
#include <math.h>
#include <omp.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/rng.h"
#include "bound/blas.h"
#include "bound/norm.h"
#include "model/model.h"

enum {
    PIECE = 4096, /* of a long row: one thread's work and a sum of its own, so that threads do not change bits */
    PANEL = 32    /* long rows at a time */
};

static double inner(const double *a, const double *b, int64_t n)
{
    double s = 0;
    for (int64_t i = 0; i < n; i++) s += a[i] * b[i];
    return s;
}

/* The inner product of two rows, by all threads together, each of which gets it; sum: room for a number a piece. */
static double inner_together(const double *a, const double *b, int64_t len, double *sum)
{
    const int64_t pieces = (len + PIECE - 1) / PIECE;
    double all = 0;
#pragma omp for schedule(static)
    for (int64_t p = 0; p < pieces; p++)
        sum[p] = inner(a + p * PIECE, b + p * PIECE, p < pieces - 1 ? PIECE : len - p * PIECE);
    for (int64_t p = 0; p < pieces; p++) all += sum[p];
    return all;
}

/* `count` rows of x, each `len` long, made orthonormal one after the other; count <= len. */
static void orthonormal_few(double *x, int64_t count, int64_t len, double *sum)
{
#pragma omp parallel if (len > PIECE)
    for (int64_t i = 0; i < count; i++) {
        double *row = x + i * len;
        for (int64_t j = 0; j < 2 * i; j++) { /* every row above it, and once more */
            const double *other = x + j % i * len, c = inner_together(row, other, len, sum);
#pragma omp for schedule(static)
            for (int64_t l = 0; l < len; l++) row[l] -= c * other[l];
        }
        const double size = sqrt(inner_together(row, row, len, sum));
#pragma omp for schedule(static)
        for (int64_t l = 0; l < len; l++) row[l] /= size;
    }
}

/* What `count` rows have along the orthonormal rows `above` them is taken off: x -= (x A^T) A. */
static void clear_of(double *x, int64_t count, const double *above, int64_t rows, int64_t len, double *work)
{
    double *along = work + count * len;
    blas_gemm(along, x, false, above, true, count, rows, len);
    blas_gemm(work, along, false, above, false, count, len, rows);
#pragma omp parallel for schedule(static)
    for (int64_t i = 0; i < count * len; i++) x[i] -= work[i];
}

/* `count` rows of x made orthonormal.  Long ones a panel after the other, each first made orthogonal to all above by products,
 * twice: row by row the matrix would be read as often as it has rows.  work: PANEL (count + len) numbers for these, else none. */
static void orthonormal_rows(double *x, int64_t count, int64_t len, double *sum, double *work)
{
    const int64_t most = len > PIECE ? PANEL : count;
    for (int64_t first = 0; first < count; first += most) {
        const int64_t rows = count - first < most ? count - first : most;
        for (int again = 0; again < 2 && first > 0; again++) clear_of(x + first * len, rows, x, first, len, work);
        orthonormal_few(x + first * len, rows, len, sum);
    }
}

/* work: as many numbers as w, one for every piece of a row, and orthonormal_rows' */
static void orthogonal(double *w, const taut_param *p, uint64_t key, double *work)
{
    const bool wide = p->cols >= p->rows;
    const int64_t count = wide ? p->rows : p->cols, len = wide ? p->cols : p->rows;
#pragma omp parallel for schedule(static)
    for (int64_t i = 0; i < count * len; i++) work[i] = taut_rng_normal(key, (uint64_t)i);
    double *sum = work + count * len;
    orthonormal_rows(work, count, len, sum, sum + len / PIECE + 1);
    for (int64_t r = 0; r < p->rows; r++)
        for (int64_t c = 0; c < p->cols; c++)
            w[r * p->cols + c] = p->gain * (wide ? work[r * len + c] : work[c * len + r]);
}

/* A number of TAUT_INIT_CONSTANT, and of TAUT_INIT_ONE; everything else is 0. */
static double same_everywhere(const taut_param *p)
{
    return p->init == TAUT_INIT_CONSTANT ? p->gain : p->init == TAUT_INIT_ONE;
}

static void peaks(double *w, const taut_param *p)
{
    const int64_t zero = (int64_t)p->gain, context = p->cols - zero;
    for (int64_t h = 0; h < p->rows; h++) {
        const int64_t away = taut_offset(h, p->init == TAUT_INIT_FAR, context);
        const int64_t at = zero > 0 && h % 2 == 0 ? zero - away : zero + away;
        const double slope = away > 8 ? 12 / (double)away : 3;
        for (int64_t c = 0; c < p->cols; c++) w[h * p->cols + c] = fmax(-12, -slope * fabs((double)(c - at)));
    }
}

/* Minus five a step from where the head looks: half of them at their own token, the others at its four neighbours, then at those
 * two steps away, and so on. */
static void torus_peaks(double *w, const taut_param *p)
{
    static const int64_t look[4][2] = { { 1, 0 }, { -1, 0 }, { 0, 1 }, { 0, -1 } };
    const int64_t row = (int64_t)p->gain, rows = p->cols / row, rest = p->rows / 2;
    for (int64_t i = 0; i < p->rows * p->cols; i++) {
        const int64_t away = i / p->cols - rest, far = away < 0 ? 0 : 1 + away / 4, c = i % p->cols;
        const int64_t *at = look[(away + 4 * rest) % 4];
        const int64_t down = ((c / row - far * at[0]) % rows + rows) % rows;
        const int64_t right = ((c % row - far * at[1]) % row + row) % row;
        const int64_t steps = (2 * down > rows ? rows - down : down) + (2 * right > row ? row - right : right);
        w[i] = fmax(-12, -5 * (double)steps);
    }
}

static void fill(double *w, const taut_param *p, uint64_t key, double *work)
{
    const int64_t len = p->rows * p->cols;
    const bool spectral = p->init == TAUT_INIT_SPECTRAL, random = spectral || p->init == TAUT_INIT_NORMAL;
    if (p->init == TAUT_INIT_ORTHOGONAL) {
        orthogonal(w, p, key, work);
        return;
    }
    if (p->init == TAUT_INIT_TORUS) {
        torus_peaks(w, p);
        return;
    }
    if (p->init == TAUT_INIT_NEAR || p->init == TAUT_INIT_FAR) {
        peaks(w, p);
        return;
    }
#pragma omp parallel for schedule(static)
    for (int64_t i = 0; i < len; i++) w[i] = random ? taut_rng_normal(key, (uint64_t)i) : same_everywhere(p);
    const double top = spectral ? est_norm(w, p->rows, p->cols) : 1;
    for (int64_t i = 0; random && i < len; i++) w[i] *= p->gain / (top > 0 ? top : 1);
}

/* Rows of one piece are one thread's, several weights at a time; of longer ones all threads share each. */
static bool is_long(const taut_param *p) { return p->rows > PIECE || p->cols > PIECE; }

/* Weights first .. end - 1, which are all short or one alone; each has `room` numbers of buffer. */
static void fill_some(taut_model *m, int first, int end, uint64_t seed, double *buffer, int64_t room)
{
#pragma omp parallel for schedule(dynamic) if (end - first > 1)
    for (int i = first; i < end; i++) {
        double *w = buffer + (i - first) * room;
        const taut_param *p = m->weight[i].param;
        fill(w, p, taut_rng_key(seed, TAUT_RNG_INIT, (uint64_t)i), w + p->rows * p->cols);
    }
    for (int i = first; i < end; i++)
        m->k->put(m->weight[i].param->value, buffer + (i - first) * room, taut_weight_len(&m->weight[i]));
}

taut_status taut_model_init(taut_model *m, uint64_t seed)
{
    const int threads = omp_get_max_threads();
    int64_t short_one = 1, all = 1;
    for (int i = 0; i < m->weights; i++) {
        const taut_param *p = m->weight[i].param;
        const int64_t len = taut_weight_len(&m->weight[i]), panel = is_long(p) ? PANEL * (p->rows + p->cols) : 0;
        const int64_t room = 2 * len + len / PIECE + 1 + panel; /* and what orthogonal needs */
        if (!is_long(p) && room > short_one) short_one = room;
        if (room > all) all = room;
    }
    if (threads * short_one > all) all = threads * short_one;
    double *buffer = taut_malloc((size_t)all * sizeof *buffer);
    if (!buffer) return taut_no_memory("the first weights");
    for (int first = 0, end; first < m->weights; first = end) {
        for (end = first; end < m->weights && end < first + threads && !is_long(m->weight[end].param);) end++;
        if (end == first) end++;
        fill_some(m, first, end, seed, buffer, short_one);
    }
    free(buffer);
    return TAUT_OK;
}
