/* Attention in plain double loops, its derivative in doubly centred form (which does not cancel when rows
 * saturate), and lower bounds of the Jacobian's norms.  Shares nothing with src/bound but the struct. */
#ifndef ATTENTION_ORACLE_H
#define ATTENTION_ORACLE_H
#include "bound/attention.h"
#include "harness.h"

enum { MAX_T = 6, MAX_D = 16, MAX_I = 24, MAX_X = 2 * MAX_T * MAX_D }; /* tokens, width, heads*dh, input size */

typedef struct {
    taut_attention_weights w;
    double wq[MAX_I * MAX_D], wk[MAX_I * MAX_D], wv[MAX_I * MAX_D], wo[MAX_I * MAX_D];
    double bq[MAX_I], bk[MAX_I], bv[MAX_I], bo[MAX_D];
    double turn[2 * MAX_T][MAX_I * MAX_I]; /* an orthogonal matrix a position: queries, then keys */
    int64_t length;
} net;

/* The input is the queries' tokens, then (cross-attention) the keys'. */
static inline int64_t input_tokens(const net *a) { return a->w.cross ? a->w.tq + a->w.tk : a->w.tk; }
static inline const double *keys_of(const net *a, const double *x) { return a->w.cross ? x + a->w.tq * a->w.width : x; }

/* y_t = W x_t (+ b) for t tokens, then each head turned by its position's matrix. */
static inline void project(double *y, const net *a, const double *w, const double *b, const double *x, int64_t t,
                           int turned)
{
    const int64_t d = a->w.width, n = a->w.heads * a->w.dh, dh = a->w.dh;
    double raw[MAX_I];
    for (int64_t i = 0; i < t; i++, x += d, y += n) {
        for (int64_t r = 0; r < n; r++) raw[r] = dot(w + r * d, x, d) + (b ? b[r] : 0);
        for (int64_t r = 0; r < n; r++)
            y[r] = a->w.rope && turned >= 0 ? dot(a->turn[turned * MAX_T + i] + (r % dh) * dh, raw + r / dh * dh, dh)
                                            : raw[r];
    }
}

/* The probabilities of query i in head h; all 0 when it sees nothing. */
static inline void probabilities(double *p, const net *a, const double *q, const double *k, int64_t i, int64_t h)
{
    const int64_t n = a->w.heads * a->w.dh, at = i + a->w.tk - a->w.tq;
    double most = -INFINITY, sum = 0;
    for (int64_t j = 0; j < a->w.tk; j++) {
        const bool seen = j < a->length && (!a->w.causal || j <= at);
        const double slope = a->w.alibi ? pow(2, -8 * (double)(h + 1) / (double)a->w.heads) : 0;
        p[j] = seen ? a->w.scale * dot(q + i * n + h * a->w.dh, k + j * n + h * a->w.dh, a->w.dh) : -INFINITY;
        p[j] -= seen ? slope * fabs((double)(at - j)) : 0;
        most = fmax(most, p[j]);
    }
    for (int64_t j = 0; j < a->w.tk; j++) sum += p[j] = isfinite(most) ? exp(p[j] - most) : 0;
    for (int64_t j = 0; sum > 0 && j < a->w.tk; j++) p[j] /= sum;
}

static inline void mean_of(double *m, const double *p, const double *v, const net *a, int64_t h)
{
    const int64_t n = a->w.heads * a->w.dh;
    for (int64_t c = 0; c < a->w.dh; c++) m[c] = 0;
    for (int64_t j = 0; j < a->w.tk; j++)
        for (int64_t c = 0; c < a->w.dh; c++) m[c] += p[j] * v[j * n + h * a->w.dh + c];
}

static inline void output(double *y, const net *a, const double *o, bool bias)
{
    const int64_t n = a->w.heads * a->w.dh;
    for (int64_t i = 0; i < a->w.tq; i++)
        for (int64_t r = 0; r < a->w.width; r++)
            y[i * a->w.width + r] = a->w.out * dot(a->wo + r * n, o + i * n, n) + (bias && a->w.bo ? a->bo[r] : 0);
}

static inline void net_forward(double *y, const net *a, const double *x)
{
    double q[MAX_T * MAX_I], k[MAX_T * MAX_I], v[MAX_T * MAX_I], o[MAX_T * MAX_I], p[MAX_T];
    project(q, a, a->wq, a->w.bq, x, a->w.tq, 0);
    project(k, a, a->wk, a->w.bk, keys_of(a, x), a->w.tk, 1);
    project(v, a, a->wv, a->w.bv, keys_of(a, x), a->w.tk, -1);
    for (int64_t i = 0; i < a->w.tq; i++)
        for (int64_t h = 0; h < a->w.heads; h++) {
            probabilities(p, a, q, k, i, h);
            mean_of(o + i * a->w.heads * a->w.dh + h * a->w.dh, p, v, a, h);
        }
    output(y, a, o, true);
}

/* ty = J(x) tx:  dO_i = sum_j P_ij [ dv_j + s (dq_i.(k_j - kbar_i) + q_i.dk_j) (v_j - o_i) ], b_V left out of
 * v and o. */
static inline void net_jvp(double *ty, const net *a, const double *x, const double *tx)
{
    double q[MAX_T * MAX_I], k[MAX_T * MAX_I], v[MAX_T * MAX_I], to[MAX_T * MAX_I], p[MAX_T];
    double dq[MAX_T * MAX_I], dk[MAX_T * MAX_I], dv[MAX_T * MAX_I], o[MAX_I], kbar[MAX_I];
    const int64_t n = a->w.heads * a->w.dh, dh = a->w.dh;
    project(q, a, a->wq, a->w.bq, x, a->w.tq, 0), project(dq, a, a->wq, NULL, tx, a->w.tq, 0);
    project(k, a, a->wk, a->w.bk, keys_of(a, x), a->w.tk, 1), project(dk, a, a->wk, NULL, keys_of(a, tx), a->w.tk, 1);
    project(v, a, a->wv, NULL, keys_of(a, x), a->w.tk, -1), project(dv, a, a->wv, NULL, keys_of(a, tx), a->w.tk, -1);
    for (int64_t i = 0; i < a->w.tq; i++)
        for (int64_t h = 0; h < a->w.heads; h++) {
            double *row = to + i * n + h * dh;
            probabilities(p, a, q, k, i, h);
            mean_of(o, p, v, a, h), mean_of(kbar, p, k, a, h);
            for (int64_t c = 0; c < dh; c++) row[c] = 0;
            for (int64_t j = 0; j < a->w.tk; j++) {
                const int64_t at = j * n + h * dh;
                double t = 0;
                for (int64_t c = 0; c < dh; c++)
                    t += dq[i * n + h * dh + c] * (k[at + c] - kbar[c]) + q[i * n + h * dh + c] * dk[at + c];
                for (int64_t c = 0; c < dh; c++) row[c] += p[j] * (dv[at + c] + a->w.scale * t * (v[at + c] - o[c]));
            }
        }
    output(ty, a, to, false);
}

/* J as (tq*D) x (input size). */
static inline void net_jacobian(double *jac, const net *a, const double *x)
{
    const int64_t cols = input_tokens(a) * a->w.width, rows = a->w.tq * a->w.width;
    double e[MAX_X] = { 0 }, y[MAX_T * MAX_D];
    for (int64_t c = 0; c < cols; c++) {
        e[c] = 1;
        net_jvp(y, a, x, e);
        e[c] = 0;
        for (int64_t r = 0; r < rows; r++) jac[r * cols + c] = y[r];
    }
}

/* A lower bound of the l2 norm by power iteration; e and g are the vectors it found. */
static inline double flat_norm(const double *jac, int64_t rows, int64_t cols, double *e, double *g, int steps)
{
    double value = 0;
    fill(e, cols);
    for (int step = 0; step < steps; step++) {
        const double size = norm(e, cols);
        if (!(size > 0)) return 0;
        for (int64_t c = 0; c < cols; c++) e[c] /= size;
        for (int64_t r = 0; r < rows; r++) g[r] = dot(jac + r * cols, e, cols);
        value = norm(g, rows);
        if (step + 1 == steps) break;
        for (int64_t c = 0; c < cols; c++) e[c] = 0;
        for (int64_t r = 0; r < rows; r++)
            for (int64_t c = 0; c < cols; c++) e[c] += jac[r * cols + c] * g[r];
    }
    for (int64_t r = 0; r < rows; r++) g[r] /= value > 0 ? value : 1;
    return value;
}

/* A lower bound of max over unit tokens of |row block|, by alternating the output's direction g and the
 * input tokens' e_j, which only ever ascends. */
static inline double row_norm(const double *block, int64_t d, int64_t tokens, double *e, double *g, int steps)
{
    double value = 0;
    fill(g, d);
    for (int step = 0; step < steps; step++) {
        for (int64_t j = 0; j < tokens; j++) {
            double *ej = e + j * d;
            for (int64_t c = 0; c < d; c++) ej[c] = 0;
            for (int64_t r = 0; r < d; r++)
                for (int64_t c = 0; c < d; c++) ej[c] += block[r * tokens * d + j * d + c] * g[r];
            const double size = norm(ej, d);
            for (int64_t c = 0; c < d; c++) ej[c] = size > 0 ? ej[c] / size : 0;
        }
        for (int64_t r = 0; r < d; r++) g[r] = dot(block + r * tokens * d, e, tokens * d);
        value = norm(g, d);
        for (int64_t r = 0; r < d; r++) g[r] /= value > 0 ? value : 1;
    }
    return value;
}

/* The largest over the rows; e is that row's input, g is zero elsewhere. */
static inline double token_norm(const net *a, const double *jac, double *e, double *g, int steps)
{
    const int64_t d = a->w.width, tokens = input_tokens(a), cols = tokens * d;
    double best = -1, te[MAX_X], tg[MAX_D];
    for (int64_t i = 0; i < a->w.tq; i++) {
        const double value = row_norm(jac + i * d * cols, d, tokens, te, tg, steps);
        if (!(value > best)) continue;
        best = value;
        memcpy(e, te, (size_t)cols * sizeof *e);
        memset(g, 0, (size_t)(a->w.tq * d) * sizeof *g);
        memcpy(g + i * d, tg, (size_t)d * sizeof *g);
    }
    return fmax(best, 0);
}
#endif
