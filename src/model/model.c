#include "model/model.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "model/tree.h"

int64_t taut_weight_len(const taut_weight *w) { return w->param->rows * w->param->cols; }

int64_t taut_model_size(const taut_model *m)
{
    int64_t size = 0;
    for (int i = 0; i < m->weights; i++) size += taut_weight_len(&m->weight[i]);
    return size;
}

const taut_weight *taut_model_find(const taut_model *m, const char *path)
{
    for (int i = 0; i < m->weights; i++)
        if (strcmp(m->weight[i].path, path) == 0) return &m->weight[i];
    return NULL;
}

typedef struct {
    taut_model *m;
    bool failed;
} listing;

static void list_weight(taut_param *p, const char *path, void *arg)
{
    listing *l = arg;
    taut_model *m = l->m;
    taut_weight *grown = taut_realloc(m->weight, (size_t)(m->weights + 1) * sizeof *grown);
    char *copy = taut_strdup(path);
    if (grown) m->weight = grown;
    if (!grown || !copy) {
        l->failed = true;
        free(copy);
        return;
    }
    m->weight[m->weights++] = (taut_weight){ p, copy, m->slab };
    m->slab += (p->rows * p->cols + 15) / 16 * 16; /* every weight starts on a cache line */
}

taut_status taut_model_bind(taut_model *m, bool grads)
{
    m->values = taut_reals(m->k, m->slab);
    if (grads) m->grads = taut_reals(m->k, m->slab);
    if (!m->values || (grads && !m->grads)) return taut_no_memory("the weights of the model");
    for (int i = 0; i < m->weights; i++) {
        m->weight[i].param->value = taut_at(m->k, m->values, m->weight[i].offset);
        m->weight[i].param->grad = grads ? taut_at(m->k, m->grads, m->weight[i].offset) : NULL;
    }
    return taut_module_place(m->root, m->k);
}

static taut_module *build(taut_model *m)
{
    static taut_module *(*const body[])(const taut_model_spec *) = { taut_gpt, taut_encoder,    taut_layers,
                                                                     taut_vit, taut_forecaster, taut_classifier };
    const taut_model_spec *s = &m->spec;
    taut_list l = { .count = 0 };
    m->body = body[s->arch](s);
    taut_list_add(&l, "", m->body);
    if (!s->headless) taut_list_add(&l, "head", m->head = taut_tree_head(s, &m->embed, m->classes));
    if (s->logit_scale != 1) taut_list_add(&l, "logits", taut_scale(s->logit_scale));
    return taut_list_sequence(&l);
}

taut_status taut_model_create(taut_model **out, const taut_model_spec *spec, int64_t tokens, const char *recipe,
                              const char *vocab, const taut_kernels *k)
{
    taut_model *m = taut_calloc(1, sizeof *m);
    if (!m) return taut_no_memory("the model");
    *out = m;
    m->k = k;
    m->spec = *spec;
    m->recipe = taut_strdup(recipe);
    m->vocab = taut_strdup(vocab);
    m->embed = (taut_param){ .name = "embed.weight",
                             .rows = tokens,
                             .cols = spec->width,
                             .role = TAUT_TABLE,
                             .init = TAUT_INIT_NORMAL,
                             .gain = spec->init == TAUT_INIT_NORMAL ? spec->init_std : 1 };
    const taut_pixels_spec *image = &spec->image;
    m->in = tokens        ? (taut_shape){ 1, spec->context, spec->width }
            : spec->ahead ? (taut_shape){ 1, spec->seq + spec->label + spec->ahead, spec->columns + spec->marks }
                          : (taut_shape){ 1, 1, image->height * image->width * image->channels };
    m->classes = spec->headless ? spec->width : spec->classes ? spec->classes : tokens;
    m->root = build(m);
    listing l = { m, !m->root || !m->recipe || !m->vocab };
    if (!l.failed && tokens) list_weight(&m->embed, m->embed.name, &l);
    if (!l.failed) taut_params(m->root, list_weight, &l);
    if (!l.failed) return TAUT_OK;
    taut_model_free(m);
    *out = NULL;
    return taut_no_memory("the model");
}

void taut_model_free(taut_model *m)
{
    if (!m) return;
    for (int i = 0; i < m->weights; i++) free(m->weight[i].path);
    free(m->weight);
    taut_module_free(m->root);
    if (m->values) m->k->release(m->values);
    if (m->grads) m->k->release(m->grads);
    free(m->recipe);
    free(m->vocab);
    free(m);
}
