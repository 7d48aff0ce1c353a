#include "papers/net.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/lookup.h"
#include "base/alloc.h"
#include "base/file.h"
#include "bound/ledger.h"
#include "certify/certify.h"
#include "measure/slope.h"

static bool holds(const char *run, const char *name)
{
    char path[4200];
    snprintf(path, sizeof path, "%s/%s", run, name);
    return taut_file_exists(path);
}

/* NULL: there is none. */
static cJSON *summary_of(const char *run)
{
    char path[4200], *text = NULL;
    size_t len;
    snprintf(path, sizeof path, "%s/summary.json", run);
    if (!taut_file_exists(path) || taut_file_read(&text, &len, path)) return NULL;
    cJSON *o = cJSON_Parse(text);
    free(text);
    return o;
}

/* What the folder of a run holds; one that was begun with other settings is refused. */
typedef enum { NOTHING, BEGUN, DONE } progress;
static taut_status look(progress *at, const char *run, taut_config *cfg)
{
    char path[4200];
    taut_config *stored = NULL;
    taut_recipe recipe = { 0 };
    const char *const may[] = { NULL }, *value[2] = { NULL, NULL };
    *at = NOTHING;
    if (!holds(run, "recipe.ini") && holds(run, "model.safetensors"))
        return taut_fail(TAUT_BAD_CALL, "%s holds a model that is not of this table: another --out", run);
    if (!holds(run, "recipe.ini")) return TAUT_OK;
    snprintf(path, sizeof path, "%s/recipe.ini", run);
    taut_status s = taut_recipe_read(&recipe, cfg);
    if (!s) s = taut_config_open(&stored, path);
    if (!s) s = taut_config_problem(stored);
    const char *key = s ? NULL : taut_config_differs(cfg, stored, may, value);
    if (key)
        s = taut_fail(TAUT_BAD_CALL,
                      "%s holds another run, with %s = %s where this one has %s: another --out, or delete it", run, key,
                      value[1] ? value[1] : "nothing", value[0] ? value[0] : "nothing");
    taut_config_free(stored);
    if (!s && holds(run, "state.safetensors")) *at = BEGUN;
    cJSON *summary = s ? NULL : summary_of(run);
    if (summary && !cJSON_IsTrue(cJSON_GetObjectItem(summary, "stopped"))) *at = DONE;
    cJSON_Delete(summary);
    return s;
}

/* After every step: from the first on there is something to save. */
static void after_step(const taut_progress *at, void *o)
{
    cli_stop_watch();
    if (!((const paper_options *)o)->small) paper_tell_first(at);
}

taut_status paper_configure(taut_config **cfg, const paper_plan *p)
{
    static const char *const tiny[] = { "train.steps=3", "train.batch=4", "train.warmup=1", "data.length=2000" };
    const size_t len = strlen(p->recipe);
    const bool file = len > 4 && strcmp(p->recipe + len - 4, ".ini") == 0;
    taut_status s = file ? taut_recipe_open(cfg, p->recipe, p->overrides, p->count)
                         : taut_config_parse(cfg, p->recipe, p->run);
    if (!s && !file && !p->o->small && strcmp(p->o->k, "cuda") == 0) s = taut_config_set(*cfg, "train.matmul=tf32");
    for (int i = 0; !s && !file && i < p->count; i++) s = taut_config_set(*cfg, p->overrides[i]);
    for (int i = 0; !s && p->o->tiny && i < 4; i++) s = taut_config_set(*cfg, tiny[i]);
    return s;
}

taut_status paper_net_train(const paper_options *o, const char *run, const char *recipe, const char *const *overrides,
                            int count)
{
    paper_plan plan = { o, run, recipe, overrides, count, NULL };
    taut_config *cfg = NULL;
    taut_train_summary summary;
    progress at = NOTHING;
    taut_status s = paper_configure(&cfg, &plan);
    if (!s) s = look(&at, run, cfg);
    if (!s && at == DONE) ++*o->kept;
    if (!s && at != DONE) s = taut_kernels_open(&plan.k, o->k);
    if (!s && at != DONE && o->ask) s = paper_ask_first(&plan);
    const taut_training how = { .run = run,
                                .resume = at == BEGUN,
                                .overwrite = at == NOTHING && holds(run, "recipe.ini"),
                                .progress = after_step,
                                .arg = (void *)o,
                                .stop = cli_stop_flag() };
    if (!s && at != DONE) {
        s = taut_train(&summary, cfg, plan.k, &how);
        cli_stop_leave();
        if (!s && summary.stopped) s = taut_fail(TAUT_BAD_CALL, "stopped; the same command goes on with %s", run);
    }
    taut_config_free(cfg);
    return s;
}

static taut_status read_images(paper_net *p)
{
    const int64_t dim = p->target.dim, all = taut_source_count(p->data, TAUT_VALID);
    if (p->n > all) p->n = all;
    p->x = taut_malloc((size_t)(p->n * dim) * sizeof *p->x);
    p->z = taut_malloc((size_t)(p->n * p->target.classes) * sizeof *p->z);
    p->label = taut_malloc((size_t)p->n * sizeof *p->label);
    if (!p->x || !p->z || !p->label) return taut_no_memory("images");
    for (int64_t e = 0; e < p->n; e++)
        p->data->ops->get(p->data, (taut_slot){ .reals = p->x + e * dim, .target = p->label + e }, TAUT_VALID, e);
    taut_target_logits(&p->target, p->z, p->x, NULL, NULL, p->n);
    return TAUT_OK;
}

taut_status paper_net_open(paper_net *p, const paper_options *o, const char *run, int64_t n)
{
    *p = (paper_net){ .n = n };
    taut_status s = taut_net_open(&p->m, run, &(taut_open_options){ sizeof(taut_open_options), .kernels = o->k });
    if (!s) s = taut_network_open(&p->target, p->m->model);
    if (!s) s = taut_net_source(&p->data, p->m, NULL);
    return s ? s : read_images(p);
}

void paper_net_close(paper_net *p)
{
    taut_network_close(&p->target);
    taut_source_free(p->data);
    taut_net_free(p->m);
    free(p->x);
    free(p->z);
    free(p->label);
    *p = (paper_net){ 0 };
}

double paper_net_clean(const paper_net *p)
{
    int64_t right = 0;
    const int64_t classes = p->target.classes;
    for (int64_t e = 0; e < p->n; e++) right += taut_argmax(p->z + e * classes, classes) == p->label[e];
    return (double)right / (double)p->n;
}

taut_status paper_net_attack(double *left, paper_net *p, const char *attacks, taut_ball_kind kind, const char *eps,
                             taut_profile_options o)
{
    taut_campaign c = { 0 };
    taut_status s = taut_campaign_open(&c, attacks, kind, eps, true, o, 0, p->n);
    if (!s) s = taut_campaign_run(&c, &p->target, p->x, p->z, p->label, 256, NULL, NULL);
    for (int i = 0; !s && i < c.profiles; i++)
        left[i] = (double)taut_campaign_left(&c, 0, i, c.profile[i].attacks - 1) / (double)p->n;
    taut_campaign_close(&c);
    return s;
}

taut_status paper_net_protocol(double v[6], paper_net *p, bool brief)
{
    const taut_profile_options four = { .steps = 4 }, own = { .queries = brief ? 100 : 0 };
    double left[2] = { 0 };
    taut_status s = TAUT_OK;
    v[0] = 100 * paper_net_clean(p);
    for (int i = 0; !s && i < 2; i++) {
        s = paper_net_attack(left, p, "fgsm,pgd", TAUT_BALL_LINF, i ? "4/255" : "2/255", four);
        v[1 + i] = 100 * left[0], v[3 + i] = 100 * left[1];
    }
    if (!s) s = paper_net_attack(left, p, "ta-10", TAUT_BALL_LINF, "2/255", own);
    v[5] = 100 * left[0];
    return s;
}

taut_status paper_net_slopes(double *slope, paper_net *p, int64_t count)
{
    const taut_slope_options o = { .steps = 24, .tolerance = 1e-4, .seed = 1 };
    const taut_model *m = p->m->model;
    taut_status s = TAUT_OK;
    for (int64_t e = 0; !s && e < count && e < p->n; e++) {
        taut_probe probe;
        taut_slope found;
        s = taut_probe_create(&probe, m->root, m->k, p->x + e * p->target.dim, m->in);
        if (s) return s;
        s = taut_slope_find(&found, NULL, &probe, &o);
        taut_probe_free(&probe);
        slope[e] = found.value;
    }
    return s;
}

double paper_summary(const char *run, const char *key)
{
    cJSON *o = summary_of(run);
    const cJSON *v = cJSON_GetObjectItem(o, key);
    const double number = cJSON_IsNumber(v) ? v->valuedouble : NAN;
    cJSON_Delete(o);
    return number;
}

taut_status paper_net_bound(double *bound, const char *run, taut_norm norm)
{
    char *path = taut_model_path(run);
    taut_certificate c;
    const taut_status s = path ? taut_certify(&c, path, norm, 0) : taut_no_memory("a path");
    free(path);
    if (s) return s;
    *bound = up_model_rms(c.model, norm, c.lip).v;
    taut_certificate_free(&c);
    return TAUT_OK;
}
