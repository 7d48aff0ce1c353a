/* Small models of every kind that can be attacked. */
#ifndef ATTACK_MODELS_H
#define ATTACK_MODELS_H
#include "attack/network.h"
#include "base/config.h"
#include "targets.h"

static const char mlp_recipe[] =
    "[model]\narch = mlp\nimage_height = 5\nimage_width = 4\nimage_channels = 3\nclasses = 4\npixel_mean = 0.5\n"
    "pixel_std = 0.25\nhidden = 24 16\nactivation = relu\ninit = orthogonal\n";
static const char vit_recipe[] =
    "[model]\narch = vit\nimage_height = 8\nimage_width = 8\nimage_channels = 3\nclasses = 5\npixel_mean = 0.5\n"
    "pixel_std = 0.25\npatch = 4\nwidth = 24\ndepth = 2\nheads = 2\nmlp = 40\npool = mean\ninit = orthogonal\n";
static const char gpt_recipe[] = "[model]\narch = gpt\nwidth = 16\ndepth = 1\nheads = 2\ncontext = 6\ninit_std = 0.4\n";
enum { GPT_TOKENS = 11 };

static inline taut_model *make_model(const char *text, const char *kernels, uint64_t init)
{
    taut_config *cfg = NULL;
    taut_model_spec spec;
    taut_model *m = NULL;
    must(taut_config_parse(&cfg, text, "test"));
    must(taut_model_spec_read(&spec, cfg));
    must(taut_config_problem(cfg));
    char *full = taut_config_print(cfg);
    must(taut_model_create(&m, &spec, text == gpt_recipe ? GPT_TOKENS : 0, full, text == gpt_recipe ? "bytes" : "",
                           taut_kernels_find(kernels)));
    must(taut_model_bind(m, false));
    must(taut_model_init(m, init));
    free(full);
    taut_config_free(cfg);
    return m;
}

/* n clean inputs: pixels that are bytes over 255, or embeddings of random tokens. */
static inline void model_inputs(const taut_target *t, double *x, int64_t n, int64_t tokens)
{
    for (int64_t e = 0; e < n; e++) {
        int32_t ids[64];
        for (int64_t i = 0; i < tokens; i++) ids[i] = (int32_t)rng_int(0, GPT_TOKENS - 1);
        if (tokens) taut_network_input(t, x + e * t->dim, (taut_input){ ids, NULL });
        for (int64_t i = 0; !tokens && i < t->dim; i++) x[e * t->dim + i] = (double)rng_int(0, 255) / 255;
    }
}
#endif
