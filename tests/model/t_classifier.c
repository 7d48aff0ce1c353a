/* Classifiers of texts: each tree obeys every law, attack on its bound included; one answer per text, whatever its length; a
 * recipe reads back as it was printed; keys that are of other architectures are refused. */
#include "keys.h"
#include "laws.h"
#include "model/model.h"
#include "model/pass.h"
#include "model/tree.h"
#include "must.h"
#include "proved.h"

static const char *const recipes[] = {
    "norm_eps = 0.3\n",
    "norm = rmsnorm\nnorm_eps = 0.1\nnorm_place = post\npositions = rope\nfinal_norm = true\n",
    "norm = none\nattention = position\nactivation = abs\nresidual = convex\nresidual_alpha = 1\nfirst_residual = "
    "false\n"
    "mlp_residual = false\npositions = none\n",
    "norm = none\nattention = l2\nhead_hidden = 4\nlogit_scale = 2\n",
    "norm_eps = 0.3\nnorm_place = post\nembed_norm = true\npool = class\nhead_hidden = 4\nhead_activation = tanh\n",
    "norm = none\nactivation = maxmin\nhead_hidden = 3\nhead_activation = relu\n",
};
enum { RECIPES = sizeof recipes / sizeof *recipes };

static taut_status read_spec(taut_model_spec *spec, char **printed, const char *lines)
{
    char text[1024];
    taut_config *cfg = NULL;
    snprintf(text, sizeof text,
             "[model]\narch = classifier\nclasses = 3\nwidth = 4\ndepth = 1\nheads = 2\nmlp = 6\ncontext = 3\n%s",
             lines);
    must(taut_config_parse(&cfg, text, "test"));
    taut_status s = taut_model_spec_read(spec, cfg);
    if (!s) s = taut_config_finish(cfg);
    if (printed) *printed = taut_config_print(cfg);
    taut_config_free(cfg);
    return s;
}

static void check_laws(const char *lines)
{
    taut_model_spec spec;
    must(read_spec(&spec, NULL, lines));
    law l;
    law_begin(&l, taut_classifier(&spec), (taut_shape){ 1, 3, 4 });
    law_forward(&l, l.y);
    law_adjoint(&l);
    law_derivative(&l);
    law_parameters(&l);
    law_bound(&l);
    law_end(&l);
}

static void check_model(const char *lines)
{
    taut_model_spec spec;
    taut_model *m = NULL;
    taut_pass *pass = NULL;
    taut_config *cfg = NULL;
    char *printed = NULL;
    const int32_t ids[] = { 1, 6, 0, 2 };
    must(read_spec(&spec, &printed, lines));
    must(taut_model_create(&m, &spec, 7, printed, "bytes", taut_kernels_find("ref")));
    must(taut_model_bind(m, false));
    must(taut_model_init(m, 3));
    for (int n = 0; n < 2; n++) CHECK(isfinite(proved_bound(m, (taut_norm)n).lip.v), lines);
    must(taut_pass_create(&pass, m, 2, 3, false));
    for (int64_t t = 1; t <= 2; t++) {
        taut_pass_forward(pass, ids, 2, t);
        CHECK(pass->logits.shape.n == 2 && pass->logits.shape.t == 1 && pass->logits.shape.d == 3, "one answer each");
    }
    taut_pass_free(pass);
    must(taut_config_parse(&cfg, printed, "printed"));
    must(taut_model_spec_read(&spec, cfg));
    must(taut_config_finish(cfg));
    char *again = taut_config_print(cfg);
    CHECK(strcmp(printed, again) == 0, "a recipe reads back as it was printed");
    taut_config_free(cfg);
    taut_model_free(m);
    free(printed), free(again);
}

static void refused(const char *lines, const char *word)
{
    taut_model_spec spec;
    CHECK(read_spec(&spec, NULL, lines) == TAUT_BAD_CONFIG, lines);
    CHECK(strstr(taut_last_error(), word) != NULL, taut_last_error());
}

int main(void)
{
    test_begin();
    for (case_no = 0; case_no < RECIPES; case_no++) {
        check_laws(recipes[case_no]);
        check_model(recipes[case_no]);
    }
    refused("tied = true\n", "model.tied");
    refused("patch = 2\n", "model.patch");
    refused("norm = none\nfinal_norm = true\n", "model.final_norm");
    refused("attention = probsparse\n", "forecaster");
    refused("pool = concat\n", "model.pool");
    refused("head_activation = tanh\n", "there is no model.head_hidden");
    refused("head_hidden = 4\nhead_activation = maxmin\n", "model.head_activation");
    return test_end("classifier", "%d recipes", RECIPES);
}
