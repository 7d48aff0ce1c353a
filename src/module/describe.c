/* Which function is it?  The tree of kinds, names and constants; with the weights it says everything. */
#include "module/module.h"

void taut_describe(const taut_module *m, const char *name, taut_ledger *l)
{
    if (m->ops->trains_only) return;
    ledger_name(l, name);
    ledger_open(l, m->ops->kind);
    if (m->ops->describe) m->ops->describe(m, l);
    ledger_close(l);
}
