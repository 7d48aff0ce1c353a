/* How the twin is brought to its target.  A proof follows each step, and the first one that meets the goal ends it.
 *   1. Nothing is changed: the constant may be at or below the goal already.
 *   2. Each potential layer gets a scale that is proved to be large enough; each matrix above its own cap gets the
 *      proved rescale.
 *   3. The last layer is multiplied by a factor of at least 1/2: the constant is proportional to it.
 *   4. All matrices but orthogonal ones, and the token table where the last layer is tied to it, are multiplied by one
 *      factor, found by bisection.  At factor 0 the network is constant, so that some factor will do, unless the
 *      architecture has no finite constant.
 * A proof is about the very floats that would be written, and the twin ends with floats whose proof met the goal.  The
 * goal is a millionth below the target, so that a proof by another library or processor also stays below the target. */
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

/* Proves the twin as it is.  `failed` stays from the first failure since begin() on, so that no later proof hides
 * it; an allocation that failed in between, inside a norm of to_caps, is such a failure too.  Then the constant is
 * +inf. */
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

/* The twin's chosen weights become c times those in `kept`, as floats; then they are proved. */
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

/* A potential layer needs s >= ||W||^2.  taut_scale_raise raises a smaller s to (1 + 2^-20) ||W||^2, so that
 * rounding s to float keeps it above. */
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

/* The next factor to try between lo, whose constant meets the goal, and hi, whose constant does not.  The logarithm
 * of the constant is nearly linear in that of the factor, so the line through both ends is tried; every third time,
 * or where the line leads too near to an end, the geometric mean. */
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

/* kept <- the model's weights, rounded to floats. */
static taut_status read_weights(taut_enforcer *e, const taut_model *m)
{
    TAUT_CHECK(e->twin->slab == m->slab, "enforce: the twin of another model");
    m->k->get(e->kept, m->values, m->slab);
    const taut_status s = m->k->read(NULL, NULL, 0);
    for (int64_t i = 0; !s && i < m->slab; i++) {
        e->kept[i] = taut_float32(e->kept[i]);
        if (!isfinite(e->kept[i])) return taut_fail(TAUT_NOT_FINITE, "a weight is not finite");
    }
    return s;
}

/* Steps 2 to 4; false: the goal is not met. */
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

/* Where c W takes the place of the last layer's W, the constant becomes |c| times as large: a bias has no part in
 * it, and only a constant factor follows. */
taut_status taut_enforcer_fill(taut_enforcer *e, const taut_model *m)
{
    begin(e);
    const taut_status s = read_weights(e, m);
    if (s) return s;
    prove_kept(e);
    if (e->failed) return e->failed;
    const taut_weight *head = taut_model_find(m, "head.weight");
    const double c = goal(e) * (1 - 0x1p-22) / e->proved.v; /* a little lower, since c W is rounded to floats */
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
    const taut_status s = read_weights(e, m);
    if (s) return s;
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
