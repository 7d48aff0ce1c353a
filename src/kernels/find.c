/* Which table a name means, how many threads the tables use, and what they were built with.
 *
 * OpenBLAS stays single-threaded (base/blas.h). */
#include <cblas.h>
#include <omp.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/blas.h"
#include "kernels/library.h"
#include "kernels/wide.h"

extern const taut_kernels taut_ref_table, taut_cpu_base_table;
#if defined __x86_64__
#include <cpuid.h>
extern const taut_kernels taut_cpu_v3_table, taut_cpu_v4_table;
#endif

/* OpenBLAS packs into buffers that it never touches beforehand, and prefetches past the end of what it
 * packed.  Into pages that do not exist yet this is slow: small products ran at half speed for ever (seen on
 * Neoverse V1, OpenBLAS 0.3.21).  So every thread makes a product large enough to bring them in.  Twice, with
 * a pause, because a buffer belongs to whoever asks first, and OpenBLAS's own threads may still be starting.
 * Not through taut_calloc: failing here is harmless, and a test that counts allocations must not meet these. */
static void touch_buffers(void)
{
    enum { SIDE = 256 };
    static const struct timespec pause = { .tv_nsec = 1000000 };
#pragma omp parallel
    {
        float *x = calloc(2 * SIDE * SIDE, sizeof *x);
        for (int round = 0; round < 2; round++) {
            if (round) nanosleep(&pause, NULL);
#pragma omp barrier
            if (x)
                cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, SIDE, SIDE, SIDE, 1, x, SIDE, x, SIDE, 0,
                            x + SIDE * SIDE, SIDE);
        }
        free(x);
    }
}

/* Asked before the first product; later its memory is taken. */
static taut_status room(void)
{
    static atomic_bool there;
    const taut_status s = there ? TAUT_OK : taut_blas_room(taut_threads());
    if (!s) there = true;
    return s;
}

/* The cpu table once per instruction set, the best first. */
static const struct {
    const char *name;
    const taut_kernels *table;
} variants[] = {
#if defined __x86_64__
    { "cpu-v4", &taut_cpu_v4_table },
    { "cpu-v3", &taut_cpu_v3_table },
#endif
    { "cpu-base", &taut_cpu_base_table },
};

/* Does this processor have all that the variant was compiled for (-march=x86-64-v3, -v4)? */
static bool runs(const taut_kernels *table)
{
    if (table == &taut_cpu_base_table) return true;
#if defined __x86_64__
    unsigned a, b, c1 = 0, c2 = 0, d;
    const bool asked = __get_cpuid(1, &a, &b, &c1, &d) && __get_cpuid(0x80000001, &a, &b, &c2, &d);
    __builtin_cpu_init();
    const bool v3 = asked && (c1 & bit_MOVBE) && (c1 & bit_F16C) && (c2 & bit_LZCNT) &&
                    __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi") &&
                    __builtin_cpu_supports("bmi2");
    const bool v4 = v3 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                    __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512dq") &&
                    __builtin_cpu_supports("avx512vl");
    return table == &taut_cpu_v3_table ? v3 : v4;
#else
    return false;
#endif
}

static const taut_kernels *wide_table;

/* Before the first table of floats is given out. */
static void prepare(void)
{
    size_t best = 0;
    taut_blas_single();
    touch_buffers();
    while (!runs(variants[best].table)) best++;
    wide_table = taut_wide_make(variants[best].table);
}

taut_status taut_kernels_open(const taut_kernels **out, const char *name)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    const bool wide = strcmp(name, "wide") == 0, best = strcmp(name, "cpu") == 0;
    taut_blas_single();
    *out = NULL;
    const taut_status s = room();
    if (s) return s;
    if (strcmp(name, "cuda") == 0 || strcmp(name, "cuda64") == 0)
        return (*out = taut_library_find(name)) ? TAUT_OK : TAUT_DEVICE;
    if (strcmp(name, "ref") == 0) *out = &taut_ref_table;
    if (wide) {
        pthread_once(&once, prepare);
        *out = wide_table;
    }
    for (size_t i = 0; !*out && i < sizeof variants / sizeof *variants; i++) {
        const bool can = runs(variants[i].table);
        if (best ? !can : strcmp(name, variants[i].name) != 0) continue;
        if (!can) return taut_fail(TAUT_DEVICE, "this processor lacks instructions that %s is made of", name);
        pthread_once(&once, prepare);
        *out = variants[i].table;
    }
    return *out ? TAUT_OK : taut_fail(TAUT_BAD_CALL, "no kernels are called %s (cpu, wide, ref, cuda, cuda64)", name);
}

const taut_kernels *taut_kernels_find(const char *name)
{
    const taut_kernels *k;
    return taut_kernels_open(&k, name) ? NULL : k;
}

const char *taut_kernels_build(const taut_kernels *k)
{
    for (size_t i = 0; i < sizeof variants / sizeof *variants; i++)
        if (variants[i].table == k) return variants[i].name;
    return k->name;
}

void taut_threads_set(int threads)
{
    const char *wish = getenv("OMP_NUM_THREADS");
    if (threads <= 0 && wish) threads = (int)strtol(wish, NULL, 10); /* of a list the first: there is one level here */
    omp_set_num_threads(threads > 0 && threads <= 1024 ? threads : omp_get_num_procs());
}

int taut_threads(void) { return omp_get_max_threads(); }

const char *taut_blas_version(void) { return openblas_get_config(); }

#ifdef __clang__
const char *taut_compiler_version(void) { return "clang " __clang_version__; }
#else
const char *taut_compiler_version(void) { return "gcc " __VERSION__; }
#endif
