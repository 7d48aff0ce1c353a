/* The forward pass of every attention that takes means of values: o_i = sum_j P_ij v_j for every head, P the softmax of a
 * row's logits, which are
 *     attention, window, cosattention  scale q_i.k_j - slope |i - j|, with RoPE, with normalised vectors
 *     l2attention               scale (q_i.q_j - |q_j|^2/2): the softmax of -(scale/2) |q_i - q_j|^2
 *     posattention              those of its table
 * A logit that is off by e makes a weight off by a factor within exp(+-2 e) and some roundings, and so the mean. */
#include <fenv.h>
#include <stdlib.h>

#include "check/examples/examples.h"
#include "check/rules/rules.h"

enum { HEADS, SCALE, TO }; /* constants that are where they are in several rules */

void ck_rotate(ck_mat *x, int64_t dh, double base, double sign)
{
    x->err += ((16 + log(base)) * (double)x->rows + 32) * CK_U * ck_longest(*x);
    for (int64_t t = 0; t < x->rows; t++)
        for (int64_t i = 0; i < dh / 2; i++) {
            const double angle = sign * (double)t * pow(base, -2 * (double)i / (double)dh), co = cos(angle),
                         si = sin(angle);
            for (double *v = x->v + t * x->ld + i, *end = v + x->cols - i; v < end; v += dh) {
                const double a = v[0], b = v[dh / 2];
                v[0] = co * a - si * b;
                v[dh / 2] = si * a + co * b;
            }
        }
}

/* The longest vector of one head. */
static double longest(ck_mat m, int64_t dh)
{
    double most = 0;
    for (int64_t at = 0; at < m.cols; at += dh)
        most = fmax(most, ck_longest((ck_mat){ m.v + at, 0, m.rows, dh, m.ld }));
    return most;
}

static double logit(const ck_attended *a, int64_t h, int64_t i, int64_t j)
{
    if (!a->q.v) return ck_logit(a->n, h, i, j);
    const double *q = a->q.v + i * a->q.ld + h * a->dh, *k = a->k.v + j * a->k.ld + h * a->dh;
    const double slope = a->alibi ? exp2(-8 * (double)(h + 1) / (double)a->heads) : 0;
    double sum = 0, own = 0;
    for (int64_t d = 0; d < a->dh; d++) sum += q[d] * k[d], own += k[d] * k[d];
    return a->scale * (a->apart ? sum - own / 2 : sum) - slope * fabs((double)(i - j));
}

/* In windows the first tokens, `global` of them, see and are seen by all; the others stand in blocks and see their own and
 * the two beside it. */
bool ck_sees(const ck_attended *a, int64_t i, int64_t j)
{
    if (a->causal && j > i) return false;
    return a->block == 0 || i < a->global || j < a->global ||
           llabs((i - a->global) / a->block - (j - a->global) / a->block) <= 1;
}

void ck_shares(const ck_attended *a, double *s, int64_t h, int64_t i)
{
    const int64_t t = a->v.rows;
    double top = -INFINITY, sum = 0;
    for (int64_t j = 0; j < t; j++) top = fmax(top, s[j] = ck_sees(a, i, j) ? logit(a, h, i, j) : -INFINITY);
    for (int64_t j = 0; j < t; j++) sum += s[j] = exp(s[j] - top);
    for (int64_t j = 0; j < t; j++) s[j] /= sum;
}

/* Row i of head h; s is room for the shares. */
static void attend(const ck_attended *a, double *o, double *s, int64_t h, int64_t i)
{
    ck_shares(a, s, h, i);
    for (int64_t j = 0; j < a->v.rows; j++)
        for (int64_t d = 0; d < a->dh; d++) o[d] += s[j] * a->v.v[j * a->v.ld + h * a->dh + d];
}

/* How far a logit is from the real one.  A table's is exact, but for its distance to the largest: 750 u (posattention.c). */
static double logit_error(const ck_attended *a)
{
    const double q = longest(a->q, a->dh), k = longest(a->k, a->dh), eq = a->q.err, ek = a->k.err;
    const double scale = fabs(a->scale);
    const double size = scale * (q * k + (a->apart ? k * k : 0)) + (a->alibi ? (double)a->v.rows : 0);
    const double moved = (q + eq) * ek + k * eq + (a->apart ? (k + ek) * ek : 0);
    return a->q.v ? scale * moved + ck_gamma((double)a->dh + 24) * size : 1500 * CK_U;
}

double ck_shares_off(const ck_attended *a)
{
    const double off = 2 * logit_error(a) + ck_gamma(2 * (double)a->v.rows + 64);
    return off < 0.01 ? 1.01 * off : INFINITY;
}

/* q, k and v, turned and normalised as the constants say. */
static void project(ck *c, ck_attended *a, ck_mat x)
{
    const ck_node *n = a->n;
    ck_mat *const side[] = { &a->q, &a->k, &a->v };
    for (int i = 0; i < 3; i++) {
        *side[i] = ck_affine(c, x, 1, n->w[i], n->w[4 + i]);
        if (i < 2 && ck_constant(n, "rope") != 0) ck_rotate(side[i], a->dh, ck_constant(n, "rope"), 1);
        if (ck_is(n, "cosattention") && (i < 2 || ck_constant(n, "values") != 0))
            ck_divide(side[i], a->dh, 1, ck_constant(n, "eps"));
    }
    a->scale = n->k[SCALE], a->alibi = ck_constant(n, "alibi") != 0;
}

/* Keys are queries; values W_V x, or tied (1/sqrt(dh)) W_V^h W_Q^hT q: a matrix of blocks. */
static void project_l2(ck *c, ck_attended *a, ck_mat x)
{
    const ck_node *n = a->n;
    const int64_t dh = a->dh;
    ck_mat inner = ck_new(c, x.cols, x.cols);
    a->q = a->k = ck_affine(c, x, 1, n->w[0], (ck_mat){ 0 });
    a->scale = 2 * ck_root((double)dh), a->apart = true;
    for (int64_t h = 0; h < a->heads; h++) {
        const ck_mat wv = ck_turn(c, ck_rows(n->w[1], h * dh, dh)), wq = ck_turn(c, ck_rows(n->w[0], h * dh, dh));
        const ck_mat block = ck_product(c, wv, wq);
        for (int64_t i = 0; i < dh * dh; i++)
            inner.v[(h * dh + i / dh) * inner.ld + h * dh + i % dh] = block.v[i / dh * block.ld + i % dh];
        inner.err = ck_hypot(inner.err, block.err);
    }
    a->v = n->k[1] != 0 ? ck_affine(c, a->q, 1 / sqrt((double)dh), inner, (ck_mat){ 0 })
                        : ck_affine(c, x, 1, n->w[1], (ck_mat){ 0 });
}

ck_attended ck_projected(ck *c, const ck_node *n, ck_mat x)
{
    ck_attended a = { .n = n, .heads = (int64_t)n->k[HEADS], .dh = x.cols / (int64_t)n->k[HEADS] };
    a.causal = ck_constant(n, "causal") != 0;
    a.block = (int64_t)ck_constant(n, "size"), a.global = (int64_t)ck_constant(n, "global");
    if (ck_is(n, "l2attention"))
        project_l2(c, &a, x);
    else if (!ck_is(n, "posattention"))
        project(c, &a, x);
    else {
        a.v = ck_affine(c, x, 1, n->w[0], (ck_mat){ 0 });
        ck_weigh(&a.v, 1, ck_gains(c, n), (ck_mat){ 0 });
    }
    return a;
}

void ck_attend(ck *c, const ck_node *n, ck_mat *x)
{
    const bool table = ck_is(n, "posattention"), l2 = ck_is(n, "l2attention");
    if (ck_queries(n)) ck_not_run(c, n, x);
    const ck_attended a = ck_projected(c, n, *x);
    const int64_t heads = a.heads, dh = a.dh, t = x->rows;
    ck_mat o = ck_new(c, t, x->cols);
    double *s = ck_room(c, t * heads, sizeof *s);
#pragma omp parallel if (t * t * x->cols > 100000)
    {
        fesetround(FE_TONEAREST); /* as in matrix.c */
#pragma omp for schedule(dynamic, 1)
        for (int64_t h = 0; h < heads; h++)
            for (int64_t row = 0; row < t; row++) attend(&a, o.v + row * o.ld + h * dh, s + h * t, h, row);
    }
    fesetround(FE_UPWARD);
    o.err = sqrt((double)heads) * (ck_shares_off(&a) * longest(a.v, dh) + a.v.err);
    const int out = table ? 1 : l2 ? 2 : 3;
    *x = ck_affine(c, o, table || l2 ? 1 : n->k[TO], n->w[out], table ? n->w[2] : n->w[7]);
}
