/* The proved constant of a whole model, from token embeddings to logits. */
#include "bound/norm.h"
#include "bound/scalar.h"
#include "model/model.h"

taut_up taut_model_reach(const taut_model *m)
{
    taut_up most = { 0 };
    for (int64_t i = 0; i < m->embed.rows; i++)
        most = up_max(most, up_norm_frobenius(taut_ref_values(&m->embed) + i * m->embed.cols, m->embed.cols));
    return most;
}

bool taut_model_finite(const taut_model *m)
{
    for (int64_t i = 0; i < m->slab; i++)
        if (!isfinite(((const double *)m->values)[i])) return false;
    return true;
}

taut_bound taut_model_bound(const taut_model *m, taut_norm norm)
{
    TAUT_CHECK(m->k->elem == sizeof(double), "bounds are proved on a ref model");
    const taut_region in = { .norm = norm, .tokens = m->spec.context, .size = taut_model_reach(m) };
    taut_bound b = taut_bound_of(m->root, in);
    if (!arithmetic_is_ieee() || !taut_model_finite(m))
        b.lip = UP_NONE; /* also where the weight drops out of every formula */
    return b;
}
