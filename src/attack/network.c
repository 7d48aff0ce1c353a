#include "attack/network.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"

typedef struct {
    taut_pass *pass;
    double *out; /* all logits of a batch, on the host */
} lane;

typedef struct {
    taut_model *m;
    int64_t lanes, batch;
    lane lane[];
} network;

/* Logits of the last question of each example. */
static void forward(void *arg, int64_t which, double *z, const double *x, const uint64_t *key, int64_t n)
{
    network *w = arg;
    lane *l = &w->lane[which];
    const taut_kernels *k = w->m->k;
    const int64_t dim = w->m->in.t * w->m->in.d;
    (void)key; /* nothing is drawn when a model is used */
    taut_pass_shape(l->pass, w->batch, w->m->in.t);
    k->put(l->pass->x.data, x, n * dim);
    if (n < w->batch)
        k->copy_rows(taut_at(k, l->pass->x.data, n * dim), dim, taut_at(k, l->pass->x.data, (n - 1) * dim), 0,
                     w->batch - n, dim);
    taut_pass_run(l->pass);
    const taut_shape s = l->pass->logits.shape;
    k->get(l->out, l->pass->logits.data, taut_len(s));
    for (int64_t e = 0; e < n; e++) memcpy(z + e * s.d, l->out + ((e + 1) * s.t - 1) * s.d, (size_t)s.d * sizeof *z);
}

static void backward(void *arg, int64_t which, double *g, const double *weight, int64_t n)
{
    network *w = arg;
    lane *l = &w->lane[which];
    const taut_kernels *k = w->m->k;
    const taut_shape s = l->pass->logits.shape;
    memset(l->out, 0, (size_t)taut_len(s) * sizeof *l->out);
    for (int64_t e = 0; e < n; e++)
        memcpy(l->out + ((e + 1) * s.t - 1) * s.d, weight + e * s.d, (size_t)s.d * sizeof *weight);
    k->put(l->pass->logits.data, l->out, taut_len(s));
    taut_pass_input_grad(l->pass);
    k->get(g, l->pass->gx, n * w->m->in.t * w->m->in.d);
}

static taut_status status(void *arg)
{
    const network *w = arg;
    return w->m->k->read(NULL, NULL, 0);
}

static taut_status lane_open(lane *l, taut_model *m, int64_t batch)
{
    const taut_status s = taut_pass_create(&l->pass, m, batch, m->in.t, true);
    if (s) return s;
    taut_pass_shape(l->pass, batch, m->in.t);
    /* as when it is certified: what misses its tolerance is NaN */
    l->pass->run.phase.kind = m->k->rigorous ? TAUT_PHASE_PROVE : TAUT_PHASE_USE;
    l->out = taut_malloc((size_t)taut_len(l->pass->logits.shape) * sizeof *l->out);
    return l->out ? TAUT_OK : taut_no_memory("a model under attack");
}

/* One a thread, as far as a gigabyte reaches; a device has one queue. */
static int64_t lanes_of(const taut_model *m, int64_t batch)
{
    if (!m->k->host) return 1;
    const double one = (double)taut_pass_len(m, batch, m->in.t, true) * (double)m->k->elem;
    const int64_t most = (int64_t)fmin(0x1p30 / one, taut_threads());
    return most > 1 ? most : 1;
}

taut_status taut_network_open(taut_target *t, taut_model *m)
{
    const bool image = m->embed.rows == 0;
    const int64_t batch = m->k->host ? TAUT_NETWORK_BATCH : TAUT_NETWORK_BATCH_DEVICE, lanes = lanes_of(m, batch);
    network *w = taut_calloc(1, sizeof *w + (size_t)lanes * sizeof *w->lane);
    *t = (taut_target){ .dim = m->in.t * m->in.d,
                        .classes = m->classes,
                        .batch = batch,
                        .lanes = lanes,
                        .channels = image ? m->spec.image.channels : 1,
                        .height = image ? m->spec.image.height : m->in.t,
                        .width = image ? m->spec.image.width : m->in.d,
                        .lo = image ? 0 : -INFINITY,
                        .hi = image ? 1 : INFINITY,
                        .arg = w,
                        .forward = forward,
                        .backward = backward,
                        .status = status };
    if (!w) return taut_no_memory("a model under attack");
    w->m = m;
    w->lanes = lanes, w->batch = batch;
    taut_status s = TAUT_OK;
    for (int64_t i = 0; !s && i < lanes; i++) s = lane_open(&w->lane[i], m, batch);
    if (!s) s = taut_target_ready(t);
    if (s) taut_network_close(t);
    return s;
}

void taut_network_close(taut_target *t)
{
    network *w = t->arg;
    taut_target_done(t);
    t->arg = NULL;
    for (int64_t i = 0; w && i < w->lanes; i++) {
        taut_pass_free(w->lane[i].pass);
        free(w->lane[i].out);
    }
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
