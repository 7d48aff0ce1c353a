/* The residual of a stored solution, from above: on the ref kernels, with what rounding can hide (bound/attlip.c). */
#include <math.h>

#include "bound/attlip.h"
#include "module/prox.h"

/* One lane's arrays as doubles. */
typedef struct {
    double *y, *x, *v, *g, *col, *weight;
    int64_t t, d, inner;
} numbers;

static int64_t numbers_len(const prox *p)
{
    const int64_t t = p->shape.t, d = p->shape.d, inner = p->heads * p->dh;
    return 2 * t * d + 2 * t * inner + t * p->heads + inner * d;
}

int64_t prox_proved_host(const prox *p) { return numbers_len(p) + taut_host_len(p->heads, sizeof(taut_attlip_head)); }

static void numbers_get(numbers *n, prox *p, const taut_real *y, int64_t lane)
{
    const int64_t t = p->shape.t, d = p->shape.d, inner = p->heads * p->dh;
    *n = (numbers){ .t = t, .d = d, .inner = inner };
    double *all = taut_take_host(&p->host, numbers_len(p), sizeof *all);
    n->y = all, n->x = n->y + t * d, n->v = n->x + t * d, n->g = n->v + t * inner, n->col = n->g + t * inner;
    n->weight = n->col + t * p->heads;
    p->k->get(n->y, prox_at(p, y, lane), t * d);
    p->k->get(n->x, prox_at(p, p->x, lane), t * d);
    p->k->get(n->v, taut_at(p->k, p->v, lane * t * inner), t * inner);
    p->k->get(n->g, taut_at(p->k, p->g, lane * t * inner), t * inner);
    p->k->get(n->col, taut_at(p->k, p->col, lane * t * p->heads), t * p->heads);
    p->k->get(n->weight, p->weight, inner * d);
}

static double square(const double *x, int64_t len)
{
    double sum = 0;
    for (int64_t i = 0; i < len; i++) sum += x[i] * x[i];
    return sum;
}

static taut_attlip_head head_of(const numbers *n, const prox *p, int64_t h)
{
    taut_attlip_head a = { 0, 0, 0, sqrt(square(n->weight + h * p->dh * n->d, p->dh * n->d)) };
    for (int64_t i = 0; i < n->t; i++) {
        const double long2 = square(n->v + i * n->inner + h * p->dh, p->dh), c = 1 + n->col[h * n->t + i];
        if (!(sqrt(long2) <= a.longest)) a.longest = sqrt(long2);
        a.columns += c * c;
        a.g += square(n->g + i * n->inner + h * p->dh, p->dh);
    }
    a.columns = sqrt(a.columns);
    a.g = sqrt(a.g);
    return a;
}

taut_up prox_proved(prox *p, const taut_real *y, int64_t lane, taut_span scratch)
{
    taut_real *g = taut_take(&scratch, taut_len(p->shape));
    numbers n;
    prox_gradient(p, g, NULL, y, lane, 1);
    const taut_span mark = p->host;
    taut_attlip_head *heads = taut_take_host(&p->host, p->heads, sizeof *heads);
    numbers_get(&n, p, y, lane);
    taut_attlip_point at = { n.t, n.d, p->heads, p->dh, p->scale, p->eta, p->near, p->rope_base > 0, 0, 0, 0, 0 };
    for (int64_t i = 0; i < n.t; i++) at.longest = fmax(at.longest, sqrt(square(n.y + i * n.d, n.d)));
    at.y = sqrt(square(n.y, n.t * n.d));
    at.x = sqrt(square(n.x, n.t * n.d));
    at.residual = sqrt(prox_dot(p, g, g, lane));
    for (int64_t h = 0; h < p->heads; h++) heads[h] = head_of(&n, p, h);
    const taut_up proved = up_attlip_residual(&at, heads);
    p->host = mark;
    return proved;
}
