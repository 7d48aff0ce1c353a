/* How far attention in linear time strays from softmax, in whole models: our bounds hold at every query whatever the weights
 * (tiny, huge, zero, one token, one group, groups of one), on float and double kernels; the truth is that of a plain sum; NaN
 * gives no bound and no contradiction; the paper's mended certificate is never beaten. */
#include "build.h"
#include "certify/stray.h"

static double normal(void) { return sqrt(-2 * log(1 - rng_unit())) * cos(6.283185307179586 * rng_unit()); }

static taut_model *model_of(const char *text, const char *kernels, double size)
{
    taut_model *m = blank_model_on(text, 0, kernels, false);
    double *w = malloc((size_t)m->slab * sizeof *w);
    for (int64_t i = 0; i < m->slab; i++) w[i] = size * normal();
    m->k->put(m->values, w, m->slab);
    free(w);
    return m;
}

static void recipe(char *text, size_t room, bool plash)
{
    const int seq = (int)rng_int(1, 9), label = (int)rng_int(0, seq < 3 ? seq : 3), ahead = (int)rng_int(1, 3);
    int n = snprintf(text, room,
                     "[model]\narch = forecaster\nseq = %d\nlabel = %d\nahead = %d\ncolumns = 2\nmarks = 1\nwidth = 4\n"
                     "heads = %d\nmlp = 5\ndepth = 2\nbias = %s\nattention_factor = %g\nnorm = %s\n",
                     seq, label, ahead, rng_int(0, 1) ? 2 : 1, rng_int(0, 1) ? "true" : "false",
                     pow(10, 3 * rng_unit() - 1), rng_int(0, 1) ? "layernorm" : "none");
    if (plash)
        snprintf(text + n, room - (size_t)n,
                 "attention = plash\nplash_groups = %d\nplash_sizes = %d\nplash_mixers = %d\nplash_features = %d\n",
                 (int)rng_int(1, seq), rng_int(0, 3) ? 8 : 4, (int)rng_int(0, 2), rng_int(0, 2) ? 0 : 3);
    else
        snprintf(text + n, room - (size_t)n, "attention = clustered\nclusters = %d\ncluster_first = %s\n",
                 (int)rng_int(1, seq), rng_int(0, 1) ? "true" : "false");
}

/* |Y_soft - o| of the first layer's first head, by another sum; NaN unless it is a plain one. */
typedef struct {
    const taut_kernels *k;
    double far;
    bool found;
} plain;

static void see(const taut_module *m, const char *name, int depth, taut_point at, void *arg)
{
    plain *p = arg;
    taut_gathered g;
    (void)name, (void)depth;
    if (p->found || !(taut_plash_look(&g, m, at) || taut_clustered_look(&g, m, at))) return;
    static double q[64], k[64], v[64], o[64];
    const int64_t nq = g.q.shape.t, nk = g.k.shape.t, d = g.q.shape.d, dh = d / g.heads;
    p->k->get(q, g.q.data, nq * d), p->k->get(k, g.k.data, nk * d);
    p->k->get(v, g.v.data, nk * d), p->k->get(o, g.o.data, nq * d);
    double sum = 0;
    for (int64_t i = 0; i < nq; i++) {
        double y[4] = { 0 }, z = 0, most = -INFINITY, w[16];
        for (int64_t j = 0; j < nk; j++) {
            w[j] = 0;
            for (int64_t c = 0; c < dh; c++) w[j] += g.scale * q[i * d + c] * k[j * d + c];
            most = fmax(most, w[j]);
        }
        for (int64_t j = 0; j < nk; j++) z += w[j] = exp(w[j] - most);
        for (int64_t c = 0; c < dh; c++) {
            for (int64_t j = 0; j < nk; j++) y[c] += w[j] / z * v[j * d + c];
            sum += (y[c] - o[i * d + c]) * (y[c] - o[i * d + c]);
        }
    }
    p->far = sqrt(sum);
    p->found = true;
}

static int64_t queries, bounded, tight;

static void model_holds(bool plash, const char *kernels, double size, double reals)
{
    char text[1024];
    taut_pass *pass = NULL;
    taut_stray *list = NULL;
    int count = 0;
    recipe(text, sizeof text, plash);
    taut_model *m = model_of(text, kernels, size);
    must(taut_pass_create(&pass, m, 1, m->in.t, false));
    double *x = malloc((size_t)(m->in.t * m->in.d) * sizeof *x);
    for (int64_t i = 0; i < m->in.t * m->in.d; i++) x[i] = reals * normal();
    taut_pass_forward_real(pass, x, 1);
    must(taut_strays_read(&list, &count, pass, 0.5));
    CHECK(count == 3 * (int)m->spec.heads, "two layers of the encoder, one asks it");
    for (int i = 0; i < count; i++) {
        const taut_stray *r = &list[i];
        CHECK(r->beaten == 0, "a bound of ours is beaten");
        CHECK(!(r->truth > r->hull.v * (1 + 1e-9)), "the trivial bound");
        CHECK(!isnan(r->fast.v) && !isnan(r->audit.v), "a bound is a number");
        CHECK(r->plash == plash && r->keys <= m->spec.seq && strstr(r->path, "attn"), r->path);
        queries += r->queries;
        bounded += isfinite(r->audit.v);
        tight += r->audit.v <= 1.01 * r->truth;
        if (r->papers && isfinite(r->truth) && size > 0.1 && size < 10) /* rounding is none of its business */
            CHECK_LE(r->truth, r->paper.stage1 + r->paper.reference + r->paper.mended, "mended: delta never came true");
    }
    plain p = { m->k, NAN, false };
    taut_tour_parts(m->root, (taut_point){ pass->x, pass->trace }, see, &p);
    if (size < 10 && isfinite(list[0].truth))
        CHECK_NEAR(list[0].truth, p.far, 1e-9 * (1 + list[0].soft + p.far) * (1 + m->spec.attention_scale),
                   "the truth");
    free(x), free(list);
    taut_pass_free(pass);
    taut_model_free(m);
}

/* What a small forecaster with these keys more has to tell of an input; the caller frees. */
static taut_stray *strays_of(const char *more, const double x[6], int *count)
{
    taut_pass *pass = NULL;
    taut_stray *list = NULL;
    char text[256];
    snprintf(text, sizeof text,
             "[model]\narch = forecaster\nseq = 4\nlabel = 1\nahead = 1\ncolumns = 1\nmarks = 0\n"
             "width = 4\nheads = 2\nmlp = 4\ndepth = 1\n%s",
             more);
    taut_model *m = model_of(text, "ref", 1);
    must(taut_pass_create(&pass, m, 1, m->in.t, false));
    taut_pass_forward_real(pass, x, 1);
    must(taut_strays_read(&list, count, pass, 0.5));
    taut_pass_free(pass);
    taut_model_free(m);
    return list;
}

/* A number of the input that is none. */
static void nan_is_no_bound(void)
{
    int count = 0;
    taut_stray *list = strays_of("attention = clustered\nclusters = 2\n", (const double[6]){ 1, 2, NAN, 4, 5, 6 },
                                 &count);
    CHECK(count > 0, "there are heads");
    for (int i = 0; i < count; i++) {
        CHECK(list[i].beaten == 0, "NaN contradicts nothing");
        CHECK(list[i].fast.v == INFINITY && list[i].audit.v == INFINITY, "and has no bound");
    }
    free(list);
}

/* A model whose attention is softmax has nothing to tell. */
static void none(void)
{
    int count = 1;
    taut_stray *list = strays_of("", (const double[6]){ 1, 2, 3, 4, 5, 6 }, &count);
    CHECK(count == 0 && !list, "nothing");
    free(list);
}

int main(void)
{
    static const double sizes[] = { 0.3, 1, 1e-20, 30, 1e4, 1e12, 0 };
    test_begin();
    for (case_no = 0; case_no < effort(2000); case_no++)
        model_holds(case_no % 2, case_no / 2 % 2 ? "ref" : "cpu", sizes[case_no % 7], case_no % 5 ? 1 : 1e3);
    nan_is_no_bound();
    none();
    CHECK(bounded > effort(2000), "most have a bound");
    return test_end("stray", "%d queries, %d heads bounded, %d of them within 1 %%", (int)queries, (int)bounded,
                    (int)tight);
}
