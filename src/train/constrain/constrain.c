/* A pure function of the weights and the step number: nothing is kept from one step to the next, so that a resumed
 * run ends with the same bits.  Power iterations therefore always start from the same random vector.  Only cayley also
 * reads the weights as they were before the step. */
#include "train/constrain/constrain.h"

#include <math.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/rng.h"
#include "train/alike.h"
#include "train/constrain/hold.h"
#include "train/constrain/odd.h"
#include "train/constrain/orthogonal.h"
#include "train/constrain/potential.h"

enum { LOOK = 8 };

static bool is_table(const taut_param *p) { return p->role == TAUT_TABLE; }

static double row_cap(const taut_model *m, const taut_constrain_spec *s, const taut_param *p)
{
    return p == &m->embed ? s->embed : s->position;
}

static int64_t need(const taut_model *m, const taut_constrain_spec *s, const taut_param *p)
{
    if (p->unit_rows) return p->rows * p->cols;
    if (s->method == TAUT_SOFTCAP && p->role == TAUT_MATRIX)
        return taut_softcap_work(p->rows, p->cols, taut_side_by_side(m, p));
    return p->orthogonal || (p->role == TAUT_MATRIX && s->method != TAUT_FREE) ? taut_hold_work(p->rows, p->cols) : 0;
}

static int64_t most_cols(const taut_model *m, const taut_constrain_spec *s)
{
    int64_t cols = 0;
    for (int i = 0; s->method != TAUT_FREE && i < m->weights; i++) {
        const taut_param *p = m->weight[i].param;
        if (p->role == TAUT_MATRIX && p->cols > cols) cols = p->cols;
    }
    return cols;
}

static int64_t room(const taut_model *m, const taut_constrain_spec *s)
{
    int64_t most = 0;
    for (int i = 0; i < m->weights; i++) {
        const int64_t len = need(m, s, m->weight[i].param);
        if (len > most) most = len;
    }
    const int64_t polar = s->method == TAUT_POLAR ? taut_polar_work(m) : 0;
    return most > polar ? most : polar;
}

/* doubles of cayley's work */
static int64_t cayley_len(const taut_model *m, const taut_constrain_spec *s)
{
    int64_t most = 0;
    for (int i = 0; s->method == TAUT_CAYLEY && i < m->weights; i++) {
        const taut_param *p = m->weight[i].param;
        const int64_t len = p->role == TAUT_MATRIX ? taut_cayley_work(p->rows, p->cols) : 0;
        if (len > most) most = len;
    }
    return most;
}

int64_t taut_constrainer_len(const taut_model *m, const taut_constrain_spec *s)
{
    const int64_t back = s->method == TAUT_CAYLEY ? m->slab + 2 * cayley_len(m, s) : 0; /* a double is two floats */
    return room(m, s) + most_cols(m, s) + back;
}

static taut_status fill_start(taut_constrainer *c)
{
    const int64_t len = most_cols(c->m, c->spec);
    double *x = taut_malloc((size_t)(len + 1) * sizeof *x);
    if (!x) return taut_no_memory("the constraint");
    for (int64_t i = 0; i < len; i++) x[i] = taut_rng_normal(taut_rng_key(0, TAUT_RNG_INIT, UINT64_MAX), (uint64_t)i);
    c->m->k->put(c->start, x, len);
    free(x);
    return TAUT_OK;
}

taut_status taut_constrainer_create(taut_constrainer **out, taut_model *m, const taut_recipe *r)
{
    taut_constrainer *c = taut_calloc(1, sizeof *c);
    if (!c) return taut_no_memory("the constraint");
    *c = (taut_constrainer){ .m = m, .spec = &r->constrain, .train = &r->train, .room = room(m, &r->constrain) };
    c->owned = (taut_owned){ 0, m->slab };
    c->share = taut_malloc((size_t)(m->weights + 1) * sizeof *c->share);
    c->start = taut_reals(m->k, most_cols(m, c->spec));
    c->work = taut_reals(m->k, c->room);
    const int64_t raise = taut_scale_work(m);
    if (raise) c->raise = taut_malloc((size_t)raise * sizeof *c->raise);
    bool have = c->share && c->start && c->work && (c->raise || !raise);
    if (c->spec->method == TAUT_CAYLEY) {
        c->before = taut_reals(m->k, m->slab);
        c->turn = taut_malloc((size_t)(cayley_len(m, c->spec) + 1) * sizeof *c->turn);
        have = have && c->before && c->turn;
    }
    taut_status s = have ? fill_start(c) : taut_no_memory("the constraint");
    for (int i = 0; !s && i < m->weights; i++)
        c->share[i] = m->weight[i].param->role == TAUT_MATRIX
                          ? taut_share_of(&m->spec, r->train.shares, r->train.blocks_mass, m->weight[i].path)
                          : 1;
    if (s)
        taut_constrainer_free(c);
    else
        *out = c;
    return s;
}

void taut_constrainer_free(taut_constrainer *c)
{
    if (!c) return;
    free(c->share);
    free(c->raise);
    free(c->turn);
    if (c->before) c->m->k->release(c->before);
    if (c->start) c->m->k->release(c->start);
    if (c->work) c->m->k->release(c->work);
    free(c);
}

/* How large a matrix of norm cap may have become since the last constraint; 0 where the optimiser does not say.  Muon's
 * update is as long as its learning rate, times what its polynomial may reach. */
static double grown(const taut_constrainer *c, double cap, double lr)
{
    static const double peak[] = { 1, 1.14503, 1.2025 };
    const taut_train_spec *t = c->train;
    if (t->optimiser != TAUT_MUON) return 0;
    return cap * fabs(1 - lr * t->decay) + (double)c->spec->every * lr * peak[t->polynomial];
}

/* cap times the nearest orthogonal matrix */
static void bjorck(taut_hold h)
{
    taut_bjorck(h.k, h.w, h.work.data, h.rows, h.cols, TAUT_BJORCK_STEPS);
    h.k->axpby(h.w, h.cap * hold_unit(&h), h.w, 0, h.rows * h.cols);
}

/* Rows of length 1. */
static void unit_rows(const taut_kernels *k, const taut_param *p, taut_span work)
{
    taut_real *unit = taut_take(&work, p->rows * p->cols);
    k->unit_rows(unit, p->value, p->rows, p->cols, 1e-30, 1);
    k->axpby(p->value, 1, unit, 0, p->rows * p->cols);
}

/* The step from `before` to w, taken from the orthogonal matrix nearest to `before`.  From 0 there is none: Bjorck's then. */
static void cayley(const taut_constrainer *c, taut_hold h, taut_real *before)
{
    const int64_t len = h.rows * h.cols;
    const double unit = h.cap * hold_unit(&h);
    taut_span work = h.work;
    if (!(taut_dot(h.k, taut_take_sums(&work, 1), before, before, len) > 0)) {
        bjorck(h);
        return;
    }
    h.k->axpby(h.w, -1 / unit, before, 1 / unit, len);
    taut_bjorck(h.k, before, h.work.data, h.rows, h.cols, TAUT_BJORCK_STEPS);
    h.k->axpby(h.w, 1, before, 1, len);
    if (!taut_cayley(h.k, h.w, before, c->turn, h.rows, h.cols)) return; /* not finite: the next loss will say so */
    h.k->axpby(h.w, unit, h.w, 0, len);
}

static void constrain(const taut_constrainer *c, taut_hold h, taut_real *before)
{
    const taut_constrain_spec *s = c->spec;
    const double reach = taut_reach(&h);
    taut_span work = h.work;
    taut_tame(h.k, h.w, 1, h.rows * h.cols, &reach, taut_take_sums(&work, 2));
    switch (s->method) {
    case TAUT_FREE:
        break;
    case TAUT_SPECTRAL_DECAY:
        taut_spectral_decay(h, s->lambda);
        break;
    case TAUT_NORMALISE:
        taut_normalise(h);
        break;
    case TAUT_STIEFEL:
        taut_stiefel(h);
        break;
    case TAUT_HAMMER:
        taut_hammer(h);
        break;
    case TAUT_HARDCAP:
        taut_hardcap(h);
        break;
    case TAUT_HARDCAP_TABLE:
        taut_hardcap_table(h);
        break;
    case TAUT_CLIP:
        taut_clip(h, fmin(s->lo, h.cap));
        break;
    case TAUT_CLIPPED_DECAY:
        taut_clipped_decay(h, s->lambda);
        break;
    case TAUT_BJORCK:
        bjorck(h);
        break;
    case TAUT_CAYLEY:
        cayley(c, h, before);
        break;
    case TAUT_SOFTCAP:
    case TAUT_POLAR:
        break; /* not one by one */
    }
}

/* How the weights came to be what they are. */
typedef struct {
    double lr; /* of the step that led to them; 0: none did */
    int times; /* that polar goes on */
    bool look; /* for norms above what the step explains */
} origin;

/* The matrices of `m`, c's model or a part of it, that are like its weight number i, the first of them. */
static void softcap(const taut_constrainer *c, const taut_model *m, int i, origin from)
{
    const taut_param *p = m->weight[i].param;
    const taut_span work = { c->work, c->room, m->k->elem };
    const taut_weight *alike[TAUT_SIDE_BY_SIDE];
    const int most = taut_side_by_side(c->m, p);
    for (int count; (count = taut_next_alike(alike, m, &i, p, most)) > 0;) {
        taut_hold h[TAUT_SIDE_BY_SIDE];
        double k[TAUT_SIDE_BY_SIDE];
        int held = 0;
        for (int j = 0; j < count; j++) {
            const taut_param *one = alike[j]->param;
            const double cap = taut_cap_of(c->spec, alike[j]->path);
            if (one->orthogonal || cap == 0) continue;
            h[held] = (taut_hold){ m->k, one->value, p->rows, p->cols, cap, work, c->start, (int)c->spec->iterations };
            k[held++] = grown(c, cap, from.lr * c->share[alike[j] - c->m->weight]);
        }
        if (held) taut_softcap(h, k, held, from.look || taut_parts_of(p) > 1);
    }
}

static void constrain_all(const taut_constrainer *c, taut_owned owned, origin from)
{
    const taut_model mine = taut_owned_weights(c->m, owned), *m = &mine;
    const taut_constrain_spec *s = c->spec;
    const taut_span work = { c->work, c->room, m->k->elem };
    const bool alone = s->method != TAUT_FREE && s->method != TAUT_POLAR && s->method != TAUT_SOFTCAP;
    if (s->method == TAUT_POLAR) taut_polar(m, from.times, c->work);
    for (int i = 0; i < m->weights; i++) {
        const taut_param *p = m->weight[i].param;
        const double cap = is_table(p) ? row_cap(c->m, s, p) : taut_cap_of(s, m->weight[i].path);
        const taut_owned part = taut_owned_of(owned, &m->weight[i]);
        if (is_table(p) && cap > 0)
            taut_cap_rows(m->k, taut_at(m->k, p->value, part.lo), (part.hi - part.lo) / p->cols, p->cols, cap);
        if (s->method == TAUT_SOFTCAP && taut_first_alike(m, i)) softcap(c, m, i, from);
        taut_hold h = { m->k, p->value, p->rows, p->cols, cap, work, c->start, (int)s->iterations };
        if (p->unit_rows)
            unit_rows(m->k, p, work);
        else if (p->role == TAUT_MATRIX && s->method == TAUT_POLAR)
            continue;
        else if (p->orthogonal) { /* whatever the method and its caps */
            h.cap = 1;
            bjorck(h);
        } else if (p->role == TAUT_MATRIX && alone && (cap > 0 || s->method == TAUT_SPECTRAL_DECAY))
            constrain(c, h, c->before ? taut_at(m->k, c->before, m->weight[i].offset) : NULL);
    }
}

/* Where training multiplies in bf16 or TF32, polar must not.  FP32 is refused by no table. */
static void constrain_exactly(const taut_constrainer *c, taut_owned owned, origin from)
{
    const bool coarse = c->spec->method == TAUT_POLAR && c->train->matmul != TAUT_PRODUCTS_FP32;
    if (coarse) (void)c->m->k->products(TAUT_PRODUCTS_FP32);
    constrain_all(c, owned, from);
    if (coarse) (void)c->m->k->products(c->train->matmul);
}

void taut_constrainer_settle(const taut_constrainer *c)
{
    constrain_exactly(c, (taut_owned){ 0, c->m->slab }, (origin){ 0, TAUT_BJORCK_STEPS, true });
}

void taut_constrainer_mark(const taut_constrainer *c)
{
    if (c->before) c->m->k->axpby(c->before, 1, c->m->values, 0, c->m->slab);
}

/* A cap that has held before needs no look at the norm; one in LOOK times, the first time, and where the head is scaled in
 * between, it has one nevertheless. */
void taut_constrainer_apply(const taut_constrainer *c, int64_t step, double lr)
{
    const int64_t every = c->spec->every;
    if ((step + 1) % every != 0) return;
    constrain_exactly(c, c->owned, (origin){ lr, 1, c->spec->fill > 0 || step / every % LOOK == 0 });
}

void taut_constrainer_raise(const taut_constrainer *c)
{
    if (c->raise) taut_scale_raise(c->m, c->raise, false);
}
