#include "train/average.h"

#include <math.h>

void taut_average_step(taut_trainer *t)
{
    const taut_model *m = t->model;
    const double step = (double)t->clock.step, decay = fmin(t->recipe.train.average, (1 + step) / (10 + step));
    if (!t->optimiser->average) return;
    m->k->axpby(t->optimiser->average, step == 0 ? 1 : 1 - decay, m->values, step == 0 ? 0 : decay, m->slab);
}

void taut_average_show(taut_trainer *t)
{
    const taut_model *m = t->model;
    if (!t->optimiser->average || t->clock.step == 0) return;
    m->k->axpby(m->grads, 1, m->values, 0, m->slab);
    m->k->axpby(m->values, 1, t->optimiser->average, 0, m->slab);
    taut_constrainer_settle(t->constrainer);
}

void taut_average_back(taut_trainer *t)
{
    const taut_model *m = t->model;
    if (!t->optimiser->average || t->clock.step == 0) return;
    m->k->axpby(m->values, 1, m->grads, 0, m->slab);
}
