/* Matrices with a proved error: the true matrix M has ||M - v||_F <= err.
 *
 * F3.  With inner size k, |fl(BC) - BC| <= g_k |B||C| entry by entry, and || |B||C| ||_F <= ||B||_F ||C||_F, so
 *     product   (B + E)(C + F) - fl(BC):  g_k ||B||_F ||C||_F + ||B||_F f + e ||C||_F + e f + k sqrt(mn) 2^-1074,
 *     sum       e + f + u ||fl(B + C)||_F              (rounding is at most u times the result; sums do not underflow),
 *     multiple  |s| e + u ||fl(sB)||_F + sqrt(mn) 2^-1074,  diag(d) B:  max|d| e + the same,
 *     blocks    sqrt(sum e_i^2),  a part of a matrix: e.
 * e = ||E||_F and f = ||F||_F are the errors coming in; 2^-1074 an entry covers underflow.  Infinite or NaN
 * entries make the ball void. */
#include "bound/matrix.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/check.h"
#include "bound/blas.h"
#include "bound/norm.h"
#include "bound/range.h"

static taut_ball empty(int64_t rows, int64_t cols) { return (taut_ball){ NULL, rows, cols, UP_NONE }; }

static taut_ball fresh(int64_t rows, int64_t cols)
{
    taut_ball r = empty(rows, cols);
    const int64_t len = rows * cols;
    r.v = taut_malloc((size_t)(len > 0 ? len : 1) * sizeof *r.v);
    return r;
}

/* The last step of every operation: a ball with anything infinite in it is void. */
static taut_ball finished(taut_ball r, taut_up err)
{
    r.err = up_wrap(err.v);
    if (r.v && !(r.err.v < INFINITY && range_max(r.v, r.rows * r.cols) < INFINITY)) ball_free(&r);
    return r;
}

void ball_free(taut_ball *a)
{
    free(a->v);
    a->v = NULL;
    a->err = UP_NONE;
}

static taut_up lost(const taut_ball *r) /* 2^-1074 an entry */
{
    return up_mul(up_sqrt(up_mul(up_int(r->rows), up_int(r->cols))), (taut_up){ 0x1p-1074 });
}

static taut_up rounded_once(const taut_ball *r)
{
    return up_mul((taut_up){ 0x1p-53 }, up_norm_frobenius(r->v, r->rows * r->cols));
}

taut_ball ball_of(const double *w, int64_t rows, int64_t cols)
{
    taut_ball r = fresh(rows, cols);
    if (!r.v) return r;
    if (rows * cols > 0) memcpy(r.v, w, (size_t)(rows * cols) * sizeof *r.v);
    return finished(r, UP_ZERO);
}

taut_ball ball_identity(double a, int64_t n)
{
    taut_ball r = fresh(n, n);
    if (!r.v) return r;
    memset(r.v, 0, (size_t)(n * n) * sizeof *r.v);
    for (int64_t i = 0; i < n; i++) r.v[i * n + i] = a;
    return finished(r, UP_ZERO);
}

taut_ball ball_mul(const taut_ball *a, bool ta, const taut_ball *b, bool tb)
{
    const int64_t m = ta ? a->cols : a->rows, k = ta ? a->rows : a->cols, n = tb ? b->rows : b->cols;
    TAUT_CHECK(k == (tb ? b->cols : b->rows), "the inner sizes of a product agree");
    if (!a->v || !b->v || m > INT_MAX || k > INT_MAX || n > INT_MAX) return empty(m, n);
    taut_ball r = fresh(m, n);
    if (!r.v) return r;
    const taut_up fa = up_norm_frobenius(a->v, m * k), fb = up_norm_frobenius(b->v, k * n);
    if (fa.v == 0 || fb.v == 0 || m * n == 0) /* exactly 0, also where k is 0 */
        memset(r.v, 0, (size_t)(m * n) * sizeof *r.v);
    else
        blas_gemm(r.v, a->v, ta, b->v, tb, m, n, k);
    const taut_up both = up_mul(fa, fb);
    const taut_up product = both.v == 0 ? UP_ZERO : up_add(up_mul(up_gamma(k), both), up_mul(up_int(k), lost(&r)));
    const taut_up inputs = up_add(up_mul(up_add(fa, a->err), b->err), up_mul(a->err, fb));
    return finished(r, up_add(product, inputs));
}

taut_ball ball_add(const taut_ball *a, const taut_ball *b)
{
    TAUT_CHECK(a->rows == b->rows && a->cols == b->cols, "the sizes of a sum agree");
    if (!a->v || !b->v) return empty(a->rows, a->cols);
    taut_ball r = fresh(a->rows, a->cols);
    if (!r.v) return r;
    for (int64_t i = 0; i < a->rows * a->cols; i++) r.v[i] = a->v[i] + b->v[i];
    return finished(r, up_add(rounded_once(&r), up_add(a->err, b->err)));
}

/* v[i][j] = f(i, j) a[i][j]; `most` bounds |f|. */
static taut_ball scaled(const taut_ball *a, const double *by_row, const double *by_col, double s, double most)
{
    if (!a->v) return empty(a->rows, a->cols);
    taut_ball r = fresh(a->rows, a->cols);
    if (!r.v) return r;
#pragma omp parallel for schedule(static) if (a->rows * a->cols >= RANGE_SHARED)
    for (int64_t i = 0; i < a->rows; i++)
        for (int64_t j = 0; j < a->cols; j++)
            r.v[i * a->cols + j] = (by_row ? by_row[i] : by_col ? by_col[j] : s) * a->v[i * a->cols + j];
    const bool exact = most == 0 || most == 1 || up_norm_frobenius(a->v, a->rows * a->cols).v == 0;
    const taut_up rounding = exact && !by_row && !by_col ? UP_ZERO : up_add(rounded_once(&r), lost(&r));
    return finished(r, up_add(up_mul(up_exact(most), a->err), rounding));
}

taut_ball ball_scale(const taut_ball *a, double s) { return scaled(a, NULL, NULL, s, fabs(s)); }

taut_ball ball_scale_rows(const taut_ball *a, const double *d) { return scaled(a, d, NULL, 0, range_max(d, a->rows)); }

taut_ball ball_scale_cols(const taut_ball *a, const double *d) { return scaled(a, NULL, d, 0, range_max(d, a->cols)); }

/* r[row.., col..] = all of part. */
static void place(taut_ball *r, const taut_ball *part, int64_t row, int64_t col)
{
    for (int64_t i = 0; i < part->rows; i++)
        memcpy(r->v + (row + i) * r->cols + col, part->v + i * part->cols, (size_t)part->cols * sizeof *r->v);
}

static taut_ball joined(const taut_ball *parts, int64_t count, bool side_by_side)
{
    int64_t total = 0;
    bool whole = true;
    taut_up square = UP_ZERO;
    for (int64_t p = 0; p < count; p++) {
        TAUT_CHECK(side_by_side ? parts[p].rows == parts[0].rows : parts[p].cols == parts[0].cols,
                   "joined blocks fit together");
        total += side_by_side ? parts[p].cols : parts[p].rows;
        whole = whole && parts[p].v;
        square = up_add(square, up_mul(parts[p].err, parts[p].err));
    }
    const int64_t rows = side_by_side ? parts[0].rows : total, cols = side_by_side ? total : parts[0].cols;
    taut_ball r = whole ? fresh(rows, cols) : empty(rows, cols);
    if (!r.v) return r;
    for (int64_t p = 0, at = 0; p < count; p++) {
        place(&r, &parts[p], side_by_side ? 0 : at, side_by_side ? at : 0);
        at += side_by_side ? parts[p].cols : parts[p].rows;
    }
    return finished(r, up_sqrt(square));
}

taut_ball ball_hcat(const taut_ball *parts, int64_t count) { return joined(parts, count, true); }

taut_ball ball_vcat(const taut_ball *parts, int64_t count) { return joined(parts, count, false); }

taut_ball ball_cols(const taut_ball *a, int64_t first, int64_t count)
{
    TAUT_CHECK(first >= 0 && count >= 0 && first + count <= a->cols, "the columns of a part are there");
    taut_ball r = a->v ? fresh(a->rows, count) : empty(a->rows, count);
    for (int64_t i = 0; r.v && i < a->rows; i++)
        memcpy(r.v + i * count, a->v + i * a->cols + first, (size_t)count * sizeof *r.v);
    return r.v ? finished(r, a->err) : r;
}

taut_up up_ball_norm(const taut_ball *a) { return a->v ? up_add(up_norm(a->v, a->rows, a->cols), a->err) : UP_NONE; }

taut_up up_ball_frobenius(const taut_ball *a)
{
    return a->v ? up_add(up_norm_frobenius(a->v, a->rows * a->cols), a->err) : UP_NONE;
}

bool ball_is_zero(const taut_ball *a) { return a->v && a->err.v == 0 && range_max(a->v, a->rows * a->cols) == 0; }
