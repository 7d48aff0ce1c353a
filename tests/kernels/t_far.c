/* A device for proofs (base/far.h): norms by it are never below the truth and near the host's; one whose products, factors or
 * sums are wrong is refused before it is used; one that fails later leaves the proof to the host.  Here the device is OpenBLAS,
 * and with TAUT_KERNELS=cuda or cuda64 the real one as well. */
#include <cblas.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/float32.h"
#include "bound/far.h"
#include "bound/lanczos.h"
#include "bound/norm.h"
#include "harness.h"
#include "kernels/library.h"

/* What is wrong with the device that this file plays. */
static enum { NOTHING, FLOATS, NO_HOLD, NO_STEPS, NO_PROOF, WRONG_FACTOR, SMALL_SUMS, SPOILT } wrong;
static int proofs;

static double *g, *v;
static int64_t side;

static bool play_gemm(double *c, const double *a, bool ta, const double *b, bool tb, int64_t m, int64_t n, int64_t k,
                      double alpha, double beta)
{
    cblas_dgemm(CblasRowMajor, ta ? CblasTrans : CblasNoTrans, tb ? CblasTrans : CblasNoTrans, (int)m, (int)n, (int)k,
                alpha, a, (int)(ta ? m : k), b, (int)(tb ? k : n), beta, c, (int)n);
    for (int64_t i = 0; wrong == FLOATS && i < m * n; i++) c[i] = taut_float32(c[i]);
    return wrong != SPOILT;
}

static bool play_hold(double *diagonal, const double *w, int64_t rows, int64_t cols)
{
    const bool tall = rows >= cols;
    side = tall ? cols : rows;
    free(g);
    g = taut_malloc((size_t)(side * side) * sizeof *g);
    CHECK(g, "memory");
    play_gemm(g, w, tall, w, !tall, side, side, tall ? rows : cols, 1, 0);
    *diagonal = 0;
    for (int64_t i = 0; i < side; i++) *diagonal = fmax(*diagonal, g[i * side + i]);
    return wrong != NO_HOLD;
}

static bool play_lanczos(double *alpha, double *beta, const double *start, int from, int to)
{
    if (from == 0) {
        free(v);
        v = taut_malloc((size_t)((LANCZOS_STEPS + 1) * side) * sizeof *v);
        CHECK(v, "memory");
        memcpy(v, start, (size_t)side * sizeof *v);
    }
    for (int64_t k = from; k < to; k++) {
        double *next = v + (k + 1) * side;
        cblas_dgemv(CblasRowMajor, CblasNoTrans, (int)side, (int)side, 1, g, (int)side, v + k * side, 1, 0, next, 1);
        alpha[k] = cblas_ddot((int)side, next, 1, v + k * side, 1);
        for (int pass = 0; pass < 2; pass++)
            for (int64_t i = 0; i <= k; i++)
                cblas_daxpy((int)side, -cblas_ddot((int)side, next, 1, v + i * side, 1), v + i * side, 1, next, 1);
        beta[k] = cblas_dnrm2((int)side, next, 1);
        if (!(beta[k] > 1e-15 * fabs(alpha[k]))) beta[k] = 0;
        cblas_dscal((int)side, beta[k] > 0 ? 1 / beta[k] : 0, next, 1);
    }
    return wrong != NO_STEPS;
}

extern void dpotrf_(const char *uplo, const int *n, double *a, const int *lda, int *info);

static bool play_prove(taut_far_proof *p, double mu)
{
    const int64_t len = side * side;
    const int n = (int)side;
    int info = 0;
    double *s = taut_malloc((size_t)(2 * len) * sizeof *s), *l = s + len;
    CHECK(s, "memory");
    *p = (taut_far_proof){ 0 };
    for (int64_t i = 0; i < len; i++) {
        l[i] = s[i] = (i / side == i % side ? mu : 0) - g[i];
        if (i / side == i % side) p->diagonal = fmax(p->diagonal, fabs(s[i]));
        p->s += s[i] * s[i];
    }
    dpotrf_("U", &n, l, &n, &info); /* column-major upper: row-major lower */
    for (int64_t i = 0; i < len; i++) {
        if (i % side > i / side) l[i] = 0;
        if (wrong == WRONG_FACTOR && i == 0) l[i] *= 1.5;
        p->r += l[i] * l[i];
    }
    cblas_dgemm(CblasRowMajor, CblasNoTrans, CblasTrans, n, n, n, -1, l, n, l, n, 1, s, n);
    for (int64_t i = 0; i < len; i++) p->t += s[i] * s[i];
    if (wrong == SMALL_SUMS) p->s /= 4;
    free(s);
    proofs++;
    return info == 0 && wrong != NO_PROOF;
}

static const taut_far play = { play_gemm, play_hold, play_lanczos, play_prove };

static double *matrix(int kind, int64_t rows, int64_t cols)
{
    double *w = taut_malloc((size_t)(rows * cols) * sizeof *w);
    CHECK(w, "memory");
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < cols; j++) {
            double x = rng_pm();
            if (kind == 1) x *= pow(10, 8 * rng_pm());
            if (kind == 2) x = (i == j) + 1e-7 * x;      /* clustered */
            if (kind == 3) x = cos((double)(i + 2 * j)); /* of rank two */
            if (kind == 4) x *= 0x1p300;
            w[i * cols + j] = x;
        }
    return w;
}

/* Every norm by the device against the host's. */
static void norms(const taut_far *far, int kinds, const char *who)
{
    static const int64_t shapes[][2] = { { 300, 900 }, { 1000, 257 }, { 512, 512 } };
    for (int kind = 0; kind < kinds; kind++)
        for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++, case_no++) {
            const int64_t rows = shapes[i][0], cols = shapes[i][1];
            double *w = matrix(kind, rows, cols);
            CHECK(!taut_far_use(NULL), "the host alone");
            const double here = up_norm(w, rows, cols).v, seen = est_norm(w, rows, cols);
            CHECK(!taut_far_use(far), taut_last_error());
            const double there = up_norm(w, rows, cols).v;
            CHECK_LE(seen * (1 - 1e-12), there, who);
            CHECK_LE(there, here * (1 + 1e-8), who);
            CHECK_LE(here * (1 - 1e-8), there, who);
            w[17] = NAN;
            CHECK(isinf(up_norm(w, rows, cols).v), "NaN in, no bound out");
            free(w);
        }
}

static void products(const taut_far *far)
{
    enum { M = 301, N = 523, K = 700 };
    double *a = matrix(0, M, K), *b = matrix(0, N, K), *c = matrix(0, M, N);
    CHECK(!taut_far_use(far), taut_last_error());
    CHECK(!taut_far_gemm(c, a, false, b, true, 4, 4, 4), "too little to be worth it");
    CHECK(taut_far_gemm(c, a, false, b, true, M, N, K), "a product");
    for (int64_t i = 0; i < M; i += 50)
        for (int64_t j = 0; j < N; j += 50) {
            double sum = 0;
            for (int64_t l = 0; l < K; l++) sum += a[i * K + l] * b[j * K + l];
            CHECK_NEAR(c[i * N + j], sum, 1e-12, "A B^T");
        }
    free(a), free(b), free(c);
}

static void refused(int how, const char *what)
{
    wrong = how;
    CHECK(taut_far_use(&play) == TAUT_DEVICE, what);
    CHECK(strstr(taut_last_error(), "no proof can be trusted to this device"), taut_last_error());
    wrong = NOTHING;
    proofs = 0;
    double *w = matrix(0, 300, 300);
    CHECK(isfinite(up_norm(w, 300, 300).v) && proofs == 0, "the host goes on alone");
    free(w);
}

/* Good when it is tried, and bad afterwards. */
static void fails_later(int how, const char *what)
{
    double *w = matrix(0, 400, 300);
    CHECK(!taut_far_use(NULL), "the host alone");
    const double here = up_norm(w, 400, 300).v;
    CHECK(!taut_far_use(&play), taut_last_error());
    wrong = how;
    const double there = up_norm(w, 400, 300).v;
    wrong = NOTHING;
    CHECK_LE(est_norm(w, 400, 300) * (1 - 1e-12), there, what);
    CHECK_LE(there, here * 2, what);
    free(w);
}

int main(void)
{
    test_begin();
    const char *table = getenv("TAUT_KERNELS");
    norms(&play, 5, "OpenBLAS as a device");
    products(&play);
    refused(FLOATS, "products in float");
    refused(SPOILT, "products that fail");
    refused(WRONG_FACTOR, "a wrong factor");
    refused(SMALL_SUMS, "sums that are too small");
    refused(NO_HOLD, "nothing is held");
    fails_later(NO_HOLD, "hold fails");
    fails_later(NO_STEPS, "Lanczos fails");
    fails_later(NO_PROOF, "no factor is found");
    fails_later(WRONG_FACTOR, "a factor that is wrong only makes a bound larger");
    const bool device = table && strncmp(table, "cuda", 4) == 0;
    if (device) {
        const taut_far *far = taut_library_far();
        if (!far) return test_skip(taut_last_error());
        norms(far, effort(5), "the device");
        products(far);
    }
    CHECK(!taut_far_use(NULL), "the host alone");
    free(g), free(v);
    return test_end("far", "norms as the host's, liars refused, failures left to the host%s",
                    device ? ", and on the device" : "");
}
