/* Targets whose exact answers are known, written without the code under test. */
#ifndef ATTACK_TARGETS_H
#define ATTACK_TARGETS_H
#include "attack/profile.h"
#include "base/rng.h"
#include "harness.h"
#include "must.h"

/* z = V r(W x + b) + c, r = ReLU; hidden 0: z = V x + c. */
typedef struct {
    int64_t dim, hidden, classes;
    double *w, *b, *v, *c;
    double *pre;  /* (lanes, batch, hidden) of the last forward */
    double noise; /* added to the logits, by key */
} net;

enum { NET_BATCH = 8, NET_LANES = 3 };

static inline net net_make(int64_t dim, int64_t hidden, int64_t classes)
{
    net m = { dim,
              hidden,
              classes,
              doubles(hidden * dim),
              doubles(hidden),
              doubles(classes * (hidden ? hidden : dim)),
              doubles(classes),
              doubles(NET_LANES * NET_BATCH * hidden),
              0 };
    fill(m.w, hidden * dim), fill(m.b, hidden), fill(m.v, classes * (hidden ? hidden : dim)), fill(m.c, classes);
    return m;
}

static inline void net_free(net *m) { free(m->w), free(m->b), free(m->v), free(m->c), free(m->pre); }

static inline void net_forward(void *arg, int64_t lane, double *z, const double *x, const uint64_t *key, int64_t n)
{
    const net *m = arg;
    const int64_t h = m->hidden ? m->hidden : m->dim;
    double *pre = m->pre + lane * NET_BATCH * m->hidden;
    for (int64_t e = 0; e < n; e++) {
        for (int64_t j = 0; j < m->hidden; j++)
            pre[e * h + j] = m->b[j] + dot(m->w + j * m->dim, x + e * m->dim, m->dim);
        for (int64_t c = 0; c < m->classes; c++) {
            double s = m->c[c];
            for (int64_t j = 0; j < h; j++)
                s += m->v[c * h + j] * (m->hidden ? fmax(pre[e * h + j], 0) : x[e * m->dim + j]);
            if (m->noise > 0 && key) s += m->noise * taut_rng_normal(key[e], (uint64_t)c);
            z[e * m->classes + c] = s;
        }
    }
}

static inline void net_backward(void *arg, int64_t lane, double *g, const double *w, int64_t n)
{
    const net *m = arg;
    const int64_t h = m->hidden ? m->hidden : m->dim;
    const double *pre = m->pre + lane * NET_BATCH * m->hidden;
    memset(g, 0, (size_t)(n * m->dim) * sizeof *g);
    for (int64_t e = 0; e < n; e++)
        for (int64_t j = 0; j < h; j++) {
            double s = 0;
            for (int64_t c = 0; c < m->classes; c++) s += w[e * m->classes + c] * m->v[c * h + j];
            if (!m->hidden)
                g[e * m->dim + j] = s;
            else if (pre[e * h + j] > 0)
                for (int64_t i = 0; i < m->dim; i++) g[e * m->dim + i] += s * m->w[j * m->dim + i];
        }
}

static inline taut_target net_target(net *m, bool boxed, int64_t batch)
{
    taut_target t = { .dim = m->dim,
                      .classes = m->classes,
                      .batch = batch,
                      .lanes = NET_LANES,
                      .lo = boxed ? 0 : -INFINITY,
                      .hi = boxed ? 1 : INFINITY,
                      .arg = m,
                      .forward = net_forward,
                      .backward = net_backward };
    must(taut_target_ready(&t));
    return t;
}

static inline double test_norm(taut_ball_kind kind, const double *d, int64_t n)
{
    double one = 0, most = 0;
    for (int64_t i = 0; i < n; i++) one += fabs(d[i]), most = fmax(most, fabs(d[i]));
    return kind == TAUT_BALL_LINF ? most : kind == TAUT_BALL_L2 ? norm(d, n) : one;
}

/* A hunt on n examples with room for its answers; labels are what the target says. */
typedef struct {
    taut_hunt h;
    double *x, *z;
    int32_t *label;
    uint64_t *id;
} field;

static inline void field_open(field *f, taut_target *t, int64_t n)
{
    *f = (field){ .x = doubles(n * t->dim), .z = doubles(n * t->classes) };
    f->label = calloc((size_t)n, sizeof *f->label);
    f->id = calloc((size_t)n, sizeof *f->id);
    f->h = (taut_hunt){ .target = t, .seed = 3, .n = n, .x = f->x, .z = f->z, .label = f->label, .id = f->id };
    f->h.adv = doubles(n * t->dim), f->h.distance = doubles(n), f->h.broken = calloc((size_t)n, 1);
    for (int64_t e = 0; e < n; e++) f->id[e] = (uint64_t)e;
}

static inline void field_label(field *f)
{
    const taut_target *t = f->h.target;
    taut_target_logits(f->h.target, f->z, f->x, NULL, NULL, f->h.n);
    for (int64_t e = 0; e < f->h.n; e++) f->label[e] = taut_argmax(f->z + e * t->classes, t->classes);
}

static inline void field_close(field *f)
{
    free(f->x), free(f->z), free(f->label), free(f->id), free(f->h.adv), free(f->h.distance), free(f->h.broken);
}

/* Runs a whole profile from scratch; how many it broke. */
static inline int64_t field_attack(field *f, const taut_profile *p)
{
    int64_t count = 0;
    memset(f->h.broken, 0, (size_t)f->h.n);
    for (int i = 0; i < p->attacks; i++) must(taut_attack_run(&f->h, &p->attack[i]));
    for (int64_t e = 0; e < f->h.n; e++) count += f->h.broken[e];
    return count;
}
#endif
