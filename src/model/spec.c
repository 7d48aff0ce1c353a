#include "model/spec.h"

#include <math.h>

static const int64_t LARGEST = 1 << 24;

double taut_spec_alpha(const taut_model_spec *s)
{
    return s->residual_alpha > 0 ? s->residual_alpha : 1.0 / (2.0 * (double)s->depth);
}

static void read_sizes(taut_model_spec *s, taut_config *cfg)
{
    s->arch = (taut_arch)taut_config_choice(cfg, "model.arch", "gpt|encoder", TAUT_ARCH_GPT);
    s->width = taut_config_int(cfg, "model.width", 128, 1, LARGEST);
    s->depth = taut_config_int(cfg, "model.depth", 2, 1, 128);
    s->heads = taut_config_int(cfg, "model.heads", 4, 1, 4096);
    s->context = taut_config_int(cfg, "model.context", 128, 1, LARGEST);
    s->mlp = taut_config_int(cfg, "model.mlp", 4 * s->width, 1, LARGEST);
}

static void read_blocks(taut_model_spec *s, taut_config *cfg)
{
    const bool encoder = s->arch == TAUT_ARCH_ENCODER;
    s->norm = (taut_norm_kind)taut_config_choice(cfg, "model.norm", "layernorm|rmsnorm|centernorm|none", 0);
    s->place = (taut_place)taut_config_choice(cfg, "model.norm_place", "pre|post", encoder);
    s->norm_eps = taut_config_real(cfg, "model.norm_eps", 1e-5, 0, 1);
    s->embed_norm = taut_config_bool(cfg, "model.embed_norm", encoder && s->norm != TAUT_NORM_NONE);
    s->positions = (taut_pos_kind)taut_config_choice(cfg, "model.positions", "learned|rope|alibi|none", 0);
    s->rope_base = taut_config_real(cfg, "model.rope_base", 10000, 1, 1e12);
    s->bias = taut_config_bool(cfg, "model.bias", true);
    s->tied = taut_config_bool(cfg, "model.tied", true);
    s->head_bias = taut_config_bool(cfg, "model.head_bias", encoder && s->bias);
    s->activation = (taut_curve)taut_config_choice(cfg, "model.activation", "gelu|gelu_tanh|relu|silu|tanh",
                                                   0);
    s->activation_factor = taut_config_real(cfg, "model.activation_factor", 1, 1e-6, 1e6);
    s->convex = taut_config_choice(cfg, "model.residual", "plain|convex", 0);
    s->residual_alpha = taut_config_real(cfg, "model.residual_alpha", 0, 0, 1);
    s->dropout = taut_config_real(cfg, "model.dropout", 0, 0, 0.95);
}

static void read_scales(taut_model_spec *s, taut_config *cfg)
{
    const double head = (double)s->width / (double)s->heads;
    const double scale[] = { 1 / sqrt(head), 1 / head, 1 / (double)s->width };
    const double factor = taut_config_real(cfg, "model.attention_factor", 1, 0, 1e6);
    s->attention_scale = factor * scale[taut_config_choice(cfg, "model.attention_scale",
                                                           "inv_sqrt_head|inv_head|inv_width", 0)];
    s->attention_out = taut_config_real(cfg, "model.attention_out", 1, 0, 1e6);
    s->logit_scale = taut_config_real(cfg, "model.logit_scale", 1, 1e-6, 1e6);
    const bool orthogonal = taut_config_choice(cfg, "model.init", "normal|orthogonal", 0);
    s->init = orthogonal ? TAUT_INIT_ORTHOGONAL : TAUT_INIT_NORMAL;
    s->init_std = taut_config_real(cfg, "model.init_std", orthogonal ? 1 : 0.02, 0, 1e3);
    s->zero_out = taut_config_bool(cfg, "model.zero_out", false);
}

taut_status taut_model_spec_read(taut_model_spec *s, taut_config *cfg)
{
    *s = (taut_model_spec){ 0 };
    read_sizes(s, cfg);
    read_blocks(s, cfg);
    read_scales(s, cfg);
    if (s->width % s->heads)
        return taut_fail(TAUT_BAD_CONFIG, "model.width = %lld is not a multiple of model.heads = %lld",
                         (long long)s->width, (long long)s->heads);
    if (s->positions == TAUT_POS_ROPE && s->width / s->heads % 2)
        return taut_fail(TAUT_BAD_CONFIG,
                         "model.positions = rope needs heads of even width, but width/heads is %lld",
                         (long long)(s->width / s->heads));
    if (s->norm == TAUT_NORM_CENTER && s->width < 2)
        return taut_fail(TAUT_BAD_CONFIG, "model.norm = centernorm needs model.width of at least 2");
    return TAUT_OK;
}
