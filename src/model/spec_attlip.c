/* The keys of model.attention = attlip, l2 and l2_free. */
#include "model/spec.h"

static taut_status check_attlip(const taut_model_spec *s)
{
    const taut_attlip_spec *a = &s->attlip_spec;
    if (s->arch == TAUT_ARCH_GPT)
        return taut_fail(TAUT_BAD_CONFIG,
                         "model.attention = attlip cannot be causal: its gradient at a token sums over all "
                         "that attend to it, the future too; use model.arch = encoder or vit");
    if (s->positions == TAUT_POS_ALIBI)
        return taut_fail(TAUT_BAD_CONFIG,
                         "model.attention = attlip has model.attlip_near in the place of model.positions = alibi");
    if (s->norm != TAUT_NORM_NONE && s->place == TAUT_PLACE_PRE)
        return taut_fail(TAUT_BAD_CONFIG,
                         "model.attention = attlip is the residual itself: use model.norm_place = post or "
                         "model.norm = none");
    if (a->unrolled && (a->steps == 0 || a->solver != TAUT_PROX_DESCENT))
        return taut_fail(TAUT_BAD_CONFIG,
                         "model.attlip_unrolled wants model.attlip_solver = descent and model.attlip_steps above 0");
    if (a->heads * a->head_width > 1 << 20)
        return taut_fail(TAUT_BAD_CONFIG, "model.attlip_head_width = %lld is too much", (long long)a->head_width);
    return TAUT_OK;
}

taut_status taut_spec_read_attlip(taut_model_spec *s, taut_config *cfg)
{
    taut_attlip_spec *a = &s->attlip_spec;
    if (!s->attlip && (s->positions == TAUT_POS_ALIBI || s->positions == TAUT_POS_ROPE))
        return taut_fail(TAUT_BAD_CONFIG, "model.attention = l2 wants model.positions = learned or none");
    if (!s->attlip && s->arch == TAUT_ARCH_GPT)
        return taut_fail(TAUT_BAD_CONFIG,
                         "model.attention = l2 has no causal form here: use model.arch = encoder or vit");
    if (!s->attlip) return TAUT_OK;
    *a = (taut_attlip_spec){ .width = s->width, .heads = s->heads, .init = s->init };
    a->gain = s->init == TAUT_INIT_NORMAL ? 1 / sqrt((double)s->width) : s->init_std;
    const int64_t even = s->width < s->heads ? 1 : s->width / s->heads;
    a->head_width = taut_config_int(cfg, "model.attlip_head_width", even, 1, 1 << 16);
    a->eta = taut_config_real(cfg, "model.attlip_eta", 1, 1e-9, 1e9);
    a->learned = taut_config_bool(cfg, "model.attlip_learned", false);
    a->tol = taut_config_real(cfg, "model.attlip_tol", 1e-5, 1e-12, 1e3);
    a->loose = taut_config_real(cfg, "model.attlip_loose", 1e-3, 0, 1);
    a->slope_tol = taut_config_real(cfg, "model.attlip_slope_tol", 1e-3, 0, 0.5);
    a->solver = (taut_prox_solver)taut_config_choice(cfg, "model.attlip_solver", "lbfgs|newton|descent|barzilai", 0);
    a->steps = (int)taut_config_int(cfg, "model.attlip_steps", 0, 0, 1000);
    a->unrolled = taut_config_bool(cfg, "model.attlip_unrolled", false);
    a->reflected = taut_config_bool(cfg, "model.attlip_reflected", false);
    a->near = taut_config_real(cfg, "model.attlip_near", 0, 0, 1e6);
    a->rope_base = s->positions == TAUT_POS_ROPE ? s->rope_base : 0;
    s->attlip_turn = taut_config_bool(cfg, "model.attlip_turn", false);
    if (a->steps > 0) a->solver = TAUT_PROX_DESCENT;
    return check_attlip(s);
}
