/* A model's weights: named once, laid out without overlap, found again; first weights that repeat and have
 * the spread that was asked for. */
#include <omp.h>

#include "base/float32.h"
#include "model/model.h"

#include "base/alloc.h"
#include "harness.h"
#include "must.h"
#include "table.h"

static const char *const recipes[] = {
    "[model]\nwidth = 16\ndepth = 2\nheads = 2\ncontext = 12\n",
    "[model]\nwidth = 24\ndepth = 3\nheads = 4\ncontext = 5\nmlp = 7\ntied = false\nbias = false\npositions "
    "= rope\n",
    "[model]\nwidth = 6\ndepth = 1\nheads = 1\ncontext = 9\nnorm = none\npositions = alibi\nlogit_scale = "
    "2\n",
    "[model]\narch = encoder\nwidth = 16\ndepth = 2\nheads = 4\ncontext = 12\ndropout = 0.1\n",
    "[model]\narch = encoder\nwidth = 10\ndepth = 2\nheads = 5\ncontext = 12\ntied = false\nnorm_place = "
    "pre\n"
    "norm = rmsnorm\nzero_out = true\n",
    "[model]\nwidth = 8\ndepth = 128\nheads = 2\ncontext = 3\nnorm = centernorm\nnorm_place = post\n",
};
enum { RECIPES = sizeof recipes / sizeof *recipes, TOKENS = 13 };

static taut_model_spec spec_of(const char *recipe)
{
    taut_config *cfg = NULL;
    taut_model_spec spec;
    must(taut_config_parse(&cfg, recipe, "test"));
    must(taut_model_spec_read(&spec, cfg));
    must(taut_config_finish(cfg));
    taut_config_free(cfg);
    return spec;
}

static taut_model *model_of(const char *recipe, const char *kernels, uint64_t init_seed)
{
    const taut_model_spec spec = spec_of(recipe);
    taut_model *m = NULL;
    must(taut_model_create(&m, &spec, TOKENS, recipe, "bytes", taut_kernels_find(kernels)));
    must(taut_model_bind(m, false));
    must(taut_model_init(m, init_seed));
    return m;
}

static void layout(const char *recipe)
{
    const taut_model_spec spec = spec_of(recipe);
    const taut_kernels *k = taut_kernels_find("cpu");
    taut_model *m = NULL;
    int64_t end = 0, size = 0;
    must(taut_model_create(&m, &spec, TOKENS, recipe, "bytes", k));
    CHECK(!m->values && !m->grads, "no memory before it is bound");
    CHECK(strcmp(m->weight[0].path, "embed.weight") == 0 && m->weight[0].param == &m->embed, "the table is first");
    for (int i = 0; i < m->weights; i++) {
        const taut_weight *w = &m->weight[i];
        for (int j = 0; j < i; j++) {
            CHECK(strcmp(w->path, m->weight[j].path) != 0, w->path);
            CHECK(w->param != m->weight[j].param, "a weight is listed once");
        }
        CHECK(taut_model_find(m, w->path) == w, "found by its name");
        CHECK(w->offset >= end && w->offset % 16 == 0, "no overlap, on a cache line");
        CHECK(taut_weight_len(w) == w->param->rows * w->param->cols && taut_weight_len(w) > 0, "its length");
        end = w->offset + taut_weight_len(w);
        size += taut_weight_len(w);
    }
    CHECK(end <= m->slab && taut_model_size(m) == size, "sizes add up");
    CHECK(!taut_model_find(m, "embed") && !taut_model_find(m, "") && !taut_model_find(m, "embed.weight."), "not found");
    must(taut_model_bind(m, true));
    for (int i = 0; i < m->weights; i++) {
        CHECK(m->weight[i].param->value == taut_at(k, m->values, m->weight[i].offset), "values are bound");
        CHECK(m->weight[i].param->grad == taut_at(k, m->grads, m->weight[i].offset), "gradients are bound");
    }
    CHECK(table_dot(k, m->values, m->values, m->slab) == 0 && table_dot(k, m->grads, m->grads, m->slab) == 0,
          "all zero at first");
    taut_model_free(m);
}

/* How many weights there are, counted by hand. */
static void sizes(void)
{
    const int64_t d = 16, t = 12, v = TOKENS, mlp = 64;
    const int64_t block = 4 * (d * d + d) + 2 * d * mlp + mlp + d + 2 * 2 * d;
    taut_model *gpt = model_of(recipes[0], "cpu", 1), *bare = model_of(recipes[1], "cpu", 1);
    taut_model *encoder = model_of(recipes[3], "cpu", 1);
    CHECK(taut_model_size(gpt) == v * d + t * d + 2 * block + 2 * d, "gpt");
    CHECK(gpt->weights == 2 + 2 * (2 * 2 + 4 * 2 + 2 * 2) + 2, "gpt: weights");
    CHECK(taut_model_size(bare) == 2 * v * 24 + 3 * (4 * 24 * 24 + 2 * 24 * 7 + 4 * 24) + 2 * 24,
          "without biases, positions and tying");
    CHECK(taut_model_size(encoder) == v * d + t * d + 2 * d + 2 * block + (d * d + d) + 2 * d + v, "encoder");
    taut_model_free(gpt);
    taut_model_free(bare);
    taut_model_free(encoder);
}

static void reproducible(const char *recipe)
{
    taut_model *a = model_of(recipe, "ref", 5), *b = model_of(recipe, "ref", 5), *c = model_of(recipe, "ref", 6);
    taut_model *f = model_of(recipe, "cpu", 5);
    double *rounded = doubles(f->slab);
    int64_t differ = 0, other = 0;
    CHECK(memcmp(a->values, b->values, (size_t)a->slab * sizeof(double)) == 0, "the same seed, the same bits");
    f->k->get(rounded, f->values, f->slab);
    for (int64_t i = 0; i < a->slab; i++) {
        other += ((double *)a->values)[i] != ((double *)c->values)[i];
        differ += rounded[i] != taut_float32(((double *)a->values)[i]);
    }
    CHECK(other > taut_model_size(a) / 4, "another seed, other weights");
    CHECK(differ == 0, "cpu starts from the same weights, rounded");
    free(rounded);
    taut_model_free(a), taut_model_free(b), taut_model_free(c), taut_model_free(f);
}

static const double *values(const taut_model *m, const char *path)
{
    const taut_weight *w = taut_model_find(m, path);
    if (!w) must(taut_fail(TAUT_BAD_CONFIG, "no weight %s", path));
    return taut_ref_values(w->param);
}

/* Standard deviations, ones and zeros.  5 sigma of a standard deviation from n samples is 3.6 / sqrt(n). */
static void normal(void)
{
    taut_model *m = model_of("[model]\nwidth = 64\ndepth = 2\nheads = 2\ncontext = 40\ninit_std = 0.3\n", "ref", 2);
    const struct {
        const char *path;
        int64_t len;
        double std;
    } spread[] = {
        { "embed.weight", TOKENS * 64, 0.3 },          { "pos.weight", 40 * 64, 0.3 },
        { "block.0.attn.q.weight", 64 * 64, 0.3 },     { "block.1.mlp.in.weight", 256 * 64, 0.3 },
        { "block.0.attn.o.weight", 64 * 64, 0.3 / 2 }, { "block.1.mlp.out.weight", 64 * 256, 0.3 / 2 },
    };
    for (int i = 0; i < 6; i++) {
        const double *w = values(m, spread[i].path), n = (double)spread[i].len;
        double sum = 0;
        for (int64_t j = 0; j < spread[i].len; j++) sum += w[j];
        CHECK_NEAR(sum / n, 0, 5 * spread[i].std / sqrt(n), spread[i].path);
        CHECK_NEAR(norm(w, spread[i].len) / sqrt(n), spread[i].std, 3.6 * spread[i].std / sqrt(n), spread[i].path);
    }
    for (int i = 0; i < 64; i++) {
        CHECK(values(m, "block.0.norm1.weight")[i] == 1 && values(m, "norm.weight")[i] == 1, "norms start at 1");
        CHECK(values(m, "block.0.norm1.bias")[i] == 0 && values(m, "block.1.attn.k.bias")[i] == 0, "biases at 0");
    }
    taut_model_free(m);
}

static void zero_out(void)
{
    static const char *const gpt = "[model]\nwidth = 16\ndepth = 1\nheads = 2\ncontext = 4\nzero_out = true\n"
                                   "tied = false\ninit = orthogonal\n";
    taut_model *m = model_of(gpt, "ref", 2);
    CHECK(norm(values(m, "block.0.attn.o.weight"), 16 * 16) == 0, "attention writes nothing");
    CHECK(norm(values(m, "block.0.mlp.out.weight"), 16 * 64) == 0, "the mlp writes nothing");
    CHECK(norm(values(m, "head.weight"), TOKENS * 16) == 0, "the head says nothing");
    CHECK(norm(values(m, "block.0.mlp.in.weight"), 16 * 64) > 0, "the others do not start at 0");
    taut_model_free(m);
}

/* Every singular value is `gain`: the Gram matrix of the shorter side is gain^2 times the identity. */
static void all_singular_values(const taut_model *m, const char *path, double gain)
{
    const taut_param *p = taut_model_find(m, path)->param;
    const double *w = values(m, path);
    const bool wide = p->rows <= p->cols;
    const int64_t side = wide ? p->rows : p->cols, len = wide ? p->cols : p->rows;
    double worst = 0;
    for (int64_t i = 0; i < side; i++)
        for (int64_t j = 0; j < side; j++) {
            double sum = 0;
            for (int64_t l = 0; l < len; l++)
                sum += wide ? w[i * len + l] * w[j * len + l] : w[l * side + i] * w[l * side + j];
            worst = fmax(worst, fabs(sum - (i == j ? gain * gain : 0)));
        }
    CHECK_LE(worst, 1e-13 * gain * gain, path);
}

static void orthogonal(double gain)
{
    static const char *const paths[] = { "block.0.attn.q.weight",
                                         "block.0.attn.k.weight",
                                         "block.1.attn.v.weight",
                                         "block.1.attn.o.weight",
                                         "block.0.mlp.in.weight",
                                         "block.1.mlp.out.weight",
                                         "head.weight" };
    char recipe[256];
    snprintf(recipe, sizeof recipe,
             "[model]\nwidth = 32\ndepth = 2\nheads = 2\ncontext = 4\ntied = false\ninit = "
             "orthogonal\ninit_std = %g\n",
             gain);
    taut_model *m = model_of(recipe, "ref", 3);
    for (int i = 0; i < 7; i++) all_singular_values(m, paths[i], gain);
    taut_model_free(m);
}

/* Rows longer than one thread's piece, matrices beside them that are not: any number of threads makes the same bits. */
static void threads(void)
{
    static const char
        *const recipe = "[model]\nwidth = 70\ndepth = 3\nheads = 2\ncontext = 4\nmlp = 9000\ninit = orthogonal\n";
    taut_model *one = NULL;
    for (int count = 1; count <= 3; count++) {
        omp_set_num_threads(count);
        taut_model *m = model_of(recipe, "ref", 5);
        all_singular_values(m, "block.0.mlp.in.weight", 1), all_singular_values(m, "block.2.mlp.out.weight", 1);
        all_singular_values(m, "block.1.attn.q.weight", 1);
        for (int i = 0; one && i < m->weights; i++)
            CHECK(memcmp(values(m, m->weight[i].path), values(one, m->weight[i].path),
                         (size_t)taut_weight_len(&m->weight[i]) * sizeof(double)) == 0,
                  m->weight[i].path);
        if (one)
            taut_model_free(m);
        else
            one = m;
    }
    taut_model_free(one);
}

static bool builds(const char *recipe, long n)
{
    const taut_model_spec spec = spec_of(recipe);
    taut_model *m = NULL;
    taut_alloc_fail_at(n);
    taut_status s = taut_model_create(&m, &spec, TOKENS, recipe, "bytes", taut_kernels_find("ref"));
    if (!s) s = taut_model_bind(m, true);
    if (!s) s = taut_model_init(m, 1);
    taut_alloc_fail_at(0);
    if (s) CHECK(s == TAUT_NO_MEMORY && strstr(taut_last_error(), "out of memory"), taut_last_error());
    taut_model_free(m);
    return s == TAUT_OK;
}

static long out_of_memory(const char *recipe)
{
    long n = 1;
    while (n < 100000 && !builds(recipe, n)) n++;
    for (long more = n; more < n + 20; more++) CHECK(builds(recipe, more), "a failed allocation was overlooked");
    return n - 1;
}

int main(void)
{
    long allocations = 0;
    test_begin();
    for (case_no = 0; case_no < RECIPES; case_no++) {
        layout(recipes[case_no]);
        reproducible(recipes[case_no]);
        if (case_no < 5) allocations += out_of_memory(recipes[case_no]);
    }
    sizes();
    normal();
    zero_out();
    orthogonal(1);
    orthogonal(0.37);
    threads();
    return test_end("model", "%d recipes; %ld allocations failed one by one", RECIPES, allocations);
}
