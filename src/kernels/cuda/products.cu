/* cuBLASLt: for every shape the algorithm that its heuristic names first is kept and used for ever, with a workspace of
 * our own, so the same bits come out of every run on one chip and library.  Sums that are split along k are added in
 * the product's own type, in order; nothing is added atomically.  An algorithm is chosen for the batch that is usual and
 * serves any other: a product does not depend on how many there are.
 *
 * bf16 takes both matrices as lowered.cu has them, tf32 leaves it to the matrix units; sums are float in both. */
#include "kernels/cuda/products.h"

#include <cublasLt.h>
#include <stdio.h>
#include <string.h>
#include <unordered_map>

#include "kernels/cuda/lowered.h"

static const size_t WORKSPACE = (size_t)32 << 20;

static struct {
    cublasLtHandle_t handle;
    void *workspace;
    taut_products how;
} blas;

taut_products cuda_products(void) { return blas.how; }

void cuda_products_set(taut_products how) { blas.how = how; }

static bool good(cublasStatus_t s, const char *what)
{
    char why[128];
    if (s == CUBLAS_STATUS_SUCCESS) return true;
    snprintf(why, sizeof why, "%s: %s", what, cublasLtGetStatusString(s));
    cuda_fault(why);
    return false;
}

static bool opened(void)
{
    if (blas.handle) return true;
    cuda_note(cudaMalloc(&blas.workspace, WORKSPACE), "workspace of products");
    return !cuda_failed() && good(cublasLtCreate(&blas.handle), "cuBLASLt");
}

/* All that a plan depends on; every byte is set. */
struct shape {
    int64_t m, n, k, batch, usual;
    cuda_steps c, a, b;
    int32_t ta, tb, bytes, bf16, tf32, there;
    uint32_t a_align, b_align, c_align, bias;
    bool operator==(const shape &o) const { return memcmp(this, &o, sizeof o) == 0; }
};

struct shape_hash {
    size_t operator()(const shape &s) const
    {
        uint64_t h = 1469598103934665603u;
        for (size_t i = 0; i < sizeof s; i++) h = (h ^ ((const unsigned char *)&s)[i]) * 1099511628211u;
        return (size_t)h;
    }
};

struct plan {
    cublasLtMatmulDesc_t desc;
    cublasLtMatrixLayout_t a, b, c;
    cublasLtMatmulAlgo_t algo;
    int64_t at_once; /* products */
    bool made;
};

/* Of the first matrix and of all others. */
static uint32_t alignment(const void *p, cuda_steps steps, int bytes)
{
    const uintptr_t low = ((uintptr_t)p | (uintptr_t)steps.next * (uintptr_t)bytes) & 255;
    return low ? (uint32_t)(low & -low) : 256;
}

static void set(plan *p, cublasLtMatmulDescAttributes_t what, int32_t value)
{
    good(cublasLtMatmulDescSetAttribute(p->desc, what, &value, sizeof value), "cuBLASLt");
}

/* A row-major (rows, cols) matrix is cuBLAS's (cols, rows). */
static cublasLtMatrixLayout_t layout(cudaDataType_t type, int64_t rows, int64_t cols, int64_t batch, cuda_steps steps)
{
    cublasLtMatrixLayout_t l = NULL;
    const int32_t count = (int32_t)batch;
    good(cublasLtMatrixLayoutCreate(&l, type, (uint64_t)cols, (uint64_t)rows, steps.row), "cuBLASLt");
    if (l && batch > 1) {
        good(cublasLtMatrixLayoutSetAttribute(l, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &count, sizeof count), "cuBLASLt");
        good(cublasLtMatrixLayoutSetAttribute(l, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &steps.next,
                                              sizeof steps.next),
             "cuBLASLt");
    }
    return l;
}

/* The layouts of `batch` products. */
static void lay_out(plan *p, const shape *s, int64_t batch)
{
    const cudaDataType_t type = s->bytes == 8 ? CUDA_R_64F : CUDA_R_32F, in = s->bf16 ? CUDA_R_16BF : type;
    p->a = layout(in, s->tb ? s->n : s->k, s->tb ? s->k : s->n, batch, s->b);
    p->b = layout(in, s->ta ? s->k : s->m, s->ta ? s->m : s->k, batch, s->a);
    p->c = layout(type, s->m, s->n, batch, s->c);
}

static void forget_layouts(plan *p)
{
    if (p->a) cublasLtMatrixLayoutDestroy(p->a);
    if (p->b) cublasLtMatrixLayoutDestroy(p->b);
    if (p->c) cublasLtMatrixLayoutDestroy(p->c);
}

static void choose(plan *p, const shape *s)
{
    cublasLtMatmulPreference_t wish = NULL;
    cublasLtMatmulHeuristicResult_t found;
    int count = 0;
    const uint32_t schemes = CUBLASLT_REDUCTION_SCHEME_NONE | CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE;
    const struct {
        cublasLtMatmulPreferenceAttributes_t name;
        const void *value;
        size_t size;
    } all[] = { { CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &WORKSPACE, sizeof WORKSPACE },
                { CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, &schemes, sizeof schemes },
                { CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, &s->b_align, sizeof s->b_align },
                { CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, &s->a_align, sizeof s->a_align },
                { CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, &s->c_align, sizeof s->c_align },
                { CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, &s->c_align, sizeof s->c_align } };
    if (!good(cublasLtMatmulPreferenceCreate(&wish), "cuBLASLt")) return;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        good(cublasLtMatmulPreferenceSetAttribute(wish, all[i].name, all[i].value, all[i].size), "cuBLASLt");
    if (!cublasLtMatmulAlgoGetHeuristic(blas.handle, p->desc, p->a, p->b, p->c, p->c, wish, 1, &found, &count) && count)
        p->algo = found.algo, p->made = true;
    cublasLtMatmulPreferenceDestroy(wish);
}

/* Whether the algorithm takes so many products at once; then they are laid out. */
static bool takes(plan *p, const shape *s, int64_t count)
{
    cublasLtMatmulHeuristicResult_t fit;
    plan all = *p;
    lay_out(&all, s, count);
    const bool fits = !cublasLtMatmulAlgoCheck(blas.handle, all.desc, all.a, all.b, all.c, all.c, &all.algo, &fit) &&
                      fit.workspaceSize <= WORKSPACE;
    forget_layouts(fits ? p : &all);
    if (fits) *p = all, p->at_once = count;
    return fits;
}

/* The algorithm for `usual` products, if it can make one as well: the choice does not depend on how many there are.  Then as
 * many at once as there are, or one at a time. */
static bool suits(plan *p, const shape *s, int64_t usual)
{
    lay_out(p, s, usual);
    choose(p, s);
    p->at_once = 1;
    p->made = p->made && (usual == 1 || takes(p, s, 1));
    if (p->made && s->batch > 1) (void)takes(p, s, s->batch);
    if (!p->made) forget_layouts(p);
    return p->made;
}

static void make(plan *p, const shape *s)
{
    const bool wide = s->bytes == 8;
    const cublasComputeType_t how = wide      ? CUBLAS_COMPUTE_64F
                                    : s->tf32 ? CUBLAS_COMPUTE_32F_FAST_TF32
                                              : CUBLAS_COMPUTE_32F;
    if (!good(cublasLtMatmulDescCreate(&p->desc, how, wide ? CUDA_R_64F : CUDA_R_32F), "cuBLASLt")) return;
    set(p, CUBLASLT_MATMUL_DESC_TRANSA, s->tb ? CUBLAS_OP_T : CUBLAS_OP_N);
    set(p, CUBLASLT_MATMUL_DESC_TRANSB, s->ta ? CUBLAS_OP_T : CUBLAS_OP_N);
    if (s->there) set(p, CUBLASLT_MATMUL_DESC_POINTER_MODE, CUBLASLT_POINTER_MODE_DEVICE);
    if (s->bias) set(p, CUBLASLT_MATMUL_DESC_EPILOGUE, CUBLASLT_EPILOGUE_BIAS);
    if (!suits(p, s, s->usual) && s->usual > 1) (void)suits(p, s, 1);
}

static plan *plan_of(const shape *s)
{
    static std::unordered_map<shape, plan, shape_hash> plans;
    plan *p = &plans[*s];
    if (!p->desc) make(p, s);
    if (!p->made && !s->bias) cuda_fault("cuBLASLt knows no algorithm for a product");
    return p->made ? p : NULL;
}

/* Whether cuBLASLt may add a bias itself: nothing is said of how doubles and such that begin anywhere fare. */
static bool adds(const cuda_product *p) { return p->bias && p->bytes == 4 && (uintptr_t)p->bias % 16 == 0; }

/* The plan of *s, without its bias if there is none with it. */
static const plan *plan_with(shape *s, const void *bias)
{
    plan *p = s->bias ? plan_of(s) : NULL;
    if (p && good(cublasLtMatmulDescSetAttribute(p->desc, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &bias, sizeof bias),
                  "cuBLASLt"))
        return p;
    s->bias = 0;
    return plan_of(s);
}

/* Steps as cuBLAS wants them: rows of `cols` at least. */
static cuda_steps steps_of(cuda_steps s, int64_t cols) { return { s.row ? s.row : cols, s.next }; }

static bool lower_both(const cuda_product *p, shape *s, const void **a, const void **b)
{
    cuda_floats left = { *a, p->ta ? p->k : p->m, p->ta ? p->m : p->k, p->batch, s->a };
    cuda_floats right = { *b, p->tb ? p->n : p->k, p->tb ? p->k : p->n, p->batch, s->b };
    if (!cuda_lowered_pair(&left, &right)) return false;
    *a = left.x, *b = right.x;
    s->a = left.steps, s->b = right.steps;
    return true;
}

bool cuda_multiply(const cuda_product *p, void *c, const void *plus, const void *a, const void *b, const void *alpha,
                   const void *beta)
{
    if (!opened()) return false;
    shape s;
    memset(&s, 0, sizeof s);
    const int64_t a_cols = p->ta ? p->m : p->k, b_cols = p->tb ? p->k : p->n;
    s.m = p->m, s.n = p->n, s.k = p->k, s.batch = p->batch, s.usual = p->usual > 1 ? p->usual : 1;
    s.ta = p->ta, s.tb = p->tb, s.bytes = p->bytes, s.there = p->there;
    s.c = steps_of(p->c, p->n), s.a = steps_of(p->a, a_cols), s.b = steps_of(p->b, b_cols);
    const bool matrices = p->m > 1 && p->n > 1; /* a vector's product is over before a matrix is converted */
    s.bf16 = p->bytes == 4 && matrices && blas.how == TAUT_PRODUCTS_BF16,
    s.tf32 = p->bytes == 4 && blas.how == TAUT_PRODUCTS_TF32;
    const cuda_says says;
    if (s.bf16 && !lower_both(p, &s, &a, &b)) return false;
    s.a_align = alignment(a, s.a, s.bf16 ? 2 : s.bytes), s.b_align = alignment(b, s.b, s.bf16 ? 2 : s.bytes);
    const uint32_t out_align = alignment(c, s.c, s.bytes), plus_align = alignment(plus, s.c, s.bytes);
    s.c_align = out_align < plus_align ? out_align : plus_align;
    s.bias = adds(p);
    const plan *how = plan_with(&s, p->bias);
    if (!how) return false;
    const int64_t size = s.bf16 ? 2 : s.bytes;
    for (int64_t i = 0; i < p->batch; i += how->at_once) {
        const char *left = (const char *)a + i * s.a.next * size, *right = (const char *)b + i * s.b.next * size;
        const char *add = (const char *)plus + i * s.c.next * s.bytes;
        char *out = (char *)c + i * s.c.next * s.bytes;
        good(cublasLtMatmul(blas.handle, how->desc, alpha, right, how->a, left, how->b, beta, add, how->c, out, how->c,
                            &how->algo, blas.workspace, WORKSPACE, cuda_stream()),
             "a product");
    }
    cuda_lowered_wrote(c, (size_t)(((p->batch - 1) * s.c.next + (p->m - 1) * s.c.row + p->n) * s.bytes));
    return s.bias;
}
