/* One transformer block and what stands before the first, for every placing of the norm:
 *     pre    x + f(norm(x))      post   norm(x + f(x))      none   x + f(x)
 * with + replaced by the convex mix, f's channels weighed, or x left out, when asked.  A potential or SLL layer is
 * x + f(x) itself:
 *     post   norm(layer(x))      none   layer(x) */
#include "model/tree.h"

#include <math.h>
#include <stdio.h>

void taut_list_add(taut_list *l, const char *name, taut_module *child)
{
    TAUT_CHECK(l->count < 16, "tree: too many children");
    l->name[l->count] = name;
    l->child[l->count++] = child;
}

taut_module *taut_list_sequence(const taut_list *l) { return taut_sequence(l->count, l->name, l->child); }

taut_module *taut_tree_norm(const taut_model_spec *s)
{
    if (s->norm == TAUT_NORM_LAYER) return taut_layernorm(s->width, s->norm_eps);
    if (s->norm == TAUT_NORM_RMS) return taut_rmsnorm(s->width, s->norm_eps);
    return taut_centernorm(s->width);
}

/* A matrix that writes into the residual stream: smaller at the start, as in GPT-2, or zero. */
static double out_gain(const taut_model_spec *s)
{
    if (s->zero_out) return 0;
    return s->init == TAUT_INIT_NORMAL && !s->convex ? s->init_std / sqrt(2.0 * (double)s->depth) : s->init_std;
}

/* A forecaster's decoder has tokens of its own number; what it asks has been through all blocks of the encoder. */
taut_site taut_spec_site(const taut_model_spec *s, bool causal, int64_t queries, uint64_t index)
{
    const bool decoder = causal && s->arch == TAUT_ARCH_FORECASTER;
    return (taut_site){ .width = s->width,
                        .heads = s->heads,
                        .context = decoder ? s->label + s->ahead : s->context,
                        .tokens = taut_spec_tokens(s, queries ? s->depth - 1 : (int64_t)index),
                        .queries = queries,
                        .row = s->arch == TAUT_ARCH_VIT ? s->image.width / s->image.patch : 0,
                        .front = s->class_token + s->distilled,
                        .index = index,
                        .causal = causal,
                        .rope = s->positions == TAUT_POS_ROPE,
                        .alibi = s->positions == TAUT_POS_ALIBI,
                        .bias = s->bias,
                        .rope_base = s->rope_base,
                        .scale = s->attention_scale,
                        .out = s->attention_out,
                        .init = s->init,
                        .gain = s->init_std,
                        .out_gain = out_gain(s) };
}

taut_module *taut_tree_attention(const taut_model_spec *s, bool causal, int64_t queries, uint64_t index)
{
    const taut_site site = taut_spec_site(s, causal, queries, index);
    return taut_attention_build(&s->attention, &site);
}

taut_module *taut_tree_activation(const taut_model_spec *s)
{
    if (!s->maxmin) return taut_pointwise(s->activation, s->activation_factor);
    const char *const names[] = { "sort", "factor" };
    taut_module *const row[] = { taut_maxmin(2), taut_scale(s->activation_factor) };
    return taut_sequence(2, names, row);
}

/* The names of taut_mlp's weights, around an activation that is no curve. */
static taut_module *mlp_of_parts(const taut_model_spec *s)
{
    const char *const names[] = { "in", "act", "out" };
    taut_module *const row[] = { taut_linear(s->mlp, s->width, s->bias, s->init, s->init_std), taut_tree_activation(s),
                                 taut_linear(s->width, s->mlp, s->bias, out_gain(s) == 0 ? TAUT_INIT_ZERO : s->init,
                                             out_gain(s)) };
    return taut_sequence(3, names, row);
}

taut_module *taut_tree_mlp(const taut_model_spec *s)
{
    if (s->maxmin) return mlp_of_parts(s);
    return taut_mlp(&(taut_mlp_spec){ .width = s->width,
                                      .hidden = s->mlp,
                                      .out = s->width,
                                      .curve = s->activation,
                                      .factor = s->activation_factor,
                                      .bias = s->bias,
                                      .init = s->init,
                                      .gain = s->init_std,
                                      .out_gain = out_gain(s) });
}

/* Adds the residual branch around f to the block, with its norm, strength and coins; name: of f, norm, strength. */
static void add_branch(taut_list *block, const taut_model_spec *s, taut_module *f, const char *const name[3],
                       uint64_t id, bool bare)
{
    const double a = taut_spec_alpha(s), keep = bare ? 0 : s->convex ? 1 - a : 1, mix = s->convex && !bare ? a : 1;
    taut_list l = { .count = 0 };
    if (s->norm != TAUT_NORM_NONE && s->place == TAUT_PLACE_PRE) taut_list_add(&l, name[1], taut_tree_norm(s));
    taut_list_add(&l, name[0], f);
    if (s->channel)
        taut_list_add(&l, name[2], taut_channel(s->width, s->residual_alpha > 0 ? a : 1 / (double)s->depth));
    if (s->dropout > 0) taut_list_add(&l, "drop", taut_dropout(s->dropout, id));
    if (s->droppath > 0) taut_list_add(&l, "path", taut_droppath(s->droppath, id));
    taut_list_add(block, "", taut_mix(taut_list_sequence(&l), keep, mix));
    if (s->norm != TAUT_NORM_NONE && s->place == TAUT_PLACE_POST) taut_list_add(block, name[1], taut_tree_norm(s));
}

/* A layer that is a residual by itself. */
static void add_layer(taut_list *block, const taut_model_spec *s)
{
    const taut_potential_spec spec = { .width = s->width,
                                       .hidden = s->mlp,
                                       .curve = s->activation,
                                       .bias = s->bias,
                                       .init = s->init,
                                       .gain = s->init_std };
    taut_list_add(block, "mlp", s->mlp_block == TAUT_BLOCK_SLL ? taut_sll(&spec) : taut_potential(&spec));
    if (s->norm != TAUT_NORM_NONE) taut_list_add(block, "norm2", taut_tree_norm(s));
}

/* f(x) + p, p one learned row a token */
void taut_tree_fold(taut_list *l, const taut_model_spec *s)
{
    taut_list_add(l, "act", taut_tree_activation(s));
    if (s->positions == TAUT_POS_LEARNED) taut_list_add(l, "pos", taut_position(s->context, s->width, 0));
}

/* The same for attention, and an orthogonal map behind it when asked. */
static void add_attention_layer(taut_list *block, const taut_model_spec *s, const taut_attention_choice *kind,
                                const char *const name[2], bool causal, uint64_t index)
{
    const taut_site site = taut_spec_site(s, causal, 0, index);
    taut_list_add(block, name[0], kind->kind->build(kind, &site));
    if (kind->turn) taut_list_add(block, name[1], taut_linear_turn(s->width));
    if (s->norm != TAUT_NORM_NONE) taut_list_add(block, "norm1", taut_tree_norm(s));
}

static taut_module *block(const taut_model_spec *s, bool causal, uint64_t index)
{
    taut_list l = { .count = 0 };
    static const char *const attn[] = { "attn", "norm1", "scale1" }, *const after[] = { "mlp", "norm2", "scale2" };
    static const char *const own[] = { "attn", "turn" }, *const last[] = { "last", "last_turn" };
    const bool attends = (int64_t)index < s->attention_blocks;
    if (s->last.kind && (int64_t)index >= s->depth - s->last_blocks)
        add_attention_layer(&l, s, &s->last, last, causal, index);
    if (attends && s->attention.can & TAUT_IS_RESIDUAL)
        add_attention_layer(&l, s, &s->attention, own, causal, index);
    else if (attends)
        add_branch(&l, s, taut_tree_attention(s, causal, 0, index), attn, 2 * index + 1, s->bare_first && index == 0);
    if (s->mlp_block == TAUT_BLOCK_MLP)
        add_branch(&l, s, taut_tree_mlp(s), after, 2 * index + 2, s->bare_mlp);
    else if (s->mlp_block == TAUT_BLOCK_FOLD)
        taut_tree_fold(&l, s);
    else
        add_layer(&l, s);
    return taut_list_sequence(&l);
}

taut_module *taut_tree_blocks(const taut_model_spec *s, bool causal)
{
    taut_module *child[256];
    char label[256][24];
    const char *name[256];
    int count = 0;
    for (int i = 0; i < (int)s->depth; i++) {
        snprintf(label[count], sizeof label[count], "%d", i);
        child[count++] = block(s, causal, (uint64_t)i);
        if (!s->distil || i + 1 == (int)s->depth) continue;
        snprintf(label[count], sizeof label[count], "distil%d", i);
        child[count++] = taut_tree_distil(s);
    }
    for (int i = 0; i < count; i++) name[i] = label[i];
    return taut_sequence(count, name, child);
}

void taut_tree_begin(taut_list *l, const taut_model_spec *s)
{
    if (s->positions == TAUT_POS_LEARNED)
        taut_list_add(l, "pos", taut_position(s->context, s->width, s->init == TAUT_INIT_NORMAL ? s->init_std : 0.02));
    if (s->embed_norm && s->norm != TAUT_NORM_NONE) taut_list_add(l, "embed_norm", taut_tree_norm(s));
    if (s->dropout > 0) taut_list_add(l, "drop", taut_dropout(s->dropout, 0));
}

void taut_tree_pool(taut_list *l, const taut_model_spec *s)
{
    if (s->final_norm) taut_list_add(l, "norm", taut_tree_norm(s));
    taut_list_add(l, "pool",
                  s->pool_mean     ? taut_pool_mean()
                  : s->pool_concat ? taut_concat()
                  : s->pool_l2     ? taut_l2pool()
                                   : taut_pool_first());
    if (s->layers) taut_list_add(l, "layer", taut_tree_layers(s, s->pool_concat ? s->context * s->width : s->width));
}

taut_module *taut_tree_head(const taut_model_spec *s, taut_param *table, int64_t classes)
{
    const taut_init init = s->zero_out && s->arch != TAUT_ARCH_ENCODER ? TAUT_INIT_ZERO : s->init;
    const int64_t in = s->layers ? s->hidden[s->layers - 1] : s->pool_concat ? s->context * s->width : s->width;
    if (s->unit_head) return taut_linear_unit(classes, in, s->head_bias);
    return s->tied ? taut_linear_tied(table, s->head_bias) : taut_linear(classes, in, s->head_bias, init, s->init_std);
}
