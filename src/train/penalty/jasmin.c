/* JaSMin rides on attention's vjp: run->jasmin tells it to.  The penalty of a step is the mean over its examples. */
#include "train/penalty/penalty.h"

void taut_jasmin_begin(taut_pass *p, taut_penalty_spec *s, int64_t examples)
{
    const bool on = s->kind == TAUT_JASMIN && s->weight > 0;
    s->jasmin.weight = s->weight / (double)examples;
    p->run.jasmin = on ? &s->jasmin : NULL;
    p->run.jasmin_sum = taut_sum_at(p->sums, TAUT_PASS_PENALTY);
}
