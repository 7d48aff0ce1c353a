/* One row of one head on the ball: what query i's output can do.
 *
 * Letters are what was computed at the centre; a dash is the real thing anywhere in the ball.  Row i of the Jacobian is
 *     sum_j P'_ij [ W_V + (v'_j - o'_i) u'_i^T ] e_j + s C'_i W_Q f_i,    u_i = s W_K^T q_i,  C_i = Cov_i(v, k).
 * Logits.  Up to what all keys share, S' - S is at most rounding and
 *     D_j = s ( d_i |W_Q^T z_j| + eq_i |z_j| + d_j |W_K^T q_i| + ek_j |q_i|
 *               + na d_i d_j + nq d_i ek_j + nk d_j eq_i + eq_i ek_j ),
 *     z_j = k_j - kbar_i for ANY vector kbar_i; d are the radii, eq, ek, ev the errors of q, k, v.
 * Weights.  P'_j <= e^(S_j+D_j) / (e^(S_j+D_j) + sum_{k != j} e^(S_k-D_k)) = p_j, from the logits and with the sum
 *     over the others made without subtraction; the lower end likewise; dev_j: the larger distance to the computed P_j.
 * Spread.  For ANY c, Cov'(v) <= sum_j P'_j (v'_j - c)(v'_j - c)^T.  With Z = [sqrt(p_j) (v_j - c)]_j, alpha_j >=
 * |v'_j - v_j|:
 *     sqrt(lam) = ||Z|| + sqrt(sum_j p_j alpha_j^2)   (P' sums to 1: the sum is at most max alpha^2);
 *     beta = ||[W_V, U Z']||^2 by Pythagoras (sum_j P_j (v_j - o) = 0), U >= |u'_i|: the smaller of
 *     ( ||[W_V, U Z]|| + U sqrt(sum p alpha^2) )^2 and nv^2 + U^2 lam.
 *     RoPE turns u with j and undoes Pythagoras: beta = (nv + U sqrt(lam))^2.
 * tau.  s ||C' W_Q||: the computed sum_j P_j (v_j - c) z_j^T W_Q, and away from it at most
 *     sum_j dev_j a_j b_j + p_j (a_j kappa_j + alpha_j b_j + alpha_j kappa_j) + |o' - c| |W_Q^T (kbar' - kbar)|,
 *     a_j = |v_j - c|, b_j = |W_Q^T z_j|, kappa_j >= |W_Q^T (k'_j - k_j)|;
 *     and, for larger balls, s sqrt(lam_v lam_k) by Cauchy-Schwarz.
 * Products with W_Q^T are made by rq: |W_Q^T z|^2 <= |rq z|^2 + lost |z|^2. */
#include <float.h>
#include <omp.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "bound/blas.h"
#include "bound/local_impl.h"
#include "bound/norm.h"

typedef struct {
    int64_t i, m;                      /* the query, the keys it sees */
    double *s, *d, *hat;               /* logits, their reach, computed weights */
    double *lo, *hi, *others;          /* exp at both ends, and sums without one of them */
    double *c, *kb, *wu;               /* centres; W_V u_i */
    double *zv, *zk, *rz, *tmp;        /* (m, dh): v_j - c, k_j - kbar, rq z_j, scaled rows */
    double *a, *z, *b, *alpha, *kappa; /* sizes, one a key */
    double *g, *h;                     /* (dh, dh) */
    double uhat, u, omega, chi;        /* |computed u_i|, |u'_i|, |o' - c|, |W_Q^T (kbar' - kbar)| */
    double spread, spread_k;           /* sqrt(sum p alpha^2), sqrt(sum p kappa^2) */
} row;

/* The keys that query i sees. */
static int64_t visible(const local_head *f, int64_t i)
{
    int64_t end = f->at->keys < f->tk ? f->at->keys : f->tk;
    if (f->w->causal && i + f->tk - f->tq + 1 < end) end = i + f->tk - f->tq + 1;
    return end > 0 ? end : 0;
}

static double size(const double *x, int64_t n) { return up_norm_frobenius(x, n).v; }

static double radius(const double *d, int64_t i) { return d ? d[i] : 0; }
static double query_radius(const local_head *f, int64_t i) { return radius(f->w->cross ? f->at->dq : f->at->dk, i); }

/* Logits and weights at the centre, and the centres of values and keys. */
static void centre(const local_head *f, row *r)
{
    const int64_t dh = f->dh, m = r->m;
    const double *q = f->q + r->i * dh;
    double most = -INFINITY, sum = 0;
    for (int64_t j = 0; j < m; j++) {
        const double alibi = f->slope * fabs((double)(r->i + f->tk - f->tq - j));
        r->s[j] = f->w->scale * cblas_ddot((blasint)dh, q, 1, f->k + j * dh, 1) - alibi;
        if (r->s[j] > most) most = r->s[j];
    }
    for (int64_t j = 0; j < m; j++) sum += r->hat[j] = exp(r->s[j] - most);
    for (int64_t j = 0; j < m; j++) r->hat[j] /= sum;
    cblas_dgemv(CblasRowMajor, CblasTrans, (blasint)m, (blasint)dh, 1, f->v, (blasint)dh, r->hat, 1, 0, r->c, 1);
    cblas_dgemv(CblasRowMajor, CblasTrans, (blasint)m, (blasint)dh, 1, f->k, (blasint)dh, r->hat, 1, 0, r->kb, 1);
}

/* |W^T z| from the computed rz = root z. */
static double turned(const local_head *f, const double *rz, double z, double frob, double lost)
{
    const double exact = size(rz, f->dh) + up_gamma(f->dh + 2).v * frob * z;
    return more(sqrt(exact * exact + lost * z * z));
}

static void sizes(const local_head *f, row *r)
{
    const int64_t dh = f->dh, m = r->m;
    const bool rope = f->w->rope;
    for (int64_t j = 0; j < m; j++)
        for (int64_t c = 0; c < dh; c++) {
            r->zv[j * dh + c] = f->v[j * dh + c] - r->c[c];
            r->zk[j * dh + c] = f->k[j * dh + c] - r->kb[c];
        }
    if (rope)
        memcpy(r->rz, r->zk, (size_t)(m * dh) * sizeof *r->rz);
    else
        cblas_dgemm(CblasRowMajor, CblasNoTrans, CblasTrans, (blasint)m, (blasint)dh, (blasint)dh, 1, r->zk,
                    (blasint)dh, f->rq.v, (blasint)dh, 0, r->rz, (blasint)dh);
    for (int64_t j = 0; j < m; j++) {
        const double d = radius(f->at->dk, j);
        r->a[j] = more(size(r->zv + j * dh, dh));
        r->z[j] = more(size(r->zk + j * dh, dh));
        r->b[j] = rope ? more(f->nq * r->z[j]) : turned(f, r->rz + j * dh, r->z[j], f->frob_q, f->lost_q);
        r->alpha[j] = more(f->nv * d + f->ev[j]);
        r->kappa[j] = more(f->na * d + f->nq * f->ek[j]);
    }
}

/* |u_i| at the centre and in the ball, and W_V u_i. */
static void query_size(const local_head *f, row *r)
{
    const int64_t dh = f->dh;
    const double *q = f->q + r->i * dh, nq = size(q, dh), d = query_radius(f, r->i);
    if (f->w->rope) {
        r->uhat = more(f->s * f->nk * nq);
    } else {
        cblas_dgemv(CblasRowMajor, CblasNoTrans, (blasint)dh, (blasint)dh, 1, f->rk.v, (blasint)dh, q, 1, 0, r->tmp, 1);
        r->uhat = more(f->s * turned(f, r->tmp, nq, f->frob_k, f->lost_k));
        cblas_dgemv(CblasRowMajor, CblasNoTrans, (blasint)dh, (blasint)dh, f->w->scale, f->vk.v, (blasint)dh, q, 1, 0,
                    r->wu, 1);
    }
    r->u = more(r->uhat + f->s * (f->na * d + f->nk * f->eq[r->i]));
}

/* D_j; false where a logit or its reach is not finite. */
static bool reach(const local_head *f, row *r)
{
    const int64_t i = r->i;
    const double d = query_radius(f, i), eq = f->eq[i], q = size(f->q + i * f->dh, f->dh), g = up_gamma(f->dh + 8).v;
    double most = 0;
    for (int64_t j = 0; j < r->m; j++) most = fmax(most, fabs(r->s[j]));
    for (int64_t j = 0; j < r->m; j++) {
        const double dj = radius(f->at->dk, j), ek = f->ek[j], k = size(f->k + j * f->dh, f->dh);
        const double alibi = f->slope * fabs((double)(i + f->tk - f->tq - j));
        const double move = d * r->b[j] + eq * r->z[j] + ek * q + f->na * d * dj + f->nq * d * ek + f->nk * dj * eq;
        r->d[j] = more(f->s * (move + eq * ek + g * q * k) + dj * r->uhat + 0x1p-48 * (alibi + most));
        if (!(fabs(r->s[j]) + r->d[j] < 1e300)) return false;
    }
    return true;
}

/* out[j] = sum of x but for x[j]. */
static void without_one(double *out, const double *x, int64_t n)
{
    double sum = 0;
    for (int64_t j = 0; j < n; j++) {
        out[j] = sum;
        sum += x[j];
    }
    sum = 0;
    for (int64_t j = n - 1; j >= 0; j--) {
        out[j] += sum;
        sum += x[j];
    }
}

/* libm's exp is taken to be within 4 units in the last place (rounding.h). */
static void weights(const local_head *f, row *r)
{
    double *p = f->p + r->i * f->tk, *dev = f->dev + r->i * f->tk, top = -INFINITY;
    for (int64_t j = 0; j < r->m; j++) top = fmax(top, r->s[j] + r->d[j]);
    for (int64_t j = 0; j < r->m; j++) {
        r->hi[j] = exp(r->s[j] + r->d[j] - top) * (1 + 0x1p-48) + DBL_MIN;
        r->lo[j] = exp(r->s[j] - r->d[j] - top) * (1 - 0x1p-48);
    }
    without_one(r->others, r->lo, r->m);
    for (int64_t j = 0; j < r->m; j++) p[j] = fmin(1, more(r->hi[j] / (r->hi[j] + less_sum(r->others[j], r->m))));
    without_one(r->others, r->hi, r->m);
    for (int64_t j = 0; j < r->m; j++) {
        const double low = r->lo[j] / (r->lo[j] + more_sum(r->others[j], r->m)) * (1 - 0x1p-44);
        dev[j] = more(fmax(p[j] - r->hat[j], r->hat[j] - low));
    }
}

/* |o' - c|, |W_Q^T (kbar' - kbar)| and the spreads; a computed mean is wrong by at most 2 g_m of the largest term. */
static void drift(const local_head *f, row *r)
{
    const double *p = f->p + r->i * f->tk, *dev = f->dev + r->i * f->tk;
    double o = 0, kb = 0, al = 0, ka = 0, al2 = 0, ka2 = 0, most_v = 0, most_k = 0, most_al = 0, most_ka = 0;
    for (int64_t j = 0; j < r->m; j++) {
        o += dev[j] * r->a[j], kb += dev[j] * r->b[j];
        al += p[j] * r->alpha[j], ka += p[j] * r->kappa[j];
        al2 += p[j] * r->alpha[j] * r->alpha[j], ka2 += p[j] * r->kappa[j] * r->kappa[j];
        most_v = fmax(most_v, size(f->v + j * f->dh, f->dh)), most_k = fmax(most_k, size(f->k + j * f->dh, f->dh));
        most_al = fmax(most_al, r->alpha[j]), most_ka = fmax(most_ka, r->kappa[j]);
    }
    const double g = 4 * up_gamma(r->m + 8).v;
    r->omega = more_sum(o + g * most_v + fmin(al, most_al), r->m);
    r->chi = more_sum(kb + g * f->nq * most_k + fmin(ka, most_ka), r->m);
    r->spread = more_sum(sqrt(fmin(al2, most_al * most_al)), r->m);
    r->spread_k = more_sum(sqrt(fmin(ka2, most_ka * most_ka)), r->m);
}

/* g = sum_j x_j x_j^T of the rows x_j = f_j z_j, and the largest eigenvalue of g + more, no rounding yet. */
static double gram(const local_head *f, row *r, const double *factor, bool root, const double *z)
{
    const int64_t dh = f->dh;
    double trace = 0;
    for (int64_t j = 0; j < r->m; j++) {
        const double scale = root ? sqrt(factor[j]) : factor[j];
        for (int64_t c = 0; c < dh; c++) r->tmp[j * dh + c] = scale * z[j * dh + c];
    }
    for (int64_t k = 0; k < r->m * dh; k++) trace += r->tmp[k] * r->tmp[k];
    cblas_dsyrk(CblasRowMajor, CblasUpper, CblasTrans, (blasint)dh, (blasint)r->m, 1, r->tmp, (blasint)dh, 0, r->g,
                (blasint)dh);
    return more_sum(trace, r->m * dh);
}

/* lam_max of g, which is off by at most `error` in norm; never more than the trace. */
static double top_of(double *g, int64_t dh, double trace, double error)
{
    const double small = more(trace + error);
    if (!(trace > 0x1p-300) || !(trace < 0x1p300)) return small;
    return fmin(small, more(up_top_symmetric(g, dh).v + error));
}

static double gram_error(const row *r, double trace) { return more(up_gamma(r->m + 16).v * trace); }

static double beta_of(const local_head *f, row *r, double trace, double lam)
{
    const int64_t dh = f->dh;
    if (f->w->rope) {
        const double root = f->nv + r->u * sqrt(lam);
        return more(root * root);
    }
    const double u2 = r->u * r->u;
    double whole = 0;
    for (int64_t c = 0; c < dh; c++)
        for (int64_t e = c; e < dh; e++) {
            r->h[c * dh + e] = f->vv.v[c * dh + e] + u2 * r->g[c * dh + e];
            if (e == c) whole += r->h[c * dh + e];
        }
    const double error = more(f->vv.err.v + u2 * gram_error(r, trace) + up_gamma(4).v * more_sum(whole, dh));
    const double root = sqrt(top_of(r->h, dh, more_sum(whole, dh), error)) + r->u * r->spread;
    return more(fmin(root * root, f->nv * f->nv + u2 * lam));
}

/* s ||C' W_Q||, first form. */
static double tau_of(const local_head *f, row *r)
{
    const int64_t dh = f->dh;
    const double *p = f->p + r->i * f->tk, *dev = f->dev + r->i * f->tk;
    const double g_dh = up_gamma(dh + 2).v, g_m = up_gamma(r->m + 8).v;
    double moved = 0, made = 0, bare = 0;
    for (int64_t j = 0; j < r->m; j++) {
        for (int64_t c = 0; c < dh; c++) r->tmp[j * dh + c] = r->hat[j] * r->zv[j * dh + c];
        moved += dev[j] * r->a[j] * r->b[j];
        moved += p[j] * (r->a[j] * r->kappa[j] + r->alpha[j] * r->b[j] + r->alpha[j] * r->kappa[j]);
        made += r->hat[j] * r->a[j] * ((f->w->rope ? 0 : g_dh * f->frob_q * r->z[j]) + g_m * size(r->rz + j * dh, dh));
        bare += r->hat[j] * r->a[j] * r->z[j];
    }
    cblas_dgemm(CblasRowMajor, CblasTrans, CblasNoTrans, (blasint)dh, (blasint)dh, (blasint)r->m, 1, r->tmp,
                (blasint)dh, r->rz, (blasint)dh, 0, r->h, (blasint)dh);
    const double rooted = more_sum(up_norm(r->h, dh, dh).v + made, r->m);
    const double product = f->w->rope ? f->nq * rooted : sqrt(rooted * rooted + f->lost_q * bare * bare);
    return more_sum(f->s * (product + moved + r->omega * r->chi), r->m);
}

/* Norms of the blocks P_j (W_V + (v_j - o) u^T): ||W_V + c u^T||^2 <= nv^2 + |c||W_V u| + c.(W_V u) + |u|^2 |c|^2. */
static void blocks(const local_head *f, row *r)
{
    const int64_t dh = f->dh;
    const double *p = f->p + r->i * f->tk;
    double *n = f->block + r->i * f->tk;
    const double w = f->w->rope ? 0 : size(r->wu, dh), q = size(f->q + r->i * dh, dh);
    const double wrong = f->w->rope
                             ? 0
                             : more(f->s * q * (f->vk.err.v + up_gamma(dh + 4).v * more(up_ball_frobenius(&f->vk).v)));
    for (int64_t j = 0; j < r->m; j++) {
        const double a = r->a[j], pert = (r->alpha[j] + r->omega) * r->u + a * (r->u - r->uhat);
        double centre = f->nv + a * r->uhat;
        if (!f->w->rope) {
            const double inner = cblas_ddot((blasint)dh, r->zv + j * dh, 1, r->wu, 1);
            const double all = f->nv * f->nv + a * w + a * a * r->uhat * r->uhat;
            centre = fmin(centre, sqrt(fmax(0, all + inner) + up_gamma(dh + 32).v * all + 2 * a * wrong));
        }
        n[j] = more(p[j] * (centre + pert));
    }
}

static double spread_of(const local_head *f, row *r)
{
    const double *p = f->p + r->i * f->tk;
    double alpha = 0, square = 0;
    const double trace = gram(f, r, p, false, r->zv);
    for (int64_t j = 0; j < r->m; j++) square += p[j] * p[j], alpha += p[j] * p[j] * r->alpha[j] * r->alpha[j];
    const double top = sqrt(top_of(r->g, f->dh, trace, gram_error(r, trace)));
    return more_sum(top + sqrt(alpha) + r->omega * sqrt(square), r->m);
}

/* ||[sqrt(p_j) W_Q^T (k'_j - kbar)]||; with RoPE rz is z and ||W_Q|| stands for W_Q. */
static double key_spread(const local_head *f, row *r)
{
    const double *p = f->p + r->i * f->tk, trace = gram(f, r, p, true, r->rz);
    double z2 = 0;
    for (int64_t j = 0; j < r->m; j++) z2 += p[j] * r->z[j] * r->z[j];
    const double top = top_of(r->g, f->dh, trace, gram_error(r, trace));
    if (f->w->rope) return more_sum(f->nq * sqrt(top) + r->spread_k, r->m);
    return more_sum(sqrt(top + f->lost_q * z2) + up_gamma(f->dh + 2).v * f->frob_q * sqrt(z2) + r->spread_k, r->m);
}

/* How far the real rows of the Jacobian can be from the computed ones, in norm: block by block, and the query's own. */
static double row_error(const local_head *f, const row *r)
{
    const double *p = f->p + r->i * f->tk, *dev = f->dev + r->i * f->tk;
    double blocks = 0, own = 0;
    for (int64_t j = 0; j < r->m; j++) {
        const double shift = (r->alpha[j] + r->omega) * r->u + r->a[j] * (r->u - r->uhat);
        const double e = dev[j] * (f->nv + r->a[j] * r->uhat) + p[j] * shift;
        blocks += e * e;
        own += dev[j] * r->a[j] * r->b[j];
        own += p[j] * (r->a[j] * r->kappa[j] + r->alpha[j] * r->b[j] + r->alpha[j] * r->kappa[j]);
    }
    const double formed = local_jacobian_rows(f, r->i, r->m, r->hat, r->zv, r->zk, r->a, r->z);
    return more_sum(sqrt(blocks) + f->s * (own + r->omega * r->chi) + formed, r->m);
}

/* beta, tau, vm and the blocks' norms. */
static bool one_row(const local_head *f, row *r)
{
    const int64_t dh = f->dh;
    const double *p = f->p + r->i * f->tk;
    centre(f, r);
    sizes(f, r);
    query_size(f, r);
    if (!reach(f, r)) return false;
    weights(f, r);
    drift(f, r);
    double tau = tau_of(f, r), lam = INFINITY;
    const double keys = f->moved ? key_spread(f, r) : INFINITY;
    const double trace = gram(f, r, p, true, r->zv);
    if (f->moved || f->w->rope) {
        memcpy(r->h, r->g, (size_t)(dh * dh) * sizeof *r->h);
        const double root = sqrt(top_of(r->h, dh, trace, gram_error(r, trace))) + r->spread;
        lam = more(root * root);
        tau = fmin(tau, more(f->s * root * keys));
    }
    f->tau[r->i] = tau;
    f->u[r->i] = r->u;
    f->beta[r->i] = beta_of(f, r, trace, lam);
    f->vm[r->i] = spread_of(f, r);
    blocks(f, r);
    if (f->jacobian) f->err[r->i] = row_error(f, r);
    return f->tau[r->i] < INFINITY && f->beta[r->i] < INFINITY;
}

static bool row_memory(row *r, double **memory, int64_t tk, int64_t dh)
{
    double *m = *memory = taut_malloc((size_t)(11 * tk + 3 * dh + 4 * (tk + 1) * dh + 2 * dh * dh) * sizeof *m);
    if (!m) return false;
    double **const each[] = { &r->s, &r->d, &r->hat, &r->lo,    &r->hi,   &r->others,
                              &r->a, &r->z, &r->b,   &r->alpha, &r->kappa };
    for (int k = 0; k < 11; k++, m += tk) *each[k] = m;
    double **const wide[] = { &r->zv, &r->zk, &r->rz, &r->tmp };
    for (int k = 0; k < 4; k++, m += (tk + 1) * dh) *wide[k] = m;
    r->c = m, r->kb = m + dh, r->wu = m + 2 * dh, r->g = m + 3 * dh, r->h = r->g + dh * dh;
    return true;
}

bool local_rows(local_head *f)
{
    int bad = 0;
#pragma omp parallel reduction(+ : bad)
    {
        row r = { 0 };
        double *memory;
        const bool room = row_memory(&r, &memory, f->tk, f->dh);
#pragma omp for schedule(dynamic)
        for (int64_t i = 0; i < f->tq; i++) {
            r.i = i, r.m = visible(f, i);
            if (!room)
                bad++;
            else if (r.m > 0 && !one_row(f, &r))
                bad++;
        }
        free(memory);
    }
    return bad == 0;
}
