#include "train/penalty/penalty.h"

taut_status taut_penalty_spec_read(taut_penalty_spec *s, taut_config *cfg)
{
    *s = (taut_penalty_spec){ 0 };
    if (!taut_config_has(cfg, "train.penalty")) return TAUT_OK;
    const int kind = taut_config_choice(cfg, "train.penalty", "none|jasmin|jasmin_exact|specformer", 0);
    s->kind = kind == 0 ? TAUT_NO_PENALTY : kind == 3 ? TAUT_SPECFORMER : TAUT_JASMIN;
    if (s->kind == TAUT_SPECFORMER) {
        s->query = taut_config_real(cfg, "train.penalty_query", 1e-3, 0, 1e6);
        s->key = taut_config_real(cfg, "train.penalty_key", s->query, 0, 1e6);
        s->value = taut_config_real(cfg, "train.penalty_value", s->query, 0, 1e6);
    }
    if (s->kind != TAUT_JASMIN) return TAUT_OK;
    s->weight = taut_config_real(cfg, "train.penalty_weight", 1e-2, 0, 1e6);
    s->jasmin = (taut_jasmin){ .exact = kind == 2,
                               .k = taut_config_int(cfg, "train.penalty_k", 0, 0, TAUT_JASMIN_LARGEST),
                               .mean = taut_config_choice(cfg, "train.penalty_over", "max|mean", 1),
                               .eps = taut_config_real(cfg, "train.penalty_eps", 1e-6, 1e-30, 1) };
    if (s->jasmin.k == 1) return taut_fail(TAUT_BAD_CONFIG, "train.penalty_k = 1 is no penalty: 0, or 2 and more");
    return TAUT_OK;
}
