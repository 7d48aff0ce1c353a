/* Libraries that lie, one a fault: t_arithmetic.sh compiles this with -DFAULT_... and loads it before the real ones. */
#include <cblas.h>
#include <dlfcn.h>
#include <fenv.h>
#include <math.h>
#include <pthread.h>
#include <stdlib.h>

/* The one that is hidden. */
#define REAL_(name) ((__typeof__(&(name)))dlsym(RTLD_NEXT, #name))
#define REAL(name)  REAL_(name)

#ifdef FAULT_gemm /* the last entry is a millionth too large */
#define OFF(c) ((c) *= 1 + 1e-6)
#endif
#ifdef FAULT_float /* products are rounded to float, as in TF32 */
#define OFF(c) ((c) = (float)(c))
#endif
#ifdef OFF
void cblas_dgemm(const CBLAS_ORDER order, const CBLAS_TRANSPOSE ta, const CBLAS_TRANSPOSE tb, const blasint m,
                 const blasint n, const blasint k, const double alpha, const double *a, const blasint lda,
                 const double *b, const blasint ldb, const double beta, double *c, const blasint ldc)
{
    REAL(cblas_dgemm)(order, ta, tb, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
    OFF(c[(m - 1) * ldc + n - 1]);
}
#endif

#ifdef FAULT_beta /* C is read where beta is 0 */
void cblas_dgemm(const CBLAS_ORDER order, const CBLAS_TRANSPOSE ta, const CBLAS_TRANSPOSE tb, const blasint m,
                 const blasint n, const blasint k, const double alpha, const double *a, const blasint lda,
                 const double *b, const blasint ldb, const double beta, double *c, const blasint ldc)
{
    const double old = c[0];
    REAL(cblas_dgemm)(order, ta, tb, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
    if (beta == 0) c[0] += 0 * old;
}
#endif

#ifdef FAULT_syrk
void cblas_dsyrk(const CBLAS_ORDER order, const CBLAS_UPLO uplo, const CBLAS_TRANSPOSE trans, const blasint n,
                 const blasint k, const double alpha, const double *a, const blasint lda, const double beta, double *c,
                 const blasint ldc)
{
    REAL(cblas_dsyrk)(order, uplo, trans, n, k, alpha, a, lda, beta, c, ldc);
    c[(n - 1) * ldc + n - 1] *= 1 - 1e-6;
}
#endif

#ifdef FAULT_gemv
void cblas_dgemv(const CBLAS_ORDER order, const CBLAS_TRANSPOSE trans, const blasint m, const blasint n,
                 const double alpha, const double *a, const blasint lda, const double *x, const blasint incx,
                 const double beta, double *y, const blasint incy)
{
    REAL(cblas_dgemv)(order, trans, m, n, alpha, a, lda, x, incx, beta, y, incy);
    y[0] *= 1 - 1e-6;
}
#endif

#ifdef FAULT_dot
double cblas_ddot(const blasint n, const double *x, const blasint incx, const double *y, const blasint incy)
{
    return REAL(cblas_ddot)(n, x, incx, y, incy) * (1 + 1e-6);
}
#endif

#ifdef FAULT_libm /* which one: -DFAULT_libm=exp */
double FAULT_libm(double x) { return REAL(FAULT_libm)(x) * (1 + 1e-12); }
#endif
#ifdef FAULT_pow
double pow(double x, double y) { return REAL(pow)(x, y) * (1 + 1e-12); }
#endif
#ifdef FAULT_nextafter
double nextafter(double x, double y)
{
    (void)y;
    return x;
}
#endif

/* Subnormal results (flush to zero) or operands (denormals are zero) vanish.  Arm has one bit for both. */
static inline void flush(unsigned results, unsigned operands)
{
#if defined __x86_64__
    __builtin_ia32_ldmxcsr(__builtin_ia32_stmxcsr() | results << 15 | operands << 6);
#elif defined __aarch64__
    if (results | operands) __builtin_aarch64_set_fpcr(__builtin_aarch64_get_fpcr() | 1u << 24);
#endif
}

#ifdef FAULT_ftz
__attribute__((constructor)) static void begin(void) { flush(1, 0); }
#endif
#ifdef FAULT_daz
__attribute__((constructor)) static void begin(void) { flush(0, 1); }
#endif
#ifdef FAULT_upward
__attribute__((constructor)) static void begin(void) { fesetround(FE_UPWARD); }
#endif
#ifdef FAULT_stuck /* fesetround says that it has done it */
int fesetround(int mode)
{
    (void)mode;
    return 0;
}
#endif

#ifdef FAULT_thread /* only threads that are started later flush */
typedef struct {
    void *(*run)(void *);
    void *with;
} job;

static void *flushed(void *arg)
{
    const job j = *(job *)arg;
    free(arg);
    flush(1, 1);
    return j.run(j.with);
}

int pthread_create(pthread_t *id, const pthread_attr_t *attr, void *(*run)(void *), void *with)
{
    job *j = malloc(sizeof *j);
    if (!j) return 11; /* EAGAIN */
    *j = (job){ run, with };
    return REAL(pthread_create)(id, attr, flushed, j);
}
#endif
