/* The proved constant of a whole model: from embeddings or pixels to logits, from rows of a series to forecasts. */
#include "base/alloc.h"
#include "bound/arithmetic.h"
#include "bound/norm.h"
#include "bound/range.h"
#include "model/model.h"
#include "module/strays.h"

taut_up taut_model_reach(const taut_model *m)
{
    const double *row = taut_ref_values(&m->embed);
    const int64_t rows = m->embed.rows, d = m->embed.cols;
    double most = 0;
    if (m->spec.ahead) return UP_NONE;              /* a row of a series may have any length */
    if (rows == 0) return up_sqrt(up_int(m->in.d)); /* one token of pixels, each in [0, 1] */
#pragma omp parallel for schedule(static) reduction(max : most)
    for (int64_t i = 0; i < rows; i++) most = fmax(most, up_norm_frobenius(row + i * d, d).v);
    return (taut_up){ most };
}

taut_ask taut_model_region(const taut_model *m, taut_norm norm, taut_up room)
{
    const taut_up size = up_raise(up_add(taut_model_reach(m), room));
    return (taut_ask){ .norm = norm, .tokens = m->in.t, .size = size, .box = { taut_model_sees(m), room } };
}

taut_up up_model_rms(const taut_model *m, taut_norm norm, taut_up lip)
{
    const taut_shape in = { 1, m->in.t, m->in.d }, out = taut_plan_of(m->root, in).out;
    const bool flat = norm == TAUT_NORM_FLAT; /* a forecaster has another number of tokens out than in */
    const int64_t reads = flat ? in.t * in.d : in.d, says = flat ? out.t * out.d : out.d;
    return up_mul(lip, up_sqrt(up_div(up_int(reads), lo_exact((double)says))));
}

taut_about taut_model_about(const taut_model *m, taut_up room, taut_up reach, taut_up rows, taut_up defect)
{
    return (taut_about){ .reads = taut_model_sees(m) ? TAUT_ABOUT_PIXELS
                                  : m->spec.ahead    ? TAUT_ABOUT_ROWS
                                                     : TAUT_ABOUT_TOKENS,
                         .tokens = m->in.t,
                         .room = room.v,
                         .reach = reach.v,
                         .rows = rows.v,
                         .defect = defect.v };
}

bool taut_model_finite(const taut_model *m) { return isfinite(range_max((const double *)m->values, m->slab)); }

typedef struct {
    const taut_model *m;
    taut_up body;
} listener;

/* Keeps the body's constant when the body answers within the root. */
static void hear_body(const taut_module *f, const taut_answer *b, void *arg)
{
    listener *l = arg;
    if (f == l->m->body) l->body = b->lip;
}

taut_status taut_model_prove(taut_model_proof *out, const taut_model *m, taut_ask in)
{
    TAUT_CHECK(m->k->host && m->k->rigorous, "bounds are proved on a ref model");
    const taut_status s = taut_arithmetic_test();
    if (s) return s;
    const long failures = taut_alloc_failures();
    listener l = { m, UP_NONE };
    in.hear = hear_body;
    in.hearer = &l;
    out->whole = taut_bound_of(m->root, in);
    if (in.table) { /* an input that is moved has to become elements first */
        const taut_up put = up_mul((taut_up){ in.table->unit }, strays_in(in));
        out->whole.round = up_add(out->whole.round, up_mul(out->whole.lip, up_add(put, (taut_up){ 0x1p-100 })));
    }
    out->body = l.body;
    if (!taut_model_finite(m)) out->whole.lip = out->body = UP_NONE; /* even where no formula uses the weight */
    return taut_alloc_lasted(failures, "the proof");
}

taut_status taut_model_bound(taut_answer *b, const taut_model *m, taut_norm norm)
{
    taut_model_proof p;
    const taut_status s = taut_model_prove(&p, m, taut_model_region(m, norm, UP_ZERO));
    if (!s) *b = p.whole;
    return s;
}
