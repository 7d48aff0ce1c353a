/* Asking a module for its bound, and writing the answer down. */
#include "bound/norm.h"
#include "bound/range.h"
#include "bound/rounding.h"
#include "module/strays.h"

/* What ref's answer becomes where another table computes.  Leaves know how far it strays from them. */
static taut_answer at_table(const taut_module *m, taut_answer b, taut_ask in, double keep, double mix)
{
    if (!in.table || m->ops->composes) return b;
    b.round = m->ops->strays ? up_mul(up_exact(mix), m->ops->strays(m, in, &b)) : UP_NONE;
    if (keep != 0 || mix != 1) { /* |mix f(x)| <= |y| + |keep x| */
        const taut_up kept = up_add(up_mul(up_exact(2 * keep), strays_in(in)), b.round);
        b.round = up_add(b.round, strays_of(in, promise_axpby(in.table), up_add(kept, strays_out(in, &b))));
    }
    in.tokens = b.tokens;
    b.size = up_add(b.size, b.round);
    if (b.whole.v > 0)
        b.whole = up_add(b.whole, in.norm == TAUT_NORM_FLAT ? b.round : up_mul(strays_root(in), b.round));
    return b;
}

/* States lip and size, fills in move and closes the node.  move: f(x) is within lip * radius (or what the module knows
 * better) of the real f(centre), which is within `round` of the computed one. */
static taut_answer answer(const taut_module *m, taut_answer b, taut_ask in)
{
    b.lip = up_state(in.ledger, "lip", b.lip);
    b.size = up_state(in.ledger, "out", b.size);
    const taut_up move = in.radius.v == 0 ? UP_ZERO : up_mul(b.lip, in.radius);
    b.move = up_add(b.move.v > 0 ? up_min(b.move, move) : move, b.round);
    if (in.hear) in.hear(m, &b, in.hearer);
    ledger_close(in.ledger);
    return b;
}

taut_ask taut_ask_behind(taut_ask in, taut_answer f)
{
    in.tokens = f.tokens;
    in.size = f.size;
    in.whole = f.whole;
    in.radius = f.move;
    in.box = (taut_box){ 0 };      /* it is about the model's input only */
    in.centre = (taut_point){ 0 }; /* whoever asks next sets it: taut_ask_at */
    return in;
}

/* f's errors grow by g's constant, and g adds its own.  An error of 0 stays 0, also where g's constant is infinite. */
taut_answer taut_answer_then(taut_answer f, taut_answer g)
{
    g.round = up_add(g.round, f.round.v == 0 ? UP_ZERO : up_mul(g.lip, f.round));
    g.defect = up_add(g.defect, f.defect.v == 0 ? UP_ZERO : up_mul(g.lip, f.defect));
    g.lip = f.lip.v == 1 ? g.lip : up_mul(f.lip, g.lip);
    g.move = UP_ZERO;
    return g;
}

static void see_finite(taut_param *p, const char *path, void *arg)
{
    (void)path;
    bool *finite = arg;
    *finite = *finite && isfinite(range_max(taut_ref_values(p), p->rows * p->cols));
}

/* A module with a weight that is NaN or infinite has no constant and no size, even where no formula uses the weight. */
static taut_answer of_finite(const taut_module *m, taut_answer b)
{
    bool finite = true;
    taut_visitor v = { .see = see_finite, .arg = &finite };
    if (m->ops->params) m->ops->params((taut_module *)m, &v); /* see_finite changes nothing */
    if (!finite) b.lip = b.size = b.whole = UP_NONE;
    return b;
}

taut_answer taut_bound_named(const taut_module *m, const char *name, taut_ask in)
{
    ledger_name(in.ledger, name);
    ledger_open(in.ledger, m->ops->kind);
    return answer(m, at_table(m, of_finite(m, m->ops->bound(m, in)), in, 0, 1), in);
}

taut_ask taut_ask_at(taut_ask in, taut_point centre)
{
    const taut_shape s = centre.x.shape;
    taut_up most = UP_ZERO;
    for (int64_t t = 0; t < taut_rows(s); t++)
        most = up_max(most, up_norm_frobenius((const double *)centre.x.data + t * s.d, s.d));
    in.size = up_min(in.size, up_add(most, in.radius));
    in.centre = centre;
    return in;
}

taut_answer taut_bound_of(const taut_module *m, taut_ask in) { return taut_bound_named(m, "", in); }

taut_answer taut_bound_triangle(taut_answer f, taut_ask in, double keep, double mix)
{
    const taut_up k = up_exact(keep), m = up_exact(mix);
    const taut_up kept = up_mul(k, in.size), added = up_mul(m, f.size);
    const taut_up root = up_sqrt(up_int(in.tokens)), all = f.whole.v > 0 ? f.whole : up_mul(root, f.size);
    f.lip = up_add(k, up_mul(m, f.lip));
    const taut_up round = up_round_sum(up_mul(k, taut_longest(in)), up_mul(m, up_min(f.size, all)));
    const taut_up wrong = in.table ? strays_mix(in, f, keep, mix) : taut_round_of(in, round);
    f.size = up_add(up_add(kept, added), in.table ? wrong : round);
    f.whole = up_add(up_add(up_mul(k, taut_whole(in)), up_mul(m, all)), up_mul(root, in.table ? wrong : round));
    f.round = up_add(up_mul(m, f.round), wrong);
    f.defect = up_mul(m, f.defect);
    f.move = UP_ZERO;
    return f;
}

taut_answer taut_bound_mixed(const taut_module *f, const char *name, taut_ask in, double keep, double mix)
{
    if (!f->ops->bound_mixed) return taut_bound_triangle(taut_bound_named(f, name, in), in, keep, mix);
    if (f->ops->inlined) return f->ops->bound_mixed(f, in, keep, mix);
    ledger_name(in.ledger, name);
    ledger_open(in.ledger, f->ops->kind);
    ledger_word(in.ledger, "scope", "mix"); /* lip and out are of keep x + mix f(x) */
    return answer(f, at_table(f, of_finite(f, f->ops->bound_mixed(f, in, keep, mix)), in, keep, mix), in);
}
