/* Attention maps against what attention answers: with W_V and W_O the identity a head's output is its map times its input. */
#include "base/float32.h"
#include "measure/maps.h"

#include "certify/build.h"
#include "measure/probe.h"

static const struct {
    const char *text;
    int layers; /* that have a map */
} recipes[] = {
    { "[model]\nwidth = 6\nheads = 2\ndepth = 2\ncontext = 6\nmlp = 4\n", 2 },
    { "[model]\narch = encoder\nwidth = 4\nheads = 1\ndepth = 1\ncontext = 6\nmlp = 4\n", 1 },
    { "[model]\nwidth = 8\nheads = 2\ndepth = 1\ncontext = 6\nmlp = 4\npositions = rope\n", 1 },
    { "[model]\nwidth = 6\nheads = 3\ndepth = 1\ncontext = 6\nmlp = 4\npositions = alibi\nbias = false\n", 1 },
    { "[model]\nwidth = 6\nheads = 3\ndepth = 2\ncontext = 8\nmlp = 4\nattention = position\nnorm = none\n", 2 },
    { "[model]\nwidth = 6\nheads = 3\ndepth = 2\ncontext = 6\nmlp = 4\nattention = position\nnorm = "
      "none\nfirst_residual = "
      "false\n",
      2 },
    { "[model]\narch = encoder\nwidth = 4\nheads = 2\ndepth = 1\ncontext = 6\nmlp = 4\nattention = l2\n", 0 },
    { "[model]\narch = vit\nimage_height = 2\nimage_width = 3\npatch = 1\nwidth = 4\nheads = 2\ndepth = 2\nmlp = 4\n"
      "pool = concat\nattention = position\ntorus = true\nnorm = none\n",
      2 },
};

static void make_plain(taut_model *m)
{
    for (int i = 0; i < m->weights; i++) {
        double *v = (double *)m->values + m->weight[i].offset;
        const taut_param *p = m->weight[i].param;
        if (strstr(m->weight[i].path, "attn.v.weight") || strstr(m->weight[i].path, "attn.o.weight"))
            for (int64_t r = 0; r < p->rows * p->cols; r++) v[r] = r / p->cols == r % p->cols;
        else if (strstr(m->weight[i].path, "attn.q") || strstr(m->weight[i].path, "attn.k") ||
                 strstr(m->weight[i].path, "distance"))
            for (int64_t r = 0; r < p->rows * p->cols; r++) v[r] = taut_float32(2 * rng_pm());
    }
}

typedef struct {
    const taut_maps *maps;
    int layer;
} walk;

static void see(const taut_module *m, const char *name, int depth, taut_point at, void *arg)
{
    walk *w = arg;
    const int64_t t = at.x.shape.t, d = at.x.shape.d, heads = w->maps->heads, dh = d / heads;
    const bool position = taut_is_posattention(m);
    taut_probe p;
    (void)name, (void)depth;
    if (!taut_is_attention(m) && !position) return;
    must(taut_probe_create(&p, m, taut_kernels_find("ref"), (const double *)at.x.data, (taut_shape){ 1, t, d }));
    for (int64_t h = 0; h < heads; h++) {
        const bool torus = position && taut_posattention_look(m).spec->row > 0;
        const double gain = position && !torus ? taut_float32(1 / sqrt(1 + (double)taut_offset(h, w->layer > 0, 64)))
                                               : 1;
        for (int64_t i = 0; i < t; i++) {
            const double *row = w->maps->weight + ((w->layer * heads + h) * t + i) * t;
            double sum = 0;
            for (int64_t j = 0; j < t; j++) sum += row[j];
            CHECK_NEAR(sum, 1, 1e-12, "a row sums to 1");
            for (int64_t c = 0; c < dh; c++) {
                double y = 0;
                for (int64_t j = 0; j < t; j++) y += gain * row[j] * ((const double *)at.x.data)[j * d + h * dh + c];
                CHECK_NEAR(y, ((const double *)p.y.data)[i * d + h * dh + c], 1e-9, "what attention answers");
            }
        }
    }
    taut_probe_free(&p);
    w->layer++;
}

int main(void)
{
    test_begin();
    for (case_no = 0; case_no < (int)(sizeof recipes / sizeof *recipes); case_no++) {
        const int32_t ids[] = { 1, 4, 2, 2, 6 };
        const double pixels[] = { 0.1, 0.9, 0.3, 0.5, 0, 1 };
        const bool image = strstr(recipes[case_no].text, "vit") != NULL;
        taut_model *m = blank_model(recipes[case_no].text, image ? 0 : 7, false);
        taut_pass *pass = NULL;
        taut_maps maps;
        must(taut_model_init(m, 3));
        make_plain(m);
        must(taut_pass_create(&pass, m, 1, image ? 1 : 6, false));
        if (image)
            taut_pass_forward_real(pass, pixels, 1);
        else
            taut_pass_forward(pass, ids, 1, 5);
        must(taut_maps_read(&maps, pass));
        CHECK(maps.layers == recipes[case_no].layers, "how many layers have a map");
        CHECK(maps.layers == 0 || maps.tokens == (image ? 6 : 5), "of so many tokens");
        if (maps.layers) {
            walk w = { &maps, 0 };
            taut_tour_parts(m->root, (taut_point){ pass->x, pass->trace }, see, &w);
            CHECK(w.layer == maps.layers, "every layer was compared");
        }
        taut_maps_free(&maps);
        taut_pass_free(pass);
        taut_model_free(m);
    }
    return test_end("maps", "softmax, rope, alibi, position, torus");
}
