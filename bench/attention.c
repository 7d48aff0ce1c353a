/* Attention at 1k, 4k and 16k tokens (4 heads of 64, one example, nothing masked): the cpu kernels beside
 * plain BLAS, in turns in the same run and with the same threads.
 *
 * Plain is the textbook with its N x N matrices: threaded sgemm for every product, softmax by rows with the
 * same vector exp, one head at a time, so that 2 N^2 floats are enough.  plain_jvp and plain_vjp start from
 * what ours start from, so they make P first; the *_kept_s times are without that, for a plain version that
 * keeps all P from forward (heads N^2 floats more).  *_ratio is plain over ours.  peak_bytes is what resident
 * memory grew by during a call, its own buffers included, outputs not. */
#include <cblas.h>
#include <malloc.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/status.h"
#include "bench/bench.h"
#include "bench/timing.h"
#include "kernels/cpu/vmath.h"
#include "kernels/kernels.h"

enum { HEADS = 4, DH = 64, WIDTH = HEADS * DH };
enum { Q, K, V, TQ, TK, TV, GO, O, TO, GQ, GK, GV, ARRAYS };
enum { FORWARD, JVP, VJP, PHASES };
enum { MAKE_P = PHASES, STAGES }; /* plain: making P is a stage of its own, and first in each phase */
static const char *const phase_name[] = { "forward", "jvp", "vjp" };

typedef struct {
    const taut_kernels *k;
    taut_attn a;
    int64_t n;
    float *x[ARRAYS], *lse, *p, *s; /* p and s: plain's matrices */
} scene;

static void ours(const scene *c, int phase)
{
    taut_real *x[ARRAYS], *lse = (taut_real *)c->lse;
    for (int i = 0; i < ARRAYS; i++) x[i] = (taut_real *)c->x[i];
    if (phase == FORWARD) c->k->attention(x[O], lse, x[Q], x[K], x[V], &c->a);
    if (phase == JVP) c->k->attention_jvp(x[TO], x[TQ], x[TK], x[TV], x[Q], x[K], x[V], &c->a);
    if (phase == VJP) c->k->attention_vjp(x[GQ], x[GK], x[GV], x[GO], x[O], lse, x[Q], x[K], x[V], &c->a);
}

/* s (n,n) = alpha x y^T + beta s, and out (n,DH) = alpha op(s) x + beta out, for one head. */
static void scores(const scene *c, float *s, const float *x, const float *y, float alpha, float beta)
{
    const int n = (int)c->n;
    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, n, n, DH, alpha, x, WIDTH, y, WIDTH, beta, s, n);
}

static void times(const scene *c, float *out, const float *s, bool trans, const float *x, float alpha, float beta)
{
    const int n = (int)c->n;
    cblas_sgemm(CblasRowMajor, trans ? CblasTrans : CblasNoTrans, CblasNoTrans, n, DH, n, alpha, s, n, x, WIDTH, beta,
                out, WIDTH);
}

#if defined __x86_64__ && defined __gnu_linux__ /* the kernels are built for each of these, so is their peer */
#define VECTORS __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define VECTORS
#endif

VECTORS static void softmax_row(float *p, int64_t n)
{
    const float max = vm_max(p, n);
    float sum = 0;
#pragma omp simd reduction(+ : sum)
    for (int64_t j = 0; j < n; j++) {
        p[j] = vm_exp(p[j] - max);
        sum += p[j];
    }
    const float scale = 1 / sum;
#pragma omp simd
    for (int64_t j = 0; j < n; j++) p[j] *= scale;
}

/* s = p (s - <p, s>): the derivative of softmax, symmetric, for jvp and vjp alike. */
VECTORS static void slope_row(float *s, const float *p, int64_t n)
{
    float mean = 0;
#pragma omp simd reduction(+ : mean)
    for (int64_t j = 0; j < n; j++) mean += p[j] * s[j];
#pragma omp simd
    for (int64_t j = 0; j < n; j++) s[j] = p[j] * (s[j] - mean);
}

/* A stage of one head of plain; all but MAKE_P find P in c->p. */
static void plain_head(const scene *c, int stage, int64_t head)
{
    float *x[ARRAYS];
    const float scale = (float)c->a.scale;
    for (int i = 0; i < ARRAYS; i++) x[i] = c->x[i] + head * DH;
    if (stage == MAKE_P) {
        scores(c, c->p, x[Q], x[K], scale, 0);
#pragma omp parallel for schedule(static)
        for (int64_t i = 0; i < c->n; i++) softmax_row(c->p + i * c->n, c->n);
    }
    if (stage == FORWARD) times(c, x[O], c->p, false, x[V], 1, 0);
    if (stage == JVP) {
        scores(c, c->s, x[TQ], x[K], scale, 0);
        scores(c, c->s, x[Q], x[TK], scale, 1);
    }
    if (stage == VJP) scores(c, c->s, x[GO], x[V], 1, 0);
    if (stage == MAKE_P || stage == FORWARD) return;
#pragma omp parallel for schedule(static)
    for (int64_t i = 0; i < c->n; i++) slope_row(c->s + i * c->n, c->p + i * c->n, c->n);
    if (stage == JVP) {
        times(c, x[TO], c->p, false, x[TV], 1, 0);
        times(c, x[TO], c->s, false, x[V], 1, 1);
    } else {
        times(c, x[GV], c->p, true, x[GO], 1, 0);
        times(c, x[GQ], c->s, false, x[K], scale, 0);
        times(c, x[GK], c->s, true, x[Q], scale, 0);
    }
}

static const int plain_order[STAGES] = { MAKE_P, FORWARD, JVP, VJP };

/* Makes plain's matrices and runs one head, so that later no page is new. */
static double plain_peak(scene *c)
{
    const double before = bench_memory_mark();
    const size_t bytes = (size_t)(c->n * c->n) * sizeof(float);
    c->p = taut_malloc(bytes);
    c->s = taut_malloc(bytes);
    if (!c->p || !c->s) return NAN;
    openblas_set_num_threads(taut_threads());
    for (int i = 0; i < STAGES; i++) plain_head(c, plain_order[i], 0);
    openblas_set_num_threads(1);
    return bench_memory("VmHWM") - before;
}

enum { ROUNDS = 9 };
#define AWAKE 0.1 /* seconds of work that is not counted after a rest: until then processors are slower */

/* Ours and plain in turns; the median of each stage.  Answers by how much memory grew in our first round. */
static double race(const scene *c, int rounds, double us[PHASES], double them[STAGES])
{
    const double before = bench_memory_mark();
    double peak = NAN;
    double ours_s[PHASES][ROUNDS] = { 0 }, plain_s[STAGES][ROUNDS] = { 0 };
    for (int round = 0; round < rounds; round++) {
        bench_rest();
        for (const double start = bench_now(); bench_now() < start + AWAKE;) ours(c, FORWARD);
        for (int phase = 0; phase < PHASES; phase++) {
            const double start = bench_now();
            ours(c, phase);
            ours_s[phase][round] = bench_now() - start;
        }
        if (round == 0) peak = bench_memory("VmHWM") - before;
        bench_rest();
        openblas_set_num_threads(taut_threads());
        for (const double start = bench_now(); bench_now() < start + AWAKE;) plain_head(c, MAKE_P, 0);
        for (int64_t head = 0; head < HEADS; head++)
            for (int i = 0; i < STAGES; i++) {
                const double start = bench_now();
                plain_head(c, plain_order[i], head);
                plain_s[plain_order[i]][round] += bench_now() - start;
            }
        openblas_set_num_threads(1);
    }
    for (int phase = 0; phase < PHASES; phase++) us[phase] = bench_median(ours_s[phase], rounds);
    for (int stage = 0; stage < STAGES; stage++) them[stage] = bench_median(plain_s[stage], rounds);
    return peak;
}

static bool scene_new(scene *c, int64_t n)
{
    const int64_t len = n * WIDTH;
    *c = (scene){ .k = taut_kernels_find("cpu"), .n = n };
    c->a = (taut_attn){ .n = 1, .heads = HEADS, .tq = n, .tk = n, .dh = DH, .scale = 0.125 };
    c->lse = (float *)taut_reals(c->k, HEADS * n);
    bool whole = c->lse != NULL;
    uint32_t state = 1;
    for (int i = 0; i < ARRAYS; i++) {
        c->x[i] = (float *)taut_reals(c->k, len);
        whole = whole && c->x[i];
        for (int64_t j = 0; j < len && whole; j++) {
            state = state * 1664525u + 1013904223u;
            c->x[i][j] = (float)(state >> 8) * 0x1p-23f - 1.0f;
        }
    }
    return whole;
}

static void scene_free(scene *c)
{
    for (int i = 0; i < ARRAYS; i++) c->k->release((taut_real *)c->x[i]);
    c->k->release((taut_real *)c->lse);
    free(c->p);
    free(c->s);
}

static void add(cJSON *o, const char *before, const char *name, const char *after, double value)
{
    char key[64];
    snprintf(key, sizeof key, "%s%s%s", before, name, after);
    cJSON_AddNumberToObject(o, key, value);
}

static cJSON *describe(int64_t n, double peak, double plain_bytes, const double *us, const double *them)
{
    cJSON *o = cJSON_CreateObject();
    add(o, "", "n", "", (double)n);
    for (int phase = 0; phase < PHASES; phase++) {
        const char *name = phase_name[phase];
        const double whole = them[MAKE_P] + them[phase];
        add(o, "", name, "_s", us[phase]);
        add(o, "plain_", name, "_s", whole);
        if (phase != FORWARD) add(o, "plain_", name, "_kept_s", them[phase]);
        add(o, "", name, "_ratio", whole / us[phase]);
    }
    add(o, "", "peak_bytes", "", peak);
    add(o, "", "plain_peak_bytes", "", plain_bytes);
    return o;
}

cJSON *bench_attention(void)
{
    static const struct {
        int64_t n;
        int rounds;
    } sizes[] = { { 1024, ROUNDS }, { 4096, 3 }, { 16384, 1 } };
    cJSON *out = cJSON_CreateObject(), *list = cJSON_AddArrayToObject(out, "sizes");
    mallopt(M_MMAP_THRESHOLD, 1 << 16); /* what is freed goes back, so that the peaks are those of one call */
    cJSON_AddNumberToObject(out, "threads", taut_threads());
    cJSON_AddNumberToObject(out, "heads", HEADS);
    cJSON_AddNumberToObject(out, "d_head", DH);
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        scene c;
        double us[PHASES], them[STAGES];
        const bool whole = scene_new(&c, sizes[i].n);
        const double plain = whole ? plain_peak(&c) : NAN;
        const bool ready = whole && c.p && c.s;
        if (ready) {
            const double peak = race(&c, sizes[i].rounds, us, them);
            cJSON_AddItemToArray(list, describe(sizes[i].n, peak, plain, us, them));
        }
        scene_free(&c);
        if (!ready) {
            cJSON_Delete(out);
            taut_no_memory("the attention figure");
            return NULL;
        }
    }
    return out;
}
