/* Features of texts: what an encoder knows of a text, as one row of numbers. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "api/call.h"
#include "api/net.h"
#include "base/alloc.h"
#include "model/pass.h"

/* The same weights without a head: with `pool`, the network whose output the features are. */
static taut_status behead(taut_model **out, const taut_model *m, taut_pool_kind pool)
{
    taut_model_spec spec = m->spec;
    spec.headless = true;
    spec.pool = pool;
    spec.logit_scale = 1;
    taut_status s = taut_model_create(out, &spec, m->embed.rows, m->recipe, m->vocab, m->k);
    if (!s) s = taut_model_bind(*out, false);
    for (int i = 0; !s && i < (*out)->weights; i++) {
        const taut_weight *to = &(*out)->weight[i], *from = taut_model_find(m, to->path);
        const int64_t len = taut_weight_len(to);
        double *w = taut_malloc((size_t)len * sizeof *w);
        if (!w) s = taut_no_memory("the weights of the model");
        if (!s) m->k->get(w, from->param->value, len);
        if (!s) m->k->put(to->param->value, w, len);
        free(w);
    }
    return s; /* what there is of it is the caller's */
}

static taut_status choose_pool(taut_pool_kind *pool, const taut_net *net, const char *word)
{
    const taut_pool_kind own = net->model->spec.pool;
    *pool = own == TAUT_POOL_NONE ? TAUT_POOL_MEAN : own;
    if (!word) return TAUT_OK;
    *pool = strcmp(word, "class") == 0 ? TAUT_POOL_FIRST : TAUT_POOL_MEAN;
    if (strcmp(word, "class") == 0 || strcmp(word, "mean") == 0) return TAUT_OK;
    return taut_fail(TAUT_BAD_CALL, "pool is mean or class, not %.40s", word);
}

/* ids of a text between the marks of its vocabulary, at most `context` of them; *all is how many there would be. */
static taut_status read_text(int32_t **ids, int64_t *count, int64_t *all, const taut_net *net, const char *text)
{
    int32_t *plain = NULL, first, last;
    int64_t len = 0;
    taut_status s = taut_vocab_encode(&plain, &len, net->vocab, text, strlen(text));
    if (s) return s;
    const bool marked = taut_vocab_ends(net->vocab, &first, &last);
    const int64_t context = net->model->in.t, extra = marked ? 2 : 0;
    *all = len + extra;
    *count = *all < context ? *all : context;
    *ids = taut_malloc((size_t)(*all + 1) * sizeof **ids);
    if (*ids) {
        const bool room = marked && *count >= extra;
        memcpy(*ids + room, plain, (size_t)len * sizeof *plain);
        if (room) (*ids)[0] = first;
        if (room) (*ids)[*count - 1] = last;
    }
    free(plain);
    return *ids ? TAUT_OK : taut_no_memory("token ids");
}

static taut_status one(double *y, int64_t *tokens, taut_model *m, const taut_net *net, const char *text, bool unit)
{
    int32_t *ids = NULL;
    int64_t count = 0, all = 0;
    double sum = 0;
    taut_pass *pass = NULL;
    taut_status s = read_text(&ids, &count, &all, net, text);
    if (!s && count == 0) s = taut_fail(TAUT_BAD_DATA, "an empty text: no token to have features");
    if (!s) s = taut_pass_create(&pass, m, 1, count, false);
    if (!s) taut_pass_forward(pass, ids, 1, count);
    if (!s) m->k->get(y, pass->logits.data, m->classes);
    if (!s) s = m->k->read(NULL, NULL, 0);
    for (int64_t i = 0; !s && i < m->classes; i++) {
        if (!isfinite(y[i])) s = taut_fail(TAUT_NOT_FINITE, "a feature is not finite");
        sum += y[i] * y[i];
    }
    for (int64_t i = 0; !s && unit && sum > 0 && i < m->classes; i++) y[i] /= sqrt(sum);
    if (!s && tokens) *tokens = all;
    taut_pass_free(pass);
    free(ids);
    return s;
}

taut_status taut_net_features(taut_net *net, double *y, int64_t *tokens, const char *const *texts, int64_t count,
                              const taut_features_options *options)
{
    taut_features_options o;
    taut_pool_kind pool;
    NEED(net);
    NEED(y);
    NEED(texts);
    taut_status s = taut_options_take(&o, sizeof o, options, __func__);
    if (!s) s = choose_pool(&pool, net, o.pool);
    if (!s && count < 0) s = taut_fail(TAUT_BAD_CALL, "%lld texts", (long long)count);
    if (!s && net->model->spec.arch != TAUT_ARCH_ENCODER)
        s = taut_fail(TAUT_BAD_DATA, "features of texts are an encoder's; this model is of another kind");
    if (s) return s;
    const bool own = net->model->spec.headless && net->model->spec.pool == pool && net->model->spec.logit_scale == 1;
    taut_model *other = NULL;
    if (!own) s = behead(&other, net->model, pool);
    taut_model *m = own ? net->model : other;
    for (int64_t i = 0; !s && i < count; i++) {
        if (!texts[i]) s = taut_fail(TAUT_BAD_CALL, "text %lld is NULL", (long long)i);
        if (!s) s = one(y + i * m->classes, tokens ? tokens + i : NULL, m, net, texts[i], o.unit != 0);
    }
    taut_model_free(other);
    return s;
}
