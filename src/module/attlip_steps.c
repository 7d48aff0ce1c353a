/* K steps of descent as a layer of their own, y_0 = x, y_{k+1} = y_k - l_k (grad f(y_k) + (y_k - x)/eta), with the rates
 * l_k that Armijo's rule chose taken as constants:
 *     jvp   t_0 = tx,  t_{k+1} = t_k - l_k (H(y_k) t_k + t_k/eta) + (l_k/eta) tx
 *     vjp   g_K = gy,  g_k = g_{k+1} - l_k (H(y_k) g_{k+1} + g_{k+1}/eta),  gx = g_0 + sum_k (l_k/eta) g_{k+1},
 *           gW += -l_k (G_k^T g_{k+1} + H_k[g_{k+1} W^T]^T y_k),  geta += (l_k/eta^2) g_{k+1}.(y_k - x)
 * Where a rate jumps there is no derivative; these are the ones beside the jump.  For training only. */
#include "module/attlip.h"

int64_t attlip_steps_host(int steps, int64_t n) { return steps * n; }

void attlip_descend(prox *p, attlip_kept *kept, prox_lane_end *end, int most, taut_span scratch)
{
    const int64_t rates = kept->path ? kept->steps * p->shape.n : 0;
    const taut_span mark = p->host;
    double *rate = taut_take_host(&p->host, rates, sizeof *rate);
    prox_descent(p, kept->p, end, kept->steps, most, kept->path, rate, scratch);
    if (kept->path) p->k->put(kept->rates, rate, rates);
    p->host = mark;
}

typedef struct {
    taut_real *e, *h, *moved, *at, *unused;
    double *rate;
} work;

static work work_new(prox *p, const attlip_kept *kept, taut_span *scratch)
{
    const int64_t len = taut_len(p->shape), inner = taut_rows(p->shape) * p->heads * p->dh, n = p->shape.n;
    work w = { .e = taut_take(scratch, inner), .h = taut_take(scratch, inner) };
    w.moved = taut_take(scratch, len);
    w.unused = taut_take(scratch, len);
    w.rate = taut_take_host(&p->host, attlip_steps_host(kept->steps, n), sizeof *w.rate);
    p->k->get(w.rate, kept->rates, kept->steps * n);
    return w;
}

/* moved = (H(y_k) + I/eta) dir, and the problem's rows become those of y_k */
static taut_real *move(prox *p, const attlip_kept *kept, work *w, int step, const taut_real *dir)
{
    taut_real *y = taut_at(p->k, kept->path, step * taut_len(p->shape));
    prox_gradient(p, w->unused, NULL, y, 0, p->shape.n);
    prox_hessian(p, w->moved, dir, w->e, w->h, 0, p->shape.n);
    return y;
}

void attlip_unrolled_jvp(prox *p, const attlip_kept *kept, taut_real *ty, const taut_real *tx, taut_span scratch)
{
    const int64_t len = taut_len(p->shape), n = p->shape.n;
    work w = work_new(p, kept, &scratch);
    p->k->axpby(p->centre, 1 / p->eta, p->x, 0, len);
    p->k->axpby(ty, 1, tx, 0, len);
    for (int step = 0; step < kept->steps; step++) {
        move(p, kept, &w, step, ty);
        for (int64_t e = 0; e < n; e++) {
            const double rate = w.rate[step * n + e];
            prox_add(p, ty, -rate, w.moved, 1, e);
            prox_add(p, ty, rate / p->eta, tx, 1, e);
        }
    }
}

void attlip_unrolled_vjp(const attlip *s, taut_run *run, prox *p, const attlip_kept *kept, taut_real *gx,
                         const taut_real *gy, double by)
{
    const int64_t len = taut_len(p->shape), n = p->shape.n;
    taut_span scratch = run->scratch;
    taut_real *g = taut_take(&scratch, len), *weighed = taut_take(&scratch, len);
    work w = work_new(p, kept, &scratch);
    double pull = 0;
    p->k->axpby(p->centre, 1 / p->eta, p->x, 0, len);
    p->k->axpby(g, by, gy, 0, len);
    p->k->axpby(gx, 0, NULL, 0, len);
    for (int step = kept->steps - 1; step >= 0; step--) {
        const taut_real *y = move(p, kept, &w, step, g);
        for (int64_t e = 0; e < n; e++) {
            const double rate = w.rate[step * n + e];
            prox_add(p, weighed, rate, g, 0, e);
            prox_add(p, gx, rate / p->eta, g, 1, e);
            pull += rate * (prox_dot(p, g, y, e) - prox_dot(p, g, p->x, e)) / (p->eta * p->eta);
            prox_add(p, g, -rate, w.moved, 1, e);
        }
        for (int64_t e = 0; e < n; e++) { /* h is of g; of `weighed` it is */
            taut_real *h = taut_at(p->k, w.h, e * prox_inner(p));
            p->k->axpby(h, w.rate[step * n + e], h, 0, prox_inner(p));
        }
        if (run->param_grads) attlip_weight_grad(s, p, weighed, y, w.h, -1);
    }
    p->k->axpby(gx, 1, g, 1, len);
    p->k->axpby(w.unused, by, gy, 0, len);
    if (run->param_grads) attlip_eta_grad(s, p->k, pull);
}
