/* One [model] section of every architecture that the checker knows. */
#ifndef KINDS_H
#define KINDS_H
#include "base/float32.h"
#include "certify/build.h"

#define TEXT "[model]\nwidth = 8\ndepth = 2\nheads = 2\ncontext = 5\nmlp = 6\n"
#define VIT                                                                                                       \
    "[model]\narch = vit\nimage_height = 4\nimage_width = 4\nimage_channels = 1\nclasses = 4\npixel_mean = 0.5\n" \
    "pixel_std = 0.25\npatch = 2\nwidth = 8\ndepth = 1\nheads = 2\nmlp = 12\n"
#define SERIES "[model]\narch = forecaster\nseq = 5\nahead = 2\ncolumns = 2\nmarks = 1\nwidth = 8\nheads = 2\nmlp = 6\n"
static const char *const kinds[] = {
    TEXT "norm = layernorm\n",
    TEXT "norm = rmsnorm\nnorm_place = post\npositions = rope\nactivation = silu\ntied = false\n",
    TEXT "norm = none\nactivation = abs\nresidual = convex\npositions = alibi\nlogit_scale = 0.5\n",
    TEXT "arch = encoder\nnorm = centernorm\nactivation = maxmin\nattention = cosine\ncosine_eps = 0.1\n",
    TEXT
    "norm = none\nattention = cosine\ncosine_values = true\ncosine_eps = 0.1\nresidual = channel\ndroppath = 0.1\n",
    TEXT "norm = none\nactivation = relu\nmlp_block = potential\n",
    TEXT "norm = none\nactivation = relu\nmlp_block = sll\n",
    TEXT "norm = none\nattention = position\nactivation = relu\n",
    TEXT "arch = encoder\nnorm = centernorm\nnorm_place = post\nattention = l2\n",
    TEXT "arch = encoder\nnorm = none\nattention = attlip\nattlip_head_width = 3\nattlip_learned = true\n"
         "positions = rope\nattlip_near = 0.5\n",
    TEXT "arch = classifier\nclasses = 3\nnorm = layernorm\n",
    TEXT "arch = classifier\nclasses = 4\nnorm = none\nattention = position\nactivation = abs\nresidual = convex\n"
         "head_hidden = 5\nlogit_scale = 0.5\n",
    TEXT "arch = classifier\nclasses = 3\nnorm_place = post\nembed_norm = true\npool = class\nhead_hidden = 5\n"
         "head_activation = tanh\n",
    VIT "norm = none\n",
    VIT "norm = none\nattention = l2\nresidual = convex\n",
    VIT "norm = none\nattention = attlip\nattlip_reflected = true\nattlip_turn = true\nattlip_eta = 0.25\n"
        "mlp_block = sll\nactivation = relu\npool = mean\n",
    VIT "norm = layernorm\npool = mean\npositions = none\n",
    VIT "norm = none\nresidual = convex\nattention = position\ntorus = true\npool = concat\nactivation = relu\n"
        "head_hidden = 5\n",
    ("[model]\narch = mlp\nimage_height = 3\nimage_width = 2\nimage_channels = 2\nclasses = 4\npixel_mean = 0.5 0.25\n"
     "pixel_std = 0.5\nhidden = 6 4\nactivation = relu\n"),
    SERIES "label = 2\ndepth = 1\nnorm_eps = 0.1\n",
    SERIES "label = 2\ndepth = 3\nattention = l2\ndistil = true\nbias = false\nnorm_eps = 0.1\n",
    SERIES
    "label = 5\ndepth = 1\ndecoder_depth = 2\nnorm = none\nattention = position\nactivation = abs\nresidual = convex\n",
    SERIES "label = 1\ndepth = 2\nnorm = none\nattention = attlip\nattlip_head_width = 3\nlogit_scale = 0.5\n",
    SERIES
    "label = 0\ndepth = 1\nattention = cosine\ncosine_eps = 0.1\nnorm = rmsnorm\nnorm_eps = 0.1\nactivation = maxmin\n",
    TEXT "norm = layernorm\nattention = window\nwindow_size = 2\n",
    TEXT "arch = classifier\nclasses = 3\nnorm = none\nattention = window\nwindow_size = 1\nbias = false\n",
    VIT "norm = none\nattention = window\nwindow_size = 1\nwindow_global = 1\nresidual = convex\n",
    VIT "norm = none\nattention = cosformer\ncosformer_eps = 0.1\n",
    SERIES "label = 2\ndepth = 2\ndistil = true\nattention = cosformer\nnorm_eps = 0.1\nbias = false\n",
    TEXT "arch = classifier\nclasses = 3\nnorm = none\nattention = performer\nperformer_features = 7\n",
    SERIES "label = 2\ndepth = 1\nattention = performer\nnorm_eps = 0.1\n",
    VIT "norm = none\nattention = nystrom\nnystrom_landmarks = 3\nnystrom_steps = 2\n",
    SERIES "label = 1\ndepth = 1\nattention = nystrom\nnystrom_landmarks = 2\nbias = false\nnorm_eps = 0.1\n",
    VIT "norm = none\nattention = clustered\nclusters = 2\n",
    SERIES "label = 1\ndepth = 1\nattention = clustered\nclusters = 2\ncluster_first = true\nnorm_eps = 0.1\n",
    SERIES "label = 2\ndepth = 1\nattention = probsparse\nnorm_eps = 0.1\n",
    VIT "norm = none\nattention = plash\nplash_groups = 3\nplash_mixers = 0\nplash_floor = 1\nplash_sizes = 16\n",
    TEXT "arch = classifier\nclasses = 3\nnorm = none\nattention = plash\nplash_groups = 2\nplash_features = 5\n"
         "plash_degrees = 1 3\nplash_sizes = 8 4\nplash_pair = qv\nplash_norm_eps = 1\nplash_floor = 1\n",
    TEXT "arch = encoder\nnorm = none\nattention = plash\nplash_groups = 2\nplash_hash = fixed\nplash_sizes = 16\n"
         "plash_pair = qk\nplash_norm_eps = 1\nplash_floor = 1\nbias = false\n",
    SERIES "label = 2\ndepth = 1\nattention = plash\nplash_groups = 2\nplash_tau = 0.5\nplash_tau_g = 2\n"
           "plash_degrees = 2\nplash_sizes = 8\nplash_norm_eps = 1\nplash_floor = 1\nnorm_eps = 0.1\n",
};
enum { KINDS = sizeof kinds / sizeof *kinds };

static inline bool is_image(int kind) { return strstr(kinds[kind], "image_height") != NULL; }
/* No constant, and no forward pass that could confirm another. */
static inline bool is_jumping(int kind)
{
    return strstr(kinds[kind], "nystrom") || strstr(kinds[kind], "clustered") || strstr(kinds[kind], "probsparse");
}
static inline bool is_series(int kind) { return strstr(kinds[kind], "forecaster") != NULL; }

/* That model with random weights, saved. */
static inline void save_kind(int kind, const char *path)
{
    taut_model *m = blank_model(kinds[kind], is_image(kind) || is_series(kind) ? 0 : 11, false);
    for (int64_t i = 0; i < m->slab; i++) ((double *)m->values)[i] = taut_float32(0.6 * rng_pm());
    for (int i = 0; i < m->weights; i++)
        if (strstr(m->weight[i].path, "mlp.scale")) ((double *)m->values)[m->weight[i].offset] = 3;
    must(taut_model_save(m, path));
    taut_model_free(m);
}
#endif
