/* The rivals, as recipes: LipsFormer's parts, residual layers in the place of the perceptron, MaxMin.  Each tree obeys
 * every law, attack on its bound included; each weight has a name of its own; what cannot be is refused in one line;
 * a recipe without these keys prints none of them. */
#include "keys.h"
#include "laws.h"
#include "model/model.h"
#include "model/tree.h"
#include "must.h"
#include "proved.h"

static const char *const recipes[] = {
    "attention = cosine\nnorm = centernorm\nnorm_place = post\nresidual = channel\ndroppath = 0.5\ncosine_eps = 0.1\n",
    "attention = cosine\ncosine_values = true\ncosine_eps = 0.3\ncosine_tau = 1\nnorm = none\npositions = rope\n",
    "attention = cosine\ncosine_eps = 0.5\nnorm = rmsnorm\nnorm_eps = 0.1\npositions = alibi\nresidual = convex\n",
    "attention = position\nactivation = abs\nnorm = none\nresidual = convex\nresidual_alpha = 0.5\nfirst_residual = "
    "false\n"
    "mlp_residual = false\npositions = none\n",
    "attention = window\nwindow_size = 1\nnorm = none\n",
    "attention = window\nwindow_size = 1\nwindow_global = 1\nnorm_eps = 0.3\n",
    "attention = position\nattention_blocks = 0\nnorm = rmsnorm\nnorm_eps = 0.1\n",
    "mlp_block = sll\nactivation = relu\nnorm = none\n",
    "mlp_block = sll\nactivation = tanh\nnorm = centernorm\nnorm_place = post\nbias = false\n",
    "mlp_block = potential\nactivation = relu\nnorm = none\ninit = spectral\n",
    "activation = maxmin\nnorm = centernorm\nresidual = channel\nresidual_alpha = 0.3\ndropout = 0.2\n",
    "activation = maxmin\nactivation_factor = 0.5\nnorm = none\nresidual = convex\n",
};
/* no causal form: encoders only */
static const char *const linear_time[] = {
    "attention = plash\nplash_groups = 2\nplash_degrees = 1 2\nplash_sizes = 8\nplash_floor = 0.5\nplash_norm_eps = "
    "0.3\n"
    "norm_eps = 0.3\n",
    "attention = plash\nplash_groups = 3\nplash_degrees = 2\nplash_sizes = 4\nplash_floor = 0.5\nplash_mixers = 0\n"
    "plash_features = 3\nnorm = none\nplash_tau = 0.5\nplash_hash = fixed\nplash_pair = qk\n",
    "attention = cosformer\ncosformer_eps = 0.5\nnorm_eps = 0.3\n",
    "attention = performer\nperformer_features = 3\nnorm_eps = 0.3\n",
    "attention = nystrom\nnystrom_landmarks = 2\nnystrom_steps = 2\nnorm_eps = 0.3\n",
    "attention = clustered\nclusters = 2\nnorm_eps = 0.3\n",
    "attention = l2\nnorm = none\nmlp_block = sll\nactivation = relu\n",
    "attention = attlip\nnorm = none\nmlp_block = sll\nactivation = relu\nattlip_loose = 0\nattlip_tol = 1e-12\n"
    "attlip_learned = true\nattlip_reflected = true\nattlip_turn = true\nattlip_head_width = 1\nattlip_slope_tol = "
    "1e-15\n",
    "attention = position\nlast_attention = attlip\nnorm = none\nmlp_block = sll\nactivation = relu\nattlip_loose = 0\n"
    "attlip_tol = 1e-12\nattlip_reflected = true\nattlip_turn = true\nattlip_head_width = 1\nattlip_slope_tol = "
    "1e-15\n",
    "attention = clustered\nclusters = 3\ncluster_first = true\ncluster_steps = 0\nnorm = none\n",
};
enum { LINEAR_TIME = sizeof linear_time / sizeof *linear_time };
enum { RECIPES = sizeof recipes / sizeof *recipes };

static taut_status read_spec(taut_model_spec *spec, char **printed, const char *lines, bool encoder)
{
    char text[1024];
    taut_config *cfg = NULL;
    snprintf(text, sizeof text, "[model]\narch = %s\nwidth = 4\ndepth = 1\nheads = 2\n%s%s%s",
             encoder ? "encoder" : "gpt", strstr(lines, "mlp =") ? "" : "mlp = 6\n",
             strstr(lines, "context =") ? "" : "context = 3\n", lines);
    must(taut_config_parse(&cfg, text, "test"));
    taut_status s = taut_model_spec_read(spec, cfg);
    if (!s) s = taut_config_finish(cfg);
    if (printed) *printed = taut_config_print(cfg);
    taut_config_free(cfg);
    return s;
}

static void check_laws(const char *lines, bool encoder)
{
    taut_model_spec spec;
    must(read_spec(&spec, NULL, lines, encoder));
    law l;
    law_begin(&l, encoder ? taut_encoder(&spec) : taut_gpt(&spec), (taut_shape){ 1, 3, 4 });
    for (int i = 0; i < l.params; i++) /* the scale of a potential layer, where 1/s is tame */
        if (l.seen[i]->above) *(double *)l.seen[i]->value = 1 + rng_unit();
    law_forward(&l, l.y);
    law_adjoint(&l);
    law_derivative(&l);
    law_parameters(&l);
    law_bound(&l);
    law_end(&l);
}

/* A whole model: named, started, and bounded. */
static void check_model(const char *lines, bool encoder)
{
    taut_model_spec spec;
    taut_model *m = NULL;
    char *printed = NULL, *again = NULL;
    must(read_spec(&spec, &printed, lines, encoder));
    must(taut_model_create(&m, &spec, 7, printed, "bytes", taut_kernels_find("ref")));
    must(taut_model_bind(m, false));
    must(taut_model_init(m, 3));
    for (int i = 0; i < m->weights; i++)
        for (int j = 0; j < i; j++) CHECK(strcmp(m->weight[i].path, m->weight[j].path) != 0, m->weight[i].path);
    for (int n = 0; n < 2; n++)
        CHECK(isfinite(proved_bound(m, (taut_norm)n).lip.v) !=
                  (attends(&spec, "clustered") || attends(&spec, "nystrom")),
              lines);
    taut_config *cfg = NULL;
    must(taut_config_parse(&cfg, printed, "printed"));
    must(taut_model_spec_read(&spec, cfg));
    must(taut_config_finish(cfg));
    again = taut_config_print(cfg);
    CHECK(strcmp(printed, again) == 0, "a recipe reads back as it was printed");
    taut_config_free(cfg);
    taut_model_free(m);
    free(printed), free(again);
}

static void refused_by(const char *lines, const char *word, bool encoder)
{
    taut_model_spec spec;
    CHECK(read_spec(&spec, NULL, lines, encoder) == TAUT_BAD_CONFIG, lines);
    CHECK(strstr(taut_last_error(), word) != NULL, taut_last_error());
}
static void refused(const char *lines, const char *word) { refused_by(lines, word, false); }
static void encoder_refused(const char *lines, const char *word) { refused_by(lines, word, true); }

static void check_start(void)
{
    taut_model_spec spec;
    taut_model *m = NULL;
    must(read_spec(&spec, NULL,
                   "residual = channel\ninit = spectral\ninit_std = 2\nmlp_block = potential\nnorm = none\n", false));
    must(taut_model_create(&m, &spec, 7, "", "bytes", taut_kernels_find("ref")));
    must(taut_model_bind(m, false));
    must(taut_model_init(m, 3));
    const double *a = taut_ref_values(taut_model_find(m, "block.0.scale1.weight")->param);
    for (int c = 0; c < 4; c++) CHECK_NEAR(a[c], 1, 0, "strength 1/depth");
    CHECK_NEAR(*taut_ref_values(taut_model_find(m, "block.0.mlp.scale")->param), 4, 0, "s = ||W||^2 at the start");
    const taut_param *w = taut_model_find(m, "block.0.attn.q.weight")->param;
    double u[4] = { 1, 0.3, -0.2, 0.5 }, v[4] = { 0 };
    for (int step = 0; step < 400; step++) {
        const double size = norm(u, 4);
        for (int i = 0; i < 4; i++) v[i] = dot(taut_ref_values(w) + i * 4, u, 4) / size;
        for (int j = 0; j < 4; j++) u[j] = 0;
        for (int i = 0; i < 4; i++)
            for (int j = 0; j < 4; j++) u[j] += taut_ref_values(w)[i * 4 + j] * v[i];
    }
    CHECK_NEAR(norm(v, 4), 2, 1e-6, "spectral init: the largest singular value is init_std");
    taut_model_free(m);
}

static void attlip_refusals(void)
{
    refused("attention = attlip\nnorm = none\n", "the future too");
    refused("attention = l2\n", "causal");
    encoder_refused("attention = attlip\nnorm_place = pre\n", "norm_place = post");
    encoder_refused("attention = attlip\nattlip_eta = 0\n", "attlip_eta");
    encoder_refused("attention = attlip\nattlip_eta = -1\n", "attlip_eta");
    encoder_refused("attention = attlip\nattlip_tol = 1e-30\n", "attlip_tol");
    encoder_refused("attention = attlip\nattlip_unrolled = true\n", "attlip_steps above 0");
    encoder_refused("attention = attlip\npositions = alibi\n", "attlip_near");
    encoder_refused("attention = attlip\nattlip_near = -1\n", "attlip_near");
    encoder_refused("attention = attlip\nattention_factor = 2\n", "a scale of its own");
    encoder_refused("attention = attlip\nattention_scale = inv_head\n", "model.attention_scale would change nothing");
    encoder_refused("attention = l2\nattention_out = 2\n", "a factor of its own");
    encoder_refused("attention = l2_free\nattention_scale = inv_width\n", "model.attention_scale would change nothing");
    encoder_refused("attention = attlip\nfirst_residual = false\n", "first_residual");
    encoder_refused("attention = l2\npositions = rope\n", "positions");
    refused("last_attention = attlip\nnorm = none\n", "causal");
    encoder_refused("last_attention = attlip\n", "model.last_attention is for");
    encoder_refused("last_attention = cosine\nnorm = none\n", "model.last_attention is for");
    encoder_refused("attention = attlip\nlast_attention = attlip\nnorm = none\n", "another than");
    encoder_refused("last_attention = attlip\nlast_blocks = 2\nnorm = none\n", "last_blocks");
    encoder_refused("last_blocks = 1\n", "last_blocks");
    encoder_refused("attlip_tol = 1e-4\n", "attlip_tol");
}

static void idle_keys(void)
{
    refused("attention = cosine\nattention_out = 0.5\n", "a factor of its own");
    refused("attention = cosine\nattention_factor = 2\n", "a scale of its own");
    refused("attention = cosine\nattention_scale = inv_head\n", "model.attention_scale would change nothing");
    refused("rope_base = 100\n", "model.rope_base would change nothing");
    refused("residual_alpha = 0.5\n", "model.residual_alpha would change nothing");
    refused("norm = none\nembed_norm = true\n", "model.embed_norm would change nothing");
    refused("norm = none\nnorm_eps = 0.1\n", "model.norm_eps would change nothing");
    refused("norm = centernorm\nnorm_eps = 0.1\n", "model.norm_eps would change nothing");
    refused("attention = position\nattention_out = 0.5\n", "model.attention_out would change nothing");
}

int main(void)
{
    test_begin();
    for (case_no = 0; case_no < effort(RECIPES * 4); case_no++) {
        const char *lines = recipes[case_no % RECIPES];
        check_laws(lines, case_no / RECIPES % 2);
        check_model(lines, case_no / RECIPES % 2);
    }
    for (case_no = 0; case_no < effort(LINEAR_TIME * 4); case_no++) {
        check_laws(linear_time[case_no % LINEAR_TIME], true);
        check_model(linear_time[case_no % LINEAR_TIME], true);
    }
    check_start();
    refused("attention = plash\n", "causal");
    refused("attention = clustered\n", "causal");
    attlip_refusals();
    idle_keys();
    encoder_refused("attention = plash\nplash_groups = 4\n", "model.plash_groups = 4");
    encoder_refused("attention = plash\nplash_sizes = 12\n", "plash_sizes = 12 wants powers of two");
    encoder_refused("attention = plash\nplash_sizes = 8 8 8\n", "plash_sizes");
    encoder_refused("attention = plash\nplash_degrees = 0\n", "plash_degrees = 0");
    encoder_refused("attention = plash\nplash_degrees = 1 1\n", "plash_degrees");
    encoder_refused("attention = plash\nplash_tau = 0\n", "plash_tau");
    encoder_refused("attention = plash\nplash_hash = fixed\nplash_sizes = 2\n", "plash_sizes = 2 wants at least");
    encoder_refused("attention = plash\nplash_pair = kk\n", "plash_pair");
    encoder_refused("attention = plash\nplash_tau_g = -1\n", "plash_tau_g");
    encoder_refused("attention = plash\npositions = rope\n", "positions");
    encoder_refused("attention = clustered\nclusters = 9\n", "model.clusters = 9");
    refused("attention = position\npositions = rope\n", "position");
    refused("attention = position\ncontext = 16777216\n", "context");
    refused("attention_blocks = 2\n", "attention_blocks");
    refused("mlp_block = sll\nactivation = relu\nnorm = none\nmlp_residual = false\n", "mlp_residual");
    refused("mlp_block = sll\nactivation = abs\nnorm = none\n", "activation");
    refused("attention = dot\n", "attention");
    refused("cosine_tau = 3\n", "cosine_tau");
    refused("mlp_block = sll\nactivation = relu\n", "norm_place");
    refused("mlp_block = sll\nnorm = none\nactivation = maxmin\n", "activation");
    refused("mlp_block = potential\nnorm = none\nactivation = relu\nactivation_factor = 0.5\n", "activation");
    refused("activation = maxmin\nmlp = 7\n", "even");
    taut_model_spec spec;
    char *printed = NULL;
    must(read_spec(&spec, &printed, "", false));
    CHECK(!strstr(printed, "cosine") && !strstr(printed, "attention =") && !strstr(printed, "mlp_block") &&
              !strstr(printed, "attention_blocks") && !strstr(printed, "first_residual"),
          "no new keys");
    free(printed);
    return test_end("architectures", "%d recipes; worst slope / bound = %.6f", RECIPES, law_worst);
}
