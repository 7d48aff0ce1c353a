/* AttLip's second derivative times e (formulas: ref/attlip.c; masking, poison and error: attlip.c), in two passes: the
 * rows' means of dS, which every row needs of every other, then the product. */
#include "kernels/cpu/attlip.h"

/* y = dS_ij = 2 scale (v_i + v_j).(e_i + e_j) over a tile */
static void slopes(float *y, const prox_head *s, const att_tile *t)
{
    const int64_t width = s->head.width, dh = s->head.a->dh;
    const float twice = 2 * (float)s->head.a->scale;
    float own[ATT_COLS];
    att_scores(y, s->v + t->i * width, width, s->e + t->j * width, &s->head, t, twice, 0);
    att_scores(y, s->e + t->i * width, width, s->v + t->j * width, &s->head, t, twice, 1);
    for (int64_t c = 0; c < t->cols; c++)
        own[c] = twice * att_dot(s->v + (t->j + c) * width, s->e + (t->j + c) * width, dh);
    for (int64_t r = 0; r < t->rows; r++) {
        const float a = twice * att_dot(s->v + (t->i + r) * width, s->e + (t->i + r) * width, dh);
        for (int64_t c = 0; c < t->cols; c++) y[r * ATT_COLS + c] += a + own[c];
    }
}

/* The tile's part of the rows' sums of alpha dS and of alpha: a mean is their quotient, so that what is wrong with a
 * whole row of alpha does not matter. */
static void mean_row(const float *x, const float *y, const prox_columns *k, float top, int64_t cols, double *sum,
                     double *weight)
{
    float part[PROX_LANES] = { 0 }, whole[PROX_LANES] = { 0 };
    const int64_t blocks = cols / PROX_LANES * PROX_LANES;
    for (int64_t from = 0; from < blocks; from += PROX_LANES)
        for (int l = 0; l < PROX_LANES; l++) {
            const float p = vm_exp(x[from + l] + k->squares[from + l] - top);
            whole[l] += p;
            part[l] += p * y[from + l];
        }
    for (int64_t c = blocks; c < cols; c++) {
        const float p = vm_exp(x[c] + k->squares[c] - top);
        whole[c - blocks] += p;
        part[c - blocks] += p * y[c];
    }
    for (int l = 0; l < PROX_LANES; l++) {
        *weight += (double)whole[l];
        *sum += (double)part[l];
    }
}

static void mean_rows(float *mean, const prox_head *s, int64_t i, float *scratch)
{
    const int64_t all = cpu_min(ATT_ROWS, s->head.a->tq - i);
    float *x = scratch, *y = scratch + ATT_ROWS * ATT_COLS;
    double sum[ATT_ROWS] = { 0 }, weight[ATT_ROWS] = { 0 };
    prox_columns k;
    for (int64_t j = 0; j < s->head.keys && i < s->head.keys; j += ATT_COLS) {
        const att_tile t = prox_tile_at(s, i, j);
        prox_products(x, k.squares, s, &t);
        slopes(y, s, &t);
        for (int64_t r = 0; r < t.rows; r++)
            mean_row(x + r * ATT_COLS, y + r * ATT_COLS, &k, s->max[i + r], t.cols, &sum[r], &weight[r]);
    }
    for (int64_t r = 0; r < all; r++) mean[i + r] = i + r < s->head.keys ? (float)(sum[r] / weight[r]) : 0.0f;
}

/* x = alpha_ij + alpha_ji, y = B_ij + B_ji; answers the sum of B_ji. */
static float weigh_row(float *x, float *y, const prox_columns *k, const float *means, const prox_head *s, int64_t i,
                       float mean, int64_t cols)
{
    const float own = prox_square(s, i), top = s->max[i], inverse = 1.0f / s->sum[i];
    const int64_t padded = (cols + PROX_LANES - 1) / PROX_LANES * PROX_LANES;
    float lane[PROX_LANES] = { 0 }, sum = 0;
    for (int64_t c = cols; c < padded; c++) x[c] = y[c] = 0;
    for (int64_t from = 0; from < padded; from += PROX_LANES)
        for (int l = 0; l < PROX_LANES; l++) {
            const int64_t c = from + l;
            const float p = vm_exp(x[c] + k->squares[c] - top) * inverse;
            const float q = vm_exp(x[c] + own - k->max[c]) * k->inverse[c];
            const float back = q * (y[c] - means[c]);
            lane[l] += back;
            y[c] = p * (y[c] - mean) + back;
            x[c] = p + q;
        }
    for (int l = 0; l < PROX_LANES; l++) sum += lane[l];
    return sum;
}

static void hvp_rows(float *h, const float *mean, const float *col, const prox_head *s, int64_t i, float *scratch)
{
    const int64_t dh = s->head.a->dh, width = s->head.width, all = cpu_min(ATT_ROWS, s->head.a->tq - i);
    const int64_t rows = s->head.keys > i ? cpu_min(all, s->head.keys - i) : 0;
    const float scale = (float)s->head.a->scale;
    float *x = scratch, *y = x + ATT_ROWS * ATT_COLS, *out = y + ATT_ROWS * ATT_COLS;
    float means[ATT_COLS] = { 0 }, moved[ATT_ROWS] = { 0 };
    prox_columns k;
    memset(out, 0, (size_t)(all * dh) * sizeof(float));
    for (int64_t j = 0; j < s->head.keys && rows > 0; j += ATT_COLS) {
        const att_tile t = prox_tile_at(s, i, j);
        prox_products(x, k.squares, s, &t);
        prox_columns_of(&k, s, &t);
        slopes(y, s, &t);
        for (int64_t c = 0; c < ATT_COLS; c++) means[c] = c < t.cols ? mean[j + c] : 0.0f;
        for (int64_t r = 0; r < rows; r++)
            moved[r] += weigh_row(x + r * ATT_COLS, y + r * ATT_COLS, &k, means, s, i + r, mean[i + r], t.cols);
        att_times(out, dh, x, s->e + j * width, &s->head, &t, 1.0f);
        att_times(out, dh, y, s->v + j * width, &s->head, &t, 1.0f);
    }
    for (int64_t r = 0; r < rows; r++) {
        const float *e = s->e + (i + r) * width, *v = s->v + (i + r) * width;
        for (int64_t c = 0; c < dh; c++)
            h[(i + r) * width + c] = scale * ((1.0f + col[i + r]) * e[c] + moved[r] * v[c] + out[r * dh + c]);
    }
    prox_zero_rows(h, s, i + rows, i + all);
}

void CPU(attlip_hvp)(taut_real *h, taut_real *mean_, const taut_real *e, const taut_real *v, const taut_real *max,
                     const taut_real *sum, const taut_real *col, const taut_attn *a)
{
    const int64_t tiles = (a->tq + ATT_ROWS - 1) / ATT_ROWS, tasks = a->n * a->heads * tiles;
    float *mean = (float *)mean_;
#pragma omp parallel if (tasks > 1)
    {
        float *scratch = att_scratch(ATT_ROWS * (2 * ATT_COLS + a->dh));
#pragma omp for schedule(dynamic)
        for (int64_t task = 0; task < tasks; task++) {
            const prox_head s = prox_head_at(a, task / tiles, v, e, max, sum);
            mean_rows(mean + s.head.lse_at, &s, task % tiles * ATT_ROWS, scratch);
        }
#pragma omp for schedule(dynamic)
        for (int64_t task = 0; task < tasks; task++) {
            const prox_head s = prox_head_at(a, task / tiles, v, e, max, sum);
            hvp_rows((float *)h + s.head.q_at, mean + s.head.lse_at, (const float *)col + s.head.lse_at, &s,
                     task % tiles * ATT_ROWS, scratch);
        }
        free(scratch);
    }
}
