/* Numbers of a checkpoint into a model. */
#include <stdlib.h>

#include "base/alloc.h"
#include "model/hf_impl.h"

enum { CHUNK = 1 << 16 };

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
    taut_hf_rule r;
    const taut_shard_tensor *t = NULL, *types = NULL;
    taut_status s = taut_hf_source(&r, &t, hf, w);
    if (!s) s = taut_hf_check_types(hf, &types, &r, w->param);
    if (s || r.zero) return s; /* weights are zeros before they are loaded */
    if (r.folds >= 0) return taut_hf_fold_load(m, hf, &r, t, w->param);
    if (r.transposed && !r.bias) return load_transposed(m, &r, t, w->param);
    if (r.kernel) return load_kernel(m, t, w->param);
    return load_rows(m, r.part * w->param->rows + (r.role == HF_POS ? hf->skip : 0), t, types, w->param);
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
