#include "train/best.h"

static void copy(const taut_model *m, taut_real *to, const taut_real *from) { m->k->axpby(to, 1, from, 0, m->slab); }

/* NaN is never better. */
void taut_best_see(taut_trainer *t, double loss)
{
    taut_clock *c = &t->clock;
    if (!t->optimiser->best) return;
    if (c->best_step > 0 && !(loss < c->best_loss)) {
        c->waited++;
        return;
    }
    c->best_step = c->step, c->waited = 0, c->best_loss = loss;
    copy(t->model, t->optimiser->best, t->model->values);
}

bool taut_best_over(const taut_trainer *t)
{
    const int64_t patience = t->recipe.train.patience;
    return patience > 0 && t->clock.waited >= patience;
}

void taut_best_show(taut_trainer *t, bool back)
{
    taut_model *m = t->model;
    if (!t->optimiser->best || t->clock.best_step == 0) return;
    if (!back) copy(m, m->grads, m->values);
    copy(m, m->values, back ? m->grads : t->optimiser->best);
}
