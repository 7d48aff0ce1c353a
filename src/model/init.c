/* Random first weights.  Weight number i draws from its own stream, so adding one at the end changes no other.
 * Orthogonal: Gram-Schmidt, twice, on a Gaussian matrix, so that every singular value is `gain`.
 * Near and far: minus three a token away from where the head looks, a wider peak beyond 8 tokens, never below -12; where
 * keys may come after their query, every second head looks ahead.
 * Spectral: Gaussian, divided by its largest singular value as Lanczos finds it. */
#include <math.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/rng.h"
#include "bound/norm.h"
#include "model/model.h"

static double inner(const double *a, const double *b, int64_t n)
{
    double s = 0;
    for (int64_t i = 0; i < n; i++) s += a[i] * b[i];
    return s;
}

/* The `count` rows of x, each `len` long, made orthonormal; count <= len. */
static void orthonormal_rows(double *x, int64_t count, int64_t len)
{
    for (int64_t i = 0; i < count; i++) {
        double *row = x + i * len;
        for (int pass = 0; pass < 2; pass++)
            for (int64_t j = 0; j < i; j++) {
                const double *other = x + j * len, c = inner(row, other, len);
                for (int64_t l = 0; l < len; l++) row[l] -= c * other[l];
            }
        const double size = sqrt(inner(row, row, len));
        for (int64_t l = 0; l < len; l++) row[l] /= size;
    }
}

static void orthogonal(double *w, const taut_param *p, uint64_t key, double *work)
{
    const bool wide = p->cols >= p->rows;
    const int64_t count = wide ? p->rows : p->cols, len = wide ? p->cols : p->rows;
    for (int64_t i = 0; i < count * len; i++) work[i] = taut_rng_normal(key, (uint64_t)i);
    orthonormal_rows(work, count, len);
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

taut_status taut_model_init(taut_model *m, uint64_t seed)
{
    int64_t largest = 1;
    for (int i = 0; i < m->weights; i++)
        if (taut_weight_len(&m->weight[i]) > largest) largest = taut_weight_len(&m->weight[i]);
    double *w = taut_malloc((size_t)largest * sizeof *w), *work = taut_malloc((size_t)largest * sizeof *work);
    if (w && work)
        for (int i = 0; i < m->weights; i++) {
            const taut_param *p = m->weight[i].param;
            fill(w, p, taut_rng_key(seed, TAUT_RNG_INIT, (uint64_t)i), work);
            m->k->put(p->value, w, p->rows * p->cols);
        }
    const bool done = w && work;
    free(w);
    free(work);
    return done ? TAUT_OK : taut_no_memory("the first weights");
}
