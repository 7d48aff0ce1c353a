/* In this order, asking for the proof again after each:
 *   1. nothing, when the constant is at or below the target already;
 *   2. the scale of a potential layer that is not proved to be large enough, and each matrix that is above its own cap:
 *      the proved rescale;
 *   3. the head, by at most one half: the constant is proportional to it;
 *   4. all matrices (and the token table when the head is tied to it) by one factor, found by bisection: at factor 0
 *      the network is constant, so some factor will do, unless the architecture has no constant at all.
 * Every trial is of the very floats that would be written; the last one that was proved is kept.  The goal is a
 * millionth below the target, so that whoever proves it again, with another library or processor, also stays below. */
#include "train/constrain/enforce.h"
#include "base/float32.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "bound/arithmetic.h"
#include "train/constrain/potential.h"
#include "train/constrain/rescale.h"

taut_status taut_enforcer_create(taut_enforcer **out, const taut_model *m, const taut_constrain_spec *spec)
{
    taut_enforcer *e = taut_calloc(1, sizeof *e);
    if (!e) return taut_no_memory("the proof");
    *e = (taut_enforcer){ .spec = spec, .proved = UP_NONE };
    taut_status s = taut_arithmetic_test(); /* better now than after hours */
    if (!s) s = taut_model_create(&e->twin, &m->spec, m->embed.rows, m->recipe, m->vocab, taut_kernels_find("ref"));
    if (!s) s = taut_model_bind(e->twin, false);
    if (!s) e->kept = taut_malloc((size_t)(m->slab + 1) * sizeof *e->kept);
    const int64_t raise = taut_scale_work(m);
    if (raise) e->raise = taut_malloc((size_t)raise * sizeof *e->raise);
    if (!s && (!e->kept || (raise && !e->raise))) s = taut_no_memory("the proof");
    if (s)
        taut_enforcer_free(e);
    else
        *out = e;
    return s;
}

void taut_enforcer_free(taut_enforcer *e)
{
    if (!e) return;
    taut_model_free(e->twin);
    free(e->kept);
    free(e->raise);
    free(e);
}

taut_status up_model_constant(taut_up *out, const taut_model *m, const taut_constrain_spec *s)
{
    const taut_norm norm = s->flat ? TAUT_NORM_FLAT : TAUT_NORM_TOKENS;
    taut_answer b;
    const taut_status status = taut_model_bound(&b, m, norm);
    if (!status) *out = s->l2 ? b.lip : up_model_rms(m, norm, b.lip);
    return status;
}

/* A proof that failed proves nothing, and the others behind it are not to hide that: nor are norms before it. */
static void prove(taut_enforcer *e)
{
    if (!e->failed) e->failed = taut_alloc_lasted(e->failures, "the proof");
    if (!e->failed) e->failed = up_model_constant(&e->proved, e->twin, e->spec);
    if (e->failed) e->proved = UP_NONE;
}

static void begin(taut_enforcer *e)
{
    e->failed = TAUT_OK;
    e->failures = taut_alloc_failures();
}

static double goal(const taut_enforcer *e) { return e->spec->target * (1 - 1e-6); }
static bool met(const taut_enforcer *e) { return e->proved.v <= goal(e); }
static double *slab(const taut_enforcer *e) { return (double *)e->twin->values; }

static void keep(taut_enforcer *e) { memcpy(e->kept, slab(e), (size_t)e->twin->slab * sizeof *e->kept); }

typedef bool (*choice)(const taut_model *, const taut_weight *);

static bool is_head(const taut_model *m, const taut_weight *w)
{
    (void)m;
    return w->param->role == TAUT_MATRIX && strcmp(w->path, "head.weight") == 0;
}

static bool is_any(const taut_model *m, const taut_weight *w)
{
    return (w->param->role == TAUT_MATRIX && !w->param->orthogonal) || (m->spec.tied && w->param == &m->embed);
}

static void try_factor(taut_enforcer *e, choice chosen, double c)
{
    for (int i = 0; i < e->twin->weights; i++) {
        const taut_weight *w = &e->twin->weight[i];
        if (!chosen(e->twin, w)) continue;
        for (int64_t j = w->offset, end = j + taut_weight_len(w); j < end; j++)
            slab(e)[j] = taut_float32(c * e->kept[j]);
    }
    prove(e);
}

/* The layer wants s >= ||W||^2; s is raised 2^-20 above, so that it stays above when it becomes a float. */
static void raise_scales(taut_enforcer *e)
{
    taut_scale_raise(e->twin, e->raise, true);
    for (int i = 0; i < e->twin->weights; i++) {
        const taut_weight *w = &e->twin->weight[i];
        if (w->param->above) slab(e)[w->offset] = taut_float32(slab(e)[w->offset]);
    }
}

static void to_caps(taut_enforcer *e)
{
    if (e->raise) raise_scales(e);
    for (int i = 0; i < e->twin->weights; i++) {
        const taut_weight *w = &e->twin->weight[i];
        const taut_param *p = w->param;
        const double cap = p->role == TAUT_MATRIX ? taut_cap_of(e->spec, w->path) : 0;
        if (cap == 0) continue;
        const double limit = cap * sqrt((double)p->rows / (double)p->cols) * (1 - 0x1p-50);
        up_rescale(slab(e) + w->offset, p->rows, p->cols, limit);
    }
    prove(e);
}

static void shrink_head(taut_enforcer *e)
{
    const double least = 0.5;
    double c = 1;
    keep(e);
    for (int i = 0; i < 4 && !met(e) && e->proved.v < INFINITY && c > least; i++) {
        c = fmax(least, c * (goal(e) / e->proved.v) * (1 - 1e-7));
        try_factor(e, is_head, c);
    }
}

/* lo is proved, hi is above; log constant against log factor is nearly a line, so that is tried before
 * halves. */
static double between(double lo, double hi, double log_lo, double log_hi, double log_goal, int turn)
{
    const double a = log(lo), b = log(hi), slope = (log_hi - log_lo) / (b - a);
    const double guess = a + (log_goal - log_lo) / slope;
    const bool inside = guess > a + 0.02 * (b - a) && guess < b - 0.02 * (b - a);
    return exp(inside && turn % 3 != 2 ? guess : 0.5 * (a + b));
}

static void shrink_all(taut_enforcer *e)
{
    double hi = 1, lo = 1, log_hi = log(e->proved.v), log_lo = 0, best = 0;
    keep(e);
    for (int i = 0; i < 60 && !met(e); i++) {
        hi = lo, log_hi = log(e->proved.v);
        lo *= e->proved.v < 1e3 * goal(e) ? 0.75 : 0.0625;
        try_factor(e, is_any, lo);
    }
    if (!met(e)) return;
    log_lo = log(e->proved.v);
    best = e->proved.v;
    for (int i = 0; i < 24 && best < 0.995 * goal(e) && lo < 0.9999 * hi && best > 0; i++) {
        const double c = between(lo, hi, log_lo, log_hi, log(0.998 * goal(e)), i);
        try_factor(e, is_any, c);
        if (met(e))
            lo = c, log_lo = log(e->proved.v), best = e->proved.v;
        else
            hi = c, log_hi = log(e->proved.v);
    }
    if (!met(e)) try_factor(e, is_any, lo);
}

/* The model's weights as floats in `kept`; false: one is not finite. */
static bool read_weights(taut_enforcer *e, const taut_model *m)
{
    TAUT_CHECK(e->twin->slab == m->slab, "enforce: the twin of another model");
    m->k->get(e->kept, m->values, m->slab);
    for (int64_t i = 0; i < m->slab; i++) {
        e->kept[i] = taut_float32(e->kept[i]);
        if (!isfinite(e->kept[i])) return false;
    }
    return true;
}

/* False: nothing helps. */
static bool shrink(taut_enforcer *e)
{
    to_caps(e);
    if (!met(e)) shrink_head(e);
    if (!met(e)) shrink_all(e);
    return met(e);
}

/* The twin takes over what read_weights has read, and proves it. */
static void prove_kept(taut_enforcer *e)
{
    memcpy(slab(e), e->kept, (size_t)e->twin->slab * sizeof *e->kept);
    prove(e);
}

/* Lip is |c| times as large with c W in the place of the head's W: the bias has no part in it, and nothing follows but
 * a constant factor. */
taut_status taut_enforcer_fill(taut_enforcer *e, const taut_model *m)
{
    begin(e);
    if (!read_weights(e, m)) return taut_fail(TAUT_NOT_FINITE, "a weight is not finite");
    prove_kept(e);
    if (e->failed) return e->failed;
    const taut_weight *head = taut_model_find(m, "head.weight");
    const double c = goal(e) * (1 - 0x1p-22) / e->proved.v; /* below the goal also after the rounding to floats */
    if (isfinite(c) && c > 0) m->k->axpby(head->param->value, c, head->param->value, 0, taut_weight_len(head));
    return TAUT_OK;
}

double est_enforcer_head(const taut_enforcer *e, const taut_model *m)
{
    const taut_weight *head = taut_model_find(m, "head.weight");
    m->k->get(e->kept, head->param->value, taut_weight_len(head));
    const double norm = est_norm(e->kept, head->param->rows, head->param->cols);
    return norm > 0 ? norm : 0;
}

taut_status taut_enforcer_run(taut_enforcer *e, const taut_model *m, bool *shrunk)
{
    const size_t size = (size_t)m->slab * sizeof *e->kept;
    *shrunk = false;
    begin(e);
    if (!read_weights(e, m)) return taut_fail(TAUT_NOT_FINITE, "a weight is not finite");
    if (met(e) && memcmp(slab(e), e->kept, size) == 0) return TAUT_OK;
    prove_kept(e);
    *shrunk = !met(e);
    if (*shrunk && !shrink(e)) e->proved = UP_NONE;
    if (e->failed) return e->failed;
    if (met(e)) return TAUT_OK;
    return taut_fail(TAUT_BAD_CONFIG,
                     "constrain.target_lipschitz = %g cannot be met: this model has no finite Lipschitz constant, "
                     "however small its matrices are",
                     e->spec->target);
}
