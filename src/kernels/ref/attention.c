/* Softmax attention, one row of keys at a time: no N x N matrix, one row buffer a thread.
 *
 *   S_ij = scale q_i.k_j - slope_h |i + tk - tq - j|,  P = row softmax over the keys that i sees
 *   forward  o_i = sum_j P_ij v_j,  lse_i = ln sum_j exp S_ij
 *   jvp      to_i = sum_j P_ij [ tv_j + scale (tq_i.(k_j - kbar_i) + q_i.tk_j - qbar_i) (v_j - o_i) ],
 *            kbar_i = sum_j P_ij k_j,  qbar_i = sum_j P_ij q_i.tk_j.  The textbook form cancels when a row
 *            saturates; this one, centred on both sides, does not.
 *   vjp      P_ij = exp(S_ij - lse_i),  D_i = go_i.o_i,  dS_ij = P_ij (go_i.v_j - D_i),
 *            gv_j = sum_i P_ij go_i,  gq_i = scale sum_j dS_ij k_j,  gk_j = scale sum_i dS_ij q_i
 * Masking: masked keys are not touched, so nothing in them matters.  A query that sees no key has o = 0,
 * lse = -inf and derivative 0.  A row whose visible logits are all -inf is 0/0 = NaN. */
#include "kernels/ref/attention.h"

/* Another thread costs more than a few thousand products do. */
static bool worth_sharing(const taut_attn *a) { return a->n * a->heads * a->tq * a->tk * a->dh > 20000; }

static void mean_of(double *o, const double *p, const taut_real *v, const taut_attn *a, int64_t e, int64_t h,
                    int64_t keys)
{
    for (int64_t c = 0; c < a->dh; c++) o[c] = 0;
    for (int64_t j = 0; j < keys; j++)
        for (int64_t c = 0; c < a->dh; c++) o[c] += p[j] * at(v, a, a->tk, e, h, j)[c];
}

void taut_ref_attention(taut_real *o, taut_real *lse, const taut_real *q, const taut_real *k, const taut_real *v,
                        const taut_attn *a)
{
    const int64_t all = a->n * a->heads * a->tq;
#pragma omp parallel if (worth_sharing(a))
    {
        double *s = rows_new(a->tk);
#pragma omp for schedule(static)
        for (int64_t row = 0; row < all; row++) {
            const int64_t i = row % a->tq, h = row / a->tq % a->heads, e = row / a->tq / a->heads;
            const int64_t keys = visible(a, i);
            logits(s, q, k, a, e, h, i, keys);
            ((double *)lse)[row] = softmax(s, keys);
            mean_of(at(o, a, a->tq, e, h, i), s, v, a, e, h, keys);
        }
        free(s);
    }
}

/* The centred row; o and kbar are dh wide, p and t hold one entry a key. */
static void jvp_row(double *to, const taut_real *tq, const taut_real *tk, const taut_real *tv, const taut_real *q,
                    const taut_real *k, const taut_real *v, const taut_attn *a, int64_t e, int64_t h, int64_t i,
                    double *p, double *t, double *o, double *kbar)
{
    const int64_t keys = visible(a, i);
    logits(p, q, k, a, e, h, i, keys);
    softmax(p, keys);
    mean_of(o, p, v, a, e, h, keys);
    mean_of(kbar, p, k, a, e, h, keys);
    double qbar = 0;
    for (int64_t j = 0; j < keys; j++) {
        t[j] = inner(at(q, a, a->tq, e, h, i), at(tk, a, a->tk, e, h, j), a->dh);
        qbar += p[j] * t[j];
    }
    for (int64_t c = 0; c < a->dh; c++) to[c] = 0;
    for (int64_t j = 0; j < keys; j++) {
        const double *kj = at(k, a, a->tk, e, h, j), *vj = at(v, a, a->tk, e, h, j);
        double ts = t[j] - qbar;
        for (int64_t c = 0; c < a->dh; c++) ts += at(tq, a, a->tq, e, h, i)[c] * (kj[c] - kbar[c]);
        for (int64_t c = 0; c < a->dh; c++)
            to[c] += p[j] * (at(tv, a, a->tk, e, h, j)[c] + a->scale * ts * (vj[c] - o[c]));
    }
}

void taut_ref_attention_jvp(taut_real *to, const taut_real *tq, const taut_real *tk, const taut_real *tv,
                            const taut_real *q, const taut_real *k, const taut_real *v, const taut_attn *a)
{
    const int64_t all = a->n * a->heads * a->tq;
#pragma omp parallel if (worth_sharing(a))
    {
        double *p = rows_new(2 * a->tk + 2 * a->dh), *t = p + a->tk, *o = t + a->tk, *kbar = o + a->dh;
#pragma omp for schedule(static)
        for (int64_t row = 0; row < all; row++) {
            const int64_t i = row % a->tq, h = row / a->tq % a->heads, e = row / a->tq / a->heads;
            jvp_row(at(to, a, a->tq, e, h, i), tq, tk, tv, q, k, v, a, e, h, i, p, t, o, kbar);
        }
        free(p);
    }
}

/* Row i's part of the cotangents: gq_i whole, and its addition to every gk_j, gv_j that it sees. */
static void vjp_row(taut_real *gq_, taut_real *gk_, taut_real *gv_, const taut_real *go_, const taut_real *o,
                    double lse, const taut_real *q, const taut_real *k, const taut_real *v, const taut_attn *a,
                    int64_t e, int64_t h, int64_t i, double *s)
{
    const int64_t keys = visible(a, i), dh = a->dh;
    double *gq = at(gq_, a, a->tq, e, h, i);
    const double *go = at(go_, a, a->tq, e, h, i), *qi = at(q, a, a->tq, e, h, i);
    const double delta = inner(go, at(o, a, a->tq, e, h, i), dh);
    logits(s, q, k, a, e, h, i, keys);
    for (int64_t c = 0; c < dh; c++) gq[c] = 0;
    for (int64_t j = 0; j < keys; j++) {
        const double p = exp(s[j] - lse);
        const double ds = a->scale * p * (inner(go, at(v, a, a->tk, e, h, j), dh) - delta);
        double *gk = at(gk_, a, a->tk, e, h, j), *gv = at(gv_, a, a->tk, e, h, j);
        for (int64_t c = 0; c < dh; c++) {
            gv[c] += p * go[c];
            gq[c] += ds * at(k, a, a->tk, e, h, j)[c];
            gk[c] += ds * qi[c];
        }
    }
}

void taut_ref_attention_vjp(taut_real *gq, taut_real *gk, taut_real *gv, const taut_real *go, const taut_real *o,
                            const taut_real *lse, const taut_real *q, const taut_real *k, const taut_real *v,
                            const taut_attn *a)
{
#pragma omp parallel if (worth_sharing(a))
    {
        double *s = rows_new(a->tk);
#pragma omp for schedule(static)
        for (int64_t head = 0; head < a->n * a->heads; head++) {
            const int64_t h = head % a->heads, e = head / a->heads;
            for (int64_t j = 0; j < a->tk; j++)
                for (int64_t c = 0; c < a->dh; c++) at(gk, a, a->tk, e, h, j)[c] = at(gv, a, a->tk, e, h, j)[c] = 0;
            for (int64_t i = 0; i < a->tq; i++)
                vjp_row(gq, gk, gv, go, o, ((const double *)lse)[head * a->tq + i], q, k, v, a, e, h, i, s);
        }
        free(s);
    }
}
