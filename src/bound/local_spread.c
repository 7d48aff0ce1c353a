/* What the spread of values and keys around one query does to its row: beta, tau, vm and the blocks' norms (local_row.c has
 * the formulas).  Everything here comes and goes with the processor rounding up. */
#include "bound/blas.h"
#include "bound/local_impl.h"
#include "bound/norm.h"

/* The rows x_j in tmp, and g. */
LOCAL_NEAR static void form_gram(const local_head *f, local_row *r, const double *factor, bool root, const double *z)
{
    const int64_t dh = f->dh;
    local_rounds_near();
    for (int64_t j = 0; j < r->m; j++) {
        const double scale = root ? sqrt(factor[j]) : factor[j];
        for (int64_t c = 0; c < dh; c++) r->tmp[j * dh + c] = scale * z[j * dh + c];
    }
    cblas_dsyrk(CblasRowMajor, CblasUpper, CblasTrans, (blasint)dh, (blasint)r->m, 1, r->tmp, (blasint)dh, 0, r->g,
                (blasint)dh);
    local_rounds_up();
}

double local_gram(const local_head *f, local_row *r, const double *factor, bool root, const double *z)
{
    double trace = 0;
    form_gram(f, r, factor, root, z);
    for (int64_t k = 0; k < r->m * f->dh; k++) trace += r->tmp[k] * r->tmp[k];
    return trace;
}

LOCAL_NEAR static double top_of(double *g, int64_t dh)
{
    local_rounds_near();
    const double top = up_top_symmetric(g, dh).v;
    local_rounds_up();
    return top;
}

double local_top(double *g, int64_t dh, double trace, double error)
{
    const double small = trace + error;
    if (!(trace > 0x1p-300) || !(trace < 0x1p300)) return small;
    return fmin(small, top_of(g, dh) + error);
}

double local_gram_error(const local_row *r, double trace) { return local_gamma(r->m + 16) * trace; }

/* h = W_V W_V^T + u2 g. */
LOCAL_NEAR static void form_sum(const local_head *f, local_row *r, double u2)
{
    const int64_t dh = f->dh;
    local_rounds_near();
    for (int64_t c = 0; c < dh; c++)
        for (int64_t e = c; e < dh; e++) r->h[c * dh + e] = f->vv.v[c * dh + e] + u2 * r->g[c * dh + e];
    local_rounds_up();
}

double local_beta(const local_head *f, local_row *r, double trace, double lam)
{
    const int64_t dh = f->dh;
    if (f->w->rope) {
        const double root = f->nv + r->u * sqrt(lam);
        return root * root;
    }
    const double u2 = r->u * r->u;
    double whole = 0;
    form_sum(f, r, u2);
    for (int64_t c = 0; c < dh; c++) whole += r->h[c * dh + c];
    const double error = f->vv.err.v + u2 * local_gram_error(r, trace) + local_gamma(4) * whole;
    const double root = sqrt(local_top(r->h, dh, whole, error)) + r->u * r->spread;
    return fmin(root * root, f->nv * f->nv + u2 * lam);
}

/* The norm of the computed sum_j P_j (v_j - c) (rq z_j)^T. */
LOCAL_NEAR static double product_norm(const local_head *f, local_row *r)
{
    const int64_t dh = f->dh;
    local_rounds_near();
    for (int64_t j = 0; j < r->m; j++)
        for (int64_t c = 0; c < dh; c++) r->tmp[j * dh + c] = r->hat[j] * r->zv[j * dh + c];
    cblas_dgemm(CblasRowMajor, CblasTrans, CblasNoTrans, (blasint)dh, (blasint)dh, (blasint)r->m, 1, r->tmp,
                (blasint)dh, r->rz, (blasint)dh, 0, r->h, (blasint)dh);
    const double norm = up_norm(r->h, dh, dh).v;
    local_rounds_up();
    return norm;
}

double local_moved(const local_head *f, const local_row *r)
{
    const double *p = f->p + r->i * f->tk, *dev = f->dev + r->i * f->tk;
    double moved = 0;
    for (int64_t j = 0; j < r->m; j++) {
        moved += dev[j] * r->a[j] * r->b[j];
        moved += p[j] * (r->a[j] * r->kappa[j] + r->alpha[j] * r->b[j] + r->alpha[j] * r->kappa[j]);
    }
    return moved + r->omega * r->chi;
}

/* s ||C' W_Q||, first form. */
double local_tau(const local_head *f, local_row *r)
{
    const int64_t dh = f->dh;
    const double g_dh = local_gamma(dh + 2), g_m = local_gamma(r->m + 8);
    double made = 0, bare = 0;
    for (int64_t j = 0; j < r->m; j++) {
        made += r->hat[j] * r->a[j] *
                ((f->w->rope ? 0 : g_dh * f->frob_q * r->z[j]) + g_m * local_size(r->rz + j * dh, dh));
        bare += r->hat[j] * r->a[j] * r->z[j];
    }
    const double rooted = product_norm(f, r) + made;
    const double product = f->w->rope ? f->nq * rooted : sqrt(rooted * rooted + f->lost_q * bare * bare);
    return f->s * (product + local_moved(f, r));
}

/* (v_j - c).(W_V u) in `others`, free by now; answers the size of W_V W_K^T. */
LOCAL_NEAR static double inner_products(const local_head *f, local_row *r)
{
    local_rounds_near();
    for (int64_t j = 0; j < r->m; j++) r->others[j] = cblas_ddot((blasint)f->dh, r->zv + j * f->dh, 1, r->wu, 1);
    const double frob = up_ball_frobenius(&f->vk).v;
    local_rounds_up();
    return frob;
}

/* Norms of the blocks P_j (W_V + (v_j - o) u^T): ||W_V + c u^T||^2 <= nv^2 + |c||W_V u| + c.(W_V u) + |u|^2 |c|^2. */
void local_blocks(const local_head *f, local_row *r)
{
    const int64_t dh = f->dh;
    const double *p = f->p + r->i * f->tk;
    double *n = f->block + r->i * f->tk;
    const double w = f->w->rope ? 0 : local_size(r->wu, dh), q = local_size(f->q + r->i * dh, dh);
    const double frob = f->w->rope ? 0 : inner_products(f, r), *inner = r->others;
    const double wrong = f->w->rope ? 0 : f->s * q * (f->vk.err.v + local_gamma(dh + 4) * frob),
                 g = local_gamma(dh + 32);
    for (int64_t j = 0; j < r->m; j++) {
        const double a = r->a[j], pert = (r->alpha[j] + r->omega) * r->u + a * (r->u - r->uhat);
        double centre = f->nv + a * r->uhat;
        if (!f->w->rope) {
            const double all = f->nv * f->nv + a * w + a * a * r->uhat * r->uhat;
            centre = fmin(centre, sqrt(fmax(0, all + inner[j]) + g * all + 2 * a * wrong));
        }
        n[j] = p[j] * (centre + pert) + LOCAL_LOST;
    }
}

double local_spread(const local_head *f, local_row *r)
{
    const double *p = f->p + r->i * f->tk;
    double alpha = 0, square = 0;
    const double trace = local_gram(f, r, p, false, r->zv);
    for (int64_t j = 0; j < r->m; j++) square += p[j] * p[j], alpha += p[j] * p[j] * r->alpha[j] * r->alpha[j];
    const double top = sqrt(local_top(r->g, f->dh, trace, local_gram_error(r, trace)));
    return top + sqrt(alpha) + r->omega * sqrt(square);
}

/* ||[sqrt(p_j) W_Q^T (k'_j - kbar)]||; with RoPE rz is z and ||W_Q|| stands for W_Q. */
double local_key_spread(const local_head *f, local_row *r)
{
    const double *p = f->p + r->i * f->tk, trace = local_gram(f, r, p, true, r->rz);
    double z2 = 0;
    for (int64_t j = 0; j < r->m; j++) z2 += p[j] * r->z[j] * r->z[j];
    const double top = local_top(r->g, f->dh, trace, local_gram_error(r, trace));
    if (f->w->rope) return f->nq * sqrt(top) + r->spread_k;
    return sqrt(top + f->lost_q * z2) + local_gamma(f->dh + 2) * f->frob_q * sqrt(z2) + r->spread_k;
}

/* How far the real rows of the Jacobian can be from the computed ones, in norm: block by block, and the query's own. */
double local_row_error(const local_head *f, const local_row *r)
{
    const double *p = f->p + r->i * f->tk, *dev = f->dev + r->i * f->tk;
    double blocks = 0;
    for (int64_t j = 0; j < r->m; j++) {
        const double shift = (r->alpha[j] + r->omega) * r->u + r->a[j] * (r->u - r->uhat);
        const double e = dev[j] * (f->nv + r->a[j] * r->uhat) + p[j] * shift;
        blocks += e * e;
    }
    const double formed = local_jacobian_rows(f, r->i, r->m, r->hat, r->zv, r->zk, r->a, r->z);
    return sqrt(blocks) + f->s * local_moved(f, r) + formed;
}
