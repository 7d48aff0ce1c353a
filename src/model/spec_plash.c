/* The keys of attention in linear time: model.attention = plash, clustered. */
#include <string.h>

#include "model/spec.h"

/* Both hold all keys at once, and neither turns nor slopes a logit. */
static taut_status check(const taut_model_spec *s, const char *name, const char *key, int64_t groups)
{
    if (s->arch == TAUT_ARCH_GPT)
        return taut_fail(TAUT_BAD_CONFIG,
                         "model.attention = %s has no causal form: use model.arch = encoder, vit or forecaster", name);
    if (s->positions == TAUT_POS_ROPE || s->positions == TAUT_POS_ALIBI)
        return taut_fail(TAUT_BAD_CONFIG, "model.attention = %s wants model.positions = learned or none", name);
    if (groups > s->context)
        return taut_fail(TAUT_BAD_CONFIG, "%s = %lld is more than the %lld tokens there are", key, (long long)groups,
                         (long long)s->context);
    return TAUT_OK;
}

static taut_status read_sketch(taut_plash_spec *p, taut_config *cfg)
{
    double degree[TAUT_SKETCH_DEGREES], size[TAUT_SKETCH_DEGREES];
    const char *degrees = taut_config_text(cfg, "model.plash_degrees", "1 2");
    const char *sizes = taut_config_text(cfg, "model.plash_sizes", "128");
    const int64_t least = p->features ? p->features : 2 * p->width; /* entries that the reference must keep apart */
    const int count = taut_spec_list(degree, TAUT_SKETCH_DEGREES, degrees);
    const int given = taut_spec_list(size, TAUT_SKETCH_DEGREES, sizes);
    for (int i = 0; i < count; i++) {
        bool fresh = degree[i] >= 1 && degree[i] <= 16 && degree[i] == (double)(int)degree[i];
        for (int j = 0; j < i; j++) fresh = fresh && degree[j] != degree[i];
        if (!fresh)
            return taut_fail(TAUT_BAD_CONFIG, "model.plash_degrees = %s wants different degrees from 1 to 16", degrees);
    }
    if (count < 1)
        return taut_fail(TAUT_BAD_CONFIG, "model.plash_degrees = %s wants 1 to %d numbers", degrees,
                         TAUT_SKETCH_DEGREES);
    if (given != 1 && given != count)
        return taut_fail(TAUT_BAD_CONFIG, "model.plash_sizes = %s wants one number, or one for each of %d degrees",
                         sizes, count);
    p->degrees = count;
    for (int i = 0; i < count; i++) {
        const double one = size[given == 1 ? 0 : i];
        const int64_t n = one >= 2 && one <= 1 << 20 ? (int64_t)one : 0;
        if (n == 0 || (double)n != one || n & (n - 1))
            return taut_fail(TAUT_BAD_CONFIG, "model.plash_sizes = %s wants powers of two from 2 to 1048576", sizes);
        if (p->fixed && n < least)
            return taut_fail(TAUT_BAD_CONFIG,
                             "model.plash_sizes = %s wants at least %lld, or model.plash_hash = seeded", sizes,
                             (long long)least);
        p->degree[i] = (int)degree[i];
        p->size[i] = n;
    }
    return TAUT_OK;
}

taut_status taut_spec_read_plash(taut_model_spec *s, taut_config *cfg)
{
    taut_plash_spec *p = &s->plash_spec;
    *p = (taut_plash_spec){ .width = s->width,
                            .heads = s->heads,
                            .scale = s->attention_scale,
                            .out = s->attention_out,
                            .bias = s->bias,
                            .init = s->init,
                            .gain = s->init_std,
                            .out_gain = s->zero_out ? 0 : s->init_std };
    p->groups = taut_config_int(cfg, "model.plash_groups", s->context < 64 ? s->context : 64, 1, 1 << 20);
    p->tau = taut_config_real(cfg, "model.plash_tau", 1, 1e-9, 1e9);
    p->sketch_tau = taut_config_real(cfg, "model.plash_tau_g", 1, 1e-9, 1e9);
    p->floor = taut_config_real(cfg, "model.plash_floor", 1e-6, 1e-30, 1e9);
    p->features = taut_config_int(cfg, "model.plash_features", 0, 0, 1 << 20);
    p->mixers = (int)taut_config_int(cfg, "model.plash_mixers", 1, 0, 64);
    p->hidden = taut_config_int(cfg, "model.plash_hidden", 2 * s->width, 1, 1 << 24);
    p->norm_eps = taut_config_real(cfg, "model.plash_norm_eps", 1e-5, 1e-12, 1);
    p->seed = (uint64_t)taut_config_int(cfg, "model.plash_seed", 1, 0, INT64_MAX / 2);
    p->fixed = taut_config_choice(cfg, "model.plash_hash", "seeded|fixed", 0) == 1;
    p->pair = (taut_plash_pair)taut_config_choice(cfg, "model.plash_pair", "kv|qv|qk", 0);
    s->settle = taut_config_choice(cfg, "model.plash_prototypes", "random|kcenter|kmeans", 0);
    if (s->settle == 2) s->settle = 9; /* k-center, then eight steps of Lloyd */
    const taut_status sketch = read_sketch(p, cfg), fits = check(s, "plash", "model.plash_groups", p->groups);
    return sketch ? sketch : fits;
}

taut_status taut_spec_read_clustered(taut_model_spec *s, taut_config *cfg)
{
    taut_clustered_spec *c = &s->clustered_spec;
    *c = (taut_clustered_spec){ .width = s->width,
                                .heads = s->heads,
                                .scale = s->attention_scale,
                                .out = s->attention_out,
                                .bias = s->bias,
                                .init = s->init,
                                .gain = s->init_std,
                                .out_gain = s->zero_out ? 0 : s->init_std };
    c->groups = taut_config_int(cfg, "model.clusters", s->context < 64 ? s->context : 64, 1, 1 << 20);
    c->steps = (int)taut_config_int(cfg, "model.cluster_steps", 2, 0, 100);
    c->first = taut_config_bool(cfg, "model.cluster_first", false);
    return check(s, "clustered", "model.clusters", c->groups);
}
