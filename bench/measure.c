/* One product with J^T J of an attention layer (width 768, 12 heads, one example of 100, 512 and 1024 tokens, float32,
 * nothing masked), which is what every step of Lanczos costs, beside PyTorch's jvp and vjp, in turns in the same run
 * and with the same threads.
 *
 * ratio is the smallest of the three.  kept_ratio holds against PyTorch's linearised function and pullback, made before
 * the clock starts, which keep all N x N matrices.  bytes: what we keep of the input and need to work, tile buffers
 * apart: linear in N. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/rng.h"
#include "base/status.h"
#include "bench/bench.h"
#include "bench/peer.h"
#include "bench/timing.h"
#include "measure/probe.h"
#include "module/modules.h"

enum { WIDTH = 768, HEADS = 12, ROUNDS = 5 };

typedef struct {
    const taut_kernels *k;
    uint64_t used;
    bool whole;
} filling;

static void fill_param(taut_param *p, const char *path, void *arg)
{
    filling *f = arg;
    const int64_t len = p->rows * p->cols;
    double *w = taut_malloc((size_t)len * sizeof *w);
    (void)path;
    p->value = taut_reals(f->k, len);
    f->whole = f->whole && w && p->value;
    for (int64_t i = 0; f->whole && i < len; i++) w[i] = 0.02 * taut_rng_normal(1, f->used++);
    if (f->whole) f->k->put(p->value, w, len);
    free(w);
}

static void empty_param(taut_param *p, const char *path, void *arg)
{
    (void)path;
    if (p->value) ((const taut_kernels *)arg)->release(p->value);
}

/* `times` products, each on the result of the last, scaled to length 1. */
static double our_products(taut_probe *p, taut_real *u, taut_real *ju, taut_sum *sums, int times)
{
    const taut_kernels *k = p->run.k;
    const int64_t len = taut_len(p->in);
    const double start = bench_now();
    for (int i = 0; i < times; i++) {
        taut_probe_jvp(p, ju, u);
        taut_probe_vjp(p, u, ju);
        taut_make_unit(k, sums, u, len);
    }
    const bool failed = k->read(NULL, NULL, 0);
    return failed ? NAN : bench_now() - start;
}

typedef struct {
    double ours, torch, kept, bytes;
} figure;

static bool race(figure *f, const taut_module *m, const taut_kernels *k, int64_t n, bench_peer *peer, bool torch)
{
    const int64_t len = n * WIDTH;
    const int times = n < 200 ? 20 : n < 600 ? 6 : 3;
    double us[ROUNDS], them[ROUNDS], kept[ROUNDS], *x = taut_malloc((size_t)len * sizeof *x);
    taut_real *u = taut_reals(k, len), *ju = taut_reals(k, len);
    taut_sum *sums = k->alloc(2 * sizeof(double));
    taut_probe p = { 0 };
    for (int64_t i = 0; x && i < len; i++) x[i] = taut_rng_normal(2, (uint64_t)i);
    // cppcheck-suppress knownConditionTrueFalse ; two allocations are two answers
    const bool ready = x && u && ju && sums && !taut_probe_create(&p, m, k, x, (taut_shape){ 1, n, WIDTH });
    if (ready) {
        char line[64];
        k->put(u, x, len);
        our_products(&p, u, ju, sums, 2); /* warm up, both */
        for (int kept_too = 0; torch && kept_too < 2; kept_too++) {
            snprintf(line, sizeof line, "%lld 2 %d", (long long)n, kept_too);
            (void)bench_peer_ask(peer, line);
        }
        for (int r = 0; r < ROUNDS; r++) {
            us[r] = our_products(&p, u, ju, sums, times) / times;
            snprintf(line, sizeof line, "%lld %d 0", (long long)n, times);
            them[r] = torch ? bench_peer_ask(peer, line) / times : NAN;
            snprintf(line, sizeof line, "%lld %d 1", (long long)n, times);
            kept[r] = torch ? bench_peer_ask(peer, line) / times : NAN;
        }
        const taut_plan plan = taut_plan_of(m, p.in);
        *f = (figure){ bench_median(us, ROUNDS), bench_median(them, ROUNDS), bench_median(kept, ROUNDS),
                       (double)((3 * len + plan.trace + plan.scratch) * (int64_t)k->elem) };
    }
    taut_probe_free(&p);
    if (u) k->release(u);
    if (ju) k->release(ju);
    k->release(sums);
    free(x);
    return ready;
}

static cJSON *describe(int64_t n, const figure *f)
{
    cJSON *o = cJSON_CreateObject();
    cJSON_AddNumberToObject(o, "n", (double)n);
    cJSON_AddNumberToObject(o, "product_s", f->ours);
    cJSON_AddNumberToObject(o, "torch_s", f->torch);
    cJSON_AddNumberToObject(o, "torch_kept_s", f->kept);
    cJSON_AddNumberToObject(o, "ratio", f->torch / f->ours);
    cJSON_AddNumberToObject(o, "kept_ratio", f->kept / f->ours);
    cJSON_AddNumberToObject(o, "bytes", f->bytes);
    return o;
}

/* The layer, with weights; NULL when memory is out. */
static taut_module *layer_new(const taut_kernels *k)
{
    taut_module *m = taut_attention(&(taut_attention_spec){ .width = WIDTH, .heads = HEADS, .scale = 0.125, .out = 1 });
    filling fill = { k, 0, m != NULL };
    if (m) taut_params(m, fill_param, &fill);
    if (fill.whole) return m;
    taut_module_free(m);
    return NULL;
}

static void layer_free(taut_module *m, const taut_kernels *k)
{
    if (m) taut_params(m, empty_param, (void *)k);
    taut_module_free(m);
}

double bench_measure_seconds(const taut_kernels *k, int64_t n)
{
    taut_module *m = layer_new(k);
    figure f = { NAN, NAN, NAN, NAN };
    const bool good = m && race(&f, m, k, n, NULL, false);
    layer_free(m, k);
    return good ? f.ours : NAN;
}

cJSON *bench_measure(void)
{
    static const int64_t sizes[] = { 100, 512, 1024 };
    const taut_kernels *k = taut_kernels_find("cpu");
    taut_module *m = layer_new(k);
    bench_peer peer;
    char threads[16];
    snprintf(threads, sizeof threads, "%d", taut_threads());
    const bool torch = bench_peer_start(&peer, "bench/measure_torch.py",
                                        (const char *const[]){ threads, "768", "12", NULL });
    cJSON *o = cJSON_CreateObject(), *list = cJSON_CreateArray();
    double least = INFINITY;
    bool good = m != NULL;
    for (int i = 0; good && i < 3; i++) {
        figure f;
        good = race(&f, m, k, sizes[i], &peer, torch);
        if (!good) break;
        cJSON_AddItemToArray(list, describe(sizes[i], &f));
        least = fmin(least, f.torch / f.ours);
    }
    bench_peer_stop(&peer);
    cJSON_AddNumberToObject(o, "ratio", torch ? least : NAN);
    cJSON_AddNumberToObject(o, "threads", taut_threads());
    cJSON_AddItemToObject(o, "sizes", list);
    layer_free(m, k);
    if (good) return o;
    cJSON_Delete(o);
    taut_no_memory("the measure figure");
    return NULL;
}
