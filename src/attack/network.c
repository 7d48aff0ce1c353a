#include "attack/network.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"

typedef struct {
    taut_pass *pass;
    taut_model *m;
    double *x, *out; /* the whole batch on the host: inputs (or their gradients), and all logits */
} network;

/* Logits of the last question of each example. */
static void forward(void *arg, double *z, const double *x, const uint64_t *key, int64_t n)
{
    network *w = arg;
    const taut_kernels *k = w->m->k;
    const int64_t dim = w->m->in.t * w->m->in.d;
    (void)key; /* nothing is drawn when a model is used */
    for (int64_t e = 0; e < TAUT_NETWORK_BATCH; e++)
        memcpy(w->x + e * dim, x + (e < n ? e : n - 1) * dim, (size_t)dim * sizeof *x);
    taut_pass_shape(w->pass, TAUT_NETWORK_BATCH, w->m->in.t);
    k->put(w->pass->x.data, w->x, TAUT_NETWORK_BATCH * dim);
    taut_pass_run(w->pass);
    const taut_shape s = w->pass->logits.shape;
    k->get(w->out, w->pass->logits.data, taut_len(s));
    for (int64_t e = 0; e < n; e++) memcpy(z + e * s.d, w->out + ((e + 1) * s.t - 1) * s.d, (size_t)s.d * sizeof *z);
}

static void backward(void *arg, double *g, const double *weight, int64_t n)
{
    network *w = arg;
    const taut_kernels *k = w->m->k;
    const taut_shape s = w->pass->logits.shape;
    const int64_t dim = w->m->in.t * w->m->in.d;
    memset(w->out, 0, (size_t)taut_len(s) * sizeof *w->out);
    for (int64_t e = 0; e < n; e++)
        memcpy(w->out + ((e + 1) * s.t - 1) * s.d, weight + e * s.d, (size_t)s.d * sizeof *weight);
    k->put(w->pass->logits.data, w->out, taut_len(s));
    taut_pass_input_grad(w->pass);
    k->get(w->x, w->pass->gx, TAUT_NETWORK_BATCH * dim);
    memcpy(g, w->x, (size_t)(n * dim) * sizeof *g);
}

taut_status taut_network_open(taut_target *t, taut_model *m)
{
    const int64_t dim = m->in.t * m->in.d;
    const bool image = m->embed.rows == 0;
    network *w = taut_calloc(1, sizeof *w);
    *t = (taut_target){ .dim = dim,
                        .classes = m->classes,
                        .batch = TAUT_NETWORK_BATCH,
                        .channels = image ? m->spec.image.channels : 1,
                        .height = image ? m->spec.image.height : m->in.t,
                        .width = image ? m->spec.image.width : m->in.d,
                        .lo = image ? 0 : -INFINITY,
                        .hi = image ? 1 : INFINITY,
                        .arg = w,
                        .forward = forward,
                        .backward = backward };
    if (!w) return taut_no_memory("a model under attack");
    w->m = m;
    taut_status s = taut_pass_create(&w->pass, m, TAUT_NETWORK_BATCH, m->in.t, true);
    if (!s) {
        taut_pass_shape(w->pass, TAUT_NETWORK_BATCH, m->in.t);
        w->pass->run.strict = m->k->elem ==
                              sizeof(double); /* as when it is certified: what misses its tolerance is NaN */
        w->x = taut_malloc((size_t)(TAUT_NETWORK_BATCH * dim) * sizeof *w->x);
        w->out = taut_malloc((size_t)taut_len(w->pass->logits.shape) * sizeof *w->out);
        s = w->x && w->out ? taut_target_ready(t) : taut_no_memory("a model under attack");
    }
    if (s) taut_network_close(t);
    return s;
}

void taut_network_close(taut_target *t)
{
    network *w = t->arg;
    taut_target_done(t);
    t->arg = NULL;
    if (!w) return;
    taut_pass_free(w->pass);
    free(w->x);
    free(w->out);
    free(w);
}

void taut_network_input(const taut_target *t, double *x, taut_input in)
{
    const network *w = t->arg;
    const taut_kernels *k = w->m->k;
    const int64_t d = w->m->in.d;
    if (in.reals) {
        memcpy(x, in.reals, (size_t)t->dim * sizeof *x);
        return;
    }
    for (int64_t i = 0; i < w->m->in.t; i++) k->get(x + i * d, taut_at(k, w->m->embed.value, in.ids[i] * d), d);
}
