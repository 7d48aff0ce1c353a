/* The public interface (taut.h) in terms of the layers. */
#include <stdlib.h>

#include "base/alloc.h"
#include "model/pass.h"
#include "train/train.h"

const char *taut_version(void) { return TAUT_VERSION; }

taut_status taut_train_recipe(taut_result *out, const char *recipe, const char *run, const char *const *overrides,
                              int count, int resume)
{
    taut_config *cfg = NULL;
    taut_train_summary r;
    taut_status s = taut_config_open(&cfg, recipe);
    for (int i = 0; !s && i < count; i++) s = taut_config_set(cfg, overrides[i]);
    if (!s)
        s = taut_train(&r, cfg, taut_kernels_find("cpu"), &(taut_train_options){ .run = run, .resume = resume != 0 });
    taut_config_free(cfg);
    if (s) return s;
    *out = (taut_result){
        r.steps, r.tokens, r.weights, r.train_loss, r.val_loss, r.val_acc, r.tokens_per_s, r.seconds
    };
    return TAUT_OK;
}

struct taut_net {
    taut_model *model;
};

taut_status taut_net_open(taut_net **out, const char *path, const char *kernels)
{
    const taut_kernels *k = taut_kernels_find(kernels);
    if (!k) return TAUT_BAD_CONFIG; /* with the line that says why */
    taut_net *net = taut_calloc(1, sizeof *net);
    if (!net) return taut_no_memory("a model");
    const taut_status s = taut_model_open(&net->model, path, k, false);
    if (s)
        free(net);
    else
        *out = net;
    return s;
}

void taut_net_free(taut_net *net)
{
    if (!net) return;
    taut_model_free(net->model);
    free(net);
}

int64_t taut_net_tokens(const taut_net *net) { return net->model->embed.rows; }
int64_t taut_net_context(const taut_net *net) { return net->model->spec.context; }

static taut_status check_ids(const taut_net *net, const int32_t *ids, int64_t n, int64_t t)
{
    if (net->model->embed.rows == 0) return taut_fail(TAUT_BAD_DATA, "this model reads images, not tokens");
    if (n < 1 || t < 1 || t > taut_net_context(net))
        return taut_fail(TAUT_BAD_DATA, "%lld sequences of %lld tokens: this model reads 1 to %lld tokens",
                         (long long)n, (long long)t, (long long)taut_net_context(net));
    for (int64_t i = 0; i < n * t; i++)
        if (ids[i] < 0 || ids[i] >= taut_net_tokens(net))
            return taut_fail(TAUT_BAD_DATA, "token id %d is not in 0 .. %lld", ids[i],
                             (long long)taut_net_tokens(net) - 1);
    return TAUT_OK;
}

taut_status taut_net_logits(taut_net *net, double *logits, const int32_t *ids, int64_t n, int64_t t)
{
    taut_pass *pass = NULL;
    taut_status s = check_ids(net, ids, n, t);
    if (!s) s = taut_pass_create(&pass, net->model, n, t, false);
    if (s) return s;
    taut_pass_forward(pass, ids, n, t);
    net->model->k->get(logits, pass->logits.data, taut_len(pass->logits.shape));
    s = net->model->k->read(NULL, NULL, 0);
    taut_pass_free(pass);
    return s;
}

taut_status taut_file_bound(double *bound, const char *path, taut_metric metric)
{
    taut_model *m = NULL;
    taut_bound b;
    taut_status s = taut_model_open(&m, path, taut_kernels_find("ref"), false);
    if (!s) s = taut_model_bound(&b, m, metric == TAUT_TOKENS ? TAUT_NORM_TOKENS : TAUT_NORM_FLAT);
    if (!s) *bound = b.lip.v;
    taut_model_free(m);
    return s;
}
