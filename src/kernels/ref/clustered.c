/* Softmax attention to clusters, each with the weight of its members and, if asked, to first order in how
 * they differ from their mean:
 *     w_j = softmax over j of scale q.kbar_j + logn_j,   y_j = vbar_j + scale cross_j^T q,   o = sum_j w_j y_j
 *     jvp   tl_j = scale (tq.kbar_j + q.tkbar_j),  ty_j = tvbar_j + scale (tcross_j^T q + cross_j^T tq),
 *           to = sum_j w_j (ty_j + tl_j (y_j - o))
 *     vjp   a_j = w_j go.(y_j - o),  gq = scale sum_j (a_j kbar_j + w_j cross_j go),
 *           gkbar_j = sum_q scale a_j q,  gvbar_j = sum_q w_j go,  gcross_j = sum_q scale w_j q go^T
 * An empty cluster (logn = -inf) has w = 0.  NaN in a query stays in its row.  Aliasing: none. */
#include "kernels/ref/group.h"

typedef struct {
    const taut_group *g;
    const taut_real *kbar, *vbar;
    const double *logn, *cross; /* of this head; cross may be NULL */
    double *w, *y, *o;          /* m, (m, dh), dh */
    int64_t e, h;
} head;

static head head_of(const taut_group *g, const taut_real *kbar, const taut_real *vbar, const taut_real *logn,
                    const taut_real *cross, double *room, int64_t e, int64_t h)
{
    const int64_t index = e * g->heads + h;
    return (head){ g,
                   kbar,
                   vbar,
                   (const double *)logn + index * g->m,
                   cross ? (const double *)cross + index * g->m * g->dh * g->dh : NULL,
                   room,
                   room + g->m,
                   room + g->m + g->m * g->dh,
                   e,
                   h };
}

static int64_t room_of(const taut_group *g) { return g->m + g->m * g->dh + g->dh; }

/* y += a x^T cross_j (x of the key's side), or with `back` y += a cross_j x */
static void times_cross(double *y, double a, const double *x, const double *cross, int64_t j, int64_t dh, bool back)
{
    for (int64_t r = 0; r < dh && cross; r++)
        for (int64_t c = 0; c < dh; c++) {
            const double entry = a * cross[(j * dh + r) * dh + c];
            if (back)
                y[r] += entry * x[c];
            else
                y[c] += entry * x[r];
        }
}

/* w, every y_j and o at the query q */
static void look(head *s, const double *q)
{
    const taut_group *g = s->g;
    for (int64_t j = 0; j < g->m; j++)
        s->w[j] = g->scale * group_dot(q, group_at(s->kbar, g, g->m, s->e, s->h, j), g->dh) + s->logn[j];
    group_softmax(s->w, g->m);
    memset(s->o, 0, (size_t)g->dh * sizeof(double));
    for (int64_t j = 0; j < g->m; j++) {
        double *y = s->y + j * g->dh;
        memcpy(y, group_at(s->vbar, g, g->m, s->e, s->h, j), (size_t)g->dh * sizeof(double));
        times_cross(y, g->scale, q, s->cross, j, g->dh, false);
        group_add(s->o, s->w[j], y, g->dh);
    }
}

void taut_ref_clustered(taut_real *o, const taut_real *q, const taut_real *kbar, const taut_real *vbar,
                        const taut_real *logn, const taut_real *cross, const taut_group *g)
{
    double *room = group_room(room_of(g));
    for (int64_t e = 0; e < g->n; e++)
        for (int64_t h = 0; h < g->heads; h++) {
            head s = head_of(g, kbar, vbar, logn, cross, room, e, h);
            for (int64_t i = 0; i < g->tq; i++) {
                look(&s, group_at(q, g, g->tq, e, h, i));
                memcpy(group_at(o, g, g->tq, e, h, i), s.o, (size_t)g->dh * sizeof(double));
            }
        }
    free(room);
}

void taut_ref_clustered_jvp(taut_real *to_, const taut_real *tq_, const taut_real *tkbar, const taut_real *tvbar,
                            const taut_real *tcross_, const taut_real *q_, const taut_real *kbar, const taut_real *vbar,
                            const taut_real *logn, const taut_real *cross, const taut_group *g)
{
    const int64_t dh = g->dh;
    double *room = group_room(room_of(g) + dh), *ty = room + room_of(g);
    for (int64_t row = 0; row < g->n * g->heads * g->tq; row++) {
        const int64_t i = row % g->tq, h = row / g->tq % g->heads, e = row / g->tq / g->heads;
        head s = head_of(g, kbar, vbar, logn, cross, room, e, h);
        const double *q = group_at(q_, g, g->tq, e, h, i), *tq = group_at(tq_, g, g->tq, e, h, i);
        const double *tcross = cross ? (const double *)tcross_ + (e * g->heads + h) * g->m * dh * dh : NULL;
        double *to = group_at(to_, g, g->tq, e, h, i);
        look(&s, q);
        memset(to, 0, (size_t)dh * sizeof(double));
        for (int64_t j = 0; j < g->m; j++) {
            const double tl = g->scale * (group_dot(tq, group_at(kbar, g, g->m, e, h, j), dh) +
                                          group_dot(q, group_at(tkbar, g, g->m, e, h, j), dh));
            memcpy(ty, group_at(tvbar, g, g->m, e, h, j), (size_t)dh * sizeof(double));
            times_cross(ty, g->scale, q, tcross, j, dh, false);
            times_cross(ty, g->scale, tq, s.cross, j, dh, false);
            for (int64_t c = 0; c < dh; c++) to[c] += s.w[j] * (ty[c] + tl * (s.y[j * dh + c] - s.o[c]));
        }
    }
    free(room);
}

void taut_ref_clustered_vjp(taut_real *gq_, taut_real *gkbar, taut_real *gvbar, taut_real *gcross_,
                            const taut_real *go_, const taut_real *q_, const taut_real *kbar, const taut_real *vbar,
                            const taut_real *logn, const taut_real *cross, const taut_group *g)
{
    const int64_t dh = g->dh;
    double *room = group_room(room_of(g));
    group_clear(gq_, g->n * g->tq * g->heads * dh);
    group_clear(gkbar, g->n * g->m * g->heads * dh);
    group_clear(gvbar, g->n * g->m * g->heads * dh);
    if (cross) group_clear(gcross_, g->n * g->heads * g->m * dh * dh);
    for (int64_t row = 0; row < g->n * g->heads * g->tq; row++) {
        const int64_t i = row % g->tq, h = row / g->tq % g->heads, e = row / g->tq / g->heads;
        head s = head_of(g, kbar, vbar, logn, cross, room, e, h);
        const double *q = group_at(q_, g, g->tq, e, h, i), *go = group_at(go_, g, g->tq, e, h, i);
        double *gcross = cross ? (double *)gcross_ + (e * g->heads + h) * g->m * dh * dh : NULL;
        double *gq = group_at(gq_, g, g->tq, e, h, i);
        look(&s, q);
        for (int64_t j = 0; j < g->m; j++) {
            const double a = g->scale * s.w[j] * (group_dot(go, s.y + j * dh, dh) - group_dot(go, s.o, dh));
            group_add(gq, a, group_at(kbar, g, g->m, e, h, j), dh);
            times_cross(gq, g->scale * s.w[j], go, s.cross, j, dh, true);
            group_add(group_at(gkbar, g, g->m, e, h, j), a, q, dh);
            group_add(group_at(gvbar, g, g->m, e, h, j), s.w[j], go, dh);
            for (int64_t r = 0; r < dh && gcross; r++)
                group_add(gcross + (j * dh + r) * dh, g->scale * s.w[j] * q[r], go, dh);
        }
    }
    free(room);
}
