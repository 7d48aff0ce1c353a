#include "model/spec.h"

#include <math.h>

static const int64_t LARGEST = 1 << 24;

double taut_spec_alpha(const taut_model_spec *s)
{
    return s->residual_alpha > 0 ? s->residual_alpha : 1.0 / (2.0 * (double)s->depth);
}

const char taut_arch_names[] = "gpt|encoder|mlp|vit|forecaster|classifier";

const char *taut_arch_name(taut_arch arch)
{
    static const char *const name[] = { "gpt", "encoder", "mlp", "vit", "forecaster", "classifier" };
    return name[arch];
}

bool taut_arch_reads_images(taut_arch arch) { return arch == TAUT_ARCH_MLP || arch == TAUT_ARCH_VIT; }
bool taut_arch_reads_tokens(taut_arch arch) { return arch <= TAUT_ARCH_ENCODER || arch == TAUT_ARCH_CLASSIFIER; }
/* One answer per example: a ViT, a classifier of texts. */
static bool pools(taut_arch arch) { return arch == TAUT_ARCH_VIT || arch == TAUT_ARCH_CLASSIFIER; }

static void read_classifier(taut_model_spec *s, taut_config *cfg)
{
    s->classes = taut_config_int(cfg, "model.classes", 2, 2, 1 << 20);
    s->pool_mean = true;
    if (taut_config_has(cfg, "model.pool")) s->pool_mean = taut_config_choice(cfg, "model.pool", "mean|class", 0) == 0;
}

static void read_sizes(taut_model_spec *s, taut_config *cfg)
{
    s->width = taut_config_int(cfg, "model.width", 128, 1, LARGEST);
    s->depth = taut_config_int(cfg, "model.depth", 2, 1, 128);
    s->heads = taut_config_int(cfg, "model.heads", 4, 1, 4096);
    if (taut_arch_reads_tokens(s->arch)) s->context = taut_config_int(cfg, "model.context", 128, 1, LARGEST);
    s->mlp = taut_config_int(cfg, "model.mlp", 4 * s->width, 1, LARGEST);
}

void taut_spec_read_activation(taut_model_spec *s, taut_config *cfg)
{
    const int curve = taut_config_choice(cfg, "model.activation", "gelu|gelu_tanh|relu|silu|tanh|abs|maxmin", 0);
    s->maxmin = curve == TAUT_ABS + 1;
    s->activation = s->maxmin ? TAUT_RELU : (taut_curve)curve;
    s->activation_factor = taut_config_real(cfg, "model.activation_factor", 1, 1e-6, 1e6);
}

void taut_spec_read_init(taut_model_spec *s, taut_config *cfg)
{
    static const taut_init init[] = { TAUT_INIT_NORMAL, TAUT_INIT_ORTHOGONAL, TAUT_INIT_SPECTRAL };
    s->logit_scale = taut_config_real(cfg, "model.logit_scale", 1, 1e-6, 1e6);
    s->init = init[taut_config_choice(cfg, "model.init", "normal|orthogonal|spectral", 0)];
    const double small = s->arch == TAUT_ARCH_FORECASTER ? 1 / sqrt(3 * (double)s->width)
                                                         : 0.02; /* as PyTorch's linear */
    s->init_std = taut_config_real(cfg, "model.init_std", s->init == TAUT_INIT_NORMAL ? small : 1, 0, 1e3);
    s->zero_out = taut_config_bool(cfg, "model.zero_out", false);
}

static void read_blocks(taut_model_spec *s, taut_config *cfg)
{
    const bool encoder = s->arch == TAUT_ARCH_ENCODER;
    s->norm = (taut_norm_kind)taut_config_choice(cfg, "model.norm", "layernorm|rmsnorm|centernorm|none", 0);
    s->place = (taut_place)taut_config_choice(cfg, "model.norm_place", "pre|post",
                                              encoder || s->arch == TAUT_ARCH_FORECASTER);
    s->norm_eps = taut_config_real(cfg, "model.norm_eps", 1e-5, 0, 1);
    s->embed_norm = taut_config_bool(cfg, "model.embed_norm", encoder && s->norm != TAUT_NORM_NONE);
    s->positions = TAUT_POS_NONE;
    if (s->arch != TAUT_ARCH_FORECASTER)
        s->positions = (taut_pos_kind)taut_config_choice(cfg, "model.positions", "learned|rope|alibi|none", 0);
    s->rope_base = taut_config_real(cfg, "model.rope_base", 10000, 1, 1e12);
    s->bias = taut_config_bool(cfg, "model.bias", true);
    if (s->arch <= TAUT_ARCH_ENCODER) s->tied = taut_config_bool(cfg, "model.tied", true);
    s->head_bias = taut_config_bool(cfg, "model.head_bias", s->arch != TAUT_ARCH_GPT && s->bias);
    taut_spec_read_activation(s, cfg);
    const int residual = taut_config_choice(cfg, "model.residual", "plain|convex|channel", 0);
    s->convex = residual == 1;
    s->channel = residual == 2;
    s->residual_alpha = taut_config_real(cfg, "model.residual_alpha", 0, 0, 1);
    s->dropout = taut_config_real(cfg, "model.dropout", 0, 0, 0.95);
}

/* The scale of logits as the recipe has it: some kinds of attention have one of their own. */
typedef struct {
    int by; /* 0: 1 / sqrt(head) */
    double factor;
} logits;

static logits read_scales(taut_model_spec *s, taut_config *cfg)
{
    const double head = (double)s->width / (double)s->heads;
    const double scale[] = { 1 / sqrt(head), 1 / head, 1 / (double)s->width };
    const logits l = { .factor = taut_config_real(cfg, "model.attention_factor", 1, 0, 1e6),
                       .by = taut_config_choice(cfg, "model.attention_scale", "inv_sqrt_head|inv_head|inv_width", 0) };
    s->attention_scale = l.factor * scale[l.by];
    s->attention_out = taut_config_real(cfg, "model.attention_out", 1, 0, 1e6);
    taut_spec_read_init(s, cfg);
    return l;
}

/* Keys of other architectures are asked for only where a recipe names them: all other recipes stay as they were. */
static void read_others(taut_model_spec *s, taut_config *cfg)
{
    if (taut_config_has(cfg, "model.droppath")) s->droppath = taut_config_real(cfg, "model.droppath", 0, 0, 0.95);
    if (taut_config_has(cfg, "model.mlp_block"))
        s->mlp_block = (taut_block_kind)taut_config_choice(cfg, "model.mlp_block", "mlp|potential|sll|fold", 0);
    const bool named = taut_config_has(cfg, "model.attention");
    const int kind = named ? taut_config_choice(cfg, "model.attention", taut_attention_names, 0) : 0;
    const taut_site site = taut_spec_site(s, s->arch == TAUT_ARCH_GPT, 0, 0);
    taut_attention_choose(&s->attention, taut_attention_kind_at(kind));
    taut_attention_read(&s->attention, &site, cfg, true);
    s->attention_blocks = s->depth;
    if (taut_config_has(cfg, "model.attention_blocks"))
        s->attention_blocks = taut_config_int(cfg, "model.attention_blocks", s->depth, 0, s->depth);
    if (taut_config_has(cfg, "model.last_attention")) {
        const int last = taut_config_choice(cfg, "model.last_attention", taut_attention_names, 0);
        taut_attention_choose(&s->last, taut_attention_kind_at(last));
        taut_attention_read(&s->last, &site, cfg, true);
        s->last_blocks = taut_config_int(cfg, "model.last_blocks", 1, 1, s->depth);
    }
    if (taut_config_has(cfg, "model.first_residual"))
        s->bare_first = !taut_config_bool(cfg, "model.first_residual", true);
    if (pools(s->arch) && taut_config_has(cfg, "model.unit_head"))
        s->unit_head = taut_config_bool(cfg, "model.unit_head", false);
    if (s->arch == TAUT_ARCH_VIT && taut_config_has(cfg, "model.first_fold"))
        s->bare_patches = !taut_config_bool(cfg, "model.first_fold", true);
    if (taut_config_has(cfg, "model.mlp_residual")) s->bare_mlp = !taut_config_bool(cfg, "model.mlp_residual", true);
}

/* What stands behind the blocks of an encoder. */
static taut_status read_end(taut_model_spec *s, taut_config *cfg)
{
    const bool pooled = taut_config_has(cfg, "model.pool");
    if (taut_config_has(cfg, "model.transform")) s->bare_head = !taut_config_bool(cfg, "model.transform", true);
    if (taut_config_has(cfg, "model.final_norm"))
        s->final_norm = taut_config_bool(cfg, "model.final_norm", s->final_norm);
    if (taut_config_has(cfg, "model.head")) s->headless = taut_config_choice(cfg, "model.head", "tokens|none", 0) == 1;
    if (pooled) s->pool = (taut_pool_kind)taut_config_choice(cfg, "model.pool", "none|mean|class", 0);
    if (s->headless && s->logit_scale != 1)
        return taut_fail(TAUT_BAD_CONFIG, "model.logit_scale is for logits, and model.head = none has none");
    if (s->pool == TAUT_POOL_NONE || s->headless) return TAUT_OK;
    return taut_fail(TAUT_BAD_CONFIG, "model.pool is for model.head = none: a head for tokens reads every token");
}

/* Hidden layers behind the pool, with a curve of their own if asked (BERT's pooler has tanh). */
static taut_status read_layers(taut_model_spec *s, taut_config *cfg)
{
    const bool layers = taut_config_has(cfg, "model.head_hidden");
    if (taut_config_has(cfg, "model.head_activation")) {
        s->head_bends = true;
        s->head_activation = (taut_curve)taut_config_choice(cfg, "model.head_activation",
                                                            "gelu|gelu_tanh|relu|silu|tanh|abs", 0);
        if (!layers)
            return taut_fail(TAUT_BAD_CONFIG,
                             "model.head_activation would change nothing: there is no model.head_hidden");
    }
    return layers ? taut_spec_read_hidden(s, cfg, "model.head_hidden") : TAUT_OK;
}

/* A key that would change nothing is refused, unless it says what would be so without it: stored recipes have every key.
 * A forecaster's decoder asks its encoder with softmax, whatever its attention. */
static taut_status check_idle(const taut_model_spec *s, logits l)
{
    const bool bare = s->norm == TAUT_NORM_NONE;
    const bool own = !(s->attention.can & TAUT_CAN_SCALE) && s->arch != TAUT_ARCH_FORECASTER;
    const struct {
        bool idle;
        const char *key, *why;
    } keys[] = {
        { own && l.by != 0, "attention_scale", "this model.attention has a scale of its own, or none" },
        { own && l.factor != 1, "attention_factor", "this model.attention has a scale of its own, or none" },
        { own && s->attention_out != 1, "attention_out", "this model.attention has a factor of its own, or none" },
        { s->positions != TAUT_POS_ROPE && s->rope_base != 10000, "rope_base", "it is for model.positions = rope" },
        { !s->convex && !s->channel && s->residual_alpha != 0, "residual_alpha",
          "it is for model.residual = convex and channel" },
        { bare && s->embed_norm, "embed_norm", "there is no model.norm" },
        { s->arch == TAUT_ARCH_FORECASTER && s->embed_norm, "embed_norm", "a forecaster has none there" },
        { (bare || s->norm == TAUT_NORM_CENTER) && s->norm_eps != 1e-5, "norm_eps",
          "it is for model.norm = layernorm and rmsnorm" },
    };
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        if (keys[i].idle)
            return taut_fail(TAUT_BAD_CONFIG, "model.%s would change nothing: %s", keys[i].key, keys[i].why);
    return TAUT_OK;
}

/* What the kind of attention cannot do, and what it asks of the rest of the model. */
static taut_status check_attention(taut_model_spec *s, const taut_site *site)
{
    const char *name = s->attention.kind->name;
    const bool residual = s->attention.can & TAUT_IS_RESIDUAL;
    if (s->attention.can & TAUT_IS_FORECAST && s->arch != TAUT_ARCH_FORECASTER)
        return taut_fail(TAUT_BAD_CONFIG, "model.attention = %s is for model.arch = forecaster", name);
    const taut_status able = taut_attention_check(&s->attention, site);
    if (able) return able;
    if (residual && s->norm != TAUT_NORM_NONE && s->place == TAUT_PLACE_PRE)
        return taut_fail(TAUT_BAD_CONFIG,
                         "model.attention = %s is the residual itself: use model.norm_place = post or "
                         "model.norm = none",
                         name);
    if (residual && s->bare_first)
        return taut_fail(TAUT_BAD_CONFIG,
                         "model.attention = %s is the residual itself: model.first_residual = false cannot be", name);
    return TAUT_OK;
}

/* A second kind stands before the other one, so it has to be a layer by itself. */
static taut_status check_last(taut_model_spec *s, const taut_site *site)
{
    if (!s->last.kind) return TAUT_OK;
    if (site->causal && !(s->last.can & TAUT_CAN_CAUSAL))
        return taut_fail(TAUT_BAD_CONFIG, "model.last_attention = %s cannot be causal, and model.arch = gpt is",
                         s->last.kind->name);
    if (!(s->last.can & TAUT_IS_RESIDUAL) || s->last.kind == s->attention.kind || s->norm != TAUT_NORM_NONE)
        return taut_fail(TAUT_BAD_CONFIG,
                         "model.last_attention is for a kind that is the residual itself (attlip), another than "
                         "model.attention, and for model.norm = none");
    return taut_attention_check(&s->last, site);
}

/* What a model cannot do. */
static taut_status check_others(const taut_model_spec *s)
{
    const bool fold = s->mlp_block == TAUT_BLOCK_FOLD, residual_layer = s->mlp_block != TAUT_BLOCK_MLP && !fold;
    if (fold && (s->arch != TAUT_ARCH_VIT || s->norm != TAUT_NORM_NONE || s->bare_mlp || s->class_token))
        return taut_fail(TAUT_BAD_CONFIG,
                         "model.mlp_block = fold is for model.arch = vit with model.norm = none, without a "
                         "class token, and has no residual to leave out");
    if (s->bare_patches && !fold)
        return taut_fail(TAUT_BAD_CONFIG, "model.first_fold = false is for model.mlp_block = fold");
    if (residual_layer && s->bare_mlp)
        return taut_fail(TAUT_BAD_CONFIG, "model.mlp_block = potential or sll is the residual itself: "
                                          "model.mlp_residual = false cannot be");
    if (residual_layer && s->norm != TAUT_NORM_NONE && s->place == TAUT_PLACE_PRE)
        return taut_fail(TAUT_BAD_CONFIG, "model.mlp_block = potential or sll is the residual itself: use "
                                          "model.norm_place = post or model.norm = none");
    if (residual_layer && (s->maxmin || s->activation == TAUT_ABS || s->activation_factor != 1))
        return taut_fail(TAUT_BAD_CONFIG, "model.mlp_block = potential or sll needs a plain activation, say relu");
    if (s->maxmin && (s->mlp % 2 || (s->arch == TAUT_ARCH_ENCODER && s->width % 2)))
        return taut_fail(TAUT_BAD_CONFIG, "model.activation = maxmin pairs features: model.mlp must be even");
    return TAUT_OK;
}

/* How the sizes must go together.  Asked when every key has been read: one that has not would be called unknown. */
static taut_status check_sizes(const taut_model_spec *s)
{
    if (s->width % s->heads)
        return taut_fail(TAUT_BAD_CONFIG, "model.width = %lld is not a multiple of model.heads = %lld",
                         (long long)s->width, (long long)s->heads);
    if (s->positions == TAUT_POS_ROPE && !(s->attention.can & TAUT_OWN_WIDTH) && s->width / s->heads % 2)
        return taut_fail(TAUT_BAD_CONFIG, "model.positions = rope needs heads of even width, but width/heads is %lld",
                         (long long)(s->width / s->heads));
    if (s->final_norm && s->norm == TAUT_NORM_NONE)
        return taut_fail(TAUT_BAD_CONFIG, "model.final_norm = true needs a model.norm");
    if (s->norm == TAUT_NORM_CENTER && s->width < 2)
        return taut_fail(TAUT_BAD_CONFIG, "model.norm = centernorm needs model.width of at least 2");
    if (s->arch == TAUT_ARCH_FORECASTER && s->label > s->seq)
        return taut_fail(TAUT_BAD_CONFIG, "model.label = %lld is more than model.seq = %lld", (long long)s->label,
                         (long long)s->seq);
    return TAUT_OK;
}

/* All keys are read before the first refusal: one that nobody has asked for would be called unknown in its place. */
taut_status taut_model_spec_read(taut_model_spec *s, taut_config *cfg)
{
    *s = (taut_model_spec){ 0 };
    taut_attention_choose(&s->attention, taut_attention_kind_at(0));
    s->arch = (taut_arch)taut_config_choice(cfg, "model.arch", taut_arch_names, TAUT_ARCH_GPT);
    if (s->arch == TAUT_ARCH_MLP) return taut_spec_read_mlp(s, cfg);
    const taut_status image = s->arch == TAUT_ARCH_VIT ? taut_spec_read_patches(s, cfg) : TAUT_OK;
    if (image) s->context = LARGEST; /* it is not known: nothing more is refused for it */
    if (s->arch == TAUT_ARCH_FORECASTER) taut_spec_read_series(s, cfg);
    if (s->arch == TAUT_ARCH_CLASSIFIER) read_classifier(s, cfg);
    read_sizes(s, cfg);
    read_blocks(s, cfg);
    const logits scale = read_scales(s, cfg);
    const bool last = s->norm != TAUT_NORM_NONE && s->place == TAUT_PLACE_PRE;
    s->final_norm = pools(s->arch) ? taut_config_bool(cfg, "model.final_norm", last)
                                   : s->arch == TAUT_ARCH_ENCODER && last;
    read_others(s, cfg);
    const taut_status end = s->arch == TAUT_ARCH_ENCODER ? read_end(s, cfg) : TAUT_OK;
    const taut_status hidden = pools(s->arch) ? read_layers(s, cfg) : TAUT_OK;
    const taut_site site = taut_spec_site(s, s->arch == TAUT_ARCH_GPT, 0, 0);
    taut_attention_read(&s->attention, &site, cfg, false);
    if (s->last.kind) taut_attention_read(&s->last, &site, cfg, false);
    if (image || hidden || end) return image ? image : hidden ? hidden : end;
    const taut_status sizes = check_sizes(s);
    if (sizes) return sizes;
    const taut_status attention = check_attention(s, &site);
    if (attention) return attention;
    const taut_status other = check_last(s, &site), idle = other ? other : check_idle(s, scale);
    return idle ? idle : check_others(s);
}
