/* A PLASH to be judged: its weights in double, by name, the same module with the deterministic reference in the place of the
 * sketch, and both without their mixer.  Weights are drawn (the paper's figure 4), or those of a trained module. */
#include "certify/plash_head.h"
#include "base/float32.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/rng.h"
#include "bound/norm.h"

typedef struct taut_named {
    char path[96];
    double *w;
} taut_named;

/* A tour of the weights; every module of the same spec is toured in the same order. */
typedef struct {
    taut_plash_head *s;
    int next;
    int64_t at;
    const taut_plash_case *c; /* how weights are drawn */
    const taut_kernels *k;    /* of the module whose weights are copied */
    const char *prefix;       /* what stands before a path in s->m */
} tour;

static void count(taut_param *p, const char *path, void *arg)
{
    tour *t = arg;
    (void)path;
    t->next++;
    t->at += p->rows * p->cols;
}

static void own(taut_param *p, const char *path, void *arg)
{
    tour *t = arg;
    taut_named *one = &t->s->named[t->next++];
    snprintf(one->path, sizeof one->path, "%s", path);
    one->w = t->s->weights + t->at;
    p->value = (taut_real *)one->w;
    t->at += p->rows * p->cols;
}

static void draw(taut_param *p, const char *path, void *arg)
{
    tour *t = arg;
    double *w = t->s->named[t->next++].w;
    (void)path;
    const double range = t->c->xavier ? sqrt(6.0 / (double)(p->rows + p->cols)) : 1 / sqrt((double)p->cols);
    const uint64_t key = taut_rng_key(t->c->seed, TAUT_RNG_INIT, (uint64_t)(w - t->s->weights));
    for (int64_t i = 0; i < p->rows * p->cols; i++) {
        if (p->init == TAUT_INIT_ONE || p->init == TAUT_INIT_ZERO)
            w[i] = p->init == TAUT_INIT_ONE;
        else if (p->role == TAUT_TABLE)
            w[i] = taut_rng_normal(key, (uint64_t)i) * p->gain;
        else
            w[i] = range * (2 * taut_rng_unit(key, (uint64_t)i) - 1);
    }
}

static void copy(taut_param *p, const char *path, void *arg)
{
    tour *t = arg;
    (void)path;
    t->k->get(t->s->named[t->next++].w, p->value, p->rows * p->cols);
}

static double *find(const taut_plash_head *s, const char *prefix, const char *path)
{
    const size_t skip = strlen(prefix);
    for (int i = 0; i < s->names; i++)
        if (strncmp(s->named[i].path, prefix, skip) == 0 && strcmp(s->named[i].path + skip, path) == 0)
            return s->named[i].w;
    return NULL;
}

static void share(taut_param *p, const char *path, void *arg)
{
    const tour *t = arg;
    p->value = (taut_real *)find(t->s, t->prefix, path);
    TAUT_CHECK(p->value, "plash: a weight of its own in the twin");
}

/* ||[W_1 .. W_K]|| */
static double norm_out(const taut_plash_head *s)
{
    const taut_plash_spec *p = &s->spec;
    int64_t all = 0, at = 0;
    for (int i = 0; i < p->degrees; i++) all += p->size[i];
    double *w = taut_malloc((size_t)(p->width * all + 1) * sizeof *w);
    for (int i = 0; w && i < p->degrees; at += p->size[i++]) {
        char path[48];
        snprintf(path, sizeof path, "degree%d.weight", p->degree[i]);
        const double *one = find(s, "middle.sketch.", path);
        for (int64_t r = 0; r < p->width; r++)
            memcpy(w + r * all + at, one + r * p->size[i], (size_t)p->size[i] * sizeof *w);
    }
    const double norm = w ? up_norm(w, p->width, all).v : INFINITY;
    free(w);
    return norm;
}

static void find_layer(taut_plash_head *s, int i)
{
    const taut_plash_spec *p = &s->spec;
    taut_mixer_layer *l = &s->layer[i];
    char prefix[32];
    snprintf(prefix, sizeof prefix, "middle.mixer%d.", i);
    const struct {
        const char *name;
        const double **to;
    } all[] = { { "attn.q.weight", &l->wq }, { "attn.k.weight", &l->wk }, { "attn.v.weight", &l->wv },
                { "attn.o.weight", &l->wo }, { "norm1.weight", &l->g1 },  { "norm1.bias", &l->be1 },
                { "mlp.in.weight", &l->w1 }, { "mlp.in.bias", &l->b1 },   { "mlp.out.weight", &l->w2 },
                { "mlp.out.bias", &l->b2 },  { "norm2.weight", &l->g2 },  { "norm2.bias", &l->be2 } };
    for (size_t j = 0; j < sizeof all / sizeof *all; j++) *all[j].to = find(s, prefix, all[j].name);
    l->groups = p->groups, l->width = p->width, l->hidden = p->hidden, l->eps = taut_float32(p->norm_eps);
    l->heads = p->mixer_heads ? p->mixer_heads : p->heads;
    taut_mixer_norms(l);
}

/* What is known once the weights are there. */
static taut_status know(taut_plash_head *s)
{
    const long before = taut_alloc_failures();
    const int64_t d = s->spec.width, dh = d / s->spec.heads;
    s->prototypes = find(s, "", "prototypes");
    s->beta = find(s, "", "middle.sketch.beta");
    s->wk = find(s, "", "kg.weight");
    s->wv = find(s, "", "vg.weight");
    for (int64_t h = 0; h < s->spec.heads; h++) {
        s->norm_k[h] = up_norm(s->wk + h * dh * d, dh, d).v;
        s->norm_v[h] = up_norm(s->wv + h * dh * d, dh, d).v;
    }
    for (int i = 0; i < s->spec.mixers; i++) find_layer(s, i);
    s->norm_out = norm_out(s);
    return taut_alloc_lasted(before, "the norms of a PLASH head");
}

static taut_status finish(taut_plash_head **out)
{
    const taut_status status = know(*out);
    if (status) {
        taut_plash_head_free(*out);
        *out = NULL;
    }
    return status;
}

bool taut_plash_comparable(const taut_plash_spec *p)
{
    const int64_t in = p->features ? p->features : 2 * p->width, heads = p->mixer_heads ? p->mixer_heads : p->heads;
    bool wide = true; /* the reference keeps all entries apart */
    for (int i = 0; i < p->degrees; i++) wide = wide && p->size[i] >= in;
    return wide && p->mixers <= TAUT_PLASH_LAYERS && heads <= TAUT_MIXER_HEADS;
}

/* The modules, and room for the weights; s->named says where each is. */
static taut_status build(taut_plash_head **out, const taut_plash_spec *p)
{
    taut_plash_head *s = taut_calloc(1, sizeof *s);
    *out = NULL;
    if (!taut_plash_comparable(p)) {
        free(s);
        return taut_fail(TAUT_BAD_CONFIG, "such a PLASH has no deterministic reference, or too large a mixer");
    }
    if (!s) return taut_no_memory("a PLASH head");
    taut_plash_spec fixed = *p, front = *p;
    fixed.fixed = true;
    front.mixers = 0;
    *s = (taut_plash_head){
        .spec = *p, .k = taut_kernels_find("ref"), .m = taut_plash(p), .fixed = taut_plash(&fixed)
    };
    s->front = taut_plash_middle(&front);
    front.fixed = true;
    s->front_fixed = taut_plash_middle(&front);
    tour t = { .s = s };
    if (s->m) taut_params(s->m, count, &t);
    s->weights = taut_malloc((size_t)(t.at + 1) * sizeof *s->weights);
    s->named = taut_calloc((size_t)(t.next + 1), sizeof *s->named);
    s->norm_k = taut_calloc((size_t)(2 * p->heads), sizeof *s->norm_k);
    if (!s->m || !s->fixed || !s->front || !s->front_fixed || !s->weights || !s->named || !s->norm_k) {
        taut_plash_head_free(s);
        return taut_no_memory("a PLASH head");
    }
    s->norm_v = s->norm_k + p->heads;
    s->names = t.next;
    taut_params(s->m, own, &(tour){ .s = s });
    taut_params(s->fixed, share, &(tour){ .s = s, .prefix = "" });
    taut_params(s->front, share, &(tour){ .s = s, .prefix = "middle." });
    taut_params(s->front_fixed, share, &(tour){ .s = s, .prefix = "middle." });
    taut_module *const all[] = { s->m, s->fixed, s->front, s->front_fixed };
    taut_status status = TAUT_OK;
    for (int i = 0; !status && i < 4; i++) status = taut_module_place(all[i], s->k);
    if (status)
        taut_plash_head_free(s);
    else
        *out = s;
    return status;
}

taut_status taut_plash_head_new(taut_plash_head **out, const taut_plash_case *c)
{
    taut_plash_spec p = { .width = c->width,
                          .heads = 1,
                          .groups = c->groups,
                          .tau = c->tau,
                          .degrees = c->degrees,
                          .floor = c->floor,
                          .sketch_tau = c->tau_g,
                          .seed = c->seed,
                          .mixers = c->mixers,
                          .mixer_heads = c->mixer_heads,
                          .hidden = c->hidden,
                          .norm_eps = c->norm_eps,
                          .scale = 1 / sqrt((double)c->width),
                          .out = 1,
                          .init = TAUT_INIT_NORMAL,
                          .gain = 1,
                          .out_gain = 1 };
    memcpy(p.degree, c->degree, sizeof p.degree);
    memcpy(p.size, c->size, sizeof p.size);
    const taut_status status = build(out, &p);
    if (status) return status;
    (*out)->nq = c->nq, (*out)->nk = c->nk, (*out)->eta = c->eta;
    taut_params((*out)->m, draw, &(tour){ .s = *out, .c = c });
    return finish(out);
}

taut_status taut_plash_head_of(taut_plash_head **out, const taut_module *m, const taut_plash_spec *p,
                               const taut_kernels *k, int64_t nq, int64_t nk, double eta)
{
    const taut_status status = build(out, p);
    if (status) return status;
    (*out)->nq = nq, (*out)->nk = nk, (*out)->eta = eta;
    taut_params((taut_module *)m, copy, &(tour){ .s = *out, .k = k }); /* who only reads changes nothing */
    return finish(out);
}

void taut_plash_head_free(taut_plash_head *s)
{
    if (!s) return;
    taut_module_free(s->m);
    taut_module_free(s->fixed);
    taut_module_free(s->front);
    taut_module_free(s->front_fixed);
    free(s->weights);
    free(s->named);
    free(s->norm_k);
    free(s);
}
