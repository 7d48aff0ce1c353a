#include "attack/campaign.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"

int8_t *taut_campaign_by(const taut_campaign *c, int eps, int profile)
{
    return c->by + ((int64_t)eps * c->profiles + profile) * c->n;
}

double *taut_campaign_distance(const taut_campaign *c, int eps, int profile)
{
    return c->distance + ((int64_t)eps * c->profiles + profile) * c->n;
}

static taut_status parse_profiles(taut_campaign *c, const char *attacks, taut_profile_options o)
{
    for (const char *at = attacks;;) {
        char name[32] = "";
        const size_t len = strcspn(at, ",");
        if (c->profiles == TAUT_CAMPAIGN_PROFILES)
            return taut_fail(TAUT_BAD_CONFIG, "more than %d attacks", TAUT_CAMPAIGN_PROFILES);
        memcpy(name, at, len < sizeof name ? len : sizeof name - 1);
        const taut_status s = taut_profile_find(&c->profile[c->profiles], name, c->kind, o);
        if (s) return s;
        c->profiles++;
        if (!at[len]) return TAUT_OK;
        at += len + 1;
    }
}

taut_status taut_campaign_open(taut_campaign *c, const char *attacks, taut_ball_kind kind, const char *eps, bool boxed,
                               taut_profile_options o, uint64_t seed, int64_t n)
{
    *c = (taut_campaign){ .kind = kind, .seed = seed, .n = n };
    taut_status s = parse_profiles(c, attacks, o);
    if (!s) s = taut_eps_parse(&c->eps, eps, kind, boxed);
    if (s) return s;
    const size_t all = (size_t)(c->eps.count * c->profiles) * (size_t)n;
    c->by = taut_malloc(all + 1);
    c->distance = taut_calloc(all + 1, sizeof *c->distance);
    if (!c->by || !c->distance) {
        taut_campaign_close(c);
        return taut_no_memory("the results of an attack");
    }
    memset(c->by, TAUT_UNTRIED, all);
    return TAUT_OK;
}

void taut_campaign_close(taut_campaign *c)
{
    free(c->by);
    free(c->distance);
    c->by = NULL;
    c->distance = NULL;
}

/* One profile on one part: attacks in turn, each on what the ones before left. */
static taut_status run_part(taut_campaign *c, taut_hunt *h, int eps, int profile, int64_t first)
{
    const taut_profile *p = &c->profile[profile];
    int8_t *by = taut_campaign_by(c, eps, profile) + first;
    double *distance = taut_campaign_distance(c, eps, profile) + first;
    for (int64_t e = 0; e < h->n; e++) {
        const bool right = taut_argmax(h->z + e * h->target->classes, h->target->classes) == h->label[e];
        h->broken[e] = !right;
        by[e] = right ? TAUT_HELD : TAUT_WRONG;
    }
    for (int i = 0; i < p->attacks; i++) {
        const taut_status s = taut_attack_run(h, &p->attack[i]);
        if (s) return s;
        for (int64_t e = 0; e < h->n; e++) {
            if (!h->broken[e] || by[e] != TAUT_HELD) continue;
            by[e] = (int8_t)i;
            distance[e] = h->distance[e];
        }
    }
    for (int64_t e = 0; e < h->n; e++) h->broken[e] = by[e] >= 0;
    return TAUT_OK;
}

static bool part_done(const taut_campaign *c, int eps, int profile, int64_t first, int64_t count)
{
    const int8_t *by = taut_campaign_by(c, eps, profile) + first;
    for (int64_t e = 0; e < count; e++)
        if (by[e] == TAUT_UNTRIED) return false;
    return true;
}

typedef struct {
    double *adv, *distance;
    bool *broken;
    uint64_t *id;
} buffers;

static taut_status run_one(taut_campaign *c, taut_target *t, const double *x, const double *z, const int32_t *label,
                           taut_campaign_part p, taut_campaign_seen seen, void *arg, const buffers *b)
{
    for (int64_t e = 0; e < p.count; e++) b->id[e] = (uint64_t)(p.first + e);
    taut_hunt h = { .target = t,
                    .ball = { c->kind, c->eps.value[p.eps], t->lo, t->hi },
                    .seed = c->seed,
                    .n = p.count,
                    .x = x + p.first * t->dim,
                    .z = z + p.first * t->classes,
                    .label = label + p.first,
                    .id = b->id,
                    .adv = b->adv,
                    .distance = b->distance,
                    .broken = b->broken };
    const taut_status s = run_part(c, &h, p.eps, p.profile, p.first);
    p.x = h.x, p.adv = h.adv, p.broken = h.broken;
    return !s && seen ? seen(arg, &p) : s;
}

static taut_status get_buffers(buffers *b, const taut_target *t, int64_t batch)
{
    *b = (buffers){ .adv = taut_malloc((size_t)(batch * t->dim + 1) * sizeof *b->adv),
                    .distance = taut_malloc((size_t)(batch + 1) * sizeof *b->distance),
                    .broken = taut_malloc((size_t)batch + 1),
                    .id = taut_malloc((size_t)(batch + 1) * sizeof *b->id) };
    return b->adv && b->distance && b->broken && b->id ? TAUT_OK : taut_no_memory("an attack");
}

static void free_buffers(const buffers *b) { free(b->adv), free(b->distance), free(b->broken), free(b->id); }

static int64_t in_a_row(const taut_campaign *c, int64_t batch) { return (c->n + batch - 1) / batch; }

int64_t taut_campaign_parts(const taut_campaign *c, int64_t batch)
{
    return (int64_t)c->eps.count * c->profiles * in_a_row(c, batch);
}

taut_campaign_part taut_campaign_part_at(const taut_campaign *c, int64_t part, int64_t batch)
{
    const int64_t row = part / in_a_row(c, batch), first = part % in_a_row(c, batch) * batch;
    return (taut_campaign_part){ .eps = (int)(row / c->profiles),
                                 .profile = (int)(row % c->profiles),
                                 .first = first,
                                 .count = c->n - first < batch ? c->n - first : batch };
}

taut_status taut_campaign_run_part(taut_campaign *c, taut_target *t, const double *x, const double *z,
                                   const int32_t *label, taut_campaign_part p, taut_campaign_seen seen, void *arg)
{
    buffers b;
    taut_status s = get_buffers(&b, t, p.count);
    if (!s) s = run_one(c, t, x, z, label, p, seen, arg, &b);
    if (!s) s = taut_target_status(t); /* also where nobody was left to attack */
    free_buffers(&b);
    return s;
}

taut_status taut_campaign_run(taut_campaign *c, taut_target *t, const double *x, const double *z, const int32_t *label,
                              int64_t batch, taut_campaign_seen seen, void *arg)
{
    buffers b;
    if (batch > c->n) batch = c->n;
    taut_status s = get_buffers(&b, t, batch);
    for (int64_t i = 0; !s && batch && i < taut_campaign_parts(c, batch); i++) {
        const taut_campaign_part p = taut_campaign_part_at(c, i, batch);
        if (!part_done(c, p.eps, p.profile, p.first, p.count)) s = run_one(c, t, x, z, label, p, seen, arg, &b);
    }
    if (!s) s = taut_target_status(t);
    free_buffers(&b);
    return s;
}

int64_t taut_campaign_left(const taut_campaign *c, int eps, int profile, int upto)
{
    const int8_t *by = taut_campaign_by(c, eps, profile);
    int64_t left = 0;
    for (int64_t e = 0; e < c->n; e++) left += by[e] == TAUT_HELD || by[e] > upto;
    return left;
}

int64_t taut_campaign_worst(const taut_campaign *c, int eps)
{
    int64_t left = 0;
    for (int64_t e = 0; e < c->n; e++) {
        bool held = true;
        for (int p = 0; p < c->profiles; p++) held = held && taut_campaign_by(c, eps, p)[e] == TAUT_HELD;
        left += held;
    }
    return left;
}

int64_t taut_campaign_clean(const taut_campaign *c)
{
    int64_t right = 0;
    for (int64_t e = 0; e < c->n; e++) right += c->by[e] != TAUT_WRONG;
    return right;
}
