/* Ball propagation (docs/deviation.md).  With |.| the longest row, centre c, radius r, per head
 *     gQ = (|c W_Q| + r ||W_Q||)/sqrt(dh), gK likewise, gV = |c W_V| + r ||W_V||
 *     LM = ||W_O|| sqrt(sum_h (gQ gV ||W_K|| + gK gV ||W_Q|| + ||W_V||)^2),   r1 = (1 + LM) r
 *     rA = min( ||g1|| r1 / sqrt(max(0, cF - r1)^2/d + eps), 2 sqrt(d) ||g1|| ),  cF the shortest centred row before LN1
 *     r2 = (1 + ||W1|| ||W2||) rA,   r' likewise from cG and g2
 * since the Jacobian of a softmax mean is sum p dv + Cov(dS, v), |Cov| <= max|dS| max|v|, and LayerNorm has the
 * constant ||g||/sqrt(m) where the variance + eps is at least m.  Computed in double; norms are proved, and the
 * answer is raised by 1e-9. */
#include "certify/mixer.h"
#include "base/float32.h"

#include <math.h>

#include "base/check.h"
#include "bound/norm.h"
#include "kernels/kernels.h"

double taut_longest_row(const double *x, int64_t rows, int64_t d, int64_t stride)
{
    double most = 0;
    for (int64_t r = 0; r < rows; r++) {
        double sum = 0;
        for (int64_t c = 0; c < d; c++) sum += x[r * stride + c] * x[r * stride + c];
        most = fmax(most, sqrt(sum));
    }
    return most;
}

void taut_mixer_norms(taut_mixer_layer *l)
{
    const int64_t d = l->width, dh = d / l->heads;
    TAUT_CHECK(l->heads <= TAUT_MIXER_HEADS, "mixer: too many heads");
    for (int64_t h = 0; h < l->heads; h++) {
        l->nq[h] = up_norm(l->wq + h * dh * d, dh, d).v;
        l->nk[h] = up_norm(l->wk + h * dh * d, dh, d).v;
        l->nv[h] = up_norm(l->wv + h * dh * d, dh, d).v;
    }
    l->no = up_norm(l->wo, d, d).v;
    l->n1 = up_norm(l->w1, l->hidden, d).v;
    l->n2 = up_norm(l->w2, d, l->hidden).v;
    l->gain1 = l->gain2 = 0;
    for (int64_t c = 0; c < d; c++)
        l->gain1 = fmax(l->gain1, fabs(l->g1[c])), l->gain2 = fmax(l->gain2, fabs(l->g2[c]));
}

typedef struct {
    double *q, *k, *v, *before1, *a, *before2; /* (groups, width) each */
    double *hidden, *lse, *o;
} steps;

static int64_t steps_len(const taut_mixer_layer *l) { return l->groups * (7 * l->width + l->hidden + l->heads); }

int64_t taut_mixer_work(const taut_mixer_layer *l) { return 2 * steps_len(l); }

static steps steps_in(const taut_mixer_layer *l, double *p)
{
    const int64_t len = l->groups * l->width;
    return (steps){ p,           p + len,     p + 2 * len, p + 3 * len,
                    p + 4 * len, p + 5 * len, p + 7 * len, p + 7 * len + l->groups * l->hidden,
                    p + 6 * len };
}

/* y = W x + b */
static void affine(double *y, const double *x, const double *w, const double *b, int64_t rows, int64_t out, int64_t in)
{
    const taut_kernels *k = taut_kernels_find("ref");
    k->gemm((taut_real *)y, (const taut_real *)x, (const taut_real *)w, rows, out, in, false, true, 1, 0);
    if (b) k->add_rows((taut_real *)y, (const taut_real *)y, (const taut_real *)b, rows, out, 1);
}

static void normalise(double *y, const double *x, const double *g, const double *b, const taut_mixer_layer *l)
{
    for (int64_t r = 0; r < l->groups; r++) {
        const double *row = x + r * l->width;
        double mean = 0, var = 0;
        for (int64_t c = 0; c < l->width; c++) mean += row[c] / (double)l->width;
        for (int64_t c = 0; c < l->width; c++) var += (row[c] - mean) * (row[c] - mean) / (double)l->width;
        for (int64_t c = 0; c < l->width; c++) y[r * l->width + c] = g[c] * (row[c] - mean) / sqrt(var + l->eps) + b[c];
    }
}

/* The layer, with what is on the way kept in s; y becomes the output. */
static void apply(const taut_mixer_layer *l, double *y, const steps *s)
{
    const taut_kernels *k = taut_kernels_find("ref");
    const int64_t m = l->groups, d = l->width, dh = d / l->heads;
    const taut_attn attn = {
        .n = 1, .heads = l->heads, .tq = m, .tk = m, .dh = dh, .scale = taut_float32(1 / sqrt((double)dh))
    };
    affine(s->q, y, l->wq, NULL, m, d, d);
    affine(s->k, y, l->wk, NULL, m, d, d);
    affine(s->v, y, l->wv, NULL, m, d, d);
    k->attention((taut_real *)s->o, (taut_real *)s->lse, (taut_real *)s->q, (taut_real *)s->k, (taut_real *)s->v,
                 &attn);
    affine(s->before1, s->o, l->wo, NULL, m, d, d);
    for (int64_t i = 0; i < m * d; i++) s->before1[i] += y[i];
    normalise(s->a, s->before1, l->g1, l->be1, l);
    affine(s->hidden, s->a, l->w1, l->b1, m, l->hidden, d);
    for (int64_t i = 0; i < m * l->hidden; i++) s->hidden[i] = fmax(s->hidden[i], 0);
    affine(s->before2, s->hidden, l->w2, l->b2, m, d, l->hidden);
    for (int64_t i = 0; i < m * d; i++) s->before2[i] += s->a[i];
    normalise(y, s->before2, l->g2, l->be2, l);
}

/* The shortest (or longest) row once its mean is taken out. */
static double centred(const double *x, const taut_mixer_layer *l, bool longest)
{
    double best = longest ? 0 : INFINITY;
    for (int64_t r = 0; r < l->groups; r++) {
        double mean = 0, sum = 0;
        for (int64_t c = 0; c < l->width; c++) mean += x[r * l->width + c] / (double)l->width;
        for (int64_t c = 0; c < l->width; c++) sum += (x[r * l->width + c] - mean) * (x[r * l->width + c] - mean);
        best = longest ? fmax(best, sqrt(sum)) : fmin(best, sqrt(sum));
    }
    return best;
}

static double norm_ball(double r, double shortest, double gain, const taut_mixer_layer *l)
{
    const double d = (double)l->width, left = fmax(0, shortest * (1 - 1e-9) - r);
    return fmin(gain * r / sqrt(left * left / d + l->eps), 2 * sqrt(d) * gain);
}

double taut_mixer_ball(const taut_mixer_layer *l, double *centre, double r, double *work)
{
    const steps s = steps_in(l, work);
    const int64_t m = l->groups, d = l->width, dh = d / l->heads;
    const double root = 1 / taut_float32(1 / sqrt((double)dh)); /* as the module rounds it */
    double sum = 0;
    apply(l, centre, &s);
    for (int64_t h = 0; h < l->heads; h++) {
        const double gq = (taut_longest_row(s.q + h * dh, m, dh, d) + r * l->nq[h]) / root;
        const double gk = (taut_longest_row(s.k + h * dh, m, dh, d) + r * l->nk[h]) / root;
        const double gv = taut_longest_row(s.v + h * dh, m, dh, d) + r * l->nv[h];
        const double slope = gq * gv * l->nk[h] + gk * gv * l->nq[h] + l->nv[h];
        sum += slope * slope;
    }
    const double r1 = (1 + l->no * sqrt(sum)) * r, ra = norm_ball(r1, centred(s.before1, l, false), l->gain1, l);
    const double r2 = (1 + l->n1 * l->n2) * ra, out = norm_ball(r2, centred(s.before2, l, false), l->gain2, l);
    return out * (1 + 1e-9);
}

static double printed_norm(double r, const double *x0, const double *x1, double gain, const taut_mixer_layer *l)
{
    const double d = (double)l->width, low = fmin(centred(x0, l, false), centred(x1, l, false));
    const double high = fmax(centred(x0, l, true), centred(x1, l, true)) + 2 * r, left = fmax(0, low - 2 * r);
    const double m = left * left / d + l->eps;
    return gain * (2 / sqrt(m) + 2 / d * high * high / (m * sqrt(m)));
}

static double apart(const double *x, const double *y, int64_t rows, int64_t d)
{
    double most = 0;
    for (int64_t r = 0; r < rows; r++) {
        double sum = 0;
        for (int64_t c = 0; c < d; c++) sum += (x[r * d + c] - y[r * d + c]) * (x[r * d + c] - y[r * d + c]);
        most = fmax(most, sqrt(sum));
    }
    return most;
}

double taut_mixer_printed(const taut_mixer_layer *l, double *y0, double *y1, double *work)
{
    const steps s = steps_in(l, work), t = steps_in(l, work + steps_len(l));
    const int64_t m = l->groups, d = l->width, dh = d / l->heads;
    const double r = apart(y0, y1, m, d);
    double sum = 0;
    apply(l, y0, &s);
    apply(l, y1, &t);
    for (int64_t h = 0; h < l->heads; h++) {
#define BOTH(x) fmax(taut_longest_row(s.x + h * dh, m, dh, d), taut_longest_row(t.x + h * dh, m, dh, d))
        const double gq = BOTH(q) / sqrt((double)dh), gk = BOTH(k), gv = BOTH(v);
        sum += gq * gv * l->nk[h] + gk * gv * l->nq[h] + l->nv[h];
    }
    const double lm = l->no * sum, lf = l->n1 * l->n2;
    const double first = printed_norm((1 + lm) * r, s.before1, t.before1, l->gain1, l);
    const double second = printed_norm((1 + lf) * apart(s.a, t.a, m, d), s.before2, t.before2, l->gain2, l);
    return second * (1 + lf) * first * (1 + lm);
}
