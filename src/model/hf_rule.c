/* How each weight of the model is made of a checkpoint's tensors. */
#include <stdio.h>
#include <string.h>

#include "model/hf_impl.h"

/* Which BatchNorm stands before a map. */
static int folded_norm(const taut_hf *hf, taut_hf_role role)
{
    if (!hf->scheme->folded) return -1;
    return role >= HF_Q && role <= HF_V ? HF_NORM1 : role == HF_IN ? HF_NORM2 : role == HF_HEAD ? HF_NORM : -1;
}

static bool folded_away(const taut_hf *hf, taut_hf_role role)
{
    return hf->scheme->folded && (role == HF_NORM1 || role == HF_NORM2 || role == HF_NORM);
}

/* Is there no such tensor in any block? */
static bool nowhere(const taut_hf *hf, taut_hf_role role, bool bias)
{
    for (int i = 0; i < (int)hf->spec.depth; i++)
        if (taut_hf_at(hf, role, bias, i)) return false;
    return true;
}

/* Norms, and the maps to q, k and v, have biases here.  Where a program has none in any block, they are zeros. */
static bool is_zero(const taut_hf *hf, taut_hf_role role)
{
    if (role >= HF_Q && role <= HF_V) return nowhere(hf, role, true) && nowhere(hf, HF_QKV, true);
    if (role == HF_NORM) return nowhere(hf, HF_NORM1, true);
    return (role == HF_NORM1 || role == HF_NORM2) && nowhere(hf, role, true);
}

taut_status taut_hf_source(taut_hf_rule *r, const taut_shard_tensor **tensor, const taut_hf *hf, const taut_weight *w)
{
    char name[HF_NAME];
    *r = (taut_hf_rule){ .folds = -1 };
    const int role = taut_hf_role_of(w->path, &r->bias, &r->number);
    const bool part = role >= HF_Q && role <= HF_V;
    r->role = (taut_hf_role)role;
    *tensor = role < 0 ? NULL : taut_hf_at(hf, r->role, r->bias, r->number);
    if (role < 0 || folded_away(hf, r->role) ||
        (!*tensor && !hf->scheme->at[role] && !(part && hf->scheme->at[HF_QKV])))
        return taut_fail(TAUT_BAD_CONFIG, "%s: a %s model has no %s, which the recipe asks for", hf->folder, hf->type,
                         w->path);
    if (!*tensor && part && (*tensor = taut_hf_at(hf, HF_QKV, r->bias, r->number))) {
        r->part = role - HF_Q;
        r->parts = 3;
    }
    r->folds = folded_norm(hf, r->role);
    r->transposed = hf->scheme->transposed && role >= HF_QKV && role <= HF_OUT && role != HF_NORM2;
    r->kernel = role == HF_PATCH && !r->bias;
    r->zero = !*tensor && r->bias && is_zero(hf, r->role);
    if (*tensor || r->zero) return TAUT_OK;
    taut_hf_name(name, hf, part && !hf->scheme->at[role] ? HF_QKV : r->role, r->bias, r->number);
    return taut_fail(TAUT_BAD_FILE, "%s: tensor %s is missing, which %s asks for", hf->folder, name,
                     hf->ask && hf->ask->recipe ? "the recipe"
                     : hf->config               ? "config.json"
                                                : "the model");
}

/* A vector is one row. */
void taut_hf_wanted(int64_t *rows, int64_t *cols, const taut_hf *hf, const taut_hf_rule *r, const taut_param *p)
{
    const int64_t parts = r->parts ? r->parts : 1;
    *rows = p->role == TAUT_VECTOR ? 1 : parts * p->rows + (r->role == HF_POS ? hf->skip : 0);
    *cols = p->role == TAUT_VECTOR ? parts * p->cols : p->cols;
    if (p->role == TAUT_VECTOR || !r->transposed) return;
    *rows = p->cols;
    *cols = parts * p->rows;
}

taut_status taut_hf_check_maps(const taut_hf *hf)
{
    for (int i = 0; i < hf->maps; i++) {
        const char *equal = strchr(hf->map[i], '=');
        char mine[HF_NAME];
        bool bias, other, used = false;
        int number, block;
        snprintf(mine, sizeof mine, "%.*s", (int)(equal - hf->map[i]), hf->map[i]);
        const int role = taut_hf_role_of(mine, &bias, &number);
        for (int j = 0; j < hf->model->weights && !used; j++) {
            const int has = taut_hf_role_of(hf->model->weight[j].path, &other, &block);
            const bool same = has == role || (role == HF_QKV && has == HF_Q) || (role == HF_TYPES && has == HF_POS);
            used = same && other == bias && (strchr(mine, '#') || block == number);
        }
        if (!used)
            return taut_fail(TAUT_BAD_CONFIG,
                             "--map %s: the model has no weight %s (taut info of a converted one lists them; all are "
                             "in docs/howto/bring_my_model.md)",
                             hf->map[i], mine);
    }
    return TAUT_OK;
}
