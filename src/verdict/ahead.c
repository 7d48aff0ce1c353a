#include "verdict/ahead.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "model/pass.h"

enum { MOST = 256 };
#define BYTES 2e9 /* of a pass */

static int64_t batch_for(const taut_model *m, const taut_examples *from)
{
    int64_t n = from->n < MOST ? from->n : MOST;
    while (n > 1 && (double)taut_pass_len(m, n, m->in.t, false) * (double)m->k->elem > BYTES) n /= 2;
    return n;
}

/* Room for a batch of inputs, and for all its logits. */
typedef struct {
    int32_t *ids;
    double *reals, *logits;
} room;

static taut_status room_make(room *r, const taut_pass *pass, const taut_examples *from, int64_t batch)
{
    const taut_model *m = pass->m;
    const int64_t questions = taut_plan_of(m->root, (taut_shape){ 1, m->in.t, m->in.d }).out.t;
    *r = (room){ m->embed.rows ? taut_malloc((size_t)(batch * from->t) * sizeof *r->ids) : NULL,
                 m->embed.rows ? NULL : taut_malloc((size_t)(batch * from->t * from->d) * sizeof *r->reals),
                 taut_malloc((size_t)(batch * questions * m->classes) * sizeof *r->logits) };
    return (r->ids || r->reals) && r->logits ? TAUT_OK : taut_no_memory("a batch of examples");
}

static void room_free(room *r) { free(r->ids), free(r->reals), free(r->logits); }

/* Examples first .. first + n - 1. */
static void go(double *out, taut_pass *pass, const room *r, taut_reader *reader, const taut_examples *from,
               int64_t first, int64_t n)
{
    const int64_t len = from->t * (r->ids ? 1 : from->d);
    for (int64_t i = 0; i < n; i++) {
        const taut_input x = taut_reader_get(reader, first + i).x;
        if (r->ids)
            memcpy(r->ids + i * len, x.ids, (size_t)len * sizeof *x.ids);
        else
            memcpy(r->reals + i * len, x.reals, (size_t)len * sizeof *x.reals);
    }
    taut_pass_read(pass, (taut_input){ r->ids, r->reals }, n);
    const taut_shape s = pass->logits.shape;
    pass->m->k->get(r->logits, pass->logits.data, taut_len(s));
    for (int64_t i = 0; i < n; i++)
        memcpy(out + (first + i) * s.d, r->logits + ((i + 1) * s.t - 1) * s.d, (size_t)s.d * sizeof *out);
}

static taut_status fill(taut_ahead *a, taut_model *m, const taut_examples *from)
{
    const int64_t batch = batch_for(m, from);
    taut_pass *pass = NULL;
    taut_reader *reader = NULL;
    room r = { 0 };
    a->logits = taut_malloc((size_t)(from->n * m->classes) * sizeof *a->logits);
    taut_status s = a->logits ? taut_pass_create(&pass, m, batch, m->in.t, false) : taut_no_memory("logits");
    if (!s) s = room_make(&r, pass, from, batch);
    if (!s) s = taut_reader_open(&reader, from);
    for (int64_t i = 0; !s && i < from->n; i += batch) {
        go(a->logits, pass, &r, reader, from, i, from->n - i < batch ? from->n - i : batch);
        s = m->k->read(NULL, NULL, 0);
    }
    taut_reader_free(reader);
    room_free(&r);
    taut_pass_free(pass);
    return s;
}

taut_status taut_ahead_make(taut_ahead *a, const taut_certificate *c, const char *path, const char *table,
                            const taut_examples *from)
{
    const taut_kernels *k = taut_kernels_find(table);
    taut_model *m = NULL;
    *a = (taut_ahead){ .round = UP_NONE };
    if (!k) return TAUT_DEVICE;
    taut_status s = taut_certificate_strays(&a->round, c, table, UP_ZERO);
    if (s || !isfinite(a->round.v) || c->model->spec.headless) return s;
    s = taut_model_open(&m, path, k, false);
    if (!s) s = fill(a, m, from);
    taut_model_free(m);
    if (s) taut_ahead_free(a);
    return s;
}

void taut_ahead_free(taut_ahead *a)
{
    free(a->logits);
    a->logits = NULL;
}
