/* Has a checkpoint the tensors that the model is made of, in the shapes that it asks for? */
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

/* A convolution's kernel: (out, channels, side, side). */
static bool is_kernel(const taut_hf *hf, const taut_st_tensor *t, int64_t rows)
{
    const taut_pixels_spec *i = &hf->spec.image;
    return t->rank == 4 && t->shape[0] == rows && t->shape[1] == i->channels && t->shape[2] == i->patch &&
           t->shape[3] == i->patch;
}

/* kind: 'v' a vector, 'm' a matrix, 'k' a kernel.  Dimensions of 1 in front do not count. */
static taut_status check_tensor(const taut_hf *hf, const taut_st_tensor *t, int64_t rows, int64_t cols, char kind)
{
    char shape[96];
    int lead = 0;
    const bool vector = kind == 'v';
    const int rank = vector || rows == 1 ? 1 : 2;
    const char *who = hf->ask && hf->ask->recipe ? "the recipe" : hf->config ? "config.json" : "the model";
    while (t->rank - lead > rank && t->shape[lead] == 1) lead++;
    const int64_t *size = t->shape + lead;
    if (!is_float(t))
        return taut_fail(TAUT_BAD_FILE, "%s: tensor %s is %s; weights are F32, F16, BF16 or F64", hf->folder, t->name,
                         t->dtype);
    const bool fits = kind == 'k' ? is_kernel(hf, t, rows)
                      : rank == 1 ? t->rank - lead == 1 && size[0] == cols
                                  : t->rank - lead == 2 && size[0] == rows && size[1] == cols;
    if (fits) return TAUT_OK;
    if (vector)
        return taut_fail(TAUT_BAD_FILE, "%s: tensor %s is %s, %s asks for %lld", hf->folder, t->name,
                         shape_text(shape, t), who, (long long)cols);
    return taut_fail(TAUT_BAD_FILE, "%s: tensor %s is %s, %s asks for %lld x %lld", hf->folder, t->name,
                     shape_text(shape, t), who, (long long)rows, (long long)cols);
}

taut_status taut_hf_check_vector(const taut_hf *hf, const taut_st_tensor *t, int64_t len)
{
    return check_tensor(hf, t, 1, len, 'v');
}

taut_status taut_hf_check_weight(const taut_hf *hf, const taut_hf_rule *r, const taut_shard_tensor *t,
                                 const taut_param *p)
{
    int64_t rows, cols;
    taut_hf_wanted(&rows, &cols, hf, r, p);
    return check_tensor(hf, t->tensor, rows, cols, r->kernel ? 'k' : p->role == TAUT_VECTOR ? 'v' : 'm');
}

/* The table whose first row is added to every position, where the program has one. */
taut_status taut_hf_check_types(const taut_hf *hf, const taut_shard_tensor **types, const taut_hf_rule *r,
                                const taut_param *p)
{
    char name[HF_NAME];
    const bool has = r->role == HF_POS && hf->scheme->at[HF_TYPES];
    *types = has ? taut_hf_at(hf, HF_TYPES, false, 0) : NULL;
    if (!has) return TAUT_OK;
    if (!*types)
        return taut_fail(TAUT_BAD_FILE, "%s: tensor %s is missing", hf->folder,
                         taut_hf_name(name, hf, HF_TYPES, false, 0));
    const taut_st_tensor *t = (*types)->tensor;
    return check_tensor(hf, t, t->rank == 2 && t->shape[0] > 1 ? t->shape[0] : 1, p->cols, 'm');
}

taut_status taut_hf_check_shapes(taut_hf *hf)
{
    taut_status s = TAUT_OK;
    const taut_model *m = hf->model;
    bool wide = false, zero = false;
    for (int i = 0; !s && i < m->weights; i++) {
        const taut_param *p = m->weight[i].param;
        taut_hf_rule r;
        const taut_shard_tensor *t = NULL, *types = NULL;
        s = taut_hf_source(&r, &t, hf, &m->weight[i]);
        if (!s && t) s = taut_hf_check_weight(hf, &r, t, p);
        if (!s) s = taut_hf_check_types(hf, &types, &r, p);
        if (!s && r.folds >= 0) s = taut_hf_fold_check(hf, &r);
        if (s) return s;
        if (t) taut_hf_leave(hf, t, NULL);
        if (types) taut_hf_leave(hf, types, NULL);
        wide = wide || (t && strcmp(t->tensor->dtype, "F64") == 0);
        zero = zero || r.zero;
    }
    if (hf->scheme->folded) taut_hf_note(hf, "BatchNorm is folded into the linear maps behind it, rounded to float");
    if (wide) taut_hf_note(hf, "F64 weights are rounded to float");
    if (zero) taut_hf_note(hf, "its norms, or its maps to q, k and v, have no bias: here they have one of zeros");
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
