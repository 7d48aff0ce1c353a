/* SGD, AdamW and Muon against their formulas, written again here, on ref.
 * Muon's gradients are made as U diag(s) V^T with known U and V, so that what the polynomial does to them
 * is a formula on the numbers s alone, and no matrix iteration is needed to judge one. */
#include "train/optimiser.h"

#include "small.h"

static const double TOL = 1e-12;

/* What each optimiser keeps in this test, laid out like the slabs. */
typedef struct {
    taut_trainer t;
    taut_config *cfg;
    double *w, *m, *v, *g; /* expected weights, momenta, squares; the gradients */
} bench;

static bool is_matrix(const char *path)
{
    const char *dot = strrchr(path, '.');
    return strcmp(dot, ".weight") == 0 && !strstr(path, "norm") && strncmp(path, "embed", 5) != 0 &&
           strncmp(path, "pos", 3) != 0;
}

/* Tall, wide and square matrices, vectors, two tables.  A trainer points into itself: it is never copied. */
static void open_bench(bench *b, const char *train)
{
    char recipe[1024];
    snprintf(recipe, sizeof recipe,
             "[data]\nlength = 2000\n[model]\nwidth = 8\ndepth = 1\nheads = 2\ncontext = 6\nmlp = 20\ntied = "
             "false\n"
             "[train]\nbatch = 1\n%s",
             train);
    b->cfg = trainer_of(&b->t, recipe, "ref");
    const int64_t slab = b->t.model->slab;
    b->w = values_of(b->t.model);
    b->m = doubles(slab), b->v = doubles(slab), b->g = doubles(slab);
}

static void close_bench(bench *b)
{
    free(b->w), free(b->m), free(b->v), free(b->g);
    trainer_end(&b->t, b->cfg);
}

static void set_gradients(bench *b)
{
    const taut_model *m = b->t.model;
    for (int i = 0; i < m->weights; i++) {
        const taut_weight *w = &m->weight[i];
        m->k->put(w->param->grad, b->g + w->offset, taut_weight_len(w));
    }
}

static void compare(const bench *b, const char *what)
{
    const taut_model *m = b->t.model;
    double *now = values_of(m), worst = 0;
    for (int64_t i = 0; i < m->slab; i++) {
        const double error = fabs(now[i] - b->w[i]) / fmax(1, fabs(b->w[i]));
        if (!(error <= worst)) worst = error;
    }
    CHECK_LE(worst, TOL, what);
    free(now);
}

static void random_gradients(bench *b)
{
    for (int64_t i = 0; i < b->t.model->slab; i++) b->g[i] = rng_pm();
    set_gradients(b);
}

static void adam_formula(bench *b, const taut_weight *w, int step, double lr, bool matrix)
{
    const taut_train_spec *t = &b->t.recipe.train;
    for (int64_t i = w->offset; i < w->offset + taut_weight_len(w); i++) {
        b->m[i] = t->beta1 * b->m[i] + (1 - t->beta1) * b->g[i];
        b->v[i] = t->beta2 * b->v[i] + (1 - t->beta2) * b->g[i] * b->g[i];
        const double mean = b->m[i] / (1 - pow(t->beta1, step + 1)), square = b->v[i] / (1 - pow(t->beta2, step + 1));
        b->w[i] = b->w[i] - lr * (matrix ? t->decay : 0) * b->w[i] - lr * mean / (sqrt(square) + t->eps);
    }
}

static void sgd_formula(bench *b, const taut_weight *w, double lr, bool matrix)
{
    const taut_train_spec *t = &b->t.recipe.train;
    for (int64_t i = w->offset; i < w->offset + taut_weight_len(w); i++) {
        b->m[i] = t->momentum * b->m[i] + b->g[i];
        b->w[i] = b->w[i] - lr * (matrix ? t->decay : 0) * b->w[i] - lr * b->m[i];
    }
}

static void elementwise(const char *train, const char *what)
{
    bench b;
    open_bench(&b, train);
    const taut_model *m = b.t.model;
    const bool sgd = b.t.recipe.train.optimiser == TAUT_SGD;
    int matrices = 0;
    for (int step = 0; step < 5; step++) {
        const double factor = 1.0 / (step + 1), lr = b.t.recipe.train.lr * factor;
        random_gradients(&b);
        matrices = 0;
        for (int i = 0; i < m->weights; i++) {
            const bool matrix = is_matrix(m->weight[i].path);
            matrices += matrix;
            if (sgd)
                sgd_formula(&b, &m->weight[i], lr, matrix);
            else
                adam_formula(&b, &m->weight[i], step, lr, matrix);
        }
        taut_optimiser_step(b.t.optimiser, step, factor);
        compare(&b, what);
    }
    CHECK(matrices == 7, "q k v o in out head");
    close_bench(&b);
}

/* Without a gradient only decay moves a weight, and it moves matrices only. */
static void decay_alone(const char *optimiser)
{
    char train[256];
    snprintf(train, sizeof train, "optimiser = %s\nlr = 0.5\nweight_decay = 0.25\n", optimiser);
    bench b;
    open_bench(&b, train);
    const taut_model *m = b.t.model;
    set_gradients(&b);
    double *before = values_of(m);
    for (int step = 0; step < 3; step++) taut_optimiser_step(b.t.optimiser, step, 1);
    double *after = values_of(m);
    for (int i = 0; i < m->weights; i++) {
        const double shrink = is_matrix(m->weight[i].path) ? 0.875 * 0.875 * 0.875 : 1;
        double worst = 0;
        for (int64_t j = m->weight[i].offset, end = j + taut_weight_len(&m->weight[i]); j < end; j++)
            worst = fmax(worst, fabs(after[j] - shrink * before[j]));
        CHECK_LE(worst, shrink == 1 ? 0 : 1e-15, m->weight[i].path);
    }
    free(before), free(after);
    close_bench(&b);
}

/* ---- Muon ---- */

enum { LEAST = 8, MOST = 64 }; /* sides of the matrices here */

static const double you6[6][3] = { { 3955, -8306, 5008 }, { 3735, -6681, 3463 }, { 3799, -6499, 3211 },
                                   { 4019, -6385, 2906 }, { 2677, -3029, 1162 }, { 2172, -1833, 682 } };
static const double nanogpt5[5][3] = { { 4.0848, -6.8946, 2.9270 },
                                       { 3.9505, -6.3029, 2.6377 },
                                       { 3.7418, -5.5913, 2.3037 },
                                       { 2.8769, -3.1427, 1.2046 },
                                       { 2.8366, -3.0525, 1.2012 } };

static double polynomial(const char *name, double s)
{
    const bool you = strcmp(name, "you6") == 0;
    for (int i = 0; i < (you ? 6 : 5); i++) {
        const double classic[3] = { 3.4445, -4.7750, 2.0315 };
        const double *c = you ? you6[i] : strcmp(name, "nanogpt5") == 0 ? nanogpt5[i] : classic;
        s = (c[0] * s + c[1] * s * s * s + c[2] * s * s * s * s * s) / (you ? 1024 : 1);
    }
    return s;
}

/* `count` orthonormal vectors of length n, one after another. */
static double *orthonormal(int64_t count, int64_t n)
{
    double *q = doubles(count * n);
    for (int64_t i = 0; i < count; i++) {
        fill(q + i * n, n);
        for (int pass = 0; pass < 3; pass++)
            for (int64_t j = 0; j < i; j++) {
                const double c = dot(q + i * n, q + j * n, n);
                for (int64_t l = 0; l < n; l++) q[i * n + l] -= c * q[j * n + l];
            }
        const double size = norm(q + i * n, n);
        for (int64_t l = 0; l < n; l++) q[i * n + l] /= size;
    }
    return q;
}

/* Adds scale * U diag(s) V^T. */
static void add_svd(double *a, int64_t rows, int64_t cols, const double *u, const double *s, const double *v,
                    double scale)
{
    const int64_t side = rows < cols ? rows : cols;
    for (int64_t k = 0; k < side; k++)
        for (int64_t i = 0; i < rows; i++)
            for (int64_t j = 0; j < cols; j++) a[i * cols + j] += scale * s[k] * u[k * rows + i] * v[k * cols + j];
}

/* One matrix's basis and its momentum in that basis. */
typedef struct {
    double *u, *v, s[MOST], m[MOST];
} spectrum;

static void muon_formula(bench *b, const taut_weight *w, spectrum *p, const char *name, double lr)
{
    const taut_train_spec *t = &b->t.recipe.train;
    const int64_t rows = w->param->rows, cols = w->param->cols, side = rows < cols ? rows : cols;
    double u[MOST], orthogonal[MOST], size = 0;
    for (int64_t k = 0; k < side; k++) {
        p->m[k] = t->momentum * p->m[k] + (1 - t->momentum) * p->s[k];
        u[k] = t->momentum * p->m[k] + (1 - t->momentum) * p->s[k];
        size += u[k] * u[k];
    }
    for (int64_t k = 0; k < side; k++) orthogonal[k] = polynomial(name, u[k] / sqrt(size));
    for (int64_t i = w->offset; i < w->offset + rows * cols; i++) b->w[i] *= 1 - lr * t->decay;
    add_svd(b->w + w->offset, rows, cols, p->u, orthogonal, p->v, -lr * sqrt((double)rows / (double)cols));
}

static void muon_gradients(bench *b, spectrum *p)
{
    const taut_model *m = b->t.model;
    for (int64_t i = 0; i < m->slab; i++) b->g[i] = rng_pm();
    for (int i = 0; i < m->weights; i++) {
        const taut_weight *w = &m->weight[i];
        if (!is_matrix(w->path)) continue;
        for (int k = 0; k < MOST; k++) p[i].s[k] = 0.1 + rng_unit();
        memset(b->g + w->offset, 0, (size_t)taut_weight_len(w) * sizeof(double));
        add_svd(b->g + w->offset, w->param->rows, w->param->cols, p[i].u, p[i].s, p[i].v, 1);
    }
    set_gradients(b);
}

static void muon(const char *name)
{
    char train[256];
    snprintf(train, sizeof train, "optimiser = muon\npolynomial = %s\nlr = 0.02\nadam_lr = 0.003\nweight_decay = 0.3\n",
             name);
    bench b;
    open_bench(&b, train);
    const taut_model *m = b.t.model;
    spectrum *p = calloc((size_t)m->weights, sizeof *p);
    for (int i = 0; i < m->weights; i++) {
        const taut_param *w = m->weight[i].param;
        if (!is_matrix(m->weight[i].path)) continue;
        const int64_t side = w->rows < w->cols ? w->rows : w->cols;
        CHECK(side >= LEAST && side <= MOST, "the sides this test has room for");
        p[i].u = orthonormal(side, w->rows), p[i].v = orthonormal(side, w->cols);
    }
    for (int step = 0; step < 4; step++) {
        const double factor = 1.0 / (step + 1);
        muon_gradients(&b, p);
        for (int i = 0; i < m->weights; i++)
            if (is_matrix(m->weight[i].path))
                muon_formula(&b, &m->weight[i], &p[i], name, 0.02 * factor);
            else
                adam_formula(&b, &m->weight[i], step, 0.003 * factor, false);
        taut_optimiser_step(b.t.optimiser, step, factor);
        compare(&b, name);
    }
    for (int i = 0; i < m->weights; i++) free(p[i].u), free(p[i].v);
    free(p);
    close_bench(&b);
}

int main(void)
{
    test_begin();
    elementwise("optimiser = sgd\nlr = 0.1\nmomentum = 0.8\nweight_decay = 0.2\n", "sgd");
    elementwise("optimiser = sgd\nlr = 0.1\nmomentum = 0\n", "plain sgd");
    elementwise("optimiser = adamw\nlr = 0.01\nweight_decay = 0.2\nbeta1 = 0.8\nbeta2 = 0.99\neps = 1e-3\n", "adamw");
    elementwise("lr = 0.01\n", "adamw is the default");
    decay_alone("sgd");
    decay_alone("adamw");
    decay_alone("muon");
    muon("you6");
    muon("nanogpt5");
    muon("classic5");
    return test_end("optimiser", "sgd, adamw, muon within %g of their formulas", TOL);
}
