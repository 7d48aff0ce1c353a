/* AttLip's second derivative times e (formulas: ref/attlip.c; masking, poison and error: attlip.c), pair of blocks by pair of
 * blocks twice: for the rows' means of dS, which every row needs of every other, then for the product.  dS is symmetric as
 * S is. */
#include "kernels/cpu/attlip.h"

typedef struct {
    const float *v, *e, *max, *sum, *square, *own; /* own: 2 scale v_i.e_i */
    float *mean, *weight, *moved, *h;              /* weight: rows of alpha, before they are divided by sum */
} curves;

/* x = 2 scale v_i.v_j - near |i - j| and y = dS_ij = 2 scale (v_i + v_j).(e_i + e_j) over a pair, columns filled up with zeros */
static void pair_products(float *x, float *y, const curves *k, const prox_head *s, const prox_pair *t)
{
    const float *v = k->v + s->at, *e = k->e + s->at, *own = k->own + s->row_at, twice = 2 * s->scale;
    prox_scores(x, v, s, t);
    prox_products(y, v, e, s, t, twice, 0);
    prox_products(y, e, v, s, t, twice, 1);
    for (int64_t r = 0; r < t->rows; r++) {
        float *row = y + r * CPU_STRIDE;
        const float a = own[t->i + r];
        for (int64_t c = 0; c < t->cols; c++) row[c] += a + own[t->j + c];
        for (int64_t c = t->cols; c < prox_padded(t->cols); c++) row[c] = x[r * CPU_STRIDE + c] = 0;
    }
}

/* A pair's part of the rows' sums of alpha dS and of alpha: a mean is their quotient, so that what is wrong with a whole
 * row of alpha does not matter. */
static void mean_pair(const void *k_, const prox_head *s, const prox_pair *t, float *x)
{
    const curves *k = k_;
    const float *square = k->square + s->row_at, *max = k->max + s->row_at;
    float *mean = k->mean + s->row_at, *weight = k->weight + s->row_at, *y = x + PROX_TILE;
    float parts[PROX_BLOCK] = { 0 }, wholes[PROX_BLOCK] = { 0 };
    prox_columns to;
    prox_columns_of(&to, square, max, k->sum + s->row_at, t);
    pair_products(x, y, k, s, t);
    for (int64_t r = 0; r < t->rows; r++) {
        const float own = square[t->i + r], top = max[t->i + r], *xr = x + r * CPU_STRIDE, *yr = y + r * CPU_STRIDE;
        float part[PROX_LANES] = { 0 }, whole[PROX_LANES] = { 0 };
        for (int64_t from = 0; from < prox_padded(t->cols); from += PROX_LANES)
            for (int l = 0; l < PROX_LANES; l++) {
                const int64_t c = from + l;
                const float p = vm_exp(xr[c] + to.square[c] - top), q = vm_exp(xr[c] + own - to.max[c]);
                whole[l] += p;
                part[l] += p * yr[c];
                wholes[c] += q;
                parts[c] += q * yr[c];
            }
        mean[t->i + r] += prox_lanes(part);
        weight[t->i + r] += prox_lanes(whole);
    }
    prox_columns_add(mean, parts, t);
    prox_columns_add(weight, wholes, t);
}

/* x = alpha_ij + alpha_ji and y = B_ij + B_ji of a pair, and what they add to the product */
static void hvp_pair(const void *k_, const prox_head *s, const prox_pair *t, float *x)
{
    const curves *k = k_;
    const float *square = k->square + s->row_at, *max = k->max + s->row_at, *sum = k->sum + s->row_at;
    float columns[PROX_BLOCK] = { 0 }, means[PROX_BLOCK] = { 0 }, *mean = k->mean + s->row_at;
    float *moved = k->moved + s->row_at, *y = x + PROX_TILE;
    prox_columns to;
    prox_columns_of(&to, square, max, sum, t);
    pair_products(x, y, k, s, t);
    memcpy(means, mean + t->j, (size_t)t->cols * sizeof *means);
    for (int64_t r = 0; r < t->rows; r++) {
        const float own = square[t->i + r], top = max[t->i + r], inverse = 1.0f / sum[t->i + r], mid = mean[t->i + r];
        float lane[PROX_LANES] = { 0 }, *xr = x + r * CPU_STRIDE, *yr = y + r * CPU_STRIDE;
        for (int64_t from = 0; from < prox_padded(t->cols); from += PROX_LANES)
            for (int l = 0; l < PROX_LANES; l++) {
                const int64_t c = from + l;
                const float p = vm_exp(xr[c] + to.square[c] - top) * inverse;
                const float q = vm_exp(xr[c] + own - to.max[c]) * to.inverse[c];
                const float there = p * (yr[c] - mid), back = q * (yr[c] - means[c]);
                lane[l] += back;
                columns[c] += there;
                yr[c] = there + back;
                xr[c] = p + q;
            }
        moved[t->i + r] += prox_lanes(lane);
    }
    prox_columns_add(moved, columns, t);
    prox_gather(k->h + s->at, x, k->e + s->at, s, t);
    prox_gather(k->h + s->at, y, k->v + s->at, s, t);
}

/* h = scale ((1 + col) e + moved v + what was gathered) */
static void finish(const curves *k, const float *col, const taut_attn *a)
{
#pragma omp for schedule(static)
    for (int64_t row = 0; row < a->n * a->heads * a->tq; row++) {
        const prox_head s = prox_head_of(a, row / a->tq);
        const int64_t at = s.at + row % a->tq * s.width;
        const float *v = k->v + at, *e = k->e + at, all = 1.0f + col[row], moved = k->moved[row];
        float *h = k->h + at;
        for (int64_t c = 0; c < a->dh; c++) h[c] = s.scale * (all * e[c] + moved * v[c] + h[c]);
    }
}

void CPU(attlip_hvp)(taut_real *h, taut_real *mean, const taut_real *e, const taut_real *v, const taut_real *max,
                     const taut_real *sum, const taut_real *col, const taut_attn *a)
{
    const int64_t rows = a->n * a->heads * a->tq;
    float *square = att_scratch(4 * rows + 1), *own = square + rows, *weight = own + rows, *moved = weight + rows;
    const curves k = { (const float *)v,   (const float *)e, (const float *)max,
                       (const float *)sum, square,           own,
                       (float *)mean,      weight,           moved,
                       (float *)h };
    memset(weight, 0, (size_t)(2 * rows) * sizeof(float));
    memset(k.mean, 0, (size_t)rows * sizeof(float));
    memset(k.h, 0, (size_t)(rows * a->dh) * sizeof(float));
#pragma omp parallel if (a->n * a->heads * prox_blocks(a) > 1)
    {
        float *x = att_scratch(2 * PROX_TILE);
        prox_dots(square, k.v, k.v, a, (float)a->scale);
        prox_dots(own, k.v, k.e, a, 2 * (float)a->scale);
        prox_meet(a, mean_pair, &k, x);
#pragma omp for schedule(static)
        for (int64_t row = 0; row < rows; row++) k.mean[row] = weight[row] != 0 ? k.mean[row] / weight[row] : 0.0f;
        prox_meet(a, hvp_pair, &k, x);
        finish(&k, (const float *)col, a);
        free(x);
    }
    free(square);
}
