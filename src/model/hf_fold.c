/* BatchNorm folded into the linear map behind it.  When a network is used, BatchNorm is x -> a x + c, channel by channel,
 *     a = weight / sqrt(running_var + eps),   c = bias - a running_mean,   eps = 1e-5 as a float,
 * so W (a x + c) + b = (W a) x + (b + W c): computed in double and rounded once, where the weight is stored. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "model/hf_impl.h"

static const char *const parts[] = { "weight", "bias", "running_mean", "running_var" };

/* Part i of the norm before the map of rule r: what its weight is called, with another last word. */
static taut_status find_part(const taut_shard_tensor **t, const taut_hf *hf, const taut_hf_rule *r, int i)
{
    char name[HF_NAME];
    taut_hf_name(name, hf, (taut_hf_role)r->folds, false, r->number);
    strcpy(strrchr(name, '.') + 1, parts[i]);
    *t = taut_shards_find(hf->shards, name);
    return *t ? TAUT_OK : taut_fail(TAUT_BAD_FILE, "%s: a norm's tensor %s is missing", hf->folder, name);
}

taut_status taut_hf_fold_check(taut_hf *hf, const taut_hf_rule *r)
{
    taut_status s = TAUT_OK;
    for (int i = 0; !s && i < 4; i++) {
        const taut_shard_tensor *t = NULL;
        s = find_part(&t, hf, r, i);
        if (!s) s = taut_hf_check_vector(hf, t->tensor, hf->spec.width);
        if (!s) taut_hf_leave(hf, t, NULL);
    }
    return s;
}

/* a and c, each `width` long. */
static taut_status affine(const taut_hf *hf, const taut_hf_rule *r, double *a, double *c)
{
    const int64_t width = hf->spec.width;
    double *all = taut_malloc((size_t)(4 * width) * sizeof *all);
    taut_status s = all ? TAUT_OK : taut_no_memory(hf->folder);
    for (int i = 0; !s && i < 4; i++) {
        const taut_shard_tensor *t = NULL;
        s = find_part(&t, hf, r, i);
        if (!s) s = taut_shards_read(t, all + i * width, 0, width);
    }
    for (int64_t j = 0; !s && j < width; j++) {
        a[j] = all[j] / sqrt(all[3 * width + j] + (double)1e-5f);
        c[j] = all[width + j] - a[j] * all[2 * width + j];
    }
    free(all);
    return s;
}

/* W (rows, width), from the file as it is there. */
static taut_status matrix(double *w, const taut_shard_tensor *t, bool transposed, int64_t rows, int64_t width)
{
    double *whole = taut_malloc((size_t)(rows * width) * sizeof *whole);
    taut_status s = whole ? taut_shards_read(t, whole, 0, rows * width) : taut_no_memory(t->tensor->name);
    for (int64_t i = 0; !s && i < rows * width; i++) w[i] = transposed ? whole[i % width * rows + i / width] : whole[i];
    free(whole);
    return s;
}

taut_status taut_hf_fold_load(const taut_model *m, const taut_hf *hf, const taut_hf_rule *r, const taut_shard_tensor *t,
                              const taut_param *p)
{
    const bool bias = r->bias;
    const int64_t width = hf->spec.width, rows = bias ? p->cols : p->rows;
    const taut_shard_tensor *of = bias ? taut_hf_at(hf, r->role, false, r->number) : t;
    if (!of || of->tensor->count != rows * width)
        return taut_fail(TAUT_BAD_FILE, "%s: the matrix of %s has another shape", hf->folder, t->tensor->name);
    double *w = taut_malloc((size_t)(rows * width + 2 * width + rows) * sizeof *w);
    if (!w) return taut_no_memory(t->tensor->name);
    double *a = w + rows * width, *c = a + width, *b = c + width;
    taut_status s = affine(hf, r, a, c);
    if (!s) s = matrix(w, of, r->transposed, rows, width);
    if (!s && bias) s = taut_shards_read(t, b, 0, rows);
    for (int64_t i = 0; !s && i < rows * width; i++)
        if (bias)
            b[i / width] += w[i] * c[i % width];
        else
            w[i] *= a[i % width];
    if (!s) m->k->put(p->value, bias ? b : w, bias ? rows : rows * width);
    free(w);
    return s;
}
