/* Asking a module for its bound, and writing the answer down. */
#include "bound/norm.h"
#include "bound/rounding.h"
#include "module/module.h"

/* The module was asked about exact inputs; what was wrong before grows by its constant. */
static taut_bound answer(const taut_module *m, taut_bound b, taut_region in)
{
    const taut_up own = b.out.round;
    b.lip = up_state(in.ledger, "lip", b.lip);
    b.out.size = up_state(in.ledger, "out", b.out.size);
    b.out.round = up_add(b.out.round, in.round.v == 0 ? UP_ZERO : up_mul(b.lip, in.round));
    b.out.defect = up_add(b.out.defect, in.defect.v == 0 ? UP_ZERO : up_mul(b.lip, in.defect));
    b.out.ledger = in.ledger;
    b.out.hear = in.hear;
    b.out.hearer = in.hearer;
    b.out.unit = false; /* known of the input only */
    const taut_up move = in.radius.v == 0 ? UP_ZERO : up_mul(b.lip, in.radius);
    b.out.radius = up_add(b.out.move.v > 0 ? up_min(b.out.move, move) : move, own);
    b.out.move = UP_ZERO;
    b.out.centre = (taut_point){ 0 }; /* what follows knows where it stands */
    if (in.hear) in.hear(m, &b, in.hearer);
    ledger_close(in.ledger);
    return b;
}

static void see_finite(taut_param *p, const char *path, void *arg)
{
    (void)path;
    bool *finite = arg;
    for (int64_t i = 0; i < p->rows * p->cols; i++) *finite = *finite && isfinite(taut_ref_values(p)[i]);
}

/* Nothing is proved of a module with a weight that is not finite, also where it drops out of every formula. */
static taut_bound of_finite(const taut_module *m, taut_bound b)
{
    bool finite = true;
    taut_visitor v = { .see = see_finite, .arg = &finite };
    if (m->ops->params) m->ops->params((taut_module *)m, &v); /* which changes nothing */
    if (!finite) b.lip = b.out.size = UP_NONE;
    return b;
}

static taut_region exact_input(taut_region in)
{
    in.round = in.defect = in.move = UP_ZERO;
    return in;
}

taut_bound taut_bound_named(const taut_module *m, const char *name, taut_region in)
{
    ledger_name(in.ledger, name);
    ledger_open(in.ledger, m->ops->kind);
    return answer(m, of_finite(m, m->ops->bound(m, exact_input(in))), in);
}

taut_region taut_region_at(taut_region r, taut_point centre)
{
    const taut_shape s = centre.x.shape;
    taut_up most = UP_ZERO;
    for (int64_t t = 0; t < taut_rows(s); t++)
        most = up_max(most, up_norm_frobenius((const double *)centre.x.data + t * s.d, s.d));
    r.size = up_min(r.size, up_add(most, r.radius));
    r.centre = centre;
    return r;
}

taut_bound taut_bound_of(const taut_module *m, taut_region in) { return taut_bound_named(m, "", in); }

taut_bound taut_bound_triangle(taut_bound f, taut_region in, double keep, double mix)
{
    const taut_up k = up_exact(keep), m = up_exact(mix);
    const taut_up kept = up_mul(k, in.size), added = up_mul(m, f.out.size);
    f.lip = up_add(k, up_mul(m, f.lip));
    const taut_up round = up_round_sum(kept, added);
    f.out.size = up_add(up_add(kept, added), round);
    f.out.round = up_add(up_mul(m, f.out.round), taut_round_of(f.out, round));
    f.out.defect = up_mul(m, f.out.defect);
    return f;
}

taut_bound taut_bound_mixed(const taut_module *f, const char *name, taut_region in, double keep, double mix)
{
    if (!f->ops->bound_mixed) return taut_bound_triangle(taut_bound_named(f, name, in), in, keep, mix);
    if (f->ops->inlined) return f->ops->bound_mixed(f, in, keep, mix);
    ledger_name(in.ledger, name);
    ledger_open(in.ledger, f->ops->kind);
    ledger_word(in.ledger, "scope", "mix"); /* lip and out are of keep x + mix f(x) */
    return answer(f, of_finite(f, f->ops->bound_mixed(f, exact_input(in), keep, mix)), in);
}
