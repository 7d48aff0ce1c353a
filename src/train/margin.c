#include "train/margin.h"

#include <math.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/float32.h"

int64_t taut_margin_len(const taut_model *m, const taut_train_spec *t)
{
    const int64_t classes = m->classes, features = taut_linear_weight(m->head)->cols;
    return classes * classes * (classes + 2 * features + 2) + t->batch * classes;
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
    *s = (taut_margin){ .spec = t, .head = head, .scale = taut_float32(m->spec.logit_scale) };
    s->pairs = taut_take(&rest, square * classes);
    s->apart = taut_take(&rest, square * head->cols);
    s->pull = taut_take(&rest, square * head->cols);
    s->distance = taut_take(&rest, square);
    s->tension = taut_take(&rest, square);
    s->start = taut_take(&rest, t->batch * classes);
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
    k->axpby(x, ahead * cold, s->start, cold, rows * classes);
    k->cross_entropy(x, p->sums, x, p->targets, rows, classes, weight);
    k->axpby(s->tension, 0, s->tension, 0, square);
    k->scatter(s->tension, x, p->targets, rows, classes);
    k->lengths_vjp(s->pull, s->tension, s->apart, s->distance, square, features, 1);
    k->gemm(s->head->grad, s->pairs, s->pull, classes, features, square, true, false, ahead, 1);
}
