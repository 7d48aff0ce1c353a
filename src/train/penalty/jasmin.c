/* JaSMin watches the rows of every softmax attention on the way back, and adds its gradient there.  The penalty of a step is
 * the mean over its examples. */
#include "train/penalty/penalty.h"

static void add(void *arg, const taut_kernels *kernels, taut_real *gq, taut_real *gk, const taut_real *q,
                const taut_real *k, const taut_attn *attn)
{
    const taut_jasmin_step *j = arg;
    kernels->attention_jasmin(j->sum, gq, gk, q, k, attn, &j->jasmin);
}

taut_watcher taut_jasmin_watch(taut_jasmin_step *j, const taut_pass *p, const taut_penalty_spec *s, int64_t examples)
{
    *j = (taut_jasmin_step){ s->jasmin, taut_sum_at(p->sums, TAUT_PASS_PENALTY) };
    j->jasmin.weight = s->weight / (double)examples;
    return (taut_watcher){ .rows = s->kind == TAUT_JASMIN && s->weight > 0 ? add : NULL, .arg = j };
}
