#include "attack/alarm.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/number.h"
#include "model/safetensors.h"

/* Each difference, square, sum and root rounds by at most 2^-53 of itself: (n + 4) 2^-53 in all, doubled. */
double taut_alarm_distance(const double *x, const double *y, int64_t n)
{
    double sum = 0;
    for (int64_t i = 0; i < n; i++) sum += (x[i] - y[i]) * (x[i] - y[i]);
    const double d = sqrt(sum) * (1 + (double)(n + 8) * 0x1p-52) + 0x1p-500; /* squares below 2^-1022 are lost */
    return isnan(d) ? INFINITY : d;
}

taut_status taut_alarm_check(taut_alarm *out, taut_target *ref, const double *x, const double *adv, int32_t predicted,
                             double radius, double slack)
{
    *out = TAUT_ALARM_QUIET;
    if (!(taut_alarm_distance(x, adv, ref->dim) < radius)) return TAUT_OK;
    double *z = taut_malloc((size_t)ref->classes * sizeof *z);
    if (!z) return taut_no_memory("a row of logits");
    taut_target_logits(ref, z, adv, NULL, NULL, 1);
    const int32_t class = taut_argmax(z, ref->classes);
    const bool other = class >= 0 && class != predicted && z[class] - z[predicted] > slack;
    *out = other ? TAUT_ALARM_RINGS : TAUT_ALARM_ROUNDING;
    free(z);
    return TAUT_OK;
}

static taut_status fetch(void *arg, double *dst, int64_t first, int64_t count)
{
    memcpy(dst, (const double *)arg + first, (size_t)count * sizeof *dst);
    return TAUT_OK;
}

enum { FIGURES = 10 };
static const char *const keys[FIGURES] = {
    "taut.model", "taut.attack", "taut.norm",      "taut.eps",    "taut.example",
    "taut.seed",  "taut.label",  "taut.predicted", "taut.radius", "taut.distance"
};

static taut_status save(const taut_reproducer *r, const char *path)
{
    char text[FIGURES][72];
    taut_st_meta meta[FIGURES];
    snprintf(text[0], sizeof text[0], "%s", r->model);
    snprintf(text[1], sizeof text[1], "%s", r->attack);
    snprintf(text[2], sizeof text[2], "%s", r->norm);
    snprintf(text[3], sizeof text[3], "%s", r->eps);
    const long long whole[] = { r->example, r->seed, r->label, r->predicted };
    for (int i = 0; i < 4; i++) snprintf(text[4 + i], sizeof text[0], "%lld", whole[i]);
    taut_number_print(text[8], r->radius);
    taut_number_print(text[9], r->distance);
    for (int i = 0; i < FIGURES; i++) meta[i] = (taut_st_meta){ keys[i], text[i] };
    const taut_st_entry entries[] = {
        { .name = "x", .dtype = "F64", .rank = 1, .shape = { r->dim }, .fetch = fetch, .arg = r->x },
        { .name = "adv", .dtype = "F64", .rank = 1, .shape = { r->dim }, .fetch = fetch, .arg = r->adv },
    };
    return taut_safetensors_write(path, entries, 2, meta, FIGURES);
}

static bool read_figures(taut_reproducer *r, const taut_safetensors *st)
{
    const char *text[FIGURES];
    int64_t whole[4];
    for (int i = 0; i < FIGURES; i++)
        if (!(text[i] = taut_safetensors_meta(st, keys[i]))) return false;
    snprintf(r->model, sizeof r->model, "%s", text[0]);
    snprintf(r->attack, sizeof r->attack, "%s", text[1]);
    snprintf(r->norm, sizeof r->norm, "%s", text[2]);
    snprintf(r->eps, sizeof r->eps, "%s", text[3]);
    for (int i = 0; i < 4; i++)
        if (!taut_number_int(&whole[i], text[4 + i])) return false;
    r->example = whole[0], r->seed = whole[1], r->label = (int32_t)whole[2], r->predicted = (int32_t)whole[3];
    return taut_number_real(&r->radius, text[8]) && taut_number_real(&r->distance, text[9]);
}

taut_status taut_reproducer_load(taut_reproducer *r, const char *path)
{
    taut_safetensors *st = NULL;
    *r = (taut_reproducer){ .dim = 0 };
    taut_status s = taut_safetensors_open(&st, path);
    if (s) return s;
    const taut_st_tensor *x = taut_safetensors_find(st, "x"), *adv = taut_safetensors_find(st, "adv");
    if (!x || !adv || x->count != adv->count || x->count < 1 || !read_figures(r, st))
        s = taut_fail(TAUT_BAD_FILE, "%s is no reproducer of an attack", path);
    if (!s) {
        r->dim = x->count;
        r->x = taut_malloc((size_t)r->dim * sizeof *r->x);
        r->adv = taut_malloc((size_t)r->dim * sizeof *r->adv);
        s = r->x && r->adv ? taut_safetensors_read(st, x, r->x, 0, r->dim) : taut_no_memory("a reproducer");
    }
    if (!s) s = taut_safetensors_read(st, adv, r->adv, 0, r->dim);
    taut_safetensors_close(st);
    if (s) taut_reproducer_free(r);
    return s;
}

void taut_reproducer_free(taut_reproducer *r)
{
    free(r->x);
    free(r->adv);
    r->x = r->adv = NULL;
}

static taut_status ring(taut_watch *w, const taut_campaign_part *p, int64_t e)
{
    const taut_campaign *c = w->c;
    const int64_t dim = w->ref->dim, example = p->first + e;
    const int by = taut_campaign_by(c, p->eps, p->profile)[example];
    taut_reproducer r = { .example = example,
                          .seed = (int64_t)c->seed,
                          .label = w->label[example],
                          .predicted = w->predicted[example],
                          .radius = w->radius[example],
                          .distance = taut_alarm_distance(p->x + e * dim, p->adv + e * dim, dim),
                          .dim = dim,
                          .x = (double *)p->x + e * dim,
                          .adv = (double *)p->adv + e * dim };
    snprintf(r.model, sizeof r.model, "%s", w->model);
    snprintf(r.attack, sizeof r.attack, "%s", c->profile[p->profile].attack[by].name);
    snprintf(r.norm, sizeof r.norm, "%s", taut_ball_name(c->kind));
    snprintf(r.eps, sizeof r.eps, "%s", c->eps.text[p->eps]);
    w->alarms++;
    if (!w->folder) return TAUT_OK;
    snprintf(w->saved, sizeof w->saved, "%s/contradiction-%d-%d-%lld.safetensors", w->folder, p->eps, p->profile,
             (long long)example);
    return save(&r, w->saved);
}

taut_status taut_watch_part(void *watch, const taut_campaign_part *p)
{
    taut_watch *w = watch;
    for (int64_t e = 0; w->ref && e < p->count; e++) {
        const int64_t example = p->first + e, dim = w->ref->dim;
        if (!p->broken[e]) continue;
        taut_alarm a = TAUT_ALARM_QUIET;
        taut_status s = taut_alarm_check(&a, w->ref, p->x + e * dim, p->adv + e * dim, w->predicted[example],
                                         w->radius[example], w->slack);
        const bool rings = a == TAUT_ALARM_RINGS || (w->as_run && a == TAUT_ALARM_ROUNDING);
        if (!s && rings) s = ring(w, p, e);
        if (s) return s;
        w->rounding += a == TAUT_ALARM_ROUNDING && !rings;
    }
    return TAUT_OK;
}
