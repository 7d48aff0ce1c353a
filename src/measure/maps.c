#include "measure/maps.h"

#include <math.h>
#include <stdlib.h>

#include "base/alloc.h"

typedef struct {
    taut_maps *maps;
    const taut_kernels *k; /* the model's */
    bool count;            /* the first tour: how many layers, of what size */
    taut_status status;
} tour;

static double *values(const taut_kernels *k, const taut_real *from, int64_t len)
{
    double *out = taut_malloc((size_t)(len + 1) * sizeof *out);
    if (out) k->get(out, from, len);
    return out;
}

/* y = W x + b for t tokens, turned by their positions where the spec says so. */
static double *project(const taut_kernels *k, const taut_attention_view *v, int which, const double *x, int64_t t)
{
    const taut_kernels *ref = taut_kernels_find("ref");
    const int64_t d = v->spec->width;
    double *w = values(k, v->weight[which]->value, d * d), *y = taut_malloc((size_t)(t * d) * sizeof *y);
    double *b = v->spec->bias ? values(k, v->bias[which]->value, d) : NULL;
    if (w && y && (b || !v->spec->bias)) {
        for (int64_t i = 0; i < t; i++)
            for (int64_t r = 0; r < d; r++) {
                y[i * d + r] = b ? b[r] : 0;
                for (int64_t c = 0; c < d; c++) y[i * d + r] += w[r * d + c] * x[i * d + c];
            }
        if (v->spec->rope)
            ref->rope((taut_real *)y, (taut_real *)y, t, t, v->spec->heads, d / v->spec->heads, v->spec->rope_base, 1);
    } else {
        free(y);
        y = NULL;
    }
    free(w), free(b);
    return y;
}

static void softmax(double *p, int64_t keys)
{
    double most = -INFINITY, sum = 0;
    for (int64_t j = 0; j < keys; j++) most = fmax(most, p[j]);
    for (int64_t j = 0; j < keys; j++) sum += p[j] = exp(p[j] - most);
    for (int64_t j = 0; j < keys; j++) p[j] /= sum;
}

/* p: (heads, t, t), zeros at the start. */
static taut_status by_content(double *p, const taut_kernels *k, const taut_module *m, taut_tensor at)
{
    const taut_attention_view v = taut_attention_look(m);
    const int64_t t = at.shape.t, d = v.spec->width, dh = d / v.spec->heads;
    double *x = values(k, at.data, t * d), *q = x ? project(k, &v, 0, x, t) : NULL,
           *key = q ? project(k, &v, 1, x, t) : NULL;
    const taut_status s = key ? TAUT_OK : taut_no_memory("attention maps");
    for (int64_t h = 0; !s && h < v.spec->heads; h++)
        for (int64_t i = 0; i < t; i++) {
            double *row = p + (h * t + i) * t;
            const double slope = v.spec->alibi ? exp2(-8.0 * (double)(h + 1) / (double)v.spec->heads) : 0;
            const int64_t keys = v.spec->causal ? i + 1 : t;
            for (int64_t j = 0; j < keys; j++) {
                for (int64_t c = 0; c < dh; c++) row[j] += q[i * d + h * dh + c] * key[j * d + h * dh + c];
                row[j] = v.spec->scale * row[j] - slope * fabs((double)(i - j));
            }
            softmax(row, keys);
        }
    free(x), free(q), free(key);
    return s;
}

static taut_status by_position(double *p, const taut_kernels *k, const taut_module *m, int64_t t)
{
    const taut_posattention_view v = taut_posattention_look(m);
    const int64_t span = v.table->cols;
    const taut_distance a = { .t = t, .span = span, .causal = v.spec->causal, .row = v.spec->row };
    double *table = values(k, v.table->value, v.spec->heads * span);
    if (!table) return taut_no_memory("attention maps");
    for (int64_t h = 0; h < v.spec->heads; h++)
        for (int64_t i = 0; i < t; i++) {
            const int64_t keys = v.spec->causal ? i + 1 : t;
            for (int64_t j = 0; j < keys; j++)
                p[(h * t + i) * t + j] = table[h * span + taut_distance_column(&a, i, j)];
            softmax(p + (h * t + i) * t, keys);
        }
    free(table);
    return TAUT_OK;
}

static void see(const taut_module *m, const char *name, int depth, taut_point at, void *arg)
{
    tour *w = arg;
    taut_maps *o = w->maps;
    const bool content = taut_is_attention(m) && taut_attention_look(m).spec->queries == 0;
    (void)name, (void)depth;
    if (w->status || !(content || taut_is_posattention(m))) return;
    const int64_t heads = content ? taut_attention_look(m).spec->heads : taut_posattention_look(m).spec->heads;
    if (w->count && o->layers == 0) o->heads = heads, o->tokens = at.x.shape.t;
    if (heads != o->heads || at.x.shape.t != o->tokens) return;
    double *p = o->weight + o->layers * heads * o->tokens * o->tokens;
    if (!w->count) w->status = content ? by_content(p, w->k, m, at.x) : by_position(p, w->k, m, o->tokens);
    o->layers++;
}

taut_status taut_maps_read(taut_maps *o, const taut_pass *pass)
{
    const taut_point at = { pass->x, pass->trace };
    tour w = { .maps = o, .k = pass->m->k, .count = true };
    *o = (taut_maps){ 0 };
    taut_tour_parts(pass->m->root, at, see, &w);
    if (o->layers == 0) return TAUT_OK;
    o->weight = taut_calloc((size_t)(o->layers * o->heads * o->tokens * o->tokens), sizeof *o->weight);
    if (!o->weight) return taut_no_memory("attention maps");
    w.count = false;
    o->layers = 0;
    taut_tour_parts(pass->m->root, at, see, &w);
    if (!w.status) w.status = w.k->read(NULL, NULL, 0);
    if (w.status) taut_maps_free(o);
    return w.status;
}

void taut_maps_free(taut_maps *o)
{
    free(o->weight);
    *o = (taut_maps){ 0 };
}
