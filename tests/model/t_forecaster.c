/* A forecaster obeys every law, with every kind of attention, with and without distilling; the rows it is to fill do not see
 * later ones through its own attention; it reads back as it was written; it trains. */
#include "laws.h"
#include "model/model.h"
#include "model/tree.h"

static taut_status read_spec(taut_model_spec *spec, const char *lines)
{
    char text[1024];
    taut_config *cfg = NULL;
    snprintf(text, sizeof text,
             "[model]\narch = forecaster\nseq = 4\n%s%s%scolumns = 2\nmarks = 1\nwidth = 4\n"
             "heads = 2\nmlp = 5\nnorm_eps = 0.3\n%s",
             strstr(lines, "label") ? "" : "label = 1\n", strstr(lines, "ahead") ? "" : "ahead = 2\n",
             strncmp(lines, "depth", 5) && !strstr(lines, "\ndepth") ? "depth = 1\n" : "", lines);
    taut_status s = taut_config_parse(&cfg, text, "test");
    if (!s) s = taut_model_spec_read(spec, cfg);
    if (!s) s = taut_config_finish(cfg);
    taut_config_free(cfg);
    return s;
}

static void holds(const char *lines)
{
    taut_model_spec spec;
    CHECK(read_spec(&spec, lines) == TAUT_OK, taut_last_error());
    laws_hold(taut_forecaster(&spec), (taut_shape){ 2, 7, 3 }, NULL);
}

static void shape(void)
{
    taut_model_spec spec;
    taut_model *m = NULL;
    CHECK(read_spec(&spec, "decoder_depth = 2\n") == TAUT_OK, taut_last_error());
    CHECK(taut_model_create(&m, &spec, 0, "", "", taut_kernels_find("ref")) == TAUT_OK, taut_last_error());
    CHECK(m->in.t == 7 && m->in.d == 3 && m->classes == 2, "what it reads");
    const taut_shape out = taut_plan_of(m->root, m->in).out;
    CHECK(out.t == 2 && out.d == 2, "what it answers");
    CHECK(taut_model_find(m, "dec.1.cross.attn.q.weight") && taut_model_find(m, "enc.rest.block.0.attn.q.weight"),
          "names");
    CHECK(taut_model_reach(m).v == INFINITY, "a row may be anything");
    taut_model_free(m);
}

static void refused(const char *lines, const char *word)
{
    taut_model_spec spec;
    CHECK(read_spec(&spec, lines) == TAUT_BAD_CONFIG, lines);
    CHECK(strstr(taut_last_error(), word) != NULL, taut_last_error());
}

int main(void)
{
    test_begin();
    for (case_no = 0; case_no < effort(3); case_no++) {
        holds("");
        holds("norm = none\nactivation = relu\ndecoder_depth = 2\n");
        holds("attention = plash\nplash_groups = 2\nplash_sizes = 8\nplash_floor = 0.5\nplash_norm_eps = 0.3\n");
        holds("attention = clustered\nclusters = 2\n");
        holds("attention = probsparse\nsparse_factor = 1\n");
        holds("attention = l2\n");
        holds("attention = l2_free\nnorm = none\n");
        holds("attention = cosine\ncosine_eps = 0.3\n");
        holds("attention = position\n");
        holds("attention = attlip\nattlip_tol = 1e-12\nattlip_slope_tol = 1e-15\nattlip_loose = 0\n");
        holds("distil = true\ndepth = 3\n");
        holds("distil = true\ndepth = 2\nattention = plash\nplash_groups = 4\nplash_sizes = 8\nplash_floor = 0.5\n"
              "plash_norm_eps = 0.3\nplash_prototypes = random\n");
    }
    shape();
    refused("label = 5\n", "model.label = 5");
    refused("attention = plash\nplash_tau = 0\n", "model.plash_tau");
    refused("attention = plash\nplash_groups = 2\nplash_sizes = 12\n", "plash_sizes = 12 wants powers of two");
    refused("attention = plash\nplash_groups = 2\nplash_degrees = 0\n", "plash_degrees = 0");
    refused("attention = clustered\nclusters = 9\n", "model.clusters = 9");
    refused("attention = probsparse\nsparse_factor = 0\n", "model.sparse_factor");
    refused("ahead = 0\n", "model.ahead");
    refused("attention = plash\nplash_groups = 9\n", "plash_groups");
    return test_end("forecaster", "worst slope / bound = %.6f", law_worst);
}
