/* cuBLASLt where no device is.  It has two algorithms, so that whoever mixes them up gets other bits: one sums in order; the
 * other, which it names for long sums, in two pieces, one product at a time or as many as it was named for.  It knows none
 * for some batches, and none with a bias for an odd number of rows.  It is strict where the real one may be mild: shapes
 * that do not fit, where matrices begin, the workspace. */
#include "cublasLt.h"

#include <algorithm>
#include <vector>

#include "machine.h"

enum { LONG = 96 };
static const size_t WORK = 1 << 20;

struct emulate_blas {
};
struct emulate_desc {
    cublasComputeType_t how;
    int32_t turn_a, turn_b, there, epilogue;
    const void *bias;
};
struct emulate_layout {
    cudaDataType_t type;
    int64_t rows, cols, step, next;
    int32_t batch;
};
struct emulate_wish {
    size_t workspace;
    uint32_t alignment[4];
};

const char *cublasLtGetStatusString(cublasStatus_t s) { return s ? "not supported" : "success"; }

cublasStatus_t cublasLtCreate(cublasLtHandle_t *out) { return *out = new emulate_blas, CUBLAS_STATUS_SUCCESS; }

cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t *out, cublasComputeType_t how, cudaDataType_t)
{
    *out = new emulate_desc{ how,    CUBLAS_OP_N, CUBLAS_OP_N, CUBLASLT_POINTER_MODE_HOST, CUBLASLT_EPILOGUE_DEFAULT,
                             nullptr };
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t d, cublasLtMatmulDescAttributes_t what,
                                              const void *value, size_t size)
{
    void *const at[] = { &d->turn_a, &d->turn_b, &d->there, &d->epilogue, &d->bias };
    memcpy(at[what], value, size);
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t *out, cudaDataType_t type, uint64_t rows,
                                          uint64_t cols, int64_t step)
{
    *out = new emulate_layout{ type, (int64_t)rows, (int64_t)cols, step, 0, 1 };
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatrixLayoutSetAttribute(cublasLtMatrixLayout_t l, cublasLtMatrixLayoutAttribute_t what,
                                                const void *value, size_t size)
{
    if (what == CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT)
        memcpy(&l->batch, value, size);
    else
        memcpy(&l->next, value, size);
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t l)
{
    delete l;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t *out)
{
    *out = new emulate_wish{ 0, { 1, 1, 1, 1 } };
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t w,
                                                    cublasLtMatmulPreferenceAttributes_t what, const void *value,
                                                    size_t size)
{
    if (what == CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES) memcpy(&w->workspace, value, size);
    if (what >= CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES)
        memcpy(&w->alignment[what - CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES], value, size);
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t w)
{
    delete w;
    return CUBLAS_STATUS_SUCCESS;
}

static int64_t depth(const emulate_desc *d, const emulate_layout *a) { return d->turn_a ? a->rows : a->cols; }

cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t, cublasLtMatmulDesc_t d, cublasLtMatrixLayout_t a,
                                              cublasLtMatrixLayout_t, cublasLtMatrixLayout_t,
                                              cublasLtMatrixLayout_t out, cublasLtMatmulPreference_t w, int,
                                              cublasLtMatmulHeuristicResult_t *found, int *count)
{
    *count = (d->epilogue != CUBLASLT_EPILOGUE_BIAS || out->rows % 2 == 0) && (out->batch == 1 || depth(d, a) % 5 != 4);
    found->algo.cut = depth(d, a) >= LONG && w->workspace >= WORK;
    found->algo.only = found->algo.cut ? out->batch : 0;
    found->workspaceSize = found->algo.cut ? WORK : 0;
    std::copy_n(w->alignment, 4, found->algo.alignment);
    return *count ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_NOT_SUPPORTED;
}

static bool takes(const cublasLtMatmulAlgo_t *algo, int32_t batch)
{
    return !algo->only || batch == 1 || batch == algo->only;
}

cublasStatus_t cublasLtMatmulAlgoCheck(cublasLtHandle_t, cublasLtMatmulDesc_t, cublasLtMatrixLayout_t,
                                       cublasLtMatrixLayout_t, cublasLtMatrixLayout_t, cublasLtMatrixLayout_t out,
                                       const cublasLtMatmulAlgo_t *algo, cublasLtMatmulHeuristicResult_t *fit)
{
    fit->algo = *algo;
    fit->workspaceSize = algo->cut ? WORK : 0;
    return takes(algo, out->batch) ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_NOT_SUPPORTED;
}

/* To nearest, without the last `bits` bits; ties away from 0. */
static float rounded(float x, unsigned bits)
{
    const unsigned half = 1u << bits >> 1, low = (1u << bits) - 1;
    return bits && isfinite(x) ? __uint_as_float((__float_as_uint(x) + half) & ~low) : x;
}

template <class T> static T number(const void *x, cudaDataType_t type, int64_t i)
{
    if (type == CUDA_R_16BF) return (T)__uint_as_float((unsigned)((const uint16_t *)x)[i] << 16);
    return type == CUDA_R_64F ? (T)((const double *)x)[i] : (T)((const float *)x)[i];
}

static int64_t bytes_of(cudaDataType_t type) { return type == CUDA_R_16BF ? 2 : type == CUDA_R_64F ? 8 : 4; }

/* Its numbers, those of a column one behind the other; with `turned`, of a row. */
template <class T> static std::vector<T> factor(const void *x, const emulate_layout *l, bool turned, unsigned lost)
{
    std::vector<T> y((size_t)(l->rows * l->cols));
    for (int64_t j = 0; j < l->cols; j++)
        for (int64_t i = 0; i < l->rows; i++) {
            const T v = number<T>(x, l->type, j * l->step + i);
            y[(size_t)(turned ? i * l->cols + j : j * l->rows + i)] = lost ? (T)rounded((float)v, lost) : v;
        }
    return y;
}

/* sum[i] += a_ik b_kj for k from `from` to `to`; one row of `a` holds a_ik for all i. */
template <class T> static void add_up(T *sum, const T *a, const T *b, int64_t rows, int64_t from, int64_t to)
{
    for (int64_t k = from; k < to; k++)
        for (int64_t i = 0; i < rows; i++) sum[i] += a[k * rows + i] * b[k];
}

template <class T>
static void multiply(const emulate_desc *d, const cublasLtMatmulAlgo_t *algo, T alpha, const void *a,
                     const emulate_layout *a_is, const void *b, const emulate_layout *b_is, T beta, const void *c,
                     void *out, const emulate_layout *c_is)
{
    const unsigned lost = d->how == CUBLAS_COMPUTE_32F_FAST_TF32 ? 13 : 0;
    const auto left = factor<T>(a, a_is, d->turn_a, lost);  /* a row for every k */
    const auto right = factor<T>(b, b_is, d->turn_b, lost); /* a row for every column of the result */
    const int64_t rows = c_is->rows, deep = depth(d, a_is), half = algo->cut ? deep / 2 : deep;
    std::vector<T> sum((size_t)rows), rest((size_t)rows);
    for (int64_t j = 0; j < c_is->cols; j++) {
        std::fill(sum.begin(), sum.end(), T(0)), std::fill(rest.begin(), rest.end(), T(0));
        add_up(sum.data(), left.data(), right.data() + j * deep, rows, 0, half);
        add_up(rest.data(), left.data(), right.data() + j * deep, rows, half, deep);
        for (int64_t i = 0; i < rows; i++) {
            const int64_t at = j * c_is->step + i;
            T y = alpha * (algo->cut ? sum[(size_t)i] + rest[(size_t)i] : sum[(size_t)i]);
            if (beta != 0) y += beta * ((const T *)c)[at];
            if (d->epilogue == CUBLASLT_EPILOGUE_BIAS) y += ((const T *)d->bias)[i];
            ((T *)out)[at] = y;
        }
    }
}

static void fits(bool so)
{
    if (!so) emulate_fault("a product's matrices do not fit each other");
}

static void check(const emulate_desc *d, const emulate_layout *a, const emulate_layout *b, const emulate_layout *c)
{
    const int64_t k = depth(d, a);
    fits((d->turn_a ? a->cols : a->rows) == c->rows && (d->turn_b ? b->rows : b->cols) == c->cols);
    fits((d->turn_b ? b->cols : b->rows) == k && a->type == b->type);
    fits(a->batch == c->batch && b->batch == c->batch);
    fits(a->step >= a->rows && b->step >= b->rows && c->step >= c->rows);
    fits(d->epilogue != CUBLASLT_EPILOGUE_BIAS || (d->bias && (uintptr_t)d->bias % 16 == 0));
}

/* An array begins, and each of its matrices, at a multiple of what was said when the algorithm was asked for. */
static void aligned(const void *x, const emulate_layout *l, uint32_t alignment)
{
    const uintptr_t next = l->batch > 1 ? (uintptr_t)(l->next * bytes_of(l->type)) : 0;
    if (((uintptr_t)x | next) % alignment) emulate_fault("a product's matrix does not begin where was said");
}

template <class T>
static void multiply_all(const emulate_desc *d, const cublasLtMatmulAlgo_t *algo, T alpha, const char *a,
                         const emulate_layout *a_is, const char *b, const emulate_layout *b_is, T beta, const char *c,
                         char *out, const emulate_layout *c_is)
{
    for (int64_t e = 0; e < c_is->batch; e++)
        multiply<T>(d, algo, alpha, a + e * a_is->next * bytes_of(a_is->type), a_is,
                    b + e * b_is->next * bytes_of(b_is->type), b_is, beta, c + e * c_is->next * (int64_t)sizeof(T),
                    out + e * c_is->next * (int64_t)sizeof(T), c_is);
}

cublasStatus_t cublasLtMatmul(cublasLtHandle_t, cublasLtMatmulDesc_t d, const void *alpha, const void *a,
                              cublasLtMatrixLayout_t a_is, const void *b, cublasLtMatrixLayout_t b_is, const void *beta,
                              const void *c, cublasLtMatrixLayout_t, void *out, cublasLtMatrixLayout_t out_is,
                              const cublasLtMatmulAlgo_t *algo, void *workspace, size_t size, cudaStream_t)
{
    if (!takes(algo, out_is->batch) || (algo->cut && (!workspace || size < WORK))) return CUBLAS_STATUS_NOT_SUPPORTED;
    check(d, a_is, b_is, out_is);
    aligned(a, a_is, algo->alignment[0]), aligned(b, b_is, algo->alignment[1]);
    aligned(c, out_is, algo->alignment[2]), aligned(out, out_is, algo->alignment[3]);
    if (out_is->type == CUDA_R_64F)
        multiply_all<double>(d, algo, *(const double *)alpha, (const char *)a, a_is, (const char *)b, b_is,
                             *(const double *)beta, (const char *)c, (char *)out, out_is);
    else
        multiply_all<float>(d, algo, *(const float *)alpha, (const char *)a, a_is, (const char *)b, b_is,
                            *(const float *)beta, (const char *)c, (char *)out, out_is);
    return CUBLAS_STATUS_SUCCESS;
}
