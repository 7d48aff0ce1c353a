/* Pairs are of examples that follow each other.  NaN in an activation or a logit is passed over: the loss tells of it. */
#include "train/glance.h"

#include <math.h>
#include <stdlib.h>

#include "base/alloc.h"

enum { EXAMPLES = 8 };

typedef struct {
    const taut_kernels *k;
    double *room; /* the largest tensor of the tour */
    double most;
} look;

static void largest(look *l, taut_tensor x)
{
    const int64_t len = taut_len(x.shape);
    l->k->get(l->room, x.data, len);
    for (int64_t i = 0; i < len; i++) l->most = fmax(l->most, fabs(l->room[i]));
}

static void see(const taut_module *m, const char *name, int depth, taut_point at, void *arg)
{
    (void)m, (void)name, (void)depth;
    largest(arg, at.x);
}

static void measure(const taut_module *m, const char *name, int depth, taut_point at, void *arg)
{
    int64_t *most = arg;
    (void)m, (void)name, (void)depth;
    if (taut_len(at.x.shape) > *most) *most = taut_len(at.x.shape);
}

/* |a - b| of two examples: over everything, or of the token that moves most. */
static double distance(const double *a, const double *b, int64_t t, int64_t d, bool flat)
{
    double sum = 0, most = 0;
    for (int64_t i = 0; i < t; i++) {
        double token = 0;
        for (int64_t c = 0; c < d; c++) token += (a[i * d + c] - b[i * d + c]) * (a[i * d + c] - b[i * d + c]);
        sum += token;
        most = fmax(most, token);
    }
    return sqrt(flat ? sum : most);
}

/* x and y hold the examples' inputs and logits. */
static double steepest(const double *x, const double *y, taut_shape in, taut_shape out, bool flat)
{
    double most = 0;
    for (int64_t e = 0; e + 1 < in.n; e++) {
        const double dx = distance(x + e * in.t * in.d, x + (e + 1) * in.t * in.d, in.t, in.d, flat),
                     dy = distance(y + e * out.t * out.d, y + (e + 1) * out.t * out.d, out.t, out.d, flat);
        if (dx > 0) most = fmax(most, dy / dx);
    }
    return most;
}

taut_status taut_glance_at(taut_glance *g, taut_pass *p, taut_batch *b, taut_split split, const taut_constrain_spec *c)
{
    const taut_model *m = p->m;
    const int64_t all = taut_source_count(b->source, split);
    int64_t index[EXAMPLES], count = all < EXAMPLES ? all : EXAMPLES;
    if (count > p->largest / m->in.t) count = p->largest / m->in.t;
    for (int64_t i = 0; i < count; i++) index[i] = i * all / count;
    *g = (taut_glance){ NAN, NAN };
    if (count < 1) return TAUT_OK;
    p->run.phase = (taut_phase){ 0 };
    (void)taut_batch_windows(b, split, index, count);
    taut_batch_forward(b, p);
    const int64_t in = taut_len(p->x.shape), out = taut_len(p->logits.shape);
    int64_t most = in > out ? in : out;
    const taut_point at = { p->x, p->trace };
    taut_tour_parts(m->root, at, measure, &most);
    double *x = taut_malloc((size_t)(in + out + most) * sizeof *x);
    if (!x) return taut_no_memory("a glance at the model");
    look l = { m->k, x + in + out, 0 };
    taut_tour_parts(m->root, at, see, &l);
    largest(&l, p->logits);
    m->k->get(x, p->x.data, in);
    m->k->get(x + in, p->logits.data, out);
    const taut_up slope = { steepest(x, x + in, p->x.shape, p->logits.shape, c->flat) };
    const taut_norm norm = c->flat ? TAUT_NORM_FLAT : TAUT_NORM_TOKENS;
    *g = (taut_glance){ l.most, c->l2 ? slope.v : up_model_rms(m, norm, slope).v };
    free(x);
    return TAUT_OK;
}
