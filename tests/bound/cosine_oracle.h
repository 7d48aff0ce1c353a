/* Cosine attention in plain double loops with its derivative, exact Jacobians, and lower bounds of their norms.
 * Shares nothing with src/bound but the struct. */
#ifndef COSINE_ORACLE_H
#define COSINE_ORACLE_H
#include "bound/cosine.h"
#include "harness.h"

enum { MAX_T = 6, MAX_D = 6, MAX_I = 12, MAX_X = MAX_T * MAX_D };

typedef struct {
    taut_cosine_weights w;
    double wq[MAX_I * MAX_D], wk[MAX_I * MAX_D], wv[MAX_I * MAX_D], wo[MAX_I * MAX_D];
    double bq[MAX_I], bk[MAX_I], bv[MAX_I], bo[MAX_D];
    double turn[MAX_T][MAX_I * MAX_I]; /* an orthogonal matrix a position; the identity without RoPE */
    int64_t length;
} net;

/* A net is copied by value; its weights must then point into the copy. */
static inline void net_own(net *a)
{
    a->w.wq = a->wq, a->w.wk = a->wk, a->w.wv = a->wv, a->w.wo = a->wo;
    a->w.bq = a->w.bq ? a->bq : NULL, a->w.bk = a->w.bk ? a->bk : NULL;
    a->w.bv = a->w.bv ? a->bv : NULL, a->w.bo = a->w.bo ? a->bo : NULL;
}

/* z and its tangent tz, one head's vector: W x + b, turned, then n unless it is a plain value. */
static inline void vector_of(double *z, double *tz, const net *a, const double *w, const double *b, const double *turn,
                             bool unit, const double *x, const double *tx)
{
    const int64_t d = a->w.width, dh = a->w.dh;
    double raw[MAX_I], traw[MAX_I], size = a->w.eps, zt = 0;
    for (int64_t r = 0; r < dh; r++) raw[r] = dot(w + r * d, x, d) + (b ? b[r] : 0), traw[r] = dot(w + r * d, tx, d);
    for (int64_t r = 0; r < dh; r++) {
        z[r] = turn ? dot(turn + r * dh, raw, dh) : raw[r];
        tz[r] = turn ? dot(turn + r * dh, traw, dh) : traw[r];
    }
    if (!unit) return;
    for (int64_t r = 0; r < dh; r++) size += z[r] * z[r];
    for (int64_t r = 0; r < dh; r++) z[r] /= sqrt(size), zt += z[r] * tz[r];
    for (int64_t r = 0; r < dh; r++) tz[r] = (tz[r] - z[r] * zt) / sqrt(size);
}

static inline bool sees(const net *a, int64_t i, int64_t j) { return j < a->length && (!a->w.causal || j <= i); }

/* One head's o_i and its tangent, in the doubly centred form; the bias of plain values, which cancels in the tangent,
 * is added at the end. */
static inline void row_of(double *o, double *to, const net *a, int64_t h, int64_t i, const double *x, const double *tx)
{
    const int64_t d = a->w.width, dh = a->w.dh, at = h * dh;
    double q[MAX_I], tq[MAX_I], k[MAX_T][MAX_I], tk[MAX_T][MAX_I], v[MAX_T][MAX_I], tv[MAX_T][MAX_I];
    double s[MAX_T], ts[MAX_T], most = -INFINITY, sum = 0, mean = 0;
    vector_of(q, tq, a, a->wq + at * d, a->w.bq ? a->bq + at : NULL, a->turn[i], true, x + i * d, tx + i * d);
    for (int64_t c = 0; c < dh; c++) o[c] = to[c] = 0;
    for (int64_t j = 0; j < a->w.tokens; j++) {
        if (!sees(a, i, j)) continue;
        const double slope = a->w.alibi ? pow(2, -8 * (double)(h + 1) / (double)a->w.heads) : 0;
        vector_of(k[j], tk[j], a, a->wk + at * d, a->w.bk ? a->bk + at : NULL, a->turn[j], true, x + j * d, tx + j * d);
        vector_of(v[j], tv[j], a, a->wv + at * d, a->w.bv && a->w.values ? a->bv + at : NULL, NULL, a->w.values,
                  x + j * d, tx + j * d);
        s[j] = a->w.tau * dot(q, k[j], dh) - slope * fabs((double)(i - j));
        ts[j] = a->w.tau * (dot(tq, k[j], dh) + dot(q, tk[j], dh));
        most = fmax(most, s[j]);
    }
    for (int64_t j = 0; j < a->w.tokens; j++)
        if (sees(a, i, j)) sum += s[j] = exp(s[j] - most), mean += s[j] * ts[j];
    for (int64_t j = 0; j < a->w.tokens; j++)
        for (int64_t c = 0; sees(a, i, j) && c < dh; c++) o[c] += s[j] / sum * v[j][c];
    for (int64_t j = 0; j < a->w.tokens; j++)
        for (int64_t c = 0; sees(a, i, j) && c < dh; c++)
            to[c] += s[j] / sum * (tv[j][c] + (v[j][c] - o[c]) * (ts[j] - mean / sum));
    for (int64_t c = 0; a->w.bv && !a->w.values && sum > 0 && c < dh; c++) o[c] += a->bv[at + c];
}

/* y and ty = J(x) tx; either may be NULL. */
static inline void net_run(double *y, double *ty, const net *a, const double *x, const double *tx)
{
    const int64_t d = a->w.width, dh = a->w.dh, n = a->w.heads * dh;
    double o[MAX_I], to[MAX_I];
    for (int64_t i = 0; i < a->w.tokens; i++) {
        for (int64_t h = 0; h < a->w.heads; h++) row_of(o + h * dh, to + h * dh, a, h, i, x, tx);
        for (int64_t r = 0; r < d; r++) {
            if (y) y[i * d + r] = a->w.out * dot(a->wo + r * n, o, n) + (a->w.bo ? a->bo[r] : 0);
            if (ty) ty[i * d + r] = a->w.out * dot(a->wo + r * n, to, n);
        }
    }
}

static inline int64_t net_len(const net *a) { return a->w.tokens * a->w.width; }

static inline void net_jacobian(double *jac, const net *a, const double *x)
{
    const int64_t len = net_len(a);
    double e[MAX_X] = { 0 }, ty[MAX_X];
    for (int64_t c = 0; c < len; c++) {
        e[c] = 1;
        net_run(NULL, ty, a, x, e);
        e[c] = 0;
        for (int64_t r = 0; r < len; r++) jac[r * len + c] = ty[r];
    }
}

static inline double longest(const double *x, const net *a)
{
    double most = 0;
    for (int64_t i = 0; i < a->w.tokens; i++) most = fmax(most, norm(x + i * a->w.width, a->w.width));
    return most;
}

static inline void apply(double *y, const double *jac, const double *x, int64_t len, bool back)
{
    for (int64_t r = 0; r < len; r++) y[r] = 0;
    for (int64_t r = 0; r < len; r++)
        for (int64_t c = 0; c < len; c++) y[back ? c : r] += jac[r * len + c] * x[back ? r : c];
}

/* Lower bounds of the norm: power iteration (flat), or aiming at every output token in turn (tokens).  e and g are
 * the vectors found: g . J e is the value. */
static inline double flat_norm(const double *jac, const net *a, double *e, double *g, int steps)
{
    const int64_t len = net_len(a);
    double value = 0;
    fill(e, len);
    for (int step = 0; step < steps; step++) {
        const double size = norm(e, len);
        if (!(size > 0)) return 0;
        for (int64_t c = 0; c < len; c++) e[c] /= size;
        apply(g, jac, e, len, false);
        value = norm(g, len);
        if (step + 1 < steps) apply(e, jac, g, len, true);
    }
    for (int64_t r = 0; value > 0 && r < len; r++) g[r] /= value;
    return value;
}

static inline double token_norm(const double *jac, const net *a, double *e, double *g, int steps)
{
    const int64_t len = net_len(a), d = a->w.width;
    double best = -1, u[MAX_X], v[MAX_X];
    for (int64_t aim = 0; aim < a->w.tokens; aim++) {
        fill(u, len);
        for (int step = 0; step < steps; step++) {
            for (int64_t t = 0; t < a->w.tokens; t++) {
                const double size = norm(u + t * d, d);
                for (int64_t c = t * d; c < (t + 1) * d; c++) u[c] = size > 0 ? u[c] / size : 0;
            }
            apply(v, jac, u, len, false);
            const double value = norm(v + aim * d, d);
            for (int64_t r = 0; r < len; r++) v[r] = r / d == aim && value > 0 ? v[r] / value : 0;
            if (value > best) best = value, memcpy(e, u, sizeof u), memcpy(g, v, sizeof v);
            apply(u, jac, v, len, true);
        }
    }
    return best;
}
#endif
