/* A forecaster obeys every law, with every kind of attention, with and without distilling; the rows it is to fill do not see
 * later ones through its own attention; it reads back as it was written; it trains; it takes every length that Informer's
 * experiments have. */
#include "laws.h"
#include "model/model.h"
#include "model/pass.h"
#include "model/tree.h"

static taut_status read_spec(taut_model_spec *spec, const char *lines)
{
    char text[1024];
    taut_config *cfg = NULL;
    snprintf(text, sizeof text,
             "[model]\narch = forecaster\nseq = 4\n%s%s%scolumns = 2\nmarks = 1\nwidth = 4\n"
             "heads = 2\nmlp = 5\n%s%s",
             strstr(lines, "label") ? "" : "label = 1\n", strstr(lines, "ahead") ? "" : "ahead = 2\n",
             strncmp(lines, "depth", 5) && !strstr(lines, "\ndepth") ? "depth = 1\n" : "",
             strstr(lines, "norm = none") ? "" : "norm_eps = 0.3\n", lines);
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
    laws_hold(taut_forecaster(&spec), (taut_shape){ 2, spec.label + spec.ahead + spec.seq, 3 });
}

/* Rows read, rows known to the decoder, rows ahead: of ETTh1, ETTh2, ETTm1 and WTH, all columns or one. */
static void lengths(const char *attention)
{
    static const int known[][3] = {
        { 48, 48, 24 },    { 96, 48, 24 },    { 672, 96, 24 },   { 168, 168, 24 },  { 720, 168, 24 },
        { 96, 48, 48 },    { 96, 96, 48 },    { 720, 168, 48 },  { 384, 384, 96 },  { 168, 168, 168 },
        { 336, 336, 168 }, { 336, 168, 168 }, { 720, 336, 168 }, { 672, 288, 288 }, { 384, 384, 288 },
        { 168, 168, 336 }, { 336, 168, 336 }, { 336, 336, 336 }, { 720, 168, 336 }, { 672, 384, 672 },
        { 384, 384, 672 }, { 336, 336, 720 }, { 720, 336, 720 },
    };
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        const int *x = known[i];
        char lines[256];
        taut_model_spec spec;
        taut_config *cfg = NULL;
        snprintf(
            lines, sizeof lines,
            "[model]\narch = forecaster\nseq = %d\nlabel = %d\nahead = %d\nwidth = 8\nheads = 2\nmlp = 8\ndepth = 3\n"
            "decoder_depth = 2\ndistil = true\nattention = %s\n",
            x[0], x[1], x[2], attention);
        taut_status s = taut_config_parse(&cfg, lines, "lengths");
        if (!s) s = taut_model_spec_read(&spec, cfg);
        taut_config_free(cfg);
        CHECK(s == TAUT_OK, taut_last_error());
        taut_module *m = taut_forecaster(&spec);
        const taut_shape out = taut_plan_of(m, (taut_shape){ 2, x[0] + x[1] + x[2], spec.columns + spec.marks }).out;
        CHECK(out.t == x[2] && out.d == 8, attention);
        taut_module_free(m);
    }
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

static void answer(double out[8], const char *lines)
{
    taut_model_spec spec;
    taut_model *m = NULL;
    taut_pass *pass = NULL;
    double x[10 * 3];
    CHECK(read_spec(&spec, lines) == TAUT_OK, taut_last_error());
    CHECK(taut_model_create(&m, &spec, 0, "", "", taut_kernels_find("ref")) == TAUT_OK, taut_last_error());
    CHECK(taut_model_bind(m, false) == TAUT_OK && taut_model_init(m, 5) == TAUT_OK, taut_last_error());
    CHECK(taut_pass_create(&pass, m, 1, 10, false) == TAUT_OK, taut_last_error());
    for (int i = 0; i < 30; i++) x[i] = sin(i);
    taut_pass_forward_real(pass, x, 1);
    memcpy(out, pass->logits.data, 8 * sizeof *out);
    taut_pass_free(pass);
    taut_model_free(m);
}

/* All four of the encoder's tokens look, so what differs from softmax is the decoder, where four of six do. */
static void sparse_decoder(void)
{
    double softmax[8], both[8], encoder[8], far = 0;
    answer(softmax, "label = 2\nahead = 4\n");
    answer(both, "label = 2\nahead = 4\nattention = probsparse\nsparse_factor = 2\n");
    answer(encoder, "label = 2\nahead = 4\nattention = probsparse\nsparse_factor = 2\nsparse_decoder = false\n");
    for (int i = 0; i < 8; i++) {
        CHECK_NEAR(encoder[i], softmax[i], 1e-12, "softmax in the decoder");
        far = fmax(far, fabs(both[i] - softmax[i]));
    }
    CHECK(far > 1e-3, "ProbSparse in the decoder");
}

/* Without attention an encoder's tokens do not meet, nor do the decoder's: its own has no weights, what it asks with has. */
static void without(void)
{
    taut_model_spec spec;
    taut_model *m = NULL;
    CHECK(read_spec(&spec, "attention_blocks = 0\n") == TAUT_OK, taut_last_error());
    CHECK(taut_model_create(&m, &spec, 0, "", "", taut_kernels_find("ref")) == TAUT_OK, taut_last_error());
    CHECK(!taut_model_find(m, "enc.rest.block.0.attn.q.weight"), "none in the encoder");
    CHECK(taut_model_find(m, "enc.rest.block.0.mlp.in.weight") && taut_model_find(m, "dec.0.cross.attn.q.weight"),
          "the rest");
    for (int i = 0; i < m->weights; i++) CHECK(!strstr(m->weight[i].path, ".self."), m->weight[i].path);
    taut_model_free(m);
}

static void refused(const char *lines, const char *word)
{
    taut_model_spec spec;
    CHECK(read_spec(&spec, lines) == TAUT_BAD_CONFIG, lines);
    CHECK(strstr(taut_last_error(), word) != NULL, taut_last_error());
}

static void refusals(void)
{
    refused("label = 5\n", "model.label = 5");
    refused("attention = plash\nplash_tau = 0\n", "model.plash_tau");
    refused("attention = plash\nplash_groups = 2\nplash_sizes = 12\n", "plash_sizes = 12 wants powers of two");
    refused("attention = plash\nplash_groups = 2\nplash_degrees = 0\n", "plash_degrees = 0");
    refused("attention = clustered\nclusters = 9\n", "model.clusters = 9");
    refused("attention = probsparse\nsparse_factor = 0\n", "model.sparse_factor");
    refused("attention = window\nwindow_size = 0\n", "model.window_size");
    refused("attention = cosformer\ncosformer_eps = 0\n", "model.cosformer_eps");
    refused("attention = performer\nwindow_size = 4\n", "window_size");
    refused("ahead = 0\n", "model.ahead");
    refused("attention = plash\nplash_groups = 9\n", "plash_groups");
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
        holds("attention = probsparse\nsparse_factor = 1\nsparse_decoder = false\n");
        holds("attention = window\nwindow_size = 1\n");
        holds("attention = window\nwindow_size = 2\nwindow_global = 1\nnorm = none\n");
        holds("attention = cosformer\ncosformer_eps = 0.3\n");
        holds("attention = performer\nperformer_features = 3\n");
        holds("attention = nystrom\nnystrom_landmarks = 2\nnystrom_steps = 2\n");
        holds("attention_blocks = 0\nattention = plash\nplash_groups = 2\nplash_floor = 0.5\nplash_norm_eps = 0.3\n");
        holds("attention = l2\n");
        holds("attention = l2_free\nnorm = none\n");
        holds("attention = cosine\ncosine_eps = 0.3\n");
        holds("attention = position\n");
        holds("attention = position\nlabel = 3\nahead = 4\n"); /* the decoder has more tokens than the encoder */
        holds("attention = attlip\nattlip_tol = 1e-12\nattlip_slope_tol = 1e-15\nattlip_loose = 0\n");
        holds("distil = true\ndepth = 3\n");
        holds("distil = true\ndepth = 2\nattention = plash\nplash_groups = 4\nplash_sizes = 8\nplash_floor = 0.5\n"
              "plash_norm_eps = 0.3\nplash_prototypes = random\n");
    }
    shape();
    sparse_decoder();
    without();
    const char *const kinds[] = { "softmax",
                                  "probsparse",
                                  "plash\nplash_groups = 4",
                                  "clustered\nclusters = 4",
                                  "l2",
                                  "attlip",
                                  "cosine",
                                  "position",
                                  "window",
                                  "cosformer",
                                  "performer",
                                  "nystrom" };
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) lengths(kinds[i]);
    refusals();
    return test_end("forecaster", "worst slope / bound = %.6f", law_worst);
}
