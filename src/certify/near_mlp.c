/* A perceptron around an example: the formula of docs/certificate.md, whose proof is in docs/modules/mlp.md.
 *
 * Everything is computed to nearest.  A sum has 1e-9 of all that was added up for it on top, far more than it can round; the
 * answer is larger by 2e-4, so that a checker may bound the norms from above in a simpler way. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "bound/blas.h"
#include "bound/norm.h"
#include "certify/near.h"
#include "module/curves.h"

static const double SLACK = 1e-9, LARGER = 1 + 2e-4, MOST_WORK = 0x1p23;

typedef struct {
    const double *in, *bias, *out; /* (h, d); h, or NULL; (e, h) */
    int64_t d, h, e;
    taut_curve curve;
    double keep, by; /* keep I + by W_out D W_in */
    double *z, *row, *col, *scaled, *product,
        frob_w; /* h; norms of W_in's rows and of W_out's columns; (h, d); (e, d) */
} mlp;

static double size(const double *x, int64_t n, int64_t step)
{
    double sum = 0;
    for (int64_t i = 0; i < n; i++) sum += x[i * step] * x[i * step];
    return sqrt(sum) * (1 + SLACK);
}

/* D_k, and in *e how far the slope can be from it where z moves by up to r. */
static double slope(const mlp *m, double z, double r, double *e)
{
    const bool straight = m->curve == TAUT_RELU || m->curve == TAUT_ABS;
    const taut_slopes s = taut_curve_near(m->curve, z, straight ? r : 0), all = taut_curve_slopes(m->curve);
    *e = straight ? (s.hi - s.lo) / 2 : fmin(r + SLACK, all.hi - all.lo);
    return (s.lo + s.hi) / 2;
}

/* One token. */
static double one_token(const mlp *m, const double *x, double moved)
{
    const double far = size(x, m->d, 1);
    double rest = 0;
    blas_gemm(m->z, m->in, false, x, false, m->h, 1, m->d);
    for (int64_t k = 0; k < m->h; k++) {
        double e;
        const double b = m->bias ? m->bias[k] : 0, off = SLACK * (m->row[k] * far + fabs(b));
        const double by = slope(m, m->z[k] + b, m->row[k] * moved + off, &e);
        rest += e * m->row[k] * m->col[k];
        for (int64_t i = 0; i < m->d; i++) m->scaled[k * m->d + i] = m->by * by * m->in[k * m->d + i];
    }
    blas_gemm(m->product, m->out, false, m->scaled, false, m->e, m->d, m->h);
    for (int64_t i = 0; i < m->d && m->keep != 0; i++) m->product[i * m->d + i] += m->keep;
    const double made = SLACK * (fabs(m->keep) + fabs(m->by) * m->frob_w);
    return up_norm(m->product, m->e, m->d).v + made + fabs(m->by) * rest * (1 + SLACK);
}

static const taut_weight *weight(const taut_near_node *at, const char *name)
{
    char path[112];
    snprintf(path, sizeof path, "%s.%s", at->path, name);
    return taut_model_find(at->c->model, path);
}

taut_up up_near_mlp(const taut_near_node *at, double keep, double mix, const double *m_t, double *each)
{
    const taut_weight *in = weight(at, "in.weight"), *out = weight(at, "out.weight"), *bias = weight(at, "in.bias");
    const char *curve = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(at->tree, "curve"));
    const int64_t t = taut_rows(at->x.shape);
    double lip = 0;
    if (!in || !out || !curve) return UP_NONE;
    mlp m = { .in = (const double *)in->param->value,
              .out = (const double *)out->param->value,
              .bias = bias ? (const double *)bias->param->value : NULL,
              .d = in->param->cols,
              .h = in->param->rows,
              .e = out->param->rows,
              .keep = keep,
              .by = mix * taut_near_number(at->tree, "factor") };
    if ((double)t * (double)m.h * (double)m.d * (double)m.e > MOST_WORK) return UP_NONE;
    while (m.curve < TAUT_ELU && strcmp(taut_curve_name(m.curve), curve) != 0) m.curve++;
    if (strcmp(taut_curve_name(m.curve), curve) != 0) return UP_NONE;
    m.z = taut_malloc((size_t)(3 * m.h + m.h * m.d + m.e * m.d) * sizeof *m.z);
    if (!m.z) return UP_NONE;
    m.row = m.z + m.h, m.col = m.row + m.h, m.scaled = m.col + m.h, m.product = m.scaled + m.h * m.d;
    m.frob_w = 2 * size(m.in, m.h * m.d, 1) * size(m.out, m.e * m.h, 1); /* no slope is above 2 */
    for (int64_t k = 0; k < m.h; k++) m.row[k] = size(m.in + k * m.d, m.d, 1), m.col[k] = size(m.out + k, m.e, m.h);
    for (int64_t i = 0; i < t; i++) {
        const double here = m_t[i] < 1e100 ? one_token(&m, (const double *)at->x.data + i * m.d, m_t[i]) * LARGER
                                           : INFINITY;
        lip = here >= 0 ? fmax(lip, here) : INFINITY;
        each[i] = fmin(each[i], here);
    }
    free(m.z);
    return up_wrap(lip);
}
