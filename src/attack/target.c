#include "attack/target.h"

#include <math.h>
#include <omp.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/check.h"

/* A lane's packed batch, carved from memory: inputs, logits, weights of the logits, gradients, best gradients. */
typedef struct {
    double *x, *z, *w, *g, *best;
    uint64_t *key;
} packed;

static int64_t room(const taut_target *t) { return t->batch * (3 * t->dim + 2 * t->classes + 1); }

static packed carve(const taut_target *t, int64_t lane)
{
    const int64_t inputs = t->batch * t->dim, outputs = t->batch * t->classes;
    double *m = t->memory + lane * room(t);
    return (packed){ .x = m,
                     .g = m + inputs,
                     .best = m + 2 * inputs,
                     .z = m + 3 * inputs,
                     .w = m + 3 * inputs + outputs,
                     .key = (void *)(m + 3 * inputs + 2 * outputs) };
}

taut_status taut_target_ready(taut_target *t)
{
    TAUT_CHECK(t->dim > 0 && t->batch > 0, "target: sizes");
    if (t->channels * t->height * t->width != t->dim) t->channels = t->height = 1, t->width = t->dim;
    if (t->classes < 2) return taut_fail(TAUT_BAD_CONFIG, "a classifier of one class cannot be attacked");
    if (!(t->lo < t->hi)) return taut_fail(TAUT_BAD_CONFIG, "the box of the inputs is empty");
    if (t->lanes < 1) t->lanes = 1;
    t->memory = taut_calloc((size_t)(t->lanes * room(t)), sizeof *t->memory);
    return t->memory ? TAUT_OK : taut_no_memory("a batch under attack");
}

taut_status taut_target_status(const taut_target *t) { return t->status ? t->status(t->arg) : TAUT_OK; }

void taut_target_done(taut_target *t)
{
    free(t->memory);
    t->memory = NULL;
}

static int64_t row(const int64_t *live, int64_t i) { return live ? live[i] : i; }

/* Whether these rows lie one behind the other, as they do until an example is broken: then nothing has to be packed.  `live`
 * ascends. */
static bool in_a_row(const int64_t *live, int64_t first, int64_t count)
{
    return row(live, first + count - 1) - row(live, first) == count - 1;
}

static void forward(const taut_target *t, int64_t lane, packed *p, const double *x, const uint64_t *key,
                    const int64_t *live, int64_t first, int64_t count)
{
    const int64_t begin = row(live, first);
    if (in_a_row(live, first, count)) {
        t->forward(t->arg, lane, p->z, x + begin * t->dim, key ? key + begin : NULL, count);
        return;
    }
    for (int64_t i = 0; i < count; i++) {
        const int64_t e = row(live, first + i);
        memcpy(p->x + i * t->dim, x + e * t->dim, (size_t)t->dim * sizeof *x);
        p->key[i] = key ? key[e] : 0;
    }
    t->forward(t->arg, lane, p->z, p->x, key ? p->key : NULL, count);
}

static void backward(const taut_target *t, int64_t lane, packed *p, double *g, const int64_t *live, int64_t first,
                     int64_t count)
{
    const bool straight = in_a_row(live, first, count);
    t->backward(t->arg, lane, straight ? g + row(live, first) * t->dim : p->g, p->w, count);
    for (int64_t i = 0; !straight && i < count; i++)
        memcpy(g + row(live, first + i) * t->dim, p->g + i * t->dim, (size_t)t->dim * sizeof *g);
}

/* How many lanes share the batches of n examples.  One, if most threads would stand idle: then the kernels use them. */
static int crew(const taut_target *t, int64_t n)
{
    const int64_t parts = (n + t->batch - 1) / t->batch, threads = omp_get_max_threads();
    const int64_t most = threads < t->lanes ? threads : t->lanes, lanes = parts < most ? parts : most;
    return 2 * lanes > threads ? (int)lanes : 1;
}

static int64_t portion(const taut_target *t, int64_t first, int64_t n)
{
    return n - first < t->batch ? n - first : t->batch;
}

void taut_target_logits(taut_target *t, double *z, const double *x, const uint64_t *key, const int64_t *live, int64_t n)
{
#pragma omp parallel for schedule(dynamic) num_threads(crew(t, n))
    for (int64_t first = 0; first < n; first += t->batch) {
        const int64_t lane = omp_get_thread_num(), count = portion(t, first, n);
        packed p = carve(t, lane);
        forward(t, lane, &p, x, key, live, first, count);
        for (int64_t i = 0; i < count; i++)
            memcpy(z + row(live, first + i) * t->classes, p.z + i * t->classes, (size_t)t->classes * sizeof *z);
    }
    t->forwards += n;
}

void taut_target_slope(taut_target *t, double *z, double *loss, double *g, const double *x, const uint64_t *key,
                       const int64_t *live, int64_t n, taut_loss kind, const int32_t *label, const int32_t *wrong)
{
#pragma omp parallel for schedule(dynamic) num_threads(crew(t, n))
    for (int64_t first = 0; first < n; first += t->batch) {
        const int64_t lane = omp_get_thread_num(), count = portion(t, first, n);
        packed p = carve(t, lane);
        forward(t, lane, &p, x, key, live, first, count);
        for (int64_t i = 0; i < count; i++) {
            const int64_t e = row(live, first + i), c = t->classes;
            loss[e] = taut_loss_at(p.w + i * c, kind, p.z + i * c, c, label[e], wrong ? wrong[e] : 0);
            memcpy(z + e * c, p.z + i * c, (size_t)c * sizeof *z);
        }
        backward(t, lane, &p, g, live, first, count);
    }
    t->forwards += n, t->backwards += n;
}

/* One class of each packed row against its label; a row for which the class is its label, or not allowed, is left alone. */
static void try_class(const taut_target *t, int64_t lane, packed *p, double *f, double *near, const int64_t *live,
                      int64_t first, int64_t count, const int32_t *label, const int32_t *wrong, int32_t class,
                      double (*scale)(const double *, int64_t))
{
    const int64_t classes = t->classes;
    memset(p->w, 0, (size_t)(count * classes) * sizeof *p->w);
    for (int64_t i = 0; i < count; i++) {
        const int64_t e = row(live, first + i);
        p->w[i * classes + (wrong ? wrong[e] : class)] += 1;
        p->w[i * classes + label[e]] -= 1;
    }
    t->backward(t->arg, lane, p->g, p->w, count);
    for (int64_t i = 0; i < count; i++) {
        const int64_t e = row(live, first + i);
        const int32_t c = wrong ? wrong[e] : class;
        const double gap = p->z[i * classes + c] - p->z[i * classes + label[e]];
        const double distance = fabs(gap) / (1e-12 + scale(p->g + i * t->dim, t->dim));
        if (c == label[e] || !(distance < near[i])) continue;
        near[i] = distance;
        f[e] = gap;
        memcpy(p->best + i * t->dim, p->g + i * t->dim, (size_t)t->dim * sizeof *p->g);
    }
}

void taut_target_boundary(taut_target *t, double *f, double *g, const double *x, const uint64_t *key,
                          const int64_t *live, int64_t n, const int32_t *label, const int32_t *wrong,
                          double (*scale)(const double *, int64_t))
{
    const int32_t classes = wrong ? 1 : (int32_t)t->classes;
    TAUT_CHECK(t->batch <= 256, "target: at most 256 examples in a batch");
#pragma omp parallel for schedule(dynamic) num_threads(crew(t, n))
    for (int64_t first = 0; first < n; first += t->batch) {
        const int64_t lane = omp_get_thread_num(), count = portion(t, first, n);
        packed p = carve(t, lane);
        double near[256];
        forward(t, lane, &p, x, key, live, first, count);
        for (int64_t i = 0; i < count; i++) {
            near[i] = INFINITY;
            f[row(live, first + i)] = 0;
            memset(p.best + i * t->dim, 0, (size_t)t->dim * sizeof *p.best);
        }
        for (int32_t c = 0; c < classes; c++)
            try_class(t, lane, &p, f, near, live, first, count, label, wrong, c, scale);
        for (int64_t i = 0; i < count; i++)
            memcpy(g + row(live, first + i) * t->dim, p.best + i * t->dim, (size_t)t->dim * sizeof *g);
    }
    t->forwards += n, t->backwards += n * classes;
}

int32_t taut_argmax(const double *z, int64_t classes)
{
    int32_t best = 0;
    for (int32_t i = 0; i < classes; i++) {
        if (isnan(z[i])) return -1;
        if (z[i] > z[best]) best = i;
    }
    return best;
}
