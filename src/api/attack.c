/* Attacks on stored models, held against their certificates. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/call.h"
#include "api/data.h"
#include "api/net.h"
#include "base/alloc.h"
#include "base/join.h"
#include "base/sha256.h"
#include "verdict/siege.h"

struct taut_attacked {
    taut_siege siege;
    taut_net *net;
    char *data, *attacks; /* as they were asked for */
};

static taut_status open_campaign(taut_attacked *a, const taut_attack_options *o)
{
    taut_siege *s = &a->siege;
    const char *norm = o->norm ? o->norm : s->text ? "L2" : "Linf", *eps = o->eps;
    const taut_profile_options p = { .steps = o->steps,
                                     .restarts = o->restarts,
                                     .targets = o->targets,
                                     .queries = o->queries,
                                     .step = o->step_size,
                                     .fixed_start = o->fixed_start != 0 };
    taut_ball_kind kind;
    if (!taut_ball_parse(&kind, norm)) return taut_fail(TAUT_BAD_CALL, "norm is Linf, L2 or L1, not %s", norm);
    if (!eps && s->text) return taut_fail(TAUT_BAD_CALL, "eps is needed: embeddings have no usual radius");
    if (!eps) eps = kind == TAUT_BALL_LINF ? "8/255" : kind == TAUT_BALL_L2 ? "0.5" : "12";
    return taut_campaign_open(&s->c, a->attacks, kind, eps, !s->text, p, o->seed, s->n);
}

static taut_status check_options(const taut_attack_options *o)
{
    const int64_t whole[] = { o->examples, o->steps, o->restarts, o->targets, o->queries, o->batch, o->gallery };
    for (int i = 0; i < 7; i++)
        if (whole[i] < 0 || whole[i] > 100000000)
            return taut_fail(TAUT_BAD_CALL, "an option of the attack is %lld", (long long)whole[i]);
    if (!(o->step_size >= 0 && o->step_size <= 1e9)) return taut_fail(TAUT_BAD_CALL, "step_size is %g", o->step_size);
    return o->join ? taut_join_check(o->join) : TAUT_OK;
}

/* Own examples by their bytes, so that the saved state of others is not taken for theirs. */
static void name_own(char out[80], const taut_examples *x)
{
    char hex[65];
    taut_sha256 h;
    taut_sha256_begin(&h);
    if (x->ids) taut_sha256_add(&h, x->ids, (size_t)(x->n * x->t) * sizeof *x->ids);
    if (x->reals) taut_sha256_add(&h, x->reals, (size_t)(x->n * x->t * x->d) * sizeof *x->reals);
    taut_sha256_add(&h, x->labels, (size_t)x->n * sizeof *x->labels);
    taut_sha256_end(&h, hex);
    snprintf(out, 80, "own %.16s", hex);
}

/* The model, the examples, what a saved state belongs to. */
static taut_status open_siege(taut_attacked *a, const char *model, const char *path, const taut_attack_options *o)
{
    const taut_inputs *x = o->inputs;
    taut_data *data = NULL;
    taut_status s = taut_net_open(&a->net, model,
                                  &(taut_open_options){ .size = sizeof(taut_open_options), .kernels = o->kernels });
    if (!s && !x) s = taut_data_open(&data, a->net, o->data);
    taut_examples from = { .data = data ? data->source : NULL, .n = o->examples ? o->examples : 100 };
    if (x) from = (taut_examples){ .ids = x->ids, .reals = x->reals, .labels = o->labels, .n = x->n, .t = x->t };
    if (!s) s = taut_siege_open(&a->siege, a->net->model, path, &from);
    taut_data_free(data);
    if (s) return s;
    char own[80] = "";
    if (x) name_own(own, &from);
    a->data = taut_strdup(x ? "own" : o->data ? o->data : a->net->data.source);
    a->attacks = taut_strdup(o->attacks ? o->attacks : "aa-standard");
    if (!a->data || !a->attacks) return taut_no_memory("an attack");
    a->siege.data = a->data;
    a->siege.names = a->net->data.class_names;
    /* without certificates nobody looks for contradictions: such results cannot be taken over into a run that does */
    const char *kernels = a->net->model->k->name, *how = o->no_certify ? " --no-certify" : o->runs_on ? " as run" : "";
    snprintf(a->siege.about, sizeof a->siege.about, "%s %.100s, spread, %s%s", a->siege.sha, x ? own : a->data, kernels,
             how);
    if (o->runs_on && strcmp(o->runs_on, "ref") != 0 && !taut_promise_find(o->runs_on))
        return taut_fail(TAUT_BAD_CALL, "no kernels are called \"%s\" (cpu, wide, ref, cuda, cuda64)", o->runs_on);
    if (o->runs_on && strcmp(o->runs_on, kernels) != 0)
        return taut_fail(TAUT_BAD_CALL, "certificates for the kernels %s say nothing of %s, which run here", o->runs_on,
                         kernels);
    return TAUT_OK;
}

taut_status taut_attack_file(taut_attacked **out, const char *model, const taut_attack_options *options)
{
    taut_attack_options o;
    NEED(out);
    *out = NULL;
    NEED(model);
    taut_status s = taut_options_take(&o, sizeof o, options, __func__);
    if (!s) s = check_options(&o);
    if (s) return s;
    taut_attacked *a = taut_calloc(1, sizeof *a);
    char *path = taut_model_path(model);
    s = a && path ? open_siege(a, model, path, &o) : taut_no_memory("an attack");
    free(path);
    if (!s) s = open_campaign(a, &o);
    const taut_siege_way way = { .no_certify = o.no_certify != 0,
                                 .runs_on = o.runs_on,
                                 .folder = o.folder,
                                 .state = o.state,
                                 .join = o.join,
                                 .batch = o.batch,
                                 .gallery = o.gallery,
                                 .told = o.progress,
                                 .arg = o.arg };
    if (!s) s = taut_siege_lead(&a->siege, &way);
    if (s)
        taut_attacked_free(a);
    else
        *out = a;
    return s;
}

void taut_attacked_free(taut_attacked *a)
{
    if (!a) return;
    taut_siege_close(&a->siege);
    taut_net_free(a->net);
    free(a->data);
    free(a->attacks);
    free(a);
}

taut_status taut_attacked_look(const taut_attacked *a, taut_attack_facts *out)
{
    NEED(a);
    NEED(out);
    const taut_siege *s = &a->siege;
    *out = (taut_attack_facts){ s->n,          taut_campaign_clean(&s->c), s->watch.alarms, s->c.eps.count,
                                s->c.profiles, s->radius != NULL };
    return TAUT_OK;
}

static taut_status check_radius(const taut_siege *s, int radius)
{
    if (radius >= 0 && radius < s->c.eps.count) return TAUT_OK;
    return taut_fail(TAUT_BAD_CALL, "radius %d: this attack had %d", radius, s->c.eps.count);
}

taut_status taut_attacked_at(const taut_attacked *a, int radius, taut_attack_radius *out)
{
    NEED(a);
    NEED(out);
    const taut_siege *s = &a->siege;
    const taut_status status = check_radius(s, radius);
    if (status) return status;
    *out = (taut_attack_radius){ s->c.eps.value[radius], taut_campaign_worst(&s->c, radius),
                                 s->radius ? taut_siege_certified(s, radius) : -1 };
    return TAUT_OK;
}

taut_status taut_attacked_one(const taut_attacked *a, int radius, int64_t index, taut_attack_example *out)
{
    NEED(a);
    NEED(out);
    const taut_siege *s = &a->siege;
    const taut_status status = check_radius(s, radius);
    if (status) return status;
    if (index < 0 || index >= s->n)
        return taut_fail(TAUT_BAD_CALL, "example %lld: this attack had %lld", (long long)index, (long long)s->n);
    const double *z = s->z + index * s->target.classes;
    *out = (taut_attack_example){ s->label[index], taut_argmax(z, s->target.classes), 0, INFINITY,
                                  s->radius ? s->radius[index] : 0 };
    for (int p = 0; p < s->c.profiles; p++) {
        if (taut_campaign_by(&s->c, radius, p)[index] < 0) continue;
        out->broken = 1;
        out->distance = fmin(out->distance, taut_campaign_distance(&s->c, radius, p)[index]);
    }
    return TAUT_OK;
}

taut_status taut_attacked_json(const taut_attacked *a, char **json)
{
    NEED(a);
    NEED(json);
    return taut_json_out(json, taut_siege_json(&a->siege, a->attacks), TAUT_OK);
}

taut_status taut_attack_replay(char **json, const char *model, const char *file)
{
    taut_attack_options o = { .examples = 1 };
    NEED(json);
    *json = NULL;
    NEED(model);
    NEED(file);
    cJSON *found = NULL;
    taut_attacked *a = taut_calloc(1, sizeof *a);
    char *path = taut_model_path(model);
    taut_status s = a && path ? open_siege(a, model, path, &o) : taut_no_memory("an attack");
    if (!s) s = taut_siege_replay(&a->siege, file, &found);
    taut_attacked_free(a);
    free(path);
    return taut_json_out(json, found, s);
}
