/* The norm that a model is best spoken of in. */
#include "base/config.h"
#include "certify/certify.h"

/* The norm of the target that the model was trained under; without a target, flat for images and tokens for all
 * others. */
static taut_status own_norm(taut_norm *out, const taut_model *m)
{
    taut_config *cfg = NULL;
    const taut_status s = taut_config_parse(&cfg, m->recipe, "the model's recipe");
    if (s) return s;
    const bool target = taut_config_real(cfg, "constrain.target_lipschitz", 0, 0, 1e300) > 0;
    const bool flat = target ? taut_config_choice(cfg, "constrain.norm", "tokens|flat", 0) == 1 : taut_model_sees(m);
    *out = flat ? TAUT_NORM_FLAT : TAUT_NORM_TOKENS;
    taut_config_free(cfg);
    return TAUT_OK;
}

taut_status taut_certificate_prove_own(taut_certificate *c, const char *path, double rows)
{
    taut_certificate other;
    taut_norm norm = TAUT_NORM_TOKENS;
    taut_status s = own_norm(&norm, c->model);
    c->norm = norm;
    const bool one = c->model->in.t == 1 &&
                     taut_plan_of(c->model->root, (taut_shape){ 1, 1, c->model->in.d }).out.t == 1;
    if (!s) s = taut_certificate_prove(c, rows);
    if (s || !one) return s;
    s = taut_certify_rows(&other, path, norm == TAUT_NORM_FLAT ? TAUT_NORM_TOKENS : TAUT_NORM_FLAT, c->room.v, rows);
    if (s) return s;
    const bool better = other.lip.v < c->lip.v;
    taut_certificate_free(better ? c : &other);
    if (better) *c = other;
    return TAUT_OK;
}
