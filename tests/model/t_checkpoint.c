/* model.safetensors: what is saved comes back to the bit; a file of another shape, with too little or too much
 * in it, or with a recipe made to hurt, is refused in one line and before memory is taken for it. */
#include <sys/resource.h>

#include "base/alloc.h"
#include "base/float32.h"
#include "harness.h"
#include "model/model.h"
#include "model/safetensors.h"
#include "model/slabs.h"
#include "must.h"
#include "table.h"
#include "temp.h"

static const char recipe[] = "[model]\narch = gpt\nwidth = 16\ndepth = 2\nheads = 2\ncontext = 12\ntied = false\n";
static const char vocab[] = "chars:a,20-2b";
enum { TOKENS = 13 };

static taut_model *model_of(const char *text, const char *kernels)
{
    taut_config *cfg = NULL;
    taut_model_spec spec;
    taut_model *m = NULL;
    must(taut_config_parse(&cfg, text, "test"));
    must(taut_model_spec_read(&spec, cfg));
    taut_config_free(cfg);
    must(taut_model_create(&m, &spec, TOKENS, text, vocab, taut_kernels_find(kernels)));
    must(taut_model_bind(m, false));
    must(taut_model_init(m, 9));
    return m;
}

static void round_trip(const char *text, const char *kernels)
{
    taut_model *m = model_of(text, kernels), *back = NULL;
    const char *path = temp_path("model.safetensors"), *again = temp_path("again.safetensors");
    size_t len = 0, len2 = 0;
    int64_t differ = 0;
    must(taut_model_save(m, path));
    must(taut_model_open(&back, path, taut_kernels_find(kernels), true));
    CHECK(strcmp(back->recipe, text) == 0 && strcmp(back->vocab, vocab) == 0, "recipe and vocabulary");
    CHECK(back->weights == m->weights && back->slab == m->slab && back->embed.rows == TOKENS, "the same weights");
    CHECK(back->grads && table_dot(m->k, back->grads, back->grads, m->slab) == 0, "gradients as asked for");
    double *a = doubles(m->slab), *b = doubles(m->slab);
    m->k->get(a, m->values, m->slab);
    m->k->get(b, back->values, m->slab);
    for (int64_t i = 0; i < m->slab; i++) differ += taut_float32(a[i]) != b[i];
    CHECK(differ == 0, "every weight, as a float");
    must(taut_model_save(back, again));
    char *first = temp_get(path, &len), *second = temp_get(again, &len2);
    CHECK(len == len2 && memcmp(first, second, len) == 0, "saved again: the same bytes");
    free(first), free(second), free(a), free(b);
    taut_model_free(m), taut_model_free(back);
}

/* ---- a good file, taken apart and put together with one thing changed ---- */

enum { MOST = 64 };

typedef struct {
    taut_safetensors *st;
    taut_st_entry entry[MOST];
    int count;
    const char *recipe, *vocab;
} parts;

typedef struct {
    const taut_safetensors *st;
    const taut_st_tensor *tensor;
} source;

static source sources[MOST];

static taut_status fetch(void *arg, double *dst, int64_t first, int64_t count)
{
    const source *s = arg;
    must(taut_safetensors_read(s->st, s->tensor, dst, first, count));
    return TAUT_OK;
}

static taut_status fetch_zero(void *arg, double *dst, int64_t first, int64_t count)
{
    (void)arg, (void)first;
    memset(dst, 0, (size_t)count * sizeof *dst);
    return TAUT_OK;
}

static void take_apart(parts *p, const char *path)
{
    *p = (parts){ .recipe = recipe, .vocab = vocab };
    must(taut_safetensors_open(&p->st, path));
    p->count = taut_safetensors_count(p->st);
    for (int i = 0; i < p->count; i++) {
        const taut_st_tensor *t = taut_safetensors_at(p->st, i);
        sources[i] = (source){ p->st, t };
        p->entry[i] = (taut_st_entry){ t->name, t->dtype, t->rank, { t->shape[0], t->shape[1] }, fetch, &sources[i] };
    }
}

static taut_st_entry *entry_of(parts *p, const char *name)
{
    for (int i = 0; i < p->count; i++)
        if (strcmp(p->entry[i].name, name) == 0) return &p->entry[i];
    must(taut_fail(TAUT_BAD_FILE, "no %s", name));
    return NULL;
}

static void put_together(const parts *p, const char *path)
{
    taut_st_meta meta[2];
    int metas = 0;
    if (p->recipe) meta[metas++] = (taut_st_meta){ "taut.recipe", p->recipe };
    if (p->vocab) meta[metas++] = (taut_st_meta){ "taut.vocab", p->vocab };
    must(taut_safetensors_write(path, p->entry, p->count, meta, metas));
}

/* The file is refused in one line that names it and says `why`. */
static void refused(const parts *p, const char *why)
{
    taut_model *m = NULL;
    const char *path = temp_path("changed.safetensors");
    put_together(p, path);
    const taut_status s = taut_model_open(&m, path, taut_kernels_find("cpu"), false);
    CHECK(s == TAUT_BAD_FILE || s == TAUT_BAD_CONFIG, why);
    CHECK(!m, "and no model");
    CHECK(strstr(taut_last_error(), why) && strstr(taut_last_error(), "changed.safetensors"), taut_last_error());
    for (const char *c = taut_last_error(); *c; c++) CHECK((unsigned char)*c >= ' ', "one plain line");
    taut_model_free(m);
}

static void wrong_tensors(const char *path)
{
    parts p;
    taut_model *m = NULL;
    take_apart(&p, path);
    put_together(&p, temp_path("changed.safetensors"));
    must(taut_model_open(&m, temp_path("changed.safetensors"), taut_kernels_find("cpu"), false));
    taut_model_free(m);

    taut_st_entry *e = entry_of(&p, "block.1.mlp.in.weight"), kept = *e;
    e->shape[0] = 16, e->shape[1] = 64;
    refused(&p, "block.1.mlp.in.weight");
    *e = (taut_st_entry){ kept.name, "F32", 1, { 64 * 16 }, kept.fetch, kept.arg };
    refused(&p, "block.1.mlp.in.weight");
    *e = (taut_st_entry){ kept.name, "F32", 2, { 64, 17 }, fetch_zero, NULL };
    refused(&p, "block.1.mlp.in.weight");
    *e = kept, e->name = "block.1.mlp.in.weights";
    refused(&p, "block.1.mlp.in.weight");
    *e = kept;

    p.entry[p.count++] = (taut_st_entry){ "extra", "F32", 1, { 3 }, fetch_zero, NULL };
    refused(&p, "tensors");
    p.count--;
    const taut_st_entry last = p.entry[--p.count];
    refused(&p, last.name);
    p.entry[p.count++] = last;

    e = entry_of(&p, "embed.weight"), kept = *e;
    *e = (taut_st_entry){ kept.name, "F32", 1, { TOKENS * 16 }, kept.fetch, kept.arg };
    refused(&p, "not a taut model");
    *e = (taut_st_entry){ kept.name, "F32", 2, { TOKENS + 1, 16 }, fetch_zero, NULL };
    refused(&p, "head.weight");
    *e = (taut_st_entry){ kept.name, "F32", 2, { 0, 16 }, fetch_zero, NULL };
    refused(&p, "");
    *e = kept, e->name = "wte.weight";
    refused(&p, "not a taut model");
    taut_safetensors_close(p.st);
}

static void wrong_metadata(const char *path)
{
    static const struct {
        const char *recipe, *why;
    } bad[] = {
        { NULL, "not a taut model" },
        { "", "" },
        { "rubbish", "line 1" },
        { "[model]\nwidth = 16\nwidth", "line 3" },
        { "[model]\narch = gtp\n", "did you mean gpt" },
        { "[model]\nwidth = -16\n", "model.width" },
        { "[model]\nwidth = 99999999999999999999\n", "model.width" },
        { "[model]\nwidth = 16\nheads = 3\n", "multiple" },
        { "[model]\nwidth = 16\nheads = 2\ndepth = 100000\n", "model.depth" },
        { "[model]\nwidth = 16\nheads = 2\ndepth = 2\ntied = perhaps\n", "model.tied" },
        { "[model]\nwidth = 16\nheads = 2\ndepth = 2\n\x1b[31m = 2\n", "control" },
    };
    parts p;
    take_apart(&p, path);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        p.recipe = bad[i].recipe;
        refused(&p, bad[i].why);
    }
    p.recipe = recipe, p.vocab = NULL;
    refused(&p, "not a taut model");
    taut_safetensors_close(p.st);
}

/* A small file whose recipe describes a huge model is refused for its shapes, without taking the memory
 * first. */
static void huge_recipe(const char *path)
{
    static const char *const huge[] = {
        "[model]\nwidth = 16\ndepth = 2\nheads = 2\ncontext = 12\ntied = false\nmlp = 4000000\n",
        "[model]\nwidth = 4194304\ndepth = 128\nheads = 4096\ncontext = 16777216\ntied = false\n",
    };
    struct rusage before, after;
    parts p;
    take_apart(&p, path);
    getrusage(RUSAGE_SELF, &before);
    for (int i = 0; i < 2; i++) {
        p.recipe = huge[i];
        refused(&p, "");
    }
    getrusage(RUSAGE_SELF, &after);
    CHECK_LE((double)(after.ru_maxrss - before.ru_maxrss), 100e3, "kilobytes taken for a hostile recipe");
    taut_safetensors_close(p.st);
}

static void not_models(void)
{
    taut_model *m = NULL;
    const taut_kernels *k = taut_kernels_find("cpu");
    CHECK(taut_model_open(&m, temp_path("nowhere"), k, false) == TAUT_BAD_FILE, "a missing file");
    CHECK(taut_model_open(&m, temp_dir, k, false) == TAUT_BAD_FILE, "a folder");
    CHECK(taut_model_open(&m, temp_text("empty", ""), k, false) == TAUT_BAD_FILE, "an empty file");
    CHECK(taut_model_open(&m, temp_text("text", "once upon a time there was a file"), k, false) == TAUT_BAD_FILE,
          "text");
    CHECK(!m, "no model");
}

/* Every cut of a good file, and every byte of its header with each bit turned: refused, or still a model. */
static void damaged(const char *path)
{
    size_t len = 0, header = 8;
    char *good = temp_get(path, &len);
    taut_model *m = NULL;
    for (int i = 0; i < 8; i++) header += (size_t)(unsigned char)good[i] << 8 * i;
    CHECK(header < len, "a header");
    for (size_t cut = 0; cut < len; cut += cut < header + 64 ? 13 : 509)
        CHECK(taut_model_open(&m, temp_put("cut", good, cut), taut_kernels_find("cpu"), false) == TAUT_BAD_FILE, "cut");
    for (case_no = 0; case_no < effort(1500); case_no++) {
        const int64_t bit = rng_int(0, 8 * (int64_t)header - 1);
        good[bit / 8] = (char)(good[bit / 8] ^ 1 << bit % 8);
        taut_status s = taut_model_open(&m, temp_put("flip", good, len), taut_kernels_find("cpu"), false);
        if (!s) taut_model_free(m);
        good[bit / 8] = (char)(good[bit / 8] ^ 1 << bit % 8);
    }
    free(good);
}

static bool saves(const taut_model *m, const char *path, long n)
{
    taut_alloc_fail_at(n);
    const taut_status s = taut_model_save(m, path);
    taut_alloc_fail_at(0);
    if (s) CHECK(s == TAUT_NO_MEMORY && strstr(taut_last_error(), "out of memory"), taut_last_error());
    return s == TAUT_OK;
}

static bool opens(const char *path, long n)
{
    taut_model *m = NULL;
    taut_alloc_fail_at(n);
    const taut_status s = taut_model_open(&m, path, taut_kernels_find("cpu"), true);
    taut_alloc_fail_at(0);
    if (s) CHECK(s == TAUT_NO_MEMORY && strstr(taut_last_error(), "out of memory"), taut_last_error());
    CHECK(!s == !!m, "a model or none");
    taut_model_free(m);
    return s == TAUT_OK;
}

static long out_of_memory(const char *path)
{
    taut_model *m = model_of(recipe, "cpu");
    const int files = temp_count();
    size_t len = 0, len2 = 0;
    char *good = temp_get(path, &len);
    long saving = 1, opening = 1;
    while (saving < 1000 && !saves(m, path, saving)) saving++;
    while (opening < 10000 && !opens(path, opening)) opening++;
    for (long more = 0; more < 10; more++)
        CHECK(opens(path, opening + more) && (more > 3 || saves(m, path, saving + more)), "a failure was overlooked");
    char *still = temp_get(path, &len2);
    CHECK(len == len2 && memcmp(good, still, len) == 0, "the file is whole");
    CHECK(temp_count() == files, "no temporary is left");
    CHECK(saving > 5 && opening > 100, "they did fail");
    free(good), free(still);
    taut_model_free(m);
    return saving + opening - 2;
}

static taut_status fetch_number(void *arg, double *dst, int64_t first, int64_t count)
{
    (void)arg;
    for (int64_t i = 0; i < count; i++) dst[i] = (double)((first + i) % 65521) / 64;
    return TAUT_OK;
}

/* A tensor that threads share out: all of it comes, also from its middle on; one that is cut while it is open is refused. */
static void large(const char *kernels)
{
    const taut_kernels *k = taut_kernels_find(kernels);
    const taut_param p = { .rows = 2500, .cols = 1001 };
    const int64_t len = p.rows * p.cols, from = 12345;
    const taut_st_entry entry = { "w", "F32", 2, { p.rows, p.cols }, fetch_number, NULL };
    const char *path = temp_path("large.safetensors");
    taut_safetensors *st = NULL;
    taut_real *x = k->alloc((size_t)len * k->elem);
    double *got = doubles(len), want;
    int64_t differ = 0;
    must(taut_safetensors_write(path, &entry, 1, NULL, 0));
    must(taut_safetensors_open(&st, path));
    must(taut_slab_load(k, x, st, path, "w", &p, from, len));
    k->get(got, x, len - from);
    for (int64_t i = from; i < len; i++) fetch_number(NULL, &want, i, 1), differ += got[i - from] != want;
    CHECK(differ == 0, "every number in its place");
    if (truncate(path, 4 * len / 2)) exit(1);
    CHECK(taut_slab_load(k, x, st, path, "w", &p, 0, len) == TAUT_BAD_FILE, "a file that was cut");
    CHECK(strstr(taut_last_error(), "was cut while it was read"), taut_last_error());
    taut_safetensors_close(st);
    k->release(x);
    free(got);
}

int main(void)
{
    char path[1200];
    test_begin();
    if (access("/dev/shm", W_OK) == 0) setenv("TMPDIR", "/dev/shm", 0); /* where fsync costs nothing */
    temp_begin();
    round_trip(recipe, "cpu");
    round_trip(recipe, "ref");
    round_trip("[model]\narch = encoder\nwidth = 12\ndepth = 1\nheads = 3\ncontext = 1\n", "cpu");
    large("ref"), large("cpu");
    snprintf(path, sizeof path, "%s", temp_path("good.safetensors"));
    taut_model *m = model_of(recipe, "cpu");
    must(taut_model_save(m, path));
    taut_model_free(m);
    wrong_tensors(path);
    wrong_metadata(path);
    huge_recipe(path);
    not_models();
    damaged(path);
    return test_end("checkpoint", "%ld allocations failed one by one", out_of_memory(path));
}
