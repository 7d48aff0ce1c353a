#include "train/recipe.h"

#include <math.h>

#include "base/config_list.h"
#include "data/augment.h"
#include "train/keys.h"
#include "train/muon.h"
#include "train/teachers.h"

/* Asked for only where a recipe names them. */
static void read_augment(taut_augment *a, taut_config *cfg)
{
    *a = (taut_augment){ 0 };
    if (taut_config_has(cfg, "data.flip")) a->flip = taut_config_bool(cfg, "data.flip", false);
    if (taut_config_has(cfg, "data.crop")) a->crop = taut_config_int(cfg, "data.crop", 0, 0, 1 << 12);
    if (taut_config_has(cfg, "data.border")) a->reflect = taut_config_choice(cfg, "data.border", "zero|reflect", 0);
    if (taut_config_has(cfg, "data.turn")) a->turn = taut_config_real(cfg, "data.turn", 0, 0, 180);
    if (taut_config_has(cfg, "data.zoom")) a->zoom = taut_config_real(cfg, "data.zoom", 0, 0, 4);
    if (taut_config_has(cfg, "data.colour")) a->colour = taut_config_real(cfg, "data.colour", 0, 0, 1);
    if (taut_config_has(cfg, "data.erase")) a->erase = taut_config_int(cfg, "data.erase", 0, 0, 1 << 12);
    if (taut_config_has(cfg, "data.spared")) a->spared = taut_config_real(cfg, "data.spared", 0, 0, 1);
    if (taut_config_has(cfg, "data.mixup")) a->mixup = taut_config_real(cfg, "data.mixup", 0, 0, 4);
    if (taut_config_has(cfg, "data.cutmix")) a->cutmix = taut_config_real(cfg, "data.cutmix", 0, 0, 4);
}

void taut_data_spec_read(taut_data_spec *s, taut_config *cfg)
{
    static const char *const tokens[] = { "chars", "bytes", "words" };
    *s = (taut_data_spec){ 0 };
    s->source = taut_config_text(cfg, "data.source", "brackets");
    const int pieces = 3, usual = taut_config_has(cfg, "data.tokenizer") ? pieces : 0;
    const int kind = taut_config_choice(cfg, "data.tokens", "chars|bytes|words|pieces", usual);
    s->tokens = kind == pieces ? taut_config_text(cfg, "data.tokenizer", "tokenizers/gpt2") : tokens[kind];
    if (taut_config_has(cfg, "data.rows")) s->rows = taut_config_int(cfg, "data.rows", 0, 0, 1 << 24);
    s->val_fraction = taut_config_real(cfg, "data.val_fraction", 0.1, 1e-6, 1);
    s->length = taut_config_int(cfg, "data.length", 1000000, 100, 1000000000);
    s->seed = (uint64_t)taut_config_int(cfg, "data.seed", 1, 0, INT64_MAX);
    if (taut_config_has(cfg, "data.hold_out")) s->hold_out = taut_config_real(cfg, "data.hold_out", 0, 0, 0.9);
    read_augment(&s->augment, cfg);
    if (taut_config_has(cfg, "data.resize")) s->side = taut_config_int(cfg, "data.resize", 32, 1, 1 << 12);
    const taut_known_images *known = taut_images_known(s->source);
    s->class_names = known ? known->names : NULL;
    if (taut_config_has(cfg, "data.class_names")) s->class_names = taut_config_text(cfg, "data.class_names", "");
    taut_series_spec_read(&s->series, cfg);
    if (taut_config_has(cfg, "data.label")) s->label = taut_config_text(cfg, "data.label", "");
    if (taut_config_has(cfg, "data.text")) s->text = taut_config_text(cfg, "data.text", "");
    s->words = 4096;
    if (taut_config_has(cfg, "data.words")) s->words = taut_config_int(cfg, "data.words", 4096, 3, 1 << 24);
}

static void read_optimiser(taut_train_spec *t, taut_config *cfg)
{
    t->optimiser = (taut_optimiser_kind)taut_config_choice(cfg, "train.optimiser", "sgd|adamw|muon", TAUT_ADAMW);
    const bool muon = t->optimiser == TAUT_MUON;
    t->lr = taut_config_real(cfg, "train.lr", muon ? 0.02 : 1e-3, 0, 1e6);
    t->adam_lr = taut_config_real(cfg, "train.adam_lr", muon ? 1e-3 : t->lr, 0, 1e6);
    t->vector_lr = t->adam_lr;
    if (taut_config_has(cfg, "train.vector_lr"))
        t->vector_lr = taut_config_real(cfg, "train.vector_lr", t->adam_lr, 0, 1e6);
    t->logits_lr = t->adam_lr;
    if (taut_config_has(cfg, "train.logits_lr"))
        t->logits_lr = taut_config_real(cfg, "train.logits_lr", t->adam_lr, 0, 1e6);
    t->beta1 = taut_config_real(cfg, "train.beta1", 0.9, 0, 0.99999);
    t->beta2 = taut_config_real(cfg, "train.beta2", 0.95, 0, 0.9999999);
    t->eps = taut_config_real(cfg, "train.eps", 1e-8, 1e-30, 1);
    t->momentum = taut_config_real(cfg, "train.momentum", muon ? 0.95 : 0.9, 0, 0.99999);
    t->decay = taut_config_real(cfg, "train.weight_decay", 0, 0, 1e6);
    t->polynomial = taut_config_choice(cfg, "train.polynomial", taut_muon_names, 0);
    t->clip = taut_config_real(cfg, "train.clip", 1, 0, 1e9);
    t->shares = (taut_shares)taut_config_choice(cfg, "train.shares", "none|scalar|one", TAUT_SHARES_NONE);
    t->blocks_mass = taut_config_real(cfg, "train.blocks_mass", 32, 1e-6, 1e6);
}

/* Asked for only where a recipe names them. */
static void read_loss(taut_train_spec *t, taut_config *cfg)
{
    if (taut_config_has(cfg, "train.loss"))
        t->loss = (taut_loss_kind)taut_config_choice(cfg, "train.loss", "cross_entropy|margin", 0);
    t->margin_least = 1;
    if (t->loss == TAUT_BY_MARGIN) {
        t->margin = taut_config_real(cfg, "train.margin", 1, 0, 1e6);
        t->margin_final = taut_config_real(cfg, "train.margin_final", t->margin, 0, 1e6);
        t->margin_radius = taut_config_real(cfg, "train.margin_radius", 36.0 / 255, 0, 1e6);
        t->temperature = taut_config_real(cfg, "train.temperature", 0.25, 1e-6, 1e6);
        if (taut_config_has(cfg, "train.margin_least"))
            t->margin_least = taut_config_real(cfg, "train.margin_least", 1, 0, 1);
        if (taut_config_has(cfg, "train.focus")) t->focus = taut_config_real(cfg, "train.focus", 0, 0, 100);
    }
    if (taut_config_has(cfg, "train.average")) t->average = taut_config_real(cfg, "train.average", 0, 0, 0.999999);
    if (taut_config_has(cfg, "train.teachers")) {
        t->teachers = taut_config_text(cfg, "train.teachers", "");
        t->teacher_share = taut_config_real(cfg, "train.teacher_share", 0.5, 1e-6, 1);
        (void)taut_config_text(cfg, "train.teachers_sha256", "");
    }
}

static void read_loop(taut_recipe *r, taut_config *cfg)
{
    taut_train_spec *t = &r->train;
    const int64_t most = 1000000000;
    t->steps = taut_config_int(cfg, "train.steps", 1000, 1, most);
    t->batch = taut_config_int(cfg, "train.batch", 16, 1, 1 << 20);
    t->accumulate = taut_config_int(cfg, "train.accumulate", 1, 1, 1 << 16);
    t->matmul = (taut_products)taut_config_choice(cfg, "train.matmul", "fp32|tf32|bf16", TAUT_PRODUCTS_FP32);
    t->schedule = (taut_schedule_kind)taut_config_choice(cfg, "train.schedule", "constant|linear|cosine|type1",
                                                         TAUT_COSINE);
    if (t->schedule == TAUT_TYPE1) t->epoch = taut_config_int(cfg, "train.epoch", 256, 1, most);
    t->warmup = taut_config_int(cfg, "train.warmup", 0, 0, most);
    t->lr_final = taut_config_real(cfg, "train.lr_final", 0, 0, 1);
    r->data.mask_rate = taut_config_real(cfg, "train.mask_rate", 0.15, 1e-6, 1);
    t->eval_every = taut_config_int(cfg, "train.eval_every", 0, 0, most);
    t->eval_batches = taut_config_int(cfg, "train.eval_batches", 10, 1, most);
    if (taut_config_has(cfg, "train.patience")) t->patience = taut_config_int(cfg, "train.patience", 0, 0, most);
    read_loss(t, cfg);
    t->checkpoint_every = taut_config_int(cfg, "train.checkpoint_every", 100, 1, most);
    t->log_every = taut_config_int(cfg, "train.log_every", 10, 1, most);
    t->seed = (uint64_t)taut_config_int(cfg, "train.seed", 1, 0, INT64_MAX);
}

static taut_status check_patience(const taut_train_spec *t)
{
    if (t->patience == 0 || t->eval_every > 0) return TAUT_OK;
    return taut_fail(TAUT_BAD_CONFIG, "train.patience = %lld counts evaluations: give train.eval_every",
                     (long long)t->patience);
}

/* Asked before hours of training: some architectures have no constant to enforce. */
static taut_status check_target(const taut_recipe *r)
{
    const bool normed = r->model.norm == TAUT_NORM_LAYER || r->model.norm == TAUT_NORM_RMS;
    if (r->constrain.target > 0 && normed && r->model.norm_eps == 0)
        return taut_fail(TAUT_BAD_CONFIG, "constrain.target_lipschitz cannot be met with model.norm_eps = 0: a norm "
                                          "layer without epsilon has no Lipschitz constant");
    if (r->constrain.fill && r->model.tied)
        return taut_fail(TAUT_BAD_CONFIG, "constrain.fill scales the head: use model.tied = false");
    return TAUT_OK;
}

/* A penalty on rows of softmax, or on what makes their logits, does nothing where there are none. */
static taut_status check_penalty(const taut_recipe *r)
{
    const taut_model_spec *m = &r->model;
    const bool jasmin = r->penalty.kind == TAUT_JASMIN;
    const bool without = m->arch != TAUT_ARCH_FORECASTER && m->attention_blocks == 0; /* an MLP has none either */
    if (!r->penalty.kind) return TAUT_OK;
    if (without) return taut_fail(TAUT_BAD_CONFIG, "train.penalty is about softmax attention, and this model has none");
    if (m->attention.can & (jasmin ? TAUT_CAN_JASMIN : TAUT_CAN_PENALTY)) return TAUT_OK;
    return taut_fail(TAUT_BAD_CONFIG, "train.penalty = %s does nothing with model.attention = %s: it is about %s",
                     jasmin ? "jasmin" : "specformer", m->attention.kind->name,
                     jasmin ? "rows of softmax attention" : "W_Q and W_V of softmax attention");
}

/* What margins and averages cannot be with. */
static taut_status check_loss(const taut_recipe *r)
{
    const taut_train_spec *t = &r->train;
    const bool margin = t->loss == TAUT_BY_MARGIN, mixes = r->data.augment.mixup > 0 || r->data.augment.cutmix > 0;
    const bool classes = taut_arch_reads_images(r->model.arch) || r->model.arch == TAUT_ARCH_CLASSIFIER;
    if (margin && (!classes || mixes))
        return taut_fail(TAUT_BAD_CONFIG, "train.loss = margin is for one right class an example: images or classified "
                                          "texts, without data.mixup and data.cutmix");
    if (t->teachers && (margin || mixes))
        return taut_fail(TAUT_BAD_CONFIG, "train.teachers share out the answers of train.loss = cross_entropy and of "
                                          "forecasts: not with train.loss = margin, data.mixup and data.cutmix");
    if (t->focus > 0 && t->focus < 1)
        return taut_fail(TAUT_BAD_CONFIG, "train.focus = %.17g is neither 0 nor at least 1", t->focus);
    if (t->average > 0 && t->patience > 0)
        return taut_fail(TAUT_BAD_CONFIG, "train.average and train.patience each say what is saved: use one of them");
    if (r->constrain.method == TAUT_POLAR && t->optimiser != TAUT_MUON)
        return taut_fail(TAUT_BAD_CONFIG, "constrain.method = polar mends the steps of train.optimiser = muon");
    if (r->constrain.method == TAUT_POLAR && t->steps % r->constrain.every != 0)
        return taut_fail(TAUT_BAD_CONFIG,
                         "constrain.every = %lld does not divide train.steps = %lld: the last weights would not be "
                         "orthogonal",
                         (long long)r->constrain.every, (long long)t->steps);
    return TAUT_OK;
}

static double plain_steps(const taut_recipe *r) { return floor(r->data.plain * (double)r->train.steps + 0.5); }

/* The last steps are some of them, and a training that patience may end need not come to any. */
static taut_status check_plain(const taut_recipe *r)
{
    const double plain = plain_steps(r);
    if (r->data.plain == 0) return TAUT_OK;
    if (plain < 1 || plain >= (double)r->train.steps)
        return taut_fail(TAUT_BAD_CONFIG,
                         "data.plain = %g comes to %.0f of %lld steps: want some of them, or data.plain = 0",
                         r->data.plain, plain, (long long)r->train.steps);
    if (r->train.patience > 0)
        return taut_fail(TAUT_BAD_CONFIG,
                         "train.patience may end a training before data.plain begins: use one of them");
    return TAUT_OK;
}

/* What is done to images is for images, and what stands behind a border has to come into them. */
static taut_status check_augment(const taut_recipe *r)
{
    const taut_augment *a = &r->data.augment;
    const bool moves = a->crop > 0 || a->turn > 0 || a->zoom > 0;
    const bool changes = a->turn > 0 || a->zoom > 0 || a->colour > 0 || a->erase > 0;
    const bool spares = a->spared > 0 || r->data.plain > 0;
    const bool any = moves || changes || a->flip || a->reflect || spares || taut_augment_mixes(a);
    if (any && !taut_arch_reads_images(r->model.arch))
        return taut_fail(TAUT_BAD_CONFIG,
                         "data.flip, crop, border, turn, zoom, colour, erase, spared, plain, mixup and cutmix are for "
                         "images: model.arch = mlp or vit");
    if (a->reflect && !moves)
        return taut_fail(TAUT_BAD_CONFIG, "data.border would change nothing: it is for data.crop, turn and zoom");
    const taut_pixels_spec *i = &r->model.image;
    const int64_t side = i->height < i->width ? i->height : i->width;
    if (any && (a->crop >= side || a->erase >= side))
        return taut_fail(TAUT_BAD_CONFIG, "data.crop and data.erase want less than the side of an image of %lld x %lld",
                         (long long)i->height, (long long)i->width);
    if (spares && !changes)
        return taut_fail(TAUT_BAD_CONFIG,
                         "data.spared and plain would change nothing: they are for data.turn, zoom, colour and erase");
    if (a->spared == 1)
        return taut_fail(TAUT_BAD_CONFIG, "data.spared = 1 leaves nothing to data.turn, zoom, colour and erase");
    return check_plain(r);
}

/* The first image of the last steps: from it on all are spared.  A stream as long as no training's has one far away. */
static void read_plain(taut_recipe *r, taut_config *cfg)
{
    const taut_train_spec *t = &r->train;
    if (!taut_config_has(cfg, "data.plain")) return;
    r->data.plain = taut_config_real(cfg, "data.plain", 0, 0, 0.999999);
    const double first = (double)t->steps - plain_steps(r);
    if (r->data.plain > 0)
        r->data.augment.plain_from = (int64_t)fmin(first * (double)t->accumulate * (double)t->batch, 0x1p62);
}

taut_status taut_recipe_ask(taut_recipe *r, taut_config *cfg)
{
    taut_data_spec_read(&r->data, cfg);
    const taut_status model = taut_model_spec_read(&r->model, cfg);
    read_loop(r, cfg);
    read_plain(r, cfg);
    read_optimiser(&r->train, cfg);
    const taut_status constrain = taut_constrain_spec_read(&r->constrain, cfg, r->train.optimiser == TAUT_MUON);
    const taut_status penalty = taut_penalty_spec_read(&r->penalty, cfg);
    return model ? model : constrain ? constrain : penalty;
}

taut_status taut_recipe_read(taut_recipe *r, taut_config *cfg)
{
    *r = (taut_recipe){ 0 };
    taut_status defaults = taut_recipe_defaults(cfg);
    if (!defaults) defaults = taut_teachers_name(cfg);
    if (defaults) return defaults;
    const taut_status asked = taut_recipe_ask(r, cfg);
    taut_config_ask_elsewhere(cfg, taut_key_elsewhere);
    const taut_status keys = taut_config_finish(cfg);
    if (keys || asked) return keys ? keys : asked; /* a bad key explains more than what follows from it */
    taut_status s = check_penalty(r);
    if (!s) s = check_patience(&r->train);
    if (!s) s = check_loss(r);
    if (!s) s = check_augment(r);
    return s ? s : check_target(r);
}
