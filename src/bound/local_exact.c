/* The Jacobian of one head written out:  block (i, j) is P_ij (W_V + (v_j - o_i) u_i^T), plus s C_i W_Q on the
 * diagonal, from the computed P, v, o, u = s W_K^T q and C.  ||J'|| <= ||J|| + sqrt(sum_i err_i^2), where err_i bounds
 * the norm of the difference in query i's rows (local_row.c: weights, values, centres, u, C; here: the operations
 * below), and up_norm proves ||J||.  Forming an entry takes sums of at most m + dh + 8 terms; 2^-40 of the terms' sizes
 * covers any m and dh below 2^11. */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "bound/blas.h"
#include "bound/local_impl.h"
#include "bound/norm.h"

enum { MOST_ENTRIES = 1 << 24, MOST_TERMS = 1 << 11 };

/* The rows themselves, computed; false: no memory. */
LOCAL_NEAR static bool form_rows(const local_head *f, int64_t i, int64_t m, const double *hat, const double *zv,
                                 const double *zk)
{
    const taut_attention_weights *w = f->w;
    const int64_t dh = f->dh, d = w->width, cols = f->tk * d, from = f->index * dh * d;
    const double *q = f->q + i * dh, *wv = w->wv + from;
    double *rows = f->jacobian + i * dh * cols, *u = taut_calloc((size_t)(d + dh * dh), sizeof *u);
    if (!u) return false;
    double *c = u + d;
    local_rounds_near();
    cblas_dgemv(CblasRowMajor, CblasTrans, (blasint)dh, (blasint)d, w->scale, w->wk + from, (blasint)d, q, 1, 0, u, 1);
    for (int64_t j = 0; j < m; j++)
        for (int64_t r = 0; r < dh; r++) {
            double *out = rows + r * cols + j * d;
            for (int64_t e = 0; e < d; e++) out[e] = hat[j] * (wv[r * d + e] + zv[j * dh + r] * u[e]);
            for (int64_t e = 0; e < dh; e++) c[r * dh + e] += w->scale * hat[j] * zv[j * dh + r] * zk[j * dh + e];
        }
    cblas_dgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, (blasint)dh, (blasint)d, (blasint)dh, 1, c, (blasint)dh,
                w->wq + from, (blasint)d, 1, rows + i * d, (blasint)cols);
    local_rounds_up();
    free(u);
    return true;
}

double local_jacobian_rows(const local_head *f, int64_t i, int64_t m, const double *hat, const double *zv,
                           const double *zk, const double *a, const double *z)
{
    const taut_attention_weights *w = f->w;
    const int64_t len = f->dh * w->width, from = f->index * len;
    double size_k = 0, size_c = 0;
    if (!form_rows(f, i, m, hat, zv, zk)) return INFINITY;
    for (int64_t j = 0; j < m; j++) size_k += hat[j] * a[j], size_c += hat[j] * a[j] * z[j];
    const double keys = size_k * local_size(w->wk + from, len) * local_size(f->q + i * f->dh, f->dh),
                 queries = size_c * local_size(w->wq + from, len);
    return 0x1p-39 * (local_size(w->wv + from, len) + f->s * (keys + queries));
}

taut_up up_attention_exact(const taut_attention_weights *w, const taut_local_at *at, int64_t head)
{
    local_head f;
    taut_up norm = UP_NONE;
    const int64_t rows = w->tq * w->dh, cols = w->tk * w->width;
    const bool small = w->tk + w->dh < MOST_TERMS && rows > 0 && cols > 0 && cols < MOST_ENTRIES / rows;
    if (w->rope || w->cross || !small) return UP_NONE;
    bool good = local_head_begin(&f, w, at, head) && !f.moved;
    if (good) {
        f.jacobian = taut_calloc((size_t)(rows * cols), sizeof *f.jacobian);
        f.err = taut_calloc((size_t)w->tq, sizeof *f.err);
        good = f.jacobian && f.err && local_rows(&f);
    }
    if (good) {
        taut_up sum = UP_ZERO;
        for (int64_t i = 0; i < w->tq; i++) sum = up_add(sum, up_mul((taut_up){ f.err[i] }, (taut_up){ f.err[i] }));
        norm = up_add(up_norm(f.jacobian, rows, cols), up_sqrt(sum));
    }
    free(f.jacobian), free(f.err);
    local_head_end(&f);
    return norm;
}
