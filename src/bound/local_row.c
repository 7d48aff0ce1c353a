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

/* The keys that query i sees. */
static int64_t visible(const local_head *f, int64_t i)
{
    int64_t end = f->at->keys < f->tk ? f->at->keys : f->tk;
    if (f->w->causal && i + f->tk - f->tq + 1 < end) end = i + f->tk - f->tq + 1;
    return end > 0 ? end : 0;
}

LOCAL_NEAR double local_size(const double *x, int64_t n)
{
    local_rounds_near();
    const double r = up_norm_frobenius(x, n).v;
    local_rounds_up();
    return r;
}

LOCAL_NEAR double local_gamma(int64_t k)
{
    local_rounds_near();
    const double g = up_gamma(k).v;
    local_rounds_up();
    return g;
}

static double radius(const double *d, int64_t i) { return d ? d[i] : 0; }
static double query_radius(const local_head *f, int64_t i) { return radius(f->w->cross ? f->at->dq : f->at->dk, i); }

/* Logits and weights at the centre, and the centres of values and keys: computed. */
LOCAL_NEAR static void centre(const local_head *f, local_row *r)
{
    local_rounds_near();
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
    local_rounds_up();
}

/* |W^T z| from the computed rz = root z. */
static double turned(const local_head *f, const double *rz, double z, double frob, double lost)
{
    const double exact = local_size(rz, f->dh) + local_gamma(f->dh + 2) * frob * z;
    return sqrt(exact * exact + lost * z * z);
}

/* v_j - c, k_j - kbar and rq z_j, computed. */
LOCAL_NEAR static void differences(const local_head *f, local_row *r)
{
    const int64_t dh = f->dh, m = r->m;
    local_rounds_near();
    for (int64_t j = 0; j < m; j++)
        for (int64_t c = 0; c < dh; c++) {
            r->zv[j * dh + c] = f->v[j * dh + c] - r->c[c];
            r->zk[j * dh + c] = f->k[j * dh + c] - r->kb[c];
        }
    if (f->w->rope)
        memcpy(r->rz, r->zk, (size_t)(m * dh) * sizeof *r->rz);
    else
        cblas_dgemm(CblasRowMajor, CblasNoTrans, CblasTrans, (blasint)m, (blasint)dh, (blasint)dh, 1, r->zk,
                    (blasint)dh, f->rq.v, (blasint)dh, 0, r->rz, (blasint)dh);
    local_rounds_up();
}

/* A computed difference is rounded once an entry: the real one is at most (1 + 2^-52) as long. */
static void sizes(const local_head *f, local_row *r)
{
    const int64_t dh = f->dh, m = r->m;
    const bool rope = f->w->rope;
    differences(f, r);
    for (int64_t j = 0; j < m; j++) {
        const double d = radius(f->at->dk, j);
        r->a[j] = local_size(r->zv + j * dh, dh) * (1 + 0x1p-52);
        r->z[j] = local_size(r->zk + j * dh, dh) * (1 + 0x1p-52);
        r->b[j] = rope ? f->nq * r->z[j] : turned(f, r->rz + j * dh, r->z[j], f->frob_q, f->lost_q);
        r->alpha[j] = f->nv * d + f->ev[j];
        r->kappa[j] = f->na * d + f->nq * f->ek[j];
    }
}

/* rk q_i in tmp and W_V u_i, computed. */
LOCAL_NEAR static void query_products(const local_head *f, local_row *r)
{
    const blasint dh = (blasint)f->dh;
    const double *q = f->q + r->i * f->dh;
    local_rounds_near();
    cblas_dgemv(CblasRowMajor, CblasNoTrans, dh, dh, 1, f->rk.v, dh, q, 1, 0, r->tmp, 1);
    cblas_dgemv(CblasRowMajor, CblasNoTrans, dh, dh, f->w->scale, f->vk.v, dh, q, 1, 0, r->wu, 1);
    local_rounds_up();
}

/* |u_i| at the centre and in the ball, and W_V u_i. */
static void query_size(const local_head *f, local_row *r)
{
    const int64_t dh = f->dh;
    const double *q = f->q + r->i * dh, nq = local_size(q, dh), d = query_radius(f, r->i);
    if (f->w->rope) {
        r->uhat = f->s * f->nk * nq;
    } else {
        query_products(f, r);
        r->uhat = f->s * turned(f, r->tmp, nq, f->frob_k, f->lost_k);
    }
    r->u = r->uhat + f->s * (f->na * d + f->nk * f->eq[r->i]);
}

/* D_j; false where a logit or its reach is not finite. */
static bool reach(const local_head *f, local_row *r)
{
    const int64_t i = r->i;
    const double d = query_radius(f, i), eq = f->eq[i], q = local_size(f->q + i * f->dh, f->dh),
                 g = local_gamma(f->dh + 8);
    double most = 0;
    for (int64_t j = 0; j < r->m; j++) most = fmax(most, fabs(r->s[j]));
    for (int64_t j = 0; j < r->m; j++) {
        const double dj = radius(f->at->dk, j), ek = f->ek[j], k = local_size(f->k + j * f->dh, f->dh);
        const double alibi = f->slope * fabs((double)(i + f->tk - f->tq - j));
        const double move = d * r->b[j] + eq * r->z[j] + ek * q + f->na * d * dj + f->nq * d * ek + f->nk * dj * eq;
        r->d[j] = f->s * (move + eq * ek + g * q * k) + dj * r->uhat + 0x1p-48 * (alibi + most);
        if (!(fabs(r->s[j]) + r->d[j] < 1e300)) return false;
    }
    return true;
}

/* out[j] = sum of x but for x[j], from above; with sign -1 minus that sum from below. */
static void without_one(double *out, const double *x, int64_t n, double sign)
{
    double sum = 0;
    for (int64_t j = 0; j < n; j++) {
        out[j] = sum;
        sum += sign * x[j];
    }
    sum = 0;
    for (int64_t j = n - 1; j >= 0; j--) {
        out[j] += sum;
        sum += sign * x[j];
    }
}

LOCAL_NEAR static void exponentials(double *x, int64_t n)
{
    local_rounds_near();
    for (int64_t j = 0; j < n; j++) x[j] = exp(x[j]);
    local_rounds_up();
}

/* libm's exp is taken to be within 4 units in the last place (rounding.h).  top is any number, the same for all. */
static void weights(const local_head *f, local_row *r)
{
    double *p = f->p + r->i * f->tk, *dev = f->dev + r->i * f->tk, top = -INFINITY;
    for (int64_t j = 0; j < r->m; j++) top = fmax(top, r->s[j] + r->d[j]);
    for (int64_t j = 0; j < r->m; j++) {
        r->hi[j] = r->s[j] + r->d[j] - top;
        r->lo[j] = -(top - r->s[j] + r->d[j]); /* from below */
    }
    exponentials(r->hi, r->m);
    exponentials(r->lo, r->m);
    for (int64_t j = 0; j < r->m; j++) {
        r->hi[j] = r->hi[j] * (1 + 0x1p-48) + DBL_MIN;
        if (r->lo[j] < 4 * DBL_MIN) r->lo[j] = 0; /* units are not relative down there */
        r->lo[j] = -(r->lo[j] * (0x1p-48 - 1));
    }
    without_one(r->others, r->lo, r->m, -1);
    for (int64_t j = 0; j < r->m; j++) p[j] = fmin(1, r->hi[j] / -(r->others[j] - r->hi[j]));
    without_one(r->others, r->hi, r->m, 1);
    for (int64_t j = 0; j < r->m; j++) {
        const double low = r->m == 1 ? 1 : -(-r->lo[j] / (r->lo[j] + r->others[j]));
        dev[j] = fmax(p[j] - r->hat[j], r->hat[j] - low);
    }
}

/* |o' - c|, |W_Q^T (kbar' - kbar)| and the spreads; a computed mean is wrong by at most 2 g_m of the largest term. */
static void drift(const local_head *f, local_row *r)
{
    const double *p = f->p + r->i * f->tk, *dev = f->dev + r->i * f->tk;
    double o = 0, kb = 0, al = 0, ka = 0, al2 = 0, ka2 = 0, most_v = 0, most_k = 0, most_al = 0, most_ka = 0;
    for (int64_t j = 0; j < r->m; j++) {
        o += dev[j] * r->a[j], kb += dev[j] * r->b[j];
        al += p[j] * r->alpha[j], ka += p[j] * r->kappa[j];
        al2 += p[j] * r->alpha[j] * r->alpha[j], ka2 += p[j] * r->kappa[j] * r->kappa[j];
        most_v = fmax(most_v, local_size(f->v + j * f->dh, f->dh)),
        most_k = fmax(most_k, local_size(f->k + j * f->dh, f->dh));
        most_al = fmax(most_al, r->alpha[j]), most_ka = fmax(most_ka, r->kappa[j]);
    }
    const double g = 4 * local_gamma(r->m + 8);
    r->omega = o + g * most_v + fmin(al, most_al);
    r->chi = kb + g * f->nq * most_k + fmin(ka, most_ka);
    r->spread = sqrt(fmin(al2, most_al * most_al));
    r->spread_k = sqrt(fmin(ka2, most_ka * most_ka));
}

/* beta, tau, vm and the blocks' norms; comes and goes with the processor rounding up. */
__attribute__((noinline)) static bool one_row(const local_head *f, local_row *r)
{
    const int64_t dh = f->dh;
    const double *p = f->p + r->i * f->tk;
    centre(f, r);
    sizes(f, r);
    query_size(f, r);
    if (!reach(f, r)) return false;
    weights(f, r);
    drift(f, r);
    double tau = local_tau(f, r), lam = INFINITY;
    const double keys = f->moved ? local_key_spread(f, r) : INFINITY;
    const double trace = local_gram(f, r, p, true, r->zv);
    if (f->moved || f->w->rope || f->own) {
        memcpy(r->h, r->g, (size_t)(dh * dh) * sizeof *r->h);
        const double root = sqrt(local_top(r->h, dh, trace, local_gram_error(r, trace))) + r->spread;
        lam = root * root;
        tau = fmin(tau, f->s * root * keys);
    }
    if (f->own) local_pair_row(f, r, lam);
    f->tau[r->i] = tau + LOCAL_LOST;
    f->u[r->i] = r->u + LOCAL_LOST;
    f->beta[r->i] = local_beta(f, r, trace, lam) + LOCAL_LOST * LOCAL_LOST;
    f->vm[r->i] = local_spread(f, r) + LOCAL_LOST;
    local_blocks(f, r);
    if (f->jacobian) f->err[r->i] = local_row_error(f, r) + LOCAL_LOST;
    return f->tau[r->i] < INFINITY && f->beta[r->i] < INFINITY;
}

static bool row_memory(local_row *r, double **memory, int64_t tk, int64_t dh)
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
        local_row r = { 0 };
        double *memory;
        const bool room = row_memory(&r, &memory, f->tk, f->dh);
        local_rounds_up();
#pragma omp for schedule(dynamic)
        for (int64_t i = 0; i < f->tq; i++) {
            r.i = i, r.m = visible(f, i);
            if (!room)
                bad++;
            else if (r.m > 0 && !one_row(f, &r))
                bad++;
        }
        local_rounds_near();
        free(memory);
    }
    return bad == 0;
}
