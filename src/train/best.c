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

taut_status taut_best_try(taut_trainer *t)
{
    taut_model *m = t->model;
    bool shrunk;
    if (!t->optimiser->best) return TAUT_OK;
    copy(m, m->grads, m->values);
    const taut_status s = t->enforcer ? taut_enforcer_run(t->enforcer, m, &shrunk) : TAUT_OK;
    if (!s && t->enforcer) m->k->put(m->values, (const double *)t->enforcer->twin->values, m->slab);
    return s;
}

void taut_best_show(taut_trainer *t)
{
    taut_model *m = t->model;
    if (!t->optimiser->best) return;
    copy(m, m->grads, m->values);
    if (t->clock.best_step > 0) copy(m, m->values, t->optimiser->best);
}

void taut_best_back(taut_trainer *t)
{
    if (t->optimiser->best) copy(t->model, t->model->values, t->model->grads);
}
