#include "forecast_noise.h"

#include <stdlib.h>

#include "base/alloc.h"
#include "bound/norm.h"
#include "model.h"

/* The longest row of all windows. */
static taut_status longest(taut_up *most, const taut_source *data, taut_split split)
{
    const taut_task *k = &data->task;
    double *x = taut_malloc((size_t)(k->t * k->d + k->asked * k->reals) * sizeof *x);
    if (!x) return taut_no_memory("a window");
    *most = UP_ZERO;
    for (int64_t i = 0; i < taut_source_count(data, split); i++) {
        data->ops->get(data, (taut_slot){ .reals = x, .wanted = x + k->t * k->d }, split, i);
        for (int64_t t = 0; t < k->t; t++) *most = up_max(*most, up_norm_frobenius(x + t * k->d, k->d));
    }
    free(x);
    return TAUT_OK;
}

bool forecast_noise_beaten(const forecast_noise *n) { return n->found > up_add(n->moves, n->slack).v; }

taut_status forecast_noise_prove(forecast_noise *n, const char *model, const taut_source *data, taut_split split)
{
    cli_model m;
    taut_up reach = UP_NONE;
    taut_status s = longest(&reach, data, split);
    if (s) return s;
    s = cli_model_open(&m, model, taut_kernels_find("ref"), 0);
    if (s) return s;
    const taut_up noise = up_exact(n->noise);
    const taut_region in = { .norm = TAUT_NORM_TOKENS, .tokens = m.model->in.t, .size = up_add(reach, noise) };
    const taut_bound b = taut_bound_of(m.model->root, in);
    n->reach = reach.v;
    n->moves = taut_model_finite(m.model) ? up_mul(b.lip, noise) : UP_NONE;
    /* two computed forecasts, and noise added to rows: each sum is off by half a unit in the last place */
    n->slack = up_add(up_ldexp(b.out.round, 1), up_mul(b.lip, up_mul((taut_up){ 0x1p-53 }, in.size)));
    cli_model_close(&m);
    return forecast_noise_find(n, model, data, split);
}
