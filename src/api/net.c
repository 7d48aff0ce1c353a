/* What a model is, and its weights by name. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "api/call.h"
#include "api/net.h"
#include "base/alloc.h"
#include "base/float32.h"

static taut_kind kind_of(const taut_model *m)
{
    return m->embed.rows > 0                      ? TAUT_READS_TEXT
           : m->spec.arch == TAUT_ARCH_FORECASTER ? TAUT_READS_SERIES
                                                  : TAUT_READS_IMAGES;
}

taut_status taut_net_look(const taut_net *net, taut_net_facts *out)
{
    NEED(net);
    NEED(out);
    const taut_model *m = net->model;
    const taut_shape y = taut_plan_of(m->root, m->in).out;
    const bool pooled = m->spec.arch == TAUT_ARCH_CLASSIFIER || m->spec.pool != TAUT_POOL_NONE;
    *out = (taut_net_facts){ kind_of(m),
                             m->in.t,
                             m->in.d,
                             m->embed.rows,
                             taut_arch_reads_tokens(m->spec.arch) && !pooled ? 0 : y.t,
                             y.d,
                             taut_model_size(m),
                             m->weights };
    return TAUT_OK;
}

taut_status taut_net_predicts(const taut_net *net)
{
    if (!net->model->spec.headless) return TAUT_OK;
    return taut_fail(TAUT_BAD_DATA,
                     "this model has no head: it gives features of a text (taut embed), and predicts nothing");
}

/* Weights that are NaN or infinite: nothing can be proved of a model that has one. */
static taut_status add_not_finite(cJSON *o, const taut_model *m)
{
    int64_t count = 0;
    const char *first = NULL;
    for (int i = 0; i < m->weights; i++) {
        const int64_t len = taut_weight_len(&m->weight[i]);
        double *w = taut_malloc((size_t)(len + 1) * sizeof *w);
        if (!w) return taut_no_memory("weights");
        m->k->get(w, m->weight[i].param->value, len);
        for (int64_t j = 0; j < len; j++)
            if (!isfinite(w[j]) && !count++) first = m->weight[i].path;
        free(w);
    }
    cJSON_AddNumberToObject(o, "not_finite", (double)count);
    if (first) cJSON_AddStringToObject(o, "not_finite_in", first);
    return TAUT_OK;
}

cJSON *taut_tensors_json(const taut_model *m)
{
    cJSON *list = cJSON_CreateArray();
    for (int i = 0; i < m->weights; i++) {
        cJSON *t = cJSON_CreateObject();
        cJSON_AddStringToObject(t, "name", m->weight[i].path);
        cJSON_AddNumberToObject(t, "rows", (double)m->weight[i].param->rows);
        cJSON_AddNumberToObject(t, "cols", (double)m->weight[i].param->cols);
        cJSON_AddItemToArray(list, t);
    }
    return list;
}

taut_status taut_net_json(const taut_net *net, char **json)
{
    static const char *const kinds[] = { "text", "images", "series" };
    NEED(json);
    *json = NULL;
    taut_net_facts f;
    taut_status s = taut_net_look(net, &f);
    if (s) return s;
    char *tree = taut_model_tree(net->model);
    cJSON *o = cJSON_CreateObject();
    cJSON_AddStringToObject(o, "kind", kinds[f.kind]);
    cJSON_AddStringToObject(o, "arch", taut_arch_name(net->model->spec.arch));
    cJSON_AddNumberToObject(o, "context", (double)f.context);
    cJSON_AddNumberToObject(o, "width", (double)f.width);
    cJSON_AddNumberToObject(o, "vocabulary", (double)f.vocabulary);
    cJSON_AddNumberToObject(o, "classes", (double)f.classes);
    cJSON_AddStringToObject(o, "gives",
                            net->model->spec.headless     ? "features"
                            : f.kind == TAUT_READS_SERIES ? "forecasts"
                                                          : "logits");
    cJSON_AddNumberToObject(o, "weights", (double)f.weights);
    cJSON_AddStringToObject(o, "recipe", net->model->recipe);
    cJSON_AddItemToObject(o, "tree", tree ? cJSON_Parse(tree) : NULL);
    if (net->report) cJSON_AddItemToObject(o, "checkpoint", cJSON_Parse(net->report));
    cJSON_AddItemToObject(o, "tensors", taut_tensors_json(net->model));
    if (net->note) cJSON_AddStringToObject(o, "note", net->note);
    s = add_not_finite(o, net->model);
    if (!s && !tree) s = taut_no_memory("a description");
    free(tree);
    return taut_json_out(json, o, s);
}

taut_status taut_net_save(const taut_net *net, const char *path)
{
    NEED(net);
    NEED(path);
    return taut_model_save(net->model, path);
}

taut_status taut_net_tensor(const taut_net *net, int index, taut_tensor_facts *out)
{
    NEED(net);
    NEED(out);
    if (index < 0 || index >= net->model->weights)
        return taut_fail(TAUT_BAD_CALL, "tensor %d: this model has tensors 0 to %d", index, net->model->weights - 1);
    const taut_weight *w = &net->model->weight[index];
    *out = (taut_tensor_facts){ w->path, w->param->rows, w->param->cols };
    return TAUT_OK;
}

/* The tensor of a name, which must have `len` numbers. */
static taut_status find(const taut_weight **w, const taut_net *net, const char *name, int64_t len)
{
    *w = taut_model_find(net->model, name);
    if (!*w) return taut_fail(TAUT_BAD_CALL, "no tensor of this model is called %s", name);
    if (taut_weight_len(*w) == len) return TAUT_OK;
    return taut_fail(TAUT_BAD_CALL, "%s has %lld numbers, not %lld", name, (long long)taut_weight_len(*w),
                     (long long)len);
}

taut_status taut_net_read(const taut_net *net, const char *name, double *w, int64_t len)
{
    const taut_weight *found;
    NEED(net);
    NEED(name);
    NEED(w);
    const taut_status s = find(&found, net, name, len);
    if (!s) net->model->k->get(w, found->param->value, len);
    return s ? s : net->model->k->read(NULL, NULL, 0);
}

taut_status taut_net_write(taut_net *net, const char *name, const double *w, int64_t len)
{
    const taut_weight *found;
    NEED(net);
    NEED(name);
    NEED(w);
    taut_status s = find(&found, net, name, len);
    double *rounded = s ? NULL : taut_malloc((size_t)len * sizeof *rounded);
    if (!s && !rounded) s = taut_no_memory("a tensor");
    for (int64_t i = 0; !s && i < len; i++) rounded[i] = taut_float32(w[i]);
    if (!s) net->model->k->put(found->param->value, rounded, len);
    free(rounded);
    return s ? s : net->model->k->read(NULL, NULL, 0);
}

taut_status taut_net_encode(const taut_net *net, int32_t **ids, int64_t *count, const char *text)
{
    NEED(net);
    NEED(ids);
    NEED(count);
    NEED(text);
    *ids = NULL;
    if (!net->vocab) return taut_fail(TAUT_BAD_DATA, "this model does not read text");
    return taut_vocab_encode(ids, count, net->vocab, text, strlen(text));
}

taut_status taut_net_decode(const taut_net *net, char **text, const int32_t *ids, int64_t count)
{
    size_t len;
    NEED(net);
    NEED(text);
    NEED(ids);
    *text = NULL;
    if (!net->vocab) return taut_fail(TAUT_BAD_DATA, "this model does not write text");
    if (count < 0) return taut_fail(TAUT_BAD_CALL, "%lld ids", (long long)count);
    return taut_vocab_decode(text, &len, net->vocab, ids, count);
}
