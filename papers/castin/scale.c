/* "How Smooth Is Attention?", figures 2 and 3: the factor 2 R^2 gamma that decides up to which length the sqrt(n) bound is
 * attained, layer by layer on a text; and the configuration of Appendix C.7, whose slope grows like the square of the
 * radius, as tokens and as a measure of three atoms. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "api/net.h"
#include "base/alloc.h"
#include "cli/cli.h"
#include "data/text.h"
#include "measure/adversarial.h"
#include "measure/fit.h"
#include "measure/meanfield.h"
#include "measure/slope.h"
#include "model/capture.h"
#include "papers/paper.h"

/* The logit gaps of one head at the radius of the tokens: the published construction's, which is 2 R^2 gamma, and the
 * general one. */
static taut_status gaps(double out[2], const taut_capture *c, int layer, int64_t head, double r)
{
    const taut_kernels *k = c->m->k;
    const taut_attention_view v = taut_attention_look(c->layer[layer].attention);
    const int64_t d = v.spec->width, dh = d / v.spec->heads, len = dh * d;
    double *w = taut_malloc((size_t)(2 * len) * sizeof *w);
    if (!w) return taut_no_memory("a head's weights");
    for (int i = 0; i < 2; i++) k->get(w + i * len, taut_at(k, v.weight[i]->value, head * len), len);
    const taut_logits l = { w, w + len, dh, d, v.spec->scale };
    taut_status s = TAUT_OK;
    for (int general = 0; !s && general < 2; general++) {
        taut_clusters two;
        s = general ? taut_clusters_general(&two, &l, 4, 1) : taut_clusters_castin(&two, &l);
        if (s) break;
        out[general] = two.gap * r * r;
        taut_clusters_free(&two);
    }
    free(w);
    return s;
}

static double radius_of(const taut_capture *c, int layer, double *buffer)
{
    const taut_tensor z = c->layer[layer].z;
    const int64_t len = taut_len(z.shape);
    double sum = 0;
    c->m->k->get(buffer, z.data, len);
    for (int64_t i = 0; i < len; i++) sum += buffer[i] * buffer[i];
    return sqrt(sum / (double)taut_rows(z.shape));
}

/* Five extracts of 50 tokens, as one batch. */
static taut_status scale_rows(cJSON *table, const char *name, const paper_options *o)
{
    enum { EXTRACTS = 5, TOKENS = 50 };
    static const char alice[] = "alice/carroll-alice.txt";
    taut_net *m = NULL;
    taut_text *text = NULL;
    taut_capture *c = NULL;
    if (taut_net_open(&m, name, NULL)) return TAUT_BAD_FILE;
    taut_status s = taut_text_open(&text, paper_source(o, alice, o->tiny ? "brackets" : alice), "bytes", 0, m->vocab,
                                   o->tiny ? 4000 : 0, 1);
    if (!s && text->len < EXTRACTS * TOKENS)
        s = taut_fail(TAUT_BAD_DATA, "a text of fewer than %d tokens", EXTRACTS * TOKENS);
    if (!s) s = taut_capture_create(&c, m->model, EXTRACTS, TOKENS);
    double *buffer = taut_malloc((size_t)(EXTRACTS * TOKENS * m->model->spec.width) * sizeof *buffer);
    if (!s && !buffer) s = taut_no_memory("activations");
    if (!s) taut_capture_run(c, text->ids, EXTRACTS, TOKENS);
    for (int l = 0; !s && l < c->layers; l += paper_pick(o, 12, 3, 1))
        for (int64_t h = 0; !s && h < m->model->spec.heads; h += o->tiny ? 12 : 5) {
            const double r = radius_of(c, l, buffer);
            double two[2] = { 0 };
            cli_bar((double)l / c->layers, name);
            s = gaps(two, c, l, h, r);
            paper_row(table, name, (double[]){ l, (double)h, r, two[0], two[1], 1 + exp(fmin(two[0], 700)) }, 6);
        }
    free(buffer);
    taut_capture_free(c);
    taut_text_free(text);
    taut_net_free(m);
    return s;
}

cJSON *paper_castin_fig2(const paper_options *o)
{
    static const char *const names[] = { "model", "layer", "head", "radius", "2 R^2 gamma", "general gap", "n up to" };
    cJSON *table = paper_table(
        "castin figure 2: the factor that decides how long sqrt(n) is attained", names, 7,
        (paper_words){
            .published = "2 R^2 gamma is 10^2 to 10^3 for pretrained BERT, as a picture.",
            .ours =
                "random weights (seed 1), five extracts of 50 tokens of Alice (small: every third layer, every fifth "
                "head); up to length n the bound sqrt(n-1)/2 is attained by the published construction, by the general "
                "one as long as its gap allows.",
            .why =
                "The weights are random, not pretrained, whose logits are larger: that is the whole factor of ten to a "
                "hundred." });
    if ((o->tiny || !scale_rows(table, "bert-base", o)) && !scale_rows(table, "gpt2", o)) return table;
    cJSON_Delete(table);
    return NULL;
}

static void bind(taut_param *p, const char *path, void *arg)
{
    (void)path;
    p->value = arg;
}

/* The same tokens as a measure: atoms 0, R e and -R e with the mass of their tokens. */
static double as_measure(const double *id, int64_t n, double r)
{
    const double half = (double)((n - 1) / 2) / (double)n, x[] = { 0, 0, r, 0, -r, 0 },
                 mass[] = { 1 / (double)n, half, 1 - half - 1 / (double)n };
    return taut_meanfield_slope(&(taut_measure_at){ 3, 2, x, mass, id, id, false });
}

cJSON *paper_castin_fig3(const paper_options *o)
{
    enum { D = 2, MOST = 64 };
    static const char *const names[] = { "tokens", "radius", "slope", "as a measure", "root of it", "slope / R^2" };
    static const int64_t sizes[] = { 9, 33, 63 };
    static double id[D * D] = { 1, 0, 0, 1 };
    double x[MOST * D], r[16], y[16];
    cJSON *table = paper_table(
        "castin figure 3: A = V = I, tokens 0, R e and -R e: the slope grows like R^2", names, 6,
        (paper_words){
            .published = "the root of the slope grows linearly with R: an exponent of 2.",
            .ours = "the configuration of Appendix C.7, Lanczos in double (small: 9 tokens); exponent: fitted over "
                    "the ten largest radii.",
            .why = "They agree; what is left at small radii is the softmax that has not yet decided." });
    taut_module *m = taut_attention(&(taut_attention_spec){ .width = D, .heads = 1, .scale = 1, .out = 1 });
    taut_status s = m ? TAUT_OK : taut_no_memory("a head");
    if (m) taut_params(m, bind, id);
    double exponent = NAN;
    for (int z = 0; !s && z < (o->small ? 1 : 3); z++) {
        const int64_t n = sizes[z];
        for (int i = 0; !s && i < 16; i++) {
            taut_probe p;
            taut_slope slope;
            r[i] = 2 * pow(1.35, i);
            taut_quadratic_tokens(x, n, D, r[i]);
            s = taut_probe_create(&p, m, taut_kernels_find("ref"), x, (taut_shape){ 1, n, D });
            if (s) break;
            s = taut_slope_find(&slope, NULL, &p, &(taut_slope_options){ TAUT_SLOPE_LANCZOS, 60, 1e-8, 1 });
            taut_probe_free(&p);
            y[i] = slope.value;
            paper_row(table, NULL,
                      (double[]){ (double)n, r[i], y[i], as_measure(id, n, r[i]), sqrt(y[i]), y[i] / (r[i] * r[i]) },
                      6);
        }
        exponent = taut_growth_fit(r + 6, y + 6, 10).exponent;
    }
    taut_module_free(m);
    cJSON_AddNumberToObject(table, "exponent", exponent);
    if (!s) return table;
    cJSON_Delete(table);
    return NULL;
}
