#include "verdict/siege.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/sha256.h"
#include "bound/up.h"
#include "certify/example.h"
#include "verdict/crew.h"

/* Inputs as reals (a text's embeddings, an image's pixels), their labels and their logits. */
static taut_status read_examples(taut_siege *s, const taut_examples *from)
{
    const int64_t dim = s->target.dim;
    const size_t n = (size_t)from->n;
    taut_reader *reader = NULL;
    s->n = from->n;
    s->text = s->model->embed.rows > 0;
    s->x = taut_malloc(n * (size_t)dim * sizeof *s->x);
    s->z = taut_malloc(n * (size_t)s->target.classes * sizeof *s->z);
    s->label = taut_malloc(n * sizeof *s->label);
    const taut_status status = s->x && s->z && s->label ? taut_reader_open(&reader, from) : taut_no_memory("examples");
    for (int64_t e = 0; !status && e < s->n; e++) {
        const taut_one one = taut_reader_get(reader, e);
        if (one.x.ids)
            taut_network_input(&s->target, s->x + e * dim, one.x);
        else
            memcpy(s->x + e * dim, one.x.reals, (size_t)dim * sizeof *s->x);
        s->label[e] = one.target;
    }
    taut_reader_free(reader);
    if (!status) taut_target_logits(&s->target, s->z, s->x, NULL, NULL, s->n);
    return status;
}

taut_status taut_siege_open(taut_siege *s, taut_model *m, const char *path, taut_examples *from)
{
    uint64_t bytes;
    *s = (taut_siege){ .model = m, .path = taut_strdup(path) };
    taut_status status = s->path ? taut_sha256_file(s->sha, &bytes, path) : taut_no_memory("a path");
    if (!status && m->spec.arch == TAUT_ARCH_ENCODER)
        status = taut_fail(TAUT_BAD_CONFIG, "%s is an encoder: attacked are classes and next tokens", path);
    if (!status && m->spec.arch == TAUT_ARCH_FORECASTER)
        status = taut_fail(TAUT_BAD_CONFIG, "%s is a forecaster: attacked are classes and next tokens", path);
    if (!status) status = taut_network_open(&s->target, m);
    if (!status) status = taut_examples_settle(from, m);
    if (!status) status = read_examples(s, from);
    return status;
}

static taut_status certify_one(taut_hand *h, int64_t e, void *siege)
{
    taut_siege *s = siege;
    const taut_input x = { NULL, s->x + e * s->target.dim }; /* a float32 embedding is exact in double */
    const taut_example found = taut_example_certify(&s->cert, h->pass, x, s->label[e], h->logits);
    s->radius[e] = found.radius.v;
    s->predicted[e] = found.predicted;
    return TAUT_OK;
}

taut_status taut_siege_certify(taut_siege *s, double room, const taut_siege_way *way)
{
    taut_status status = taut_certify(&s->cert, s->path, TAUT_NORM_FLAT, room);
    if (!status && way->runs_on) status = taut_certificate_run_on(&s->cert, way->runs_on);
    if (status) return status;
    if (!isfinite(s->cert.lip.v)) {
        s->why =
            "no finite Lipschitz constant is proved for this model, so nothing is certified (taut certify says where)";
        return TAUT_OK;
    }
    s->radius = taut_malloc((size_t)s->n * sizeof *s->radius);
    s->predicted = taut_malloc((size_t)s->n * sizeof *s->predicted);
    taut_crew_shared shared = { .folder = NULL };
    const taut_crew crew = { .c = &s->cert,
                             .n = s->n,
                             .each = certify_one,
                             .arg = s,
                             .told = way->told,
                             .told_arg = way->arg,
                             .shared = way->join ? &shared : NULL };
    status = s->radius && s->predicted ? TAUT_OK : taut_no_memory("certificates of the examples");
    if (!status && way->join) status = taut_siege_share(&shared, s, way);
    if (!status) status = taut_crew_work(&crew);
    if (way->join) taut_crew_shared_free(&shared);
    return status ? status : taut_network_open(&s->ref, s->cert.model);
}

void taut_siege_close(taut_siege *s)
{
    taut_campaign_close(&s->c);
    taut_network_close(&s->ref);
    taut_certificate_free(&s->cert);
    taut_network_close(&s->target);
    cJSON_Delete(s->gallery);
    void *all[] = { s->path, s->x, s->z, s->label, s->radius, s->predicted };
    for (int i = 0; i < 6; i++) free(all[i]);
}

/* |d|_2 <= |d|_1 and |d|_2 <= sqrt(dim) |d|_inf. */
double taut_siege_l2(const taut_siege *s, int eps)
{
    const taut_up e = up_exact(s->c.eps.value[eps]);
    return s->c.kind == TAUT_BALL_LINF ? up_mul(up_sqrt(up_int(s->target.dim)), e).v : e.v;
}

double taut_siege_slack(const taut_siege *s) { return up_mul((taut_up){ 2 }, s->cert.round).v; }

int64_t taut_siege_certified(const taut_siege *s, int eps)
{
    int64_t good = 0;
    for (int64_t e = 0; e < s->n; e++) good += s->predicted[e] == s->label[e] && s->radius[e] > taut_siege_l2(s, eps);
    return good;
}

/* On the first 64 examples: what is to be warned of shows on a few. */
static taut_status warn_before(taut_siege *s)
{
    const int64_t few = s->n < 64 ? s->n : 64;
    taut_status status = TAUT_OK;
    for (int p = 0; !status && p < s->c.profiles; p++)
        status = taut_warn_before(&s->warnings, &s->target, &s->c.profile[p], s->x, s->label, few, s->c.seed);
    return status;
}

static void warn_after(taut_siege *s)
{
    for (int e = 0; e < s->c.eps.count; e++)
        for (int p = 0; p < s->c.profiles; p++) {
            int64_t broken[TAUT_PROFILE_ATTACKS] = { 0 };
            const int8_t *by = taut_campaign_by(&s->c, e, p);
            for (int64_t i = 0; i < s->n; i++)
                if (by[i] >= 0) broken[by[i]]++;
            taut_warn_after(&s->warnings, &s->c.profile[p], broken, s->n);
        }
}

typedef struct {
    taut_siege *siege;
    const taut_siege_way *way;
} leading;

/* After each part of the campaign: its successes are held against the certificates and shown in the gallery, the state
 * is saved, the caller is told. */
static taut_status part_done(void *arg, const taut_campaign_part *p)
{
    const leading *l = arg;
    taut_siege *s = l->siege;
    const taut_campaign *c = &s->c;
    taut_status status = taut_watch_part(&s->watch, p);
    taut_gallery_see(s, p);
    if (!status && l->way->state) status = taut_campaign_save(c, s->about, s->watch.alarms, l->way->state);
    const double done = ((double)(p->eps * c->profiles + p->profile) + (double)(p->first + p->count) / (double)c->n) /
                        (double)(c->eps.count * c->profiles);
    if (!status && l->way->told && l->way->told(done, l->way->arg)) status = taut_fail(TAUT_BAD_CALL, "stopped");
    return status;
}

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static taut_status attack_alone(taut_siege *s, const taut_siege_way *way)
{
    const double start = now();
    leading l = { s, way };
    s->target.forwards = s->target.backwards = 0;
    const taut_status status = taut_campaign_run(&s->c, &s->target, s->x, s->z, s->label, way->batch ? way->batch : 256,
                                                 part_done, &l);
    s->seconds = now() - start;
    return status;
}

taut_status taut_siege_lead(taut_siege *s, const taut_siege_way *way)
{
    double room = 0;
    taut_status status = TAUT_OK;
    if (way->gallery && s->text) return taut_fail(TAUT_BAD_CONFIG, "a gallery is for images: %s reads texts", s->path);
    if (way->join && (way->gallery || way->state))
        return taut_fail(TAUT_BAD_CONFIG, "a shared attack keeps no %s: its folder is the state",
                         way->gallery ? "gallery" : "state of its own");
    s->shown = way->gallery;
    s->gallery = cJSON_CreateArray();
    /* no certified radius is above the room, and it must be above the move to count: hence a millionth more */
    for (int i = 0; i < s->c.eps.count; i++) room = fmax(room, taut_siege_l2(s, i) * (1 + 1e-6));
    s->watch = (taut_watch){ .c = &s->c, .label = s->label, .model = s->sha, .folder = way->folder };
    if (way->state && taut_file_exists(way->state))
        status = taut_campaign_load(&s->c, s->about, &s->watch.alarms, way->state);
    if (!status && way->no_certify) s->why = "it was not asked for";
    if (!status && !s->why) status = taut_siege_certify(s, room, way);
    if (status) return status;
    if (s->radius) {
        s->watch.ref = &s->ref, s->watch.radius = s->radius, s->watch.predicted = s->predicted;
        s->watch.slack = taut_siege_slack(s);
        s->watch.as_run = way->runs_on != NULL;
    }
    status = warn_before(s);
    if (!status) status = way->join ? taut_siege_join_attack(s, way) : attack_alone(s, way);
    if (!status) warn_after(s);
    return status;
}
