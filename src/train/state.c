#include "train/state.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/number.h"
#include "model/slabs.h"

enum { KINDS = 5 };

/* What is kept of each weight: w. its value, m. and v. the optimiser's, b. its value when the run was best,
 * a. its running mean. */
static int kinds_of(const taut_optimiser *o, const char **prefix, taut_real **slab)
{
    const char *const name[] = { "w.", "m.", "v.", "b.", "a." };
    taut_real *const all[] = { o->m->values, o->first, o->second, o->best, o->average };
    int kinds = 0;
    for (int i = 0; i < KINDS; i++)
        if (all[i]) {
            prefix[kinds] = name[i];
            slab[kinds++] = all[i];
        }
    return kinds;
}

typedef struct {
    char name[280];
    taut_slab_view view;
} item;

static void fetch_recent(void *arg, double *dst, int64_t first, int64_t count)
{
    memcpy(dst, (const double *)arg + first, (size_t)count * sizeof *dst);
}

/* The [model] section of a printed recipe, from its heading to the next one, as a string of its own; NULL: no memory. */
static char *model_section(const char *recipe)
{
    const char *begin = strstr(recipe, "[model]"), *end = begin ? strstr(begin, "\n[") : NULL;
    char *copy = taut_strdup(begin ? begin : "");
    if (copy && end) copy[end - begin] = '\0';
    return copy;
}

static taut_status write_entries(const taut_clock *c, const taut_optimiser *o, const char *path, item *items,
                                 taut_st_entry *entry)
{
    const taut_model *m = o->m;
    const char *prefix[KINDS], *dtype = m->k->dtype;
    taut_real *slab[KINDS];
    char step[32], tokens[32], seconds[40], best[96];
    int count = 0;
    const int kinds = kinds_of(o, prefix, slab);
    for (int kind = 0; kind < kinds; kind++)
        for (int i = 0; i < m->weights; i++, count++) {
            const taut_weight *w = &m->weight[i];
            snprintf(items[count].name, sizeof items[count].name, "%s%s", prefix[kind], w->path);
            items[count].view = (taut_slab_view){ m->k, taut_at(m->k, slab[kind], w->offset) };
            entry[count] = taut_slab_entry(&items[count].view, items[count].name, dtype, w->param);
        }
    taut_clock copy = *c;
    entry[count++] = (taut_st_entry){ "recent", "F64", 1, { TAUT_RECENT }, fetch_recent, copy.recent };
    snprintf(step, sizeof step, "%lld", (long long)c->step);
    snprintf(tokens, sizeof tokens, "%lld", (long long)c->tokens);
    snprintf(seconds, sizeof seconds, "%a", c->seconds);
    snprintf(best, sizeof best, "%lld %lld %a", (long long)c->best_step, (long long)c->waited, c->best_loss);
    char *section = model_section(m->recipe);
    const taut_st_meta meta[] = { { "format", "taut-state" }, { "taut.version", TAUT_VERSION },
                                  { "step", step },           { "tokens", tokens },
                                  { "seconds", seconds },     { "taut.vocab", m->vocab },
                                  { "taut.model", section },  { "best", best } };
    const taut_status s = section ? taut_safetensors_write(path, entry, count, meta, o->best ? 8 : 7)
                                  : taut_no_memory("saving the run");
    free(section);
    return s;
}

taut_status taut_state_save(const taut_clock *c, const taut_optimiser *o, const char *path)
{
    const size_t most = (size_t)(KINDS * o->m->weights + 1);
    item *items = taut_calloc(most, sizeof *items);
    taut_st_entry *entry = taut_calloc(most, sizeof *entry);
    const taut_status s = items && entry ? write_entries(c, o, path, items, entry) : taut_no_memory("saving the run");
    free(items);
    free(entry);
    return s;
}

/* When the run was best; a state without that is of a run without patience. */
static taut_status load_best(taut_clock *c, const taut_safetensors *st, const char *path)
{
    const char *best = taut_safetensors_meta(st, "best");
    long long step, waited;
    int end = 0;
    if (!best || sscanf(best, "%lld %lld %n", &step, &waited, &end) != 2 || step < 0 || waited < 0 || step > c->step)
        return taut_fail(TAUT_BAD_FILE, "%s: does not say when the run was best, and train.patience asks", path);
    c->best_step = step, c->waited = waited, c->best_loss = strtod(best + end, NULL);
    return TAUT_OK;
}

static taut_status load_clock(taut_clock *c, const taut_safetensors *st, const taut_model *m, const char *path)
{
    const char *step = taut_safetensors_meta(st, "step"), *tokens = taut_safetensors_meta(st, "tokens");
    const char *seconds = taut_safetensors_meta(st, "seconds"), *vocab = taut_safetensors_meta(st, "taut.vocab");
    const taut_st_tensor *recent = taut_safetensors_find(st, "recent");
    if (!step || !tokens || !seconds || !vocab || !recent || recent->count != TAUT_RECENT)
        return taut_fail(TAUT_BAD_FILE, "%s: not the state of a taut run", path);
    if (strcmp(vocab, m->vocab) != 0)
        return taut_fail(TAUT_BAD_FILE, "%s: the run was trained on another vocabulary than this text has", path);
    *c = (taut_clock){ .seconds = strtod(seconds, NULL) };
    const bool numbers = taut_number_int(&c->step, step) && taut_number_int(&c->tokens, tokens);
    if (!numbers || c->step < 0 || c->tokens < 0 || !(c->seconds >= 0 && c->seconds < INFINITY))
        return taut_fail(TAUT_BAD_FILE, "%s: step %.40s, %.40s tokens, %.40s seconds: that makes no sense", path, step,
                         tokens, seconds);
    return taut_safetensors_read(st, recent, c->recent, 0, TAUT_RECENT);
}

/* Weights that fit say nothing of heads, activations or scales: those must be the same too. */
static taut_status check_model(const taut_safetensors *st, const taut_model *m, const char *path)
{
    const char *theirs = taut_safetensors_meta(st, "taut.model");
    char *ours = model_section(m->recipe);
    if (!ours) return taut_no_memory("reading the run");
    const bool same = theirs && strcmp(theirs, ours) == 0;
    free(ours);
    return same ? TAUT_OK
                : taut_fail(TAUT_BAD_FILE, "%s: the run was trained with another [model] section than this recipe's",
                            path);
}

taut_status taut_state_load(taut_clock *c, taut_optimiser *o, const char *path)
{
    const taut_model *m = o->m;
    const char *prefix[KINDS];
    taut_real *slab[KINDS];
    char name[280];
    taut_safetensors *st = NULL;
    taut_status s = taut_safetensors_open(&st, path);
    if (s) return s;
    s = load_clock(c, st, m, path);
    if (!s && o->best) s = load_best(c, st, path);
    const int kinds = kinds_of(o, prefix, slab);
    for (int kind = 0; kind < kinds; kind++)
        for (int i = 0; !s && i < m->weights; i++) {
            const taut_weight *w = &m->weight[i];
            snprintf(name, sizeof name, "%s%s", prefix[kind], w->path);
            s = taut_slab_load(m->k, taut_at(m->k, slab[kind], w->offset), st, path, name, w->param);
        }
    if (!s && taut_safetensors_count(st) != kinds * m->weights + 1)
        s = taut_fail(TAUT_BAD_FILE, "%s: the state of another model or optimiser", path);
    if (!s) s = check_model(st, m, path);
    taut_safetensors_close(st);
    return s;
}
