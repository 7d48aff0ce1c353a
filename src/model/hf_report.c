/* What became of every tensor of a checkpoint; and where it cannot be opened, what was wanted and what is there. */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "model/hf_impl.h"

static cJSON *shape_of(const taut_st_tensor *t)
{
    cJSON *shape = cJSON_CreateArray();
    for (int i = 0; i < t->rank; i++) cJSON_AddItemToArray(shape, cJSON_CreateNumber((double)t->shape[i]));
    return shape;
}

static cJSON *describe(const taut_st_tensor *t, const char *why)
{
    cJSON *o = cJSON_CreateObject();
    cJSON_AddStringToObject(o, "name", t->name);
    cJSON_AddStringToObject(o, "dtype", t->dtype);
    cJSON_AddItemToObject(o, "shape", shape_of(t));
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
    cJSON_AddStringToObject(o, "prefix", hf->prefix);
    cJSON_AddNumberToObject(o, "files", taut_shards_files(hf->shards));
    cJSON_AddNumberToObject(o, "tensors", count);
    cJSON_AddNumberToObject(o, "used", used);
    cJSON_AddBoolToObject(o, "head", !hf->spec.headless);
    cJSON_AddBoolToObject(o, "tied", hf->tied && !hf->spec.headless);
    cJSON_AddItemToObject(o, "unused", unused);
    cJSON_AddItemToObject(o, "unknown", unknown);
    cJSON *notes = cJSON_AddArrayToObject(o, "notes");
    for (int i = 0; i < hf->note_count; i++) cJSON_AddItemToArray(notes, cJSON_CreateString(hf->notes[i]));
    return o;
}

/* One weight that is not there as it should be. */
static cJSON *miss(const taut_hf *hf, const taut_weight *w, const taut_hf_rule *r, const taut_shard_tensor *t)
{
    char name[HF_NAME];
    int64_t rows, cols;
    cJSON *o = cJSON_CreateObject(), *shape = cJSON_CreateArray();
    const bool stacked = r->role >= HF_Q && r->role <= HF_V && !hf->scheme->at[r->role];
    taut_hf_rule whole = *r;
    if (stacked) whole.parts = 3;
    taut_hf_wanted(&rows, &cols, hf, &whole, w->param);
    if (rows > 1) cJSON_AddItemToArray(shape, cJSON_CreateNumber((double)rows));
    cJSON_AddItemToArray(shape, cJSON_CreateNumber((double)cols));
    cJSON_AddStringToObject(o, "name", w->path);
    cJSON_AddStringToObject(o, "from", taut_hf_name(name, hf, stacked ? HF_QKV : r->role, r->bias, r->number));
    cJSON_AddItemToObject(o, "shape", shape);
    cJSON_AddItemToObject(o, "found", t ? shape_of(t->tensor) : cJSON_CreateNull());
    return o;
}

/* Lists what is missing or misshapen, and marks what is not. */
static cJSON *list_wanted(taut_hf *hf)
{
    cJSON *list = cJSON_CreateArray();
    for (int i = 0; hf->model && i < hf->model->weights; i++) {
        const taut_weight *w = &hf->model->weight[i];
        const taut_shard_tensor *t = NULL, *types = NULL;
        taut_hf_rule r;
        taut_status s = taut_hf_source(&r, &t, hf, w);
        if (!s && t) s = taut_hf_check_weight(hf, &r, t, w->param);
        if (s && (int)r.role >= 0) cJSON_AddItemToArray(list, miss(hf, w, &r, t));
        if (t) taut_hf_leave(hf, t, NULL);
        if (!s && !taut_hf_check_types(hf, &types, &r, w->param) && types) taut_hf_leave(hf, types, NULL);
        if (!s && r.folds >= 0 && taut_hf_fold_check(hf, &r)) cJSON_AddItemToArray(list, miss(hf, w, &r, t));
    }
    return list;
}

cJSON *taut_hf_explain(const char *path, const taut_hf_ask *ask)
{
    static const taut_hf_ask nothing = { 0 };
    taut_hf *hf = taut_calloc(1, sizeof *hf);
    if (!hf) return NULL;
    hf->ask = ask ? ask : &nothing;
    cJSON *o = cJSON_CreateObject(), *unknown = cJSON_CreateArray();
    if (taut_hf_begin(hf, path)) cJSON_AddStringToObject(o, "error", taut_last_error());
    if (hf->scheme) cJSON_AddStringToObject(o, "family", hf->type);
    if (hf->scheme) cJSON_AddStringToObject(o, "prefix", hf->prefix);
    cJSON_AddItemToObject(o, "wanted", list_wanted(hf));
    if (hf->model) taut_hf_judge(hf);
    const bool judged = hf->model || !hf->scheme; /* without a model nobody knows what its tensors would be */
    for (int i = 0; judged && hf->why && i < taut_shards_count(hf->shards); i++)
        if (hf->why[i] && !*hf->why[i])
            cJSON_AddItemToArray(unknown, describe(taut_shards_at(hf->shards, i)->tensor, ""));
    cJSON_AddItemToObject(o, "unknown", unknown);
    taut_hf_close(hf);
    return o;
}
