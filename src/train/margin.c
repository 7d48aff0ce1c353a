#include "train/margin.h"

#include <math.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/float32.h"

int64_t taut_margin_len(const taut_model *m, const taut_train_spec *t)
{
    const int64_t classes = m->classes, features = taut_linear_weight(m->head)->cols;
    const int64_t leads = t->margin_least < 1 ? t->batch * classes : 0;
    return classes * classes * (classes + 2 * features + 2) + t->batch * classes + leads + features;
}

static void put_pairs(const taut_margin *s, const taut_kernels *k, int64_t classes, double *row)
{
    for (int64_t i = 0; i < classes * classes; i++) {
        for (int64_t c = 0; c < classes; c++) row[c] = (double)(c == i / classes) - (double)(c == i % classes);
        k->put(taut_at(k, s->pairs, i * classes), row, classes);
    }
}

taut_status taut_margin_create(taut_margin **out, const taut_model *m, const taut_train_spec *t)
{
    const int64_t classes = m->classes, square = classes * classes;
    if (classes > TAUT_MARGIN_CLASSES)
        return taut_fail(TAUT_BAD_CONFIG, "train.loss = margin is for at most %d classes, and here are %lld",
                         TAUT_MARGIN_CLASSES, (long long)classes);
    double row[TAUT_MARGIN_CLASSES];
    taut_margin *s = taut_calloc(1, sizeof *s);
    taut_real *memory = s ? taut_reals(m->k, taut_margin_len(m, t)) : NULL;
    if (!memory) {
        free(s);
        return taut_no_memory("the margins");
    }
    const taut_param *head = taut_linear_weight(m->head);
    taut_span rest = { memory, taut_margin_len(m, t), m->k->elem };
    const taut_weight *bias = taut_model_find(m, "head.bias");
    *s = (taut_margin){
        .spec = t, .head = head, .scale = taut_float32(m->spec.logit_scale), .bias = bias ? bias->param : NULL
    };
    s->pairs = taut_take(&rest, square * classes);
    s->apart = taut_take(&rest, square * head->cols);
    s->pull = taut_take(&rest, square * head->cols);
    s->distance = taut_take(&rest, square);
    s->tension = taut_take(&rest, square);
    s->start = taut_take(&rest, t->batch * classes);
    if (t->margin_least < 1) s->lead = taut_take(&rest, t->batch * classes);
    s->mean = taut_take(&rest, head->cols);
    put_pairs(s, m->k, classes, row);
    *out = s;
    return TAUT_OK;
}

void taut_margin_free(taut_margin *s, const taut_kernels *k)
{
    if (!s) return;
    k->release(s->pairs); /* the first of what was allocated as one */
    free(s);
}

taut_status taut_margin_centre(const taut_model *m, const taut_pass *p)
{
    const int64_t rows = taut_rows(p->logits.shape), classes = p->logits.shape.d;
    const taut_weight *bias = taut_model_find(m, "head.bias");
    double *f = taut_malloc((size_t)(rows * classes + classes) * sizeof *f);
    if (!f) return taut_no_memory("the first logits");
    double *b = f + rows * classes;
    m->k->get(f, p->logits.data, rows * classes);
    m->k->get(b, bias->param->value, classes);
    for (int64_t i = 0; i < rows * classes; i++)
        b[i % classes] -= f[i] / ((double)rows * taut_float32(m->spec.logit_scale));
    m->k->put(bias->param->value, b, classes);
    free(f);
    return TAUT_OK;
}

double taut_margin_at(const taut_train_spec *t, int64_t step)
{
    const double half = fmin(1, 2 * (double)step / (double)t->steps);
    return t->margin_radius * (t->margin + (t->margin_final - t->margin) * half);
}

void taut_margin_loss(const taut_margin *s, taut_pass *p, const int32_t *targets, double weight, int64_t step)
{
    const taut_kernels *k = p->m->k;
    const int64_t rows = taut_rows(p->logits.shape), classes = p->logits.shape.d, square = classes * classes;
    const int64_t features = s->head->cols;
    const double ahead = fabs(s->scale) * taut_margin_at(s->spec, step), cold = 1 / s->spec->temperature;
    taut_real *x = p->logits.data;
    k->gemm(s->apart, s->pairs, s->head->value, square, features, classes, false, false, 1, 0);
    k->lengths(s->distance, s->apart, square, features, 1);
    k->put_index(p->targets, targets, rows);
    k->gather(s->start, s->distance, p->targets, rows, classes);
    if (s->lead) {
        k->lead(s->lead, x, s->distance, p->targets, rows, classes, ahead, s->spec->margin_least);
        k->mul_rows(s->start, s->start, s->lead, 1, rows * classes);
    }
    k->axpby(x, ahead * cold, s->start, cold, rows * classes);
    taut_real *g = s->spec->focus > 0 ? s->start : x;
    k->cross_entropy(g, p->sums, x, p->targets, rows, classes, weight);
    if (g != x) k->focus(x, g, x, p->targets, rows, classes, s->spec->focus);
    if (s->lead) k->mul_rows(s->lead, s->lead, x, 1, rows * classes); /* what each row's distances feel */
    k->axpby(s->tension, 0, s->tension, 0, square);
    k->scatter(s->tension, classes, s->lead ? s->lead : x, p->targets, rows, classes);
    k->lengths_vjp(s->pull, s->tension, s->apart, s->distance, square, features, 1);
    k->gemm(s->head->grad, s->pairs, s->pull, classes, features, square, true, false, ahead, 1);
}

typedef struct {
    const taut_module *head;
    taut_tensor features; /* what the head reads */
} sight;

static void see(const taut_module *m, const char *name, int depth, taut_point at, void *arg)
{
    sight *s = arg;
    (void)name, (void)depth;
    if (m == s->head) s->features = at.x;
}

void taut_margin_look(const taut_margin *s, const taut_pass *p)
{
    const taut_kernels *k = p->m->k;
    const int64_t d = s->head->cols;
    sight at = { .head = p->m->head };
    taut_tour_parts(p->m->root, (taut_point){ p->x, p->trace }, see, &at);
    const int64_t rows = taut_rows(at.features.shape);
    k->axpby(s->mean, 0, s->mean, 0, d);
    k->sum_rows(s->mean, at.features.data, rows, d, 1);
    k->axpby(s->mean, 1 / (double)rows, s->mean, 0, d);
}

/* b += sign W mu */
static void shift(const taut_margin *s, const taut_kernels *k, double sign)
{
    k->gemm(s->bias->value, s->head->value, s->mean, s->head->rows, 1, s->head->cols, false, false, sign, 1);
}

void taut_margin_before(const taut_margin *s, const taut_kernels *k)
{
    if (!s->bias) return;
    k->gemm(s->head->grad, s->bias->grad, s->mean, s->head->rows, s->head->cols, 1, false, false, -1, 1);
    shift(s, k, 1);
}

void taut_margin_after(const taut_margin *s, const taut_kernels *k)
{
    if (s->bias) shift(s, k, -1);
}
