/* Decoupled weight decay (W *= 1 - lr decay) acts on matrices only.
 * Muon: m = momentum m + (1 - momentum) g;  u = momentum m + (1 - momentum) g (Nesterov);
 *       W -= lr sqrt(rows/cols) orthogonalise(u), so that the update's RMS->RMS norm is lr.
 *       A matrix of several parts (heads) is orthogonalised part by part, each as large as if it were the whole.
 *       The head, where it is scaled to fill a target, steps in proportion to its own norm `head`, not to sqrt(rows/cols).
 *       Everything else gets AdamW: vectors with vector_lr, tables and logits with adam_lr. */
#include "train/optimiser.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "train/muon.h"

static int64_t work_len(const taut_model *m, const taut_train_spec *t)
{
    int64_t most = 0;
    for (int i = 0; t->optimiser == TAUT_MUON && i < m->weights; i++) {
        const taut_param *p = m->weight[i].param;
        const int64_t len = p->role == TAUT_MATRIX ? p->rows * p->cols + taut_muon_work(p->rows, p->cols) : 0;
        if (len > most) most = len;
    }
    return most;
}

int64_t taut_optimiser_len(const taut_model *m, const taut_train_spec *t)
{
    return m->slab * ((t->optimiser == TAUT_SGD ? 1 : 2) + (t->patience > 0)) + work_len(m, t);
}

taut_status taut_optimiser_create(taut_optimiser **out, taut_model *m, const taut_train_spec *t)
{
    taut_optimiser *o = taut_calloc(1, sizeof *o);
    if (!o) return taut_no_memory("the optimiser");
    *o = (taut_optimiser){ .m = m, .spec = t };
    const bool squares = t->optimiser != TAUT_SGD, muon = t->optimiser == TAUT_MUON;
    o->first = taut_reals(m->k, m->slab);
    if (squares) o->second = taut_reals(m->k, m->slab);
    if (muon) o->work = taut_reals(m->k, work_len(m, t));
    if (t->patience > 0) o->best = taut_reals(m->k, m->slab);
    if (!o->first || (squares && !o->second) || (muon && !o->work) || (t->patience > 0 && !o->best)) {
        taut_optimiser_free(o);
        return taut_no_memory("the optimiser's state");
    }
    *out = o;
    return TAUT_OK;
}

void taut_optimiser_free(taut_optimiser *o)
{
    if (!o) return;
    taut_real *slab[] = { o->first, o->second, o->work, o->best };
    for (int i = 0; i < 4; i++)
        if (slab[i]) o->m->k->release(slab[i]);
    free(o);
}

static void adam_step(taut_optimiser *o, const taut_weight *w, int64_t step, double lr)
{
    const taut_train_spec *t = o->spec;
    const taut_kernels *k = o->m->k;
    const taut_adam h = { .lr = lr,
                          .b1 = t->beta1,
                          .b2 = t->beta2,
                          .eps = t->eps,
                          .decay = w->param->role == TAUT_MATRIX ? lr * t->decay : 0,
                          .c1 = 1 - pow(t->beta1, (double)(step + 1)),
                          .c2 = 1 - pow(t->beta2, (double)(step + 1)) };
    k->adamw(w->param->value, taut_at(k, o->first, w->offset), taut_at(k, o->second, w->offset), w->param->grad,
             taut_weight_len(w), &h);
}

static void muon_step(taut_optimiser *o, const taut_weight *w, double lr)
{
    const taut_kernels *k = o->m->k;
    const taut_param *p = w->param;
    const int64_t len = taut_weight_len(w), parts = p->parts > 1 ? p->parts : 1;
    const bool filled = o->head > 0 && strcmp(w->path, "head.weight") == 0;
    const double mu = o->spec->momentum, size = filled ? o->head : sqrt((double)p->rows / (double)p->cols);
    taut_real *m = taut_at(k, o->first, w->offset), *u = o->work;
    k->axpby(m, 1 - mu, p->grad, mu, len);
    k->axpby(u, 1 - mu, p->grad, 0, len);
    k->axpby(u, mu, m, 1, len);
    for (int64_t i = 0; i < parts; i++)
        taut_muon_orthogonalise(k, taut_at(k, u, i * (len / parts)), taut_at(k, u, len), p->rows / parts, p->cols,
                                o->spec->polynomial);
    k->axpby(p->value, -lr * size, u, 1 - lr * o->spec->decay, len);
}

static double adam_lr(const taut_train_spec *t, taut_role role)
{
    if (t->optimiser != TAUT_MUON) return t->lr;
    return role == TAUT_VECTOR ? t->vector_lr : t->adam_lr;
}

void taut_optimiser_step(taut_optimiser *o, int64_t step, double factor)
{
    const taut_train_spec *t = o->spec;
    const taut_kernels *k = o->m->k;
    for (int i = 0; i < o->m->weights; i++) {
        const taut_weight *w = &o->m->weight[i];
        const bool matrix = w->param->role == TAUT_MATRIX;
        if (t->optimiser == TAUT_SGD)
            k->sgd(w->param->value, taut_at(k, o->first, w->offset), w->param->grad, taut_weight_len(w), t->lr * factor,
                   t->momentum, matrix ? t->lr * factor * t->decay : 0);
        else if (t->optimiser == TAUT_MUON && matrix)
            muon_step(o, w, t->lr * factor);
        else
            adam_step(o, w, step, adam_lr(t, w->param->role) * factor);
    }
}
