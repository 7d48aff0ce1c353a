#include "train/constrain/potential.h"

#include <math.h>

#include "bound/norm.h"

int64_t taut_scale_work(const taut_model *m)
{
    int64_t most = 0;
    for (int i = 0; i < m->weights; i++) {
        const taut_param *w = m->weight[i].param->above;
        if (w && w->rows * w->cols > most) most = w->rows * w->cols;
    }
    return most;
}

static void raise_scale(const taut_kernels *k, const taut_param *p, double *work, bool proved)
{
    const taut_param *w = p->above;
    double scale;
    k->get(&scale, p->value, 1);
    k->get(work, w->value, w->rows * w->cols);
    const double norm = proved ? up_norm(work, w->rows, w->cols).v : est_norm(work, w->rows, w->cols);
    const double least = fmax(norm * norm * (1 + 0x1p-20), 0x1p-60); /* W = 0: any positive number */
    if (!isfinite(norm * norm) || scale >= least) return;
    scale = least;
    k->put(p->value, &scale, 1);
}

void taut_scale_raise(taut_model *m, double *work, bool proved)
{
    for (int i = 0; i < m->weights; i++)
        if (m->weight[i].param->above) raise_scale(m->k, m->weight[i].param, work, proved);
}
