/* Soft routing of keys and values to m prototypes, key by key: no t x m matrix.
 *     A_ij = softmax over j of scale k_i.p_j,   kt_j = sum_i A_ij k_i,   vt_j = sum_i A_ij v_i
 *     jvp   tS_ij = scale tk_i.p_j,  tA_ij = A_ij (tS_ij - sum_l A_il tS_il),
 *           tkt_j = sum_i A_ij tk_i + tA_ij k_i,  tvt_j likewise
 *     vjp   gA_ij = k_i.gkt_j + v_i.gvt_j,  gS_ij = A_ij (gA_ij - sum_l A_il gA_il) scale,
 *           gk_i = sum_j A_ij gkt_j + gS_ij p_j,  gv_i = sum_j A_ij gvt_j,  gp_j += sum_i gS_ij k_i
 * NaN in a key reaches everything of its head.  Aliasing: none. */
#include "kernels/ref/group.h"

static void weights(double *a, const double *k, const taut_real *p, const taut_group *g, int64_t h)
{
    for (int64_t j = 0; j < g->m; j++) a[j] = g->scale * group_dot(k, group_at(p, g, g->m, 0, h, j), g->dh);
    group_softmax(a, g->m);
}

void taut_ref_route(taut_real *kt, taut_real *vt, const taut_real *k, const taut_real *v, const taut_real *p,
                    const taut_group *g)
{
    double *a = group_room(g->m);
    group_clear(kt, g->n * g->m * g->heads * g->dh);
    group_clear(vt, g->n * g->m * g->heads * g->dh);
    for (int64_t e = 0; e < g->n; e++)
        for (int64_t h = 0; h < g->heads; h++)
            for (int64_t i = 0; i < g->t; i++) {
                const double *ki = group_at(k, g, g->t, e, h, i), *vi = group_at(v, g, g->t, e, h, i);
                weights(a, ki, p, g, h);
                for (int64_t j = 0; j < g->m; j++) {
                    group_add(group_at(kt, g, g->m, e, h, j), a[j], ki, g->dh);
                    group_add(group_at(vt, g, g->m, e, h, j), a[j], vi, g->dh);
                }
            }
    free(a);
}

void taut_ref_route_jvp(taut_real *tkt, taut_real *tvt, const taut_real *tk, const taut_real *tv, const taut_real *k,
                        const taut_real *v, const taut_real *p, const taut_group *g)
{
    double *a = group_room(2 * g->m), *ts = a + g->m;
    group_clear(tkt, g->n * g->m * g->heads * g->dh);
    group_clear(tvt, g->n * g->m * g->heads * g->dh);
    for (int64_t e = 0; e < g->n; e++)
        for (int64_t h = 0; h < g->heads; h++)
            for (int64_t i = 0; i < g->t; i++) {
                const double *ki = group_at(k, g, g->t, e, h, i), *tki = group_at(tk, g, g->t, e, h, i);
                weights(a, ki, p, g, h);
                for (int64_t j = 0; j < g->m; j++)
                    ts[j] = g->scale * group_dot(tki, group_at(p, g, g->m, 0, h, j), g->dh);
                const double mean = group_dot(a, ts, g->m);
                for (int64_t j = 0; j < g->m; j++) {
                    const double ta = a[j] * (ts[j] - mean);
                    group_add(group_at(tkt, g, g->m, e, h, j), a[j], tki, g->dh);
                    group_add(group_at(tkt, g, g->m, e, h, j), ta, ki, g->dh);
                    group_add(group_at(tvt, g, g->m, e, h, j), a[j], group_at(tv, g, g->t, e, h, i), g->dh);
                    group_add(group_at(tvt, g, g->m, e, h, j), ta, group_at(v, g, g->t, e, h, i), g->dh);
                }
            }
    free(a);
}

void taut_ref_route_vjp(taut_real *gk, taut_real *gv, taut_real *gp, const taut_real *gkt, const taut_real *gvt,
                        const taut_real *k, const taut_real *v, const taut_real *p, const taut_group *g)
{
    double *a = group_room(2 * g->m), *ga = a + g->m;
    group_clear(gk, g->n * g->t * g->heads * g->dh);
    group_clear(gv, g->n * g->t * g->heads * g->dh);
    for (int64_t e = 0; e < g->n; e++)
        for (int64_t h = 0; h < g->heads; h++)
            for (int64_t i = 0; i < g->t; i++) {
                const double *ki = group_at(k, g, g->t, e, h, i), *vi = group_at(v, g, g->t, e, h, i);
                weights(a, ki, p, g, h);
                for (int64_t j = 0; j < g->m; j++)
                    ga[j] = group_dot(ki, group_at(gkt, g, g->m, e, h, j), g->dh) +
                            group_dot(vi, group_at(gvt, g, g->m, e, h, j), g->dh);
                const double mean = group_dot(a, ga, g->m);
                for (int64_t j = 0; j < g->m; j++) {
                    const double gs = g->scale * a[j] * (ga[j] - mean);
                    group_add(group_at(gk, g, g->t, e, h, i), a[j], group_at(gkt, g, g->m, e, h, j), g->dh);
                    group_add(group_at(gk, g, g->t, e, h, i), gs, group_at(p, g, g->m, 0, h, j), g->dh);
                    group_add(group_at(gv, g, g->t, e, h, i), a[j], group_at(gvt, g, g->m, e, h, j), g->dh);
                    if (gp) group_add(group_at(gp, g, g->m, 0, h, j), gs, ki, g->dh);
                }
            }
    free(a);
}
