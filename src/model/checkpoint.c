/* model.safetensors: every weight as float32, and in the metadata the recipe it was made from and the
 * vocabulary, so that the file alone is the model; and the tree, so that it says which function it is without us. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/alloc.h"
#include "model/model.h"
#include "model/safetensors.h"
#include "model/slabs.h"

enum { CHUNK = 1 << 16, PART = 16 * CHUNK };

static taut_status fetch(void *arg, double *dst, int64_t first, int64_t count)
{
    const taut_slab_view *v = arg;
    v->k->get(dst, taut_at(v->k, v->data, first), count);
    return v->k->read(NULL, NULL, 0); /* a device may have failed */
}

taut_st_entry taut_slab_entry(taut_slab_view *view, const char *name, const char *dtype, const taut_param *p)
{
    return (taut_st_entry){ name,  dtype, p->rows == 1 ? 1 : 2, { p->rows == 1 ? p->cols : p->rows, p->cols },
                            fetch, view };
}

/* Tensor `name`, which must have exactly p's shape. */
static taut_status find_tensor(const taut_st_tensor **out, const taut_safetensors *st, const char *path,
                               const char *name, const taut_param *p)
{
    const taut_st_tensor *t = *out = taut_safetensors_find(st, name);
    if (!t) return taut_fail(TAUT_BAD_FILE, "%s: tensor %s is missing", path, name);
    const bool fits = p->rows == 1 ? t->rank == 1 && t->shape[0] == p->cols
                                   : t->rank == 2 && t->shape[0] == p->rows && t->shape[1] == p->cols;
    if (fits) return TAUT_OK;
    return taut_fail(TAUT_BAD_FILE, "%s: %s holds %lld numbers of another shape, the model wants %lld x %lld", path,
                     name, (long long)t->count, (long long)p->rows, (long long)p->cols);
}

/* Numbers first .. end-1 of t. */
static taut_status load_part(const taut_kernels *k, taut_real *dst, const taut_safetensors *st, const taut_st_tensor *t,
                             int64_t first, int64_t end)
{
    double *chunk = taut_malloc(CHUNK * sizeof *chunk);
    taut_status s = chunk ? TAUT_OK : taut_no_memory("reading a checkpoint");
    for (int64_t i = first; !s && i < end; i += CHUNK) {
        const int64_t count = end - i < CHUNK ? end - i : CHUNK;
        s = taut_safetensors_read(st, t, chunk, i, count);
        if (!s) k->put(taut_at(k, dst, i - first), chunk, count);
    }
    free(chunk);
    return s;
}

/* Into a table of the host a large tensor is read by all threads; from where one failed, this one tries again, and knows why. */
taut_status taut_slab_load(const taut_kernels *k, taut_real *dst, const taut_safetensors *st, const char *path,
                           const char *name, const taut_param *p, int64_t first, int64_t end)
{
    const taut_st_tensor *t;
    taut_status s = find_tensor(&t, st, path, name, p);
    if (s) return s;
    if (!k->host || end - first <= 2 * PART) return load_part(k, dst, st, t, first, end);
    int64_t bad = end;
#pragma omp parallel for schedule(dynamic) reduction(min : bad)
    for (int64_t i = first; i < end; i += PART)
        if (load_part(k, taut_at(k, dst, i - first), st, t, i, end - i < PART ? end : i + PART))
            bad = i < bad ? i : bad;
    return bad < end ? load_part(k, taut_at(k, dst, bad - first), st, t, bad, end) : TAUT_OK;
}

taut_status taut_model_save(const taut_model *m, const char *path)
{
    taut_st_entry *entry = taut_calloc((size_t)m->weights, sizeof *entry);
    taut_slab_view *view = taut_calloc((size_t)m->weights, sizeof *view);
    char *tree = taut_model_tree(m);
    taut_status s = entry && view && tree ? TAUT_OK : taut_no_memory("saving the model");
    for (int i = 0; !s && i < m->weights; i++) {
        const taut_weight *w = &m->weight[i];
        view[i] = (taut_slab_view){ m->k, w->param->value };
        entry[i] = taut_slab_entry(&view[i], w->path, "F32", w->param);
    }
    const taut_st_meta meta[] = { { "format", "taut" },
                                  { "taut.version", TAUT_VERSION },
                                  { "taut.recipe", m->recipe },
                                  { "taut.vocab", m->vocab },
                                  { "taut.tree", tree } };
    if (!s) s = taut_safetensors_write(path, entry, m->weights, meta, 5);
    free(tree);
    free(entry);
    free(view);
    return s;
}

/* Asked before memory is taken: a small file may describe a huge model. */
static taut_status check_weights(const taut_model *m, const taut_safetensors *st, const char *path)
{
    taut_status s = TAUT_OK;
    for (int i = 0; !s && i < m->weights; i++) {
        const taut_st_tensor *t;
        s = find_tensor(&t, st, path, m->weight[i].path, m->weight[i].param);
    }
    if (!s && taut_safetensors_count(st) != m->weights)
        s = taut_fail(TAUT_BAD_FILE, "%s holds %d tensors, its recipe describes a model of %d", path,
                      taut_safetensors_count(st), m->weights);
    return s;
}

static taut_status load_weights(taut_model *m, const taut_safetensors *st, const char *path)
{
    taut_status s = TAUT_OK;
    for (int i = 0; !s && i < m->weights; i++) {
        const taut_weight *w = &m->weight[i];
        s = taut_slab_load(m->k, w->param->value, st, path, w->path, w->param, 0, taut_weight_len(w));
    }
    return s;
}

static taut_status read_spec(taut_model_spec *spec, const char *recipe, const char *path)
{
    taut_config *cfg = NULL;
    taut_status s = taut_config_parse(&cfg, recipe, path);
    if (s) return s;
    const taut_status relation = taut_model_spec_read(spec, cfg);
    s = taut_config_finish_section(cfg, "model"); /* a key we do not know may change the function */
    if (!s && relation) s = taut_fail(relation, "%s: %s", path, taut_last_error());
    taut_config_free(cfg);
    return s;
}

/* A certificate is about the tree, and what runs is the recipe's.  A file from before has no tree: nobody can check a certificate
 * of it. */
static taut_status check_tree(const taut_model *m, const taut_safetensors *st, const char *path)
{
    const char *stored = taut_safetensors_meta(st, "taut.tree");
    bool fits = true;
    const taut_status s = stored ? taut_model_tree_fits(&fits, m, stored) : TAUT_OK;
    if (s || fits) return s;
    return taut_fail(TAUT_BAD_FILE, "%s: its recipe builds another function than its taut.tree says", path);
}

taut_status taut_model_open(taut_model **out, const char *path, const taut_kernels *k, bool grads)
{
    taut_safetensors *st = NULL;
    taut_model *m = NULL;
    taut_model_spec spec = { 0 };
    taut_status s = taut_safetensors_open(&st, path);
    if (s) return s;
    const char *recipe = taut_safetensors_meta(st, "taut.recipe"), *vocab = taut_safetensors_meta(st, "taut.vocab");
    const taut_st_tensor *embed = taut_safetensors_find(st, "embed.weight");
    if (!recipe || !vocab)
        s = taut_fail(TAUT_BAD_FILE,
                      "%s: not a taut model, as its metadata has no recipe (from Hugging Face? taut convert)", path);
    if (!s) s = read_spec(&spec, recipe, path);
    const bool reads_tokens = !s && taut_arch_reads_tokens(spec.arch);
    if (!s && reads_tokens && (!embed || embed->rank != 2 || embed->shape[0] < 1))
        s = taut_fail(TAUT_BAD_FILE, "%s: not a taut model (no embedding)", path);
    if (!s) s = taut_model_create(&m, &spec, reads_tokens ? embed->shape[0] : 0, recipe, vocab, k);
    if (!s) s = check_tree(m, st, path);
    if (!s) s = check_weights(m, st, path);
    if (!s) s = taut_model_bind(m, grads);
    if (!s) s = load_weights(m, st, path);
    taut_safetensors_close(st);
    if (s) {
        taut_model_free(m);
        return s;
    }
    *out = m;
    return TAUT_OK;
}

char *taut_model_path(const char *model)
{
    struct stat st;
    const bool folder = stat(model, &st) == 0 && S_ISDIR(st.st_mode);
    const size_t size = strlen(model) + 32;
    char *path = taut_malloc(size);
    if (path) snprintf(path, size, "%s%s", model, folder ? "/model.safetensors" : "");
    return path;
}
