/* The device: products, what moves memory, Newton-Schulz steps, layers and training, with PyTorch beside it in the same
 * run, where python3 has it with a device.
 *
 * share is the part of a ceiling that PyTorch reached in this run: of its own product of that shape, or of its copy's
 * bytes per second.  Seconds are the median of rounds, each of several calls and one wait; what is written is not
 * counted twice where an output is an input. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/rng.h"
#include "bench/bench.h"
#include "bench/peer.h"
#include "bench/race_plash.h"
#include "bench/timing.h"
#include "train/trainer.h"

enum { ROUNDS = 7, INNER = 10, BLOCK = 1 << 20 };

typedef struct {
    const taut_kernels *k;
    bench_peer peer;
    bool torch;
    double copy; /* bytes per second of PyTorch's copy, or of ours */
} scene;

static double peer_seconds(scene *s, const char *line) { return s->torch ? bench_peer_ask(&s->peer, line) : NAN; }

/* `len` normal numbers, the same block again and again; NULL when memory is out. */
static taut_real *noise(const taut_kernels *k, int64_t len)
{
    double *x = taut_malloc(BLOCK * sizeof *x);
    taut_real *y = x ? k->alloc((size_t)((len + BLOCK - 1) / BLOCK * BLOCK) * k->elem) : NULL;
    for (int64_t i = 0; y && i < BLOCK; i++) x[i] = taut_rng_normal(taut_rng_key(1, TAUT_RNG_INIT, 0), (uint64_t)i);
    if (y) k->put(y, x, BLOCK);
    if (y) k->copy_rows(taut_at(k, y, BLOCK), BLOCK, y, 0, (len - 1) / BLOCK, BLOCK);
    free(x);
    return y;
}

typedef struct {
    const taut_kernels *k;
    taut_real *x[4];
    int64_t m, n, d;
} work;

typedef void doing(const work *);

/* Seconds of one; NaN when the device failed. */
static double seconds(const work *w, doing *what)
{
    double all[ROUNDS];
    for (int i = -1; i < ROUNDS; i++) {
        const double start = bench_now();
        for (int j = 0; j < INNER; j++) what(w);
        if (w->k->read(NULL, NULL, 0)) return NAN;
        if (i >= 0) all[i] = (bench_now() - start) / INNER;
    }
    return bench_median(all, ROUNDS);
}

/* Memory for what `lens` says (0 ends it), the work, and the memory given back. */
static double with_memory(work w, const int64_t *lens, doing *what)
{
    bool good = true;
    for (int i = 0; i < 4 && lens[i]; i++) good = good && (w.x[i] = noise(w.k, lens[i]));
    const double s = good ? seconds(&w, what) : NAN;
    for (int i = 0; i < 4; i++) w.k->release(w.x[i]);
    return s;
}

static void multiply(const work *w) { w->k->gemm(w->x[0], w->x[1], w->x[2], w->m, w->n, w->d, false, false, 1, 0); }

static void product(scene *s, cJSON *list, const int64_t *shape, const char *how, taut_products mode)
{
    const int64_t m = shape[0], n = shape[1], k = shape[2];
    const double flops = 2e-12 * (double)m * (double)n * (double)k;
    char line[96];
    if (s->k->products(mode)) return;
    const double ours = with_memory((work){ .k = s->k, .m = m, .n = n, .d = k }, (int64_t[]){ m * n, m * k, k * n, 0 },
                                    multiply);
    (void)s->k->products(TAUT_PRODUCTS_FP32);
    snprintf(line, sizeof line, "product %lld %lld %lld %s", (long long)m, (long long)n, (long long)k, how);
    const double theirs = peer_seconds(s, line);
    cJSON *o = cJSON_CreateObject();
    cJSON_AddItemToArray(list, o);
    cJSON_AddStringToObject(o, "work", line);
    cJSON_AddNumberToObject(o, "tflops", flops / ours);
    cJSON_AddNumberToObject(o, "torch_tflops", flops / theirs);
    cJSON_AddNumberToObject(o, "share", theirs / ours);
}

static cJSON *products(scene *s, const taut_kernels *wide)
{
    static const int64_t shapes[][3] = { { 16384, 2304, 768 }, { 16384, 768, 3072 }, { 768, 3072, 16384 },
                                         { 16384, 256, 256 },  { 1024, 256, 16384 }, { 16384, 50304, 768 },
                                         { 4096, 4096, 4096 }, { 768, 768, 768 } };
    cJSON *list = cJSON_CreateArray();
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        product(s, list, shapes[i], "fp32", TAUT_PRODUCTS_FP32);
        product(s, list, shapes[i], "tf32", TAUT_PRODUCTS_TF32);
        product(s, list, shapes[i], "bf16", TAUT_PRODUCTS_BF16);
    }
    scene narrow = *s;
    s->k = wide;
    product(s, list, shapes[0], "fp64", TAUT_PRODUCTS_FP32);
    product(s, list, shapes[6], "fp64", TAUT_PRODUCTS_FP32);
    s->k = narrow.k;
    return list;
}

static void copy(const work *w) { w->k->axpby(w->x[0], 1, w->x[1], 0, w->n); }
static void add(const work *w) { w->k->axpby(w->x[0], 1, w->x[1], 1, w->n); }
static void gelu(const work *w) { w->k->pointwise(w->x[0], w->x[1], TAUT_GELU, w->n); }
static void gelu_slope(const work *w) { w->k->pointwise_slope(w->x[0], w->x[0], w->x[1], TAUT_GELU, w->n); }
static void bias(const work *w) { w->k->add_rows(w->x[0], w->x[1], w->x[2], w->m, w->d, 1); }
static void bias_back(const work *w) { w->k->sum_rows(w->x[0], w->x[1], w->m, w->d, 1); }
static void columns(const work *w) { w->k->copy_rows(w->x[0], w->d, w->x[1], 3 * w->d, w->m, w->d); }
static void norm(const work *w) { w->k->normalise(w->x[0], w->x[2], NULL, w->x[1], w->m, w->d, true, 1e-5); }
static void norm_slope(const work *w)
{
    w->k->normalise_slope(w->x[0], w->x[0], NULL, w->x[1], w->x[2], w->m, w->d, true);
}
static void square(const work *w) { w->k->dot((taut_sum *)w->x[0], w->x[1], 0, w->x[1], 0, 1, w->n); }
static void rotate(const work *w) { w->k->rope(w->x[0], w->x[1], w->m, 256, 4, w->d / 4, 10000, 1); }
static void coins(const work *w) { w->k->dropout(w->x[0], w->x[1], 1, 0.1, w->n); }
static void adam(const work *w)
{
    static const taut_adam s = { .lr = 1e-3, .b1 = 0.9, .b2 = 0.95, .eps = 1e-8, .decay = 1e-5, .c1 = 0.5, .c2 = 0.5 };
    w->k->adamw(w->x[0], w->x[1], w->x[2], w->x[3], w->n, &s);
}

/* What moves memory: `moved` numbers of 4 bytes at the least. */
static const struct {
    const char *name;
    doing *what;
    double moved; /* times n */
    int arrays;
    bool small; /* the first array is */
    const char *peer;
} streams[] = { { "copy", copy, 2, 2, false, "copy %lld" },
                { "add", add, 3, 2, false, NULL },
                { "gelu", gelu, 2, 2, false, "gelu %lld" },
                { "gelu_slope", gelu_slope, 3, 2, false, NULL },
                { "add_rows", bias, 2, 3, false, NULL },
                { "sum_rows", bias_back, 1, 2, true, NULL },
                { "copy_rows", columns, 2, 2, false, NULL },
                { "normalise", norm, 2, 3, false, "normalise 65536 768" },
                { "normalise_slope", norm_slope, 3, 3, false, NULL },
                { "dot", square, 1, 2, true, NULL },
                { "rope", rotate, 2, 2, false, NULL },
                { "dropout", coins, 2, 2, false, NULL },
                { "adamw", adam, 7, 4, false, "adamw %lld" } };

static cJSON *memory(scene *s)
{
    const int64_t m = 65536, d = 768, n = m * d;
    cJSON *list = cJSON_CreateArray();
    for (size_t i = 0; i < sizeof streams / sizeof *streams; i++) {
        int64_t lens[5] = { streams[i].small ? d : n, n * (streams[i].what == columns ? 3 : 1), n, n, 0 };
        lens[streams[i].arrays] = 0;
        const double ours = with_memory((work){ .k = s->k, .m = m, .n = n, .d = d }, lens, streams[i].what);
        char line[64] = "";
        if (streams[i].peer) snprintf(line, sizeof line, streams[i].peer, (long long)n);
        const double theirs = streams[i].peer ? peer_seconds(s, line) : NAN, bytes = 4.0 * streams[i].moved * (double)n;
        if (i == 0) s->copy = bytes / (isnan(theirs) ? ours : theirs);
        cJSON *o = cJSON_CreateObject();
        cJSON_AddItemToArray(list, o);
        cJSON_AddStringToObject(o, "work", streams[i].name);
        cJSON_AddNumberToObject(o, "tb_per_s", 1e-12 * bytes / ours);
        cJSON_AddNumberToObject(o, "share", bytes / ours / s->copy);
        if (streams[i].peer) cJSON_AddNumberToObject(o, "torch_tb_per_s", 1e-12 * bytes / theirs);
    }
    return list;
}

/* Five steps of Muon's odd polynomial on a square matrix: g = x x^T, h = b g + c g^2, x = a x + h x. */
static void newton(const work *w)
{
    const int64_t d = w->d;
    for (int i = 0; i < 5; i++) {
        w->k->gemm(w->x[1], w->x[0], w->x[0], d, d, d, false, true, 1, 0);
        w->k->axpby(w->x[2], 1, w->x[1], 0, d * d);
        w->k->gemm(w->x[2], w->x[1], w->x[1], d, d, d, false, false, 2.0315 * 1e-8, -4.7750 * 1e-4);
        w->k->axpby(w->x[3], 1, w->x[0], 0, d * d);
        w->k->gemm(w->x[0], w->x[2], w->x[3], d, d, d, false, false, 1e-4, 0.5);
    }
}

static cJSON *newton_schulz(scene *s, const char *how, taut_products mode)
{
    const int64_t d = 4096, len = d * d;
    const double flops = 1e-12 * 5 * 3 * 2 * (double)d * (double)d * (double)d;
    char line[32];
    if (s->k->products(mode)) return NULL;
    const work w = { .k = s->k, .m = d, .n = d, .d = d };
    const double ours = with_memory(w, (int64_t[]){ len, len, len, len }, newton);
    const double one = with_memory(w, (int64_t[]){ len, len, len, 0 }, multiply);
    (void)s->k->products(TAUT_PRODUCTS_FP32);
    snprintf(line, sizeof line, "newton %d %s", (int)d, how);
    const double theirs = peer_seconds(s, line);
    cJSON *o = cJSON_CreateObject();
    cJSON_AddStringToObject(o, "work", line);
    cJSON_AddNumberToObject(o, "milliseconds", 1e3 * ours);
    cJSON_AddNumberToObject(o, "tflops", flops / ours);
    cJSON_AddNumberToObject(o, "share", 15 * one / ours); /* of our own product's rate */
    cJSON_AddNumberToObject(o, "torch_milliseconds", 1e3 * theirs);
    return o;
}

static void add_layer(scene *s, cJSON *list, const char *line, double ours)
{
    const double theirs = peer_seconds(s, line);
    cJSON *o = cJSON_CreateObject();
    cJSON_AddItemToArray(list, o);
    cJSON_AddStringToObject(o, "work", line);
    cJSON_AddNumberToObject(o, "milliseconds", 1e3 * ours);
    cJSON_AddNumberToObject(o, "torch_milliseconds", 1e3 * theirs);
    cJSON_AddNumberToObject(o, "ratio", theirs / ours);
}

/* Exact attention and PLASH on the same 11,264 tokens, AttLip to 1e-4, and a product with J^T J in double. */
static cJSON *layers(scene *s, const taut_kernels *wide)
{
    static const race_plan plan = { 11264, 64, 256, 25, 25, false };
    cJSON *list = cJSON_CreateArray();
    for (int tf32 = 0; tf32 < 2; tf32++) {
        race_result r;
        if (s->k->products(tf32 ? TAUT_PRODUCTS_TF32 : TAUT_PRODUCTS_FP32)) break;
        if (!race_plash(&r, s->k, &plan)) r.exact.median = r.plash.median = NAN;
        add_layer(s, list, tf32 ? "attention 11264 4 128 tf32" : "attention 11264 4 128 fp32", r.exact.median);
        add_layer(s, list, tf32 ? "plash 11264 4 128 64 256 tf32" : "plash 11264 4 128 64 256 fp32", r.plash.median);
    }
    (void)s->k->products(TAUT_PRODUCTS_FP32);
    add_layer(s, list, "attlip 2048 512 8", bench_attlip_seconds(s->k, 2048, 1e-4));
    add_layer(s, list, "measure 1024 768 12", bench_measure_seconds(wide, 1024));
    return list;
}

/* Muon and soft caps on every matrix, enforced after every step. */
#define ENFORCED "optimiser = muon\n[constrain]\nmethod = softcap\ncap = 1.1\nembed = 1\n"

/* `more`: lines behind [train]; PyTorch trains without them. */
static cJSON *train(scene *s, const char *more, int width, int depth, int heads, int context, int batch,
                    const char *how)
{
    enum { STEPS = 10 };
    taut_config *cfg = NULL;
    taut_trainer t = { 0 };
    taut_step step;
    char recipe[512], line[96];
    double ours[ROUNDS];
    snprintf(recipe, sizeof recipe,
             "[data]\nsource = brackets\nlength = 2000000\n[model]\nwidth = %d\ndepth = %d\nheads = %d\ncontext = %d\n"
             "[train]\nbatch = %d\nlr = 0.001\nsteps = 1000000\nmatmul = %s\n%s",
             width, depth, heads, context, batch, how, more);
    taut_status status = taut_config_parse(&cfg, recipe, "bench");
    if (!status) status = taut_trainer_open(&t, cfg, s->k);
    if (!status) status = taut_model_init(t.model, 1);
    for (int i = -1; i < ROUNDS && !status; i++) {
        const double start = bench_now();
        for (int j = 0; j < STEPS && !status; j++) status = taut_trainer_step(&t, &step);
        if (i >= 0) ours[i] = (bench_now() - start) / STEPS;
    }
    const int64_t vocab = status ? 0 : t.model->embed.rows;
    taut_trainer_close(&t);
    taut_config_free(cfg);
    cJSON *o = cJSON_CreateObject();
    snprintf(line, sizeof line, "train %lld %d %d %d %d %d %s", (long long)vocab, width, depth, heads, context, batch,
             how);
    cJSON_AddStringToObject(o, "work", line);
    cJSON_AddBoolToObject(o, "enforced", *more != 0);
    if (status) {
        cJSON_AddStringToObject(o, "failed", taut_last_error());
        return o;
    }
    const double tokens = (double)batch * context, theirs = peer_seconds(s, line), mine = bench_median(ours, ROUNDS);
    cJSON_AddNumberToObject(o, "tokens_per_s", tokens / mine);
    cJSON_AddNumberToObject(o, "torch_tokens_per_s", tokens / theirs);
    cJSON_AddNumberToObject(o, "ratio", theirs / mine);
    return o;
}

static const taut_kernels *open_scene(scene *s) /* the table of doubles; NULL: no device */
{
    *s = (scene){ .k = taut_kernels_find("cuda") };
    const taut_kernels *wide = s->k ? taut_kernels_find("cuda64") : NULL;
    if (wide) s->torch = bench_peer_start(&s->peer, "bench/gpu_torch.py", (const char *const[]){ NULL });
    return wide;
}

/* PyTorch is asked once a shape. */
static cJSON *trainings(scene *s)
{
    static const struct {
        int width, depth, heads, context, batch;
        const char *how;
    } all[] = { { 256, 3, 4, 256, 64, "tf32" }, { 768, 12, 12, 1024, 16, "tf32" }, { 768, 12, 12, 1024, 16, "bf16" } };
    enum { SHAPES = sizeof all / sizeof *all };
    const bool torch = s->torch;
    cJSON *list = cJSON_CreateArray();
    for (int i = 0; i < 2 * SHAPES; i++) {
        const int at = i % SHAPES;
        s->torch = torch && i < SHAPES;
        cJSON_AddItemToArray(list, train(s, i < SHAPES ? "" : ENFORCED, all[at].width, all[at].depth, all[at].heads,
                                         all[at].context, all[at].batch, all[at].how));
    }
    s->torch = torch;
    return list;
}

cJSON *bench_gpu_train(void)
{
    scene s;
    if (!open_scene(&s)) return NULL;
    cJSON *o = cJSON_CreateObject();
    cJSON_AddItemToObject(o, "train", trainings(&s));
    bench_peer_stop(&s.peer);
    return o;
}

cJSON *bench_gpu_layers(void)
{
    scene s;
    const taut_kernels *wide = open_scene(&s);
    if (!wide) return NULL;
    cJSON *o = cJSON_CreateObject();
    cJSON_AddItemToObject(o, "layers", layers(&s, wide));
    bench_peer_stop(&s.peer);
    return o;
}

cJSON *bench_gpu(void)
{
    scene s;
    const taut_kernels *wide = open_scene(&s);
    if (!wide) return NULL;
    cJSON *o = cJSON_CreateObject(), *steps = cJSON_CreateArray();
    cJSON_AddItemToObject(o, "memory", memory(&s));
    cJSON_AddItemToObject(o, "products", products(&s, wide));
    cJSON_AddItemToArray(steps, newton_schulz(&s, "tf32", TAUT_PRODUCTS_TF32));
    cJSON_AddItemToArray(steps, newton_schulz(&s, "bf16", TAUT_PRODUCTS_BF16));
    cJSON_AddItemToObject(o, "newton_schulz", steps);
    cJSON_AddItemToObject(o, "layers", layers(&s, wide));
    cJSON_AddItemToObject(o, "train", trainings(&s));
    bench_peer_stop(&s.peer);
    return o;
}
