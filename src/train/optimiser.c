/* Decoupled weight decay (W *= 1 - lr decay) acts on matrices only.
 * Muon: m = momentum m + (1 - momentum) g;  u = momentum m + (1 - momentum) g (Nesterov);
 *       W -= lr sqrt(rows/cols) orthogonalise(u), so that the update's RMS->RMS norm is lr.
 *       A matrix of several parts (heads) is orthogonalised part by part, each as large as if it were the whole.
 *       Matrices of one shape are orthogonalised side by side, a few at a time, which makes no difference to them.
 *       The head, where it is scaled to fill a target, steps in proportion to its own norm `head`, not to sqrt(rows/cols).
 *       Where matrices are kept orthogonal (polar), u loses its part that leaves them, N - W sym(W^T N), before it is
 *       orthogonalised, and W -= lr orthogonalise(u), whatever its shape.
 *       Everything else gets AdamW: vectors with vector_lr, logits with logits_lr, tables with adam_lr; and so do matrices
 *       whose rows have length 1, with gradients that lose their part along each row. */
#include "train/optimiser.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "train/alike.h"
#include "train/muon.h"

static int64_t work_len(const taut_model *m, const taut_train_spec *t)
{
    int64_t most = 0;
    for (int i = 0; i < m->weights; i++) {
        const taut_param *p = m->weight[i].param;
        const bool muon = t->optimiser == TAUT_MUON && taut_is_matrix(p);
        const int64_t parts = taut_parts_of(p); /* each matrix twice: its step and where it stands */
        const int64_t one = 2 * p->rows * p->cols + parts * taut_muon_work(p->rows / parts, p->cols);
        const int64_t len = p->unit_rows ? taut_sums_len(p->rows) : muon ? taut_side_by_side(m, p) * one : 0;
        if (len > most) most = len;
    }
    return most;
}

int64_t taut_optimiser_len(const taut_model *m, const taut_train_spec *t)
{
    return m->slab * ((t->optimiser == TAUT_SGD ? 1 : 2) + (t->patience > 0) + (t->average > 0)) + work_len(m, t);
}

taut_status taut_optimiser_create(taut_optimiser **out, taut_model *m, const taut_train_spec *t, const taut_ranks *r)
{
    taut_optimiser *o = taut_calloc(1, sizeof *o);
    if (!o) return taut_no_memory("the optimiser");
    *o = (taut_optimiser){ .m = m, .spec = t, .ranks = *r, .owned = taut_owned_by(m, r->rank, r->count) };
    const taut_model mine = taut_owned_weights(m, o->owned);
    const int64_t len = o->owned.hi - o->owned.lo, work = work_len(&mine, t);
    const bool squares = t->optimiser != TAUT_SGD, works = work > 0;
    o->first = taut_reals(m->k, len + 1); /* a rank may own nothing */
    if (squares) o->second = taut_reals(m->k, len + 1);
    if (works) o->work = taut_reals(m->k, work);
    if (t->patience > 0) o->best = taut_reals(m->k, m->slab);
    if (t->average > 0) o->average = taut_reals(m->k, m->slab);
    if (!o->first || (squares && !o->second) || (works && !o->work) || (t->patience > 0 && !o->best) ||
        (t->average > 0 && !o->average)) {
        taut_optimiser_free(o);
        return taut_no_memory("the optimiser's state");
    }
    *out = o;
    return TAUT_OK;
}

void taut_optimiser_free(taut_optimiser *o)
{
    if (!o) return;
    taut_real *slab[] = { o->first, o->second, o->work, o->best, o->average };
    for (int i = 0; i < 5; i++)
        if (slab[i]) o->m->k->release(slab[i]);
    free(o);
}

/* The state of weight w, from its element `first` on. */
static taut_real *state_of(const taut_optimiser *o, const taut_real *slab, const taut_weight *w, int64_t first)
{
    return taut_at(o->m->k, slab, w->offset - o->owned.lo + first);
}

static double adam_lr(const taut_train_spec *t, taut_role role)
{
    if (t->optimiser != TAUT_MUON) return t->lr;
    return role == TAUT_VECTOR ? t->vector_lr : role == TAUT_LOGITS ? t->logits_lr : t->adam_lr;
}

static double adam_decay(const taut_train_spec *t, const taut_param *p) { return taut_is_matrix(p) ? t->decay : 0; }

static bool by_adam(const taut_train_spec *t, const taut_param *p)
{
    return t->optimiser != TAUT_SGD && (t->optimiser != TAUT_MUON || !taut_is_matrix(p));
}

/* Whether the weight behind number i moves as it does: then both are one array. */
static bool joined(const taut_optimiser *o, int i)
{
    const taut_train_spec *t = o->spec;
    if (i + 1 == o->m->weights) return false;
    const taut_param *p = o->m->weight[i].param, *q = o->m->weight[i + 1].param;
    return by_adam(t, q) && !q->unit_rows && adam_lr(t, p->role) == adam_lr(t, q->role) &&
           adam_decay(t, p) == adam_decay(t, q);
}

/* Weight number i and those joined to it, as far as they are ours.  Returns the last of them. */
static int adam_steps(taut_optimiser *o, int i, int64_t step, double factor)
{
    const taut_train_spec *t = o->spec;
    const taut_kernels *k = o->m->k;
    const taut_weight *w = &o->m->weight[i];
    const double lr = adam_lr(t, w->param->role) * factor;
    const taut_adam h = { .lr = lr,
                          .b1 = t->beta1,
                          .b2 = t->beta2,
                          .eps = t->eps,
                          .decay = lr * adam_decay(t, w->param),
                          .c1 = 1 - pow(t->beta1, (double)(step + 1)),
                          .c2 = 1 - pow(t->beta2, (double)(step + 1)) };
    while (joined(o, i)) i++;
    const taut_weight *last = &o->m->weight[i];
    const int64_t lo = taut_owned_of(o->owned, w).lo, hi = last->offset + taut_owned_of(o->owned, last).hi - w->offset;
    k->adamw(taut_at(k, w->param->value, lo), state_of(o, o->first, w, lo), state_of(o, o->second, w, lo),
             taut_at(k, w->param->grad, lo), hi - lo, &h);
    return i;
}

/* u <- u - W sym(W^T u), or u - sym(u W^T) W where W is wide, for `count` of them: the part of u along which W stays
 * orthogonal. */
static void to_tangent(const taut_kernels *k, taut_real *u, const taut_real *w, taut_real *gram, int64_t count,
                       int64_t rows, int64_t cols)
{
    const bool wide = rows <= cols;
    const int64_t side = wide ? rows : cols, other = wide ? cols : rows;
    k->gemm_each(gram, gram, wide ? u : w, wide ? w : u, count, side, side, other, !wide, wide, 1, 0);
    for (int turned = 0; turned < 2; turned++)
        k->gemm_each(u, u, wide ? gram : w, wide ? w : gram, count, rows, cols, side, wide && turned, !wide && turned,
                     -0.5, 1);
}

/* The gradient loses, row by row, its part along the row of length 1. */
static void to_sphere(taut_optimiser *o, const taut_param *p)
{
    const taut_kernels *k = o->m->k;
    taut_span rest = { o->work, taut_sums_len(p->rows), k->elem };
    taut_sum *along = taut_take_sums(&rest, p->rows);
    k->dot(along, p->grad, p->cols, p->value, p->cols, p->rows, p->cols);
    k->axpby_by(p->grad, p->cols, (taut_factor){ -1, along }, p->value, p->cols, (taut_factor){ 1, NULL }, p->rows,
                p->cols);
}

/* Matrices of one shape, and what Muon keeps of them. */
typedef struct {
    taut_real *w[TAUT_SIDE_BY_SIDE], *grad[TAUT_SIDE_BY_SIDE], *momentum[TAUT_SIDE_BY_SIDE];
} muon_group;

/* Which of them is the head; -1: none. */
static int filled_head(const taut_weight *const chosen[], int count)
{
    while (--count >= 0 && strcmp(chosen[count]->path, "head.weight") != 0) {}
    return count;
}

/* All matrices like weight number i, the first of them. */
static void muon_steps(taut_optimiser *o, int i, double lr)
{
    const taut_kernels *k = o->m->k;
    const taut_param *p = o->m->weight[i].param;
    const taut_weight *chosen[TAUT_SIDE_BY_SIDE];
    const int most = taut_side_by_side(o->m, p);
    const int64_t len = p->rows * p->cols, parts = taut_parts_of(p);
    const double mu = o->spec->momentum, keep = 1 - lr * o->spec->decay;
    const double size = o->polar ? 1 : sqrt((double)p->rows / (double)p->cols);
    taut_real *u = o->work, *w = taut_at(k, u, most * len), *rest = taut_at(k, w, most * len);
    taut_real *step[TAUT_SIDE_BY_SIDE], *copy[TAUT_SIDE_BY_SIDE];
    taut_lay_out(k, copy, w, most, len);
    for (int count; (count = taut_next_alike(chosen, o->m, &i, p, most)) > 0;) {
        muon_group g;
        taut_lay_out(k, step, u, count, len);
        for (int j = 0; j < count; j++) {
            g.w[j] = chosen[j]->param->value, g.grad[j] = chosen[j]->param->grad;
            g.momentum[j] = state_of(o, o->first, chosen[j], 0);
        }
        k->axpby_all(g.momentum, 1 - mu, g.grad, mu, count, len);
        k->axpby_all(step, 1 - mu, g.grad, 0, count, len);
        k->axpby_all(step, mu, g.momentum, 1, count, len);
        if (o->polar) {
            k->axpby_all(copy, 1, g.w, 0, count, len);
            to_tangent(k, u, w, rest, count, p->rows, p->cols);
        }
        taut_muon_orthogonalise(k, u, rest, count * parts, p->rows / parts, p->cols, o->spec->polynomial);
        const int filled = o->head > 0 ? filled_head(chosen, count) : -1;
        if (filled >= 0) {
            k->axpby(g.w[filled], -lr * o->head, step[filled], keep, len);
            count--, g.w[filled] = g.w[count], step[filled] = step[count];
        }
        k->axpby_all(g.w, -lr * size, step, keep, count, len);
    }
}

static void step_all(taut_optimiser *o, int64_t step, double factor)
{
    const taut_train_spec *t = o->spec;
    const taut_kernels *k = o->m->k;
    for (int i = 0; i < o->m->weights; i++) {
        const taut_weight *w = &o->m->weight[i];
        const taut_owned part = taut_owned_of(o->owned, w);
        const bool matrix = taut_is_matrix(w->param);
        if (w->param->unit_rows) to_sphere(o, w->param);
        if (t->optimiser == TAUT_SGD)
            k->sgd(taut_at(k, w->param->value, part.lo), state_of(o, o->first, w, part.lo),
                   taut_at(k, w->param->grad, part.lo), part.hi - part.lo, t->lr * factor, t->momentum,
                   matrix ? t->lr * factor * t->decay : 0);
        else if (by_adam(t, w->param))
            i = adam_steps(o, i, step, factor);
        else if (taut_first_alike(o->m, i))
            muon_steps(o, i, t->lr * factor);
    }
}

void taut_optimiser_step(taut_optimiser *o, int64_t step, double factor)
{
    taut_model owned = taut_owned_weights(o->m, o->owned);
    taut_optimiser mine = *o;
    mine.m = &owned;
    step_all(&mine, step, factor);
}
