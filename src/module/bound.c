/* Asking a module for its bound, and writing the answer down. */
#include "module/module.h"

static taut_bound answer(taut_bound b, taut_ledger *l)
{
    b.lip = ledger_note(l, "lip", b.lip);
    b.out.size = ledger_note(l, "out", b.out.size);
    b.out.ledger = l;
    ledger_close(l);
    return b;
}

taut_bound taut_bound_named(const taut_module *m, const char *name, taut_region in)
{
    ledger_name(in.ledger, name);
    ledger_open(in.ledger, m->ops->kind);
    return answer(m->ops->bound(m, in), in.ledger);
}

taut_bound taut_bound_of(const taut_module *m, taut_region in) { return taut_bound_named(m, "", in); }

taut_bound taut_bound_triangle(taut_bound f, taut_region in, double keep, double mix)
{
    const taut_up k = up_exact(keep), m = up_exact(mix);
    f.lip = up_add(k, up_mul(m, f.lip));
    f.out.size = up_add(up_mul(k, in.size), up_mul(m, f.out.size));
    return f;
}

taut_bound taut_bound_mixed(const taut_module *f, const char *name, taut_region in, double keep, double mix)
{
    if (!f->ops->bound_mixed) return taut_bound_triangle(taut_bound_named(f, name, in), in, keep, mix);
    ledger_name(in.ledger, name);
    ledger_open(in.ledger, f->ops->kind);
    ledger_word(in.ledger, "scope", "mix"); /* lip and out are of keep x + mix f(x) */
    return answer(f->ops->bound_mixed(f, in, keep, mix), in.ledger);
}
