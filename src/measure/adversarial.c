/* Two clusters, unmasked.  Rows 2..n of the derivative depend on x_1 through P_21 V (I + (1 - P_21)(x_1 - x_2)(A x_2)^T), so
 *     ||J|| >= sqrt(n-1) P_21 ||V (I + (1 - P_21)(x_1 - x_2)(A x_2)^T)||,   P_21 = 1 / (1 + (n-1) e^-gap).
 * Eigenvalues.  A = s W_K^T W_Q (width x width) and s W_Q W_K^T (dh x dh) have the same ones but for zeros: if
 * s W_Q W_K^T z = g z, then A (W_K^T z) = g W_K^T z.  So the small matrix is enough.
 *     g >= 0: x_1 = u, x_2 = u/2, gap g/4;      g < 0: x_1 = u, x_2 = -u, gap 2 |g|.
 * General.  For a unit w:  x_2 = c w, x_1 = A w / |A w|:  gap(w) = c |A w| - c^2 w.A w, best at c = 1 if w.A w <= 0,
 * otherwise c = min(1, |A w| / (2 w.A w)).  Projected gradient ascent over w; nothing here is proved, any w is an
 * input. */
#include "measure/adversarial.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/rng.h"
#include "bound/blas.h"

extern void dgeev_(const char *jobvl, const char *jobvr, const blasint *n, double *a, const blasint *lda, double *wr,
                   double *wi, double *vl, const blasint *ldvl, double *vr, const blasint *ldvr, double *work,
                   const blasint *lwork, blasint *info);

void taut_clusters_free(taut_clusters *c)
{
    free(c->alone), free(c->rest);
    *c = (taut_clusters){ 0 };
}

static taut_status begin(taut_clusters *c, int64_t width)
{
    *c = (taut_clusters){ taut_calloc((size_t)width + 1, sizeof(double)),
                          taut_calloc((size_t)width + 1, sizeof(double)), 0 };
    if (c->alone && c->rest) return TAUT_OK;
    taut_clusters_free(c);
    return taut_no_memory("adversarial tokens");
}

/* y = scale W_2^T (W_1 x): A x for (wq, wk), A^T x for (wk, wq). */
static void logits_times(double *y, const taut_logits *a, const double *first, const double *then, const double *x,
                         double *h)
{
    const blasint r = (blasint)a->dh, c = (blasint)a->width;
    cblas_dgemv(CblasRowMajor, CblasNoTrans, r, c, a->scale, first, c, x, 1, 0, h, 1);
    cblas_dgemv(CblasRowMajor, CblasTrans, r, c, 1, then, c, h, 1, 0, y, 1);
}

static double unit(double *x, int64_t n)
{
    const double size = cblas_dnrm2((blasint)n, x, 1);
    if (size > 0) cblas_dscal((blasint)n, 1 / size, x, 1);
    return size;
}

/* Real eigenvalues of scale W_Q W_K^T with the largest and smallest value; vectors into z_top and z_low. */
static bool extremes(const taut_logits *a, double *top, double *low, double *z_top, double *z_low)
{
    const blasint n = (blasint)a->dh, work_len = 8 * n + 16;
    const size_t nn = (size_t)(n * n);
    double *m = taut_malloc((2 * nn + 2 * (size_t)n + (size_t)work_len) * sizeof *m);
    if (!m) return false;
    double *vr = m + nn, *wr = vr + nn, *wi = wr + n, *work = wi + n, none;
    const blasint one = 1;
    blasint info = 0;
    /* row-major W_K W_Q^T read column-major is W_Q W_K^T */
    cblas_dgemm(CblasRowMajor, CblasNoTrans, CblasTrans, n, n, (blasint)a->width, a->scale, a->wk, (blasint)a->width,
                a->wq, (blasint)a->width, 0, m, n);
    dgeev_("N", "V", &n, m, &n, wr, wi, &none, &one, vr, &n, work, &work_len, &info);
    *top = *low = 0;
    for (blasint i = 0; info == 0 && i < n; i++) {
        if (wi[i] != 0) continue;
        if (wr[i] > *top) *top = wr[i], memcpy(z_top, vr + i * n, (size_t)n * sizeof *vr);
        if (wr[i] < *low) *low = wr[i], memcpy(z_low, vr + i * n, (size_t)n * sizeof *vr);
    }
    free(m);
    return true;
}

taut_status taut_clusters_castin(taut_clusters *c, const taut_logits *a)
{
    double *z = taut_calloc((size_t)(2 * a->dh) + 1, sizeof *z), top, low;
    if (begin(c, a->width) || !z || !extremes(a, &top, &low, z, z + a->dh)) {
        free(z);
        taut_clusters_free(c);
        return taut_no_memory("adversarial tokens");
    }
    const bool positive = top >= -8 * low;
    const double g = positive ? top : low;
    cblas_dgemv(CblasRowMajor, CblasTrans, (blasint)a->dh, (blasint)a->width, 1, a->wk, (blasint)a->width,
                positive ? z : z + a->dh, 1, 0, c->alone, 1);
    free(z);
    c->gap = g != 0 && unit(c->alone, a->width) > 0 ? (positive ? g / 4 : -2 * g) : 0;
    for (int64_t i = 0; i < a->width; i++) c->rest[i] = (positive ? 0.5 : -1) * c->alone[i];
    return TAUT_OK;
}

/* gap(w), c and A w at w. */
static double gap_at(const taut_logits *a, const double *w, double *aw, double *c, double *h)
{
    logits_times(aw, a, a->wq, a->wk, w, h);
    const double size = cblas_dnrm2((blasint)a->width, aw, 1), inner = cblas_ddot((blasint)a->width, w, 1, aw, 1);
    *c = inner <= 0 ? 1 : fmin(1, size / (2 * inner));
    return *c * size - *c * *c * inner;
}

/* One ascent from w (d long); gap at the end, w and aw there.  work: 2 width + dh. */
static double ascend(const taut_logits *a, double *w, double *aw, double *work)
{
    const int64_t d = a->width;
    double *back = work, *both = work + d, *h = both + d, c, now = gap_at(a, w, aw, &c, h), step = 0.3;
    for (int i = 0; i < 200 && step > 1e-9; i++) {
        const double size = cblas_dnrm2((blasint)d, aw, 1);
        if (!(size > 0)) return 0;
        logits_times(back, a, a->wk, a->wq, aw, h); /* A^T A w */
        logits_times(both, a, a->wk, a->wq, w, h);  /* A^T w */
        double along = 0, most = 0;
        for (int64_t k = 0; k < d; k++) {
            back[k] = c * back[k] / size - c * c * (aw[k] + both[k]);
            along += back[k] * w[k];
        }
        for (int64_t k = 0; k < d; k++) back[k] -= along * w[k], most += back[k] * back[k];
        if (!(most > 0)) break;
        for (int64_t k = 0; k < d; k++) both[k] = w[k] + step * back[k] / sqrt(most);
        unit(both, d);
        const double next = gap_at(a, both, aw, &c, h);
        if (next > now)
            memcpy(w, both, (size_t)d * sizeof *w), now = next, step *= 1.5;
        else
            step /= 3, now = gap_at(a, w, aw, &c, h);
    }
    return now;
}

taut_status taut_clusters_general(taut_clusters *c, const taut_logits *a, int starts, uint64_t seed)
{
    const int64_t d = a->width;
    double *w = taut_malloc((size_t)(4 * d + a->dh + 1) * sizeof *w);
    if (begin(c, d) || !w) {
        free(w);
        taut_clusters_free(c);
        return taut_no_memory("adversarial tokens");
    }
    double *aw = w + d, *work = aw + d;
    for (int s = 0; s < starts; s++) {
        const uint64_t key = taut_rng_key(seed, TAUT_RNG_SAMPLE, (uint64_t)s);
        for (int64_t k = 0; k < d; k++) w[k] = taut_rng_normal(key, (uint64_t)k);
        unit(w, d);
        const double gap = ascend(a, w, aw, work);
        if (!(gap > c->gap)) continue;
        double shrink;
        c->gap = gap_at(a, w, aw, &shrink, work);
        for (int64_t k = 0; k < d; k++) c->rest[k] = shrink * w[k], c->alone[k] = aw[k];
        unit(c->alone, d);
    }
    free(w);
    return TAUT_OK;
}

void taut_clusters_tokens(double *x, const taut_clusters *c, int64_t n, int64_t width, double radius)
{
    for (int64_t i = 0; i < n; i++)
        for (int64_t k = 0; k < width; k++) x[i * width + k] = radius * (i ? c->rest[k] : c->alone[k]);
}

double taut_clusters_radius(const taut_clusters *c, int64_t n)
{
    return n > 2 && c->gap > 0 ? sqrt(log((double)(n - 1)) / c->gap) : 0;
}

void taut_quadratic_tokens(double *x, int64_t n, int64_t width, double radius)
{
    memset(x, 0, (size_t)(n * width) * sizeof *x);
    for (int64_t i = 1; i < n; i++) x[i * width] = i <= n / 2 ? radius : -radius;
}
