/* Numbers of a checkpoint into a model, and what became of every tensor. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "model/hf_impl.h"

enum { CHUNK = 1 << 16 };

static bool is_float(const taut_st_tensor *t)
{
    static const char *const floats[] = { "F32", "F16", "BF16", "F64" };
    for (int i = 0; i < 4; i++)
        if (strcmp(t->dtype, floats[i]) == 0) return true;
    return false;
}

/* "768 x 2304" */
static const char *shape_text(char dst[96], const taut_st_tensor *t)
{
    size_t used = (size_t)snprintf(dst, 96, t->rank ? "" : "one number");
    for (int i = 0; i < t->rank && used < 80; i++)
        used += (size_t)snprintf(dst + used, 96 - used, "%s%lld", i ? " x " : "", (long long)t->shape[i]);
    return dst;
}

typedef struct {
    int64_t rows, cols; /* as stored; a vector is one row */
} stored;

/* The shape in which the file must hold what rule `r` makes weight p of. */
static stored wanted(const taut_hf *hf, const taut_hf_rule *r, const taut_param *p)
{
    const int64_t parts = r->parts ? r->parts : 1;
    if (p->role == TAUT_VECTOR) return (stored){ 1, parts * p->cols };
    if (r->transposed) return (stored){ p->cols, parts * p->rows };
    return (stored){ parts * p->rows + (r->skips ? hf->skip : 0), p->cols };
}

/* A convolution's kernel: (out, channels, side, side). */
static bool is_kernel(const taut_hf *hf, const taut_st_tensor *t, stored want)
{
    const taut_pixels_spec *i = &hf->spec.image;
    return t->rank == 4 && t->shape[0] == want.rows && t->shape[1] == i->channels && t->shape[2] == i->patch &&
           t->shape[3] == i->patch;
}

/* kind: 'v' a vector, 'm' a matrix, 'k' a kernel.  Dimensions of 1 in front do not count. */
static taut_status check_tensor(const taut_hf *hf, const taut_st_tensor *t, stored want, char kind)
{
    char shape[96];
    int lead = 0;
    const bool vector = kind == 'v';
    const int rank = vector || want.rows == 1 ? 1 : 2;
    while (t->rank - lead > rank && t->shape[lead] == 1) lead++;
    const int64_t *size = t->shape + lead;
    if (!is_float(t))
        return taut_fail(TAUT_BAD_FILE, "%s: tensor %s is %s; weights are F32, F16, BF16 or F64", hf->folder, t->name,
                         t->dtype);
    const bool fits = kind == 'k' ? is_kernel(hf, t, want)
                      : rank == 1 ? t->rank - lead == 1 && size[0] == want.cols
                                  : t->rank - lead == 2 && size[0] == want.rows && size[1] == want.cols;
    if (fits) return TAUT_OK;
    if (vector)
        return taut_fail(TAUT_BAD_FILE, "%s: tensor %s is %s, config.json asks for %lld", hf->folder, t->name,
                         shape_text(shape, t), (long long)want.cols);
    return taut_fail(TAUT_BAD_FILE, "%s: tensor %s is %s, config.json asks for %lld x %lld", hf->folder, t->name,
                     shape_text(shape, t), (long long)want.rows, (long long)want.cols);
}

taut_status taut_hf_check_vector(const taut_hf *hf, const taut_st_tensor *t, int64_t len)
{
    return check_tensor(hf, t, (stored){ 1, len }, 'v');
}

/* The row that is added to every row of p. */
static taut_status check_plus(const taut_hf *hf, const taut_shard_tensor **plus, const taut_hf_rule *r,
                              const taut_param *p)
{
    *plus = r->plus ? taut_hf_find(hf, r->plus, 0) : NULL;
    if (!r->plus) return TAUT_OK;
    if (!*plus) return taut_fail(TAUT_BAD_FILE, "%s: tensor %s is missing", hf->folder, r->plus + 1);
    const taut_st_tensor *t = (*plus)->tensor;
    return check_tensor(hf, t, (stored){ t->rank == 2 && t->shape[0] > 1 ? t->shape[0] : 1, p->cols }, 'm');
}

taut_status taut_hf_check_shapes(taut_hf *hf, const taut_model *m)
{
    taut_status s = TAUT_OK;
    bool wide = false, folded = false;
    int number;
    for (int i = 0; !s && i < m->weights; i++) {
        const taut_param *p = m->weight[i].param;
        const taut_hf_rule *r = NULL;
        const taut_shard_tensor *t = NULL, *plus = NULL;
        s = taut_hf_source(&r, &t, &number, hf, &m->weight[i]);
        if (!s) s = check_tensor(hf, t->tensor, wanted(hf, r, p), r->kernel ? 'k' : p->role == TAUT_VECTOR ? 'v' : 'm');
        if (!s) s = check_plus(hf, &plus, r, p);
        if (!s && r->folds) s = taut_hf_fold_check(hf, r, number);
        if (s) return s;
        taut_hf_leave(hf, t, NULL);
        if (plus) taut_hf_leave(hf, plus, NULL);
        wide = wide || strcmp(t->tensor->dtype, "F64") == 0;
        folded = folded || r->folds;
    }
    if (folded) taut_hf_note(hf, "BatchNorm is folded into the linear maps behind it, rounded to float");
    if (wide) taut_hf_note(hf, "F64 weights are rounded to float");
    return s;
}

taut_status taut_hf_equal(bool *same, const taut_hf *hf, const taut_shard_tensor *a, const taut_shard_tensor *b)
{
    const taut_st_tensor *x = a->tensor, *y = b->tensor;
    *same = is_float(x) && is_float(y) && x->rank == y->rank && memcmp(x->shape, y->shape, sizeof x->shape) == 0;
    if (!*same) return TAUT_OK;
    double *left = taut_malloc(2 * CHUNK * sizeof *left), *right = left + CHUNK;
    taut_status s = left ? TAUT_OK : taut_no_memory(hf->folder);
    for (int64_t i = 0; !s && *same && i < x->count; i += CHUNK) {
        const int64_t count = x->count - i < CHUNK ? x->count - i : CHUNK;
        s = taut_shards_read(a, left, i, count);
        if (!s) s = taut_shards_read(b, right, i, count);
        if (!s) *same = memcmp(left, right, (size_t)count * sizeof *left) == 0;
    }
    free(left);
    return s;
}

/* A transposed matrix, read whole: rows part*p->rows .. of its columns become rows. */
static taut_status load_transposed(const taut_model *m, const taut_hf_rule *r, const taut_shard_tensor *t,
                                   const taut_param *p)
{
    const int64_t all = t->tensor->shape[1], first = r->part * p->rows;
    double *whole = taut_malloc((size_t)t->tensor->count * sizeof *whole);
    double *row = taut_malloc((size_t)p->cols * sizeof *row);
    taut_status s = whole && row ? taut_shards_read(t, whole, 0, t->tensor->count) : taut_no_memory(t->tensor->name);
    for (int64_t i = 0; !s && i < p->rows; i++) {
        for (int64_t j = 0; j < p->cols; j++) row[j] = whole[j * all + first + i];
        m->k->put(taut_at(m->k, p->value, i * p->cols), row, p->cols);
    }
    free(whole);
    free(row);
    return s;
}

/* A kernel of a convolution: each row from (channel, y, x) to (y, x, channel). */
static taut_status load_kernel(const taut_model *m, const taut_shard_tensor *t, const taut_param *p)
{
    const int64_t channels = t->tensor->shape[1], area = t->tensor->shape[2] * t->tensor->shape[3];
    double *from = taut_malloc((size_t)p->cols * sizeof *from), *to = taut_malloc((size_t)p->cols * sizeof *to);
    taut_status s = from && to ? TAUT_OK : taut_no_memory(t->tensor->name);
    for (int64_t i = 0; !s && i < p->rows; i++) {
        s = taut_shards_read(t, from, i * p->cols, p->cols);
        for (int64_t j = 0; !s && j < p->cols; j++) to[j % area * channels + j / area] = from[j];
        if (!s) m->k->put(taut_at(m->k, p->value, i * p->cols), to, p->cols);
    }
    free(from);
    free(to);
    return s;
}

/* Row by row, as many as fit into a buffer; `plus`, if any, is added to each. */
static taut_status load_rows(const taut_model *m, int64_t first, const taut_shard_tensor *t,
                             const taut_shard_tensor *plus, const taut_param *p)
{
    const int64_t cols = p->cols, some = CHUNK / cols > 0 ? CHUNK / cols : 1;
    double *rows = taut_malloc((size_t)(some * cols) * sizeof *rows), *add = taut_calloc((size_t)cols, sizeof *add);
    taut_status s = rows && add ? TAUT_OK : taut_no_memory(t->tensor->name);
    if (!s && plus) s = taut_shards_read(plus, add, 0, cols);
    for (int64_t i = 0; !s && i < p->rows; i += some) {
        const int64_t count = p->rows - i < some ? p->rows - i : some;
        s = taut_shards_read(t, rows, (first + i) * cols, count * cols);
        for (int64_t j = 0; !s && plus && j < count * cols; j++) rows[j] += add[j % cols];
        if (!s) m->k->put(taut_at(m->k, p->value, i * cols), rows, count * cols);
    }
    free(rows);
    free(add);
    return s;
}

static taut_status load_weight(const taut_model *m, const taut_hf *hf, const taut_weight *w)
{
    const taut_hf_rule *r = NULL;
    const taut_shard_tensor *t = NULL, *plus = NULL;
    int number;
    taut_status s = taut_hf_source(&r, &t, &number, hf, w);
    if (!s) s = check_plus(hf, &plus, r, w->param);
    if (s) return s;
    if (r->folds) return taut_hf_fold_load(m, hf, r, t, number, w->param);
    if (r->transposed) return load_transposed(m, r, t, w->param);
    if (r->kernel) return load_kernel(m, t, w->param);
    return load_rows(m, r->part * w->param->rows + (r->skips ? hf->skip : 0), t, plus, w->param);
}

static taut_status refuse_unknown(const taut_hf *hf)
{
    int count = 0;
    const char *first = NULL;
    for (int i = taut_shards_count(hf->shards) - 1; i >= 0; i--)
        if (hf->why[i] && !*hf->why[i]) {
            count++;
            first = taut_shards_at(hf->shards, i)->tensor->name;
        }
    if (!count) return TAUT_OK;
    return taut_fail(TAUT_BAD_FILE, "%s: %d tensor%s unknown to a %s model, the first is %s", hf->folder, count,
                     count == 1 ? " is" : "s are", hf->type, first);
}

taut_status taut_hf_load(taut_model **out, const taut_hf *hf, const char *vocab, bool lenient, const taut_kernels *k)
{
    taut_model *m = NULL;
    taut_status s = lenient ? TAUT_OK : refuse_unknown(hf);
    if (!s) s = taut_model_create(&m, &hf->spec, hf->tokens, hf->recipe, vocab, k);
    if (!s) s = taut_model_bind(m, false);
    for (int i = 0; !s && i < m->weights; i++) s = load_weight(m, hf, &m->weight[i]);
    if (s)
        taut_model_free(m);
    else
        *out = m;
    return s;
}

static cJSON *describe(const taut_st_tensor *t, const char *why)
{
    cJSON *o = cJSON_CreateObject(), *shape;
    cJSON_AddStringToObject(o, "name", t->name);
    cJSON_AddStringToObject(o, "dtype", t->dtype);
    shape = cJSON_AddArrayToObject(o, "shape");
    for (int i = 0; i < t->rank; i++) cJSON_AddItemToArray(shape, cJSON_CreateNumber((double)t->shape[i]));
    if (*why) cJSON_AddStringToObject(o, "why", why);
    return o;
}

cJSON *taut_hf_report(const taut_hf *hf)
{
    cJSON *o = cJSON_CreateObject(), *unused = cJSON_CreateArray(), *unknown = cJSON_CreateArray();
    const int count = taut_shards_count(hf->shards);
    int used = 0;
    for (int i = 0; i < count; i++) {
        const char *why = hf->why[i];
        used += !why;
        if (why) cJSON_AddItemToArray(*why ? unused : unknown, describe(taut_shards_at(hf->shards, i)->tensor, why));
    }
    cJSON_AddStringToObject(o, "folder", hf->folder);
    cJSON_AddStringToObject(o, "family", hf->type);
    cJSON_AddNumberToObject(o, "files", taut_shards_files(hf->shards));
    cJSON_AddNumberToObject(o, "tensors", count);
    cJSON_AddNumberToObject(o, "used", used);
    cJSON_AddBoolToObject(o, "tied", hf->tied);
    cJSON_AddItemToObject(o, "unused", unused);
    cJSON_AddItemToObject(o, "unknown", unknown);
    cJSON *notes = cJSON_AddArrayToObject(o, "notes");
    for (int i = 0; i < hf->note_count; i++) cJSON_AddItemToArray(notes, cJSON_CreateString(hf->notes[i]));
    return o;
}
