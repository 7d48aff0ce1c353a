/* Small answers that many leaves share. */
#ifndef TAUT_MODULE_LEAF_H
#define TAUT_MODULE_LEAF_H
#include <stdlib.h>

#include "base/alloc.h"
#include "base/float32.h"
#include "module/modules.h"

/* A leaf without weights, and one whose whole memory is its own struct. */
static inline void leaf_no_params(taut_module *m, taut_visitor *v)
{
    (void)m;
    (void)v;
}
static inline void leaf_free(taut_module *m) { free(m); }

/* The answer of a leaf: its constant, how long its real tokens are, and how wrong it computes each of them; in.tokens are
 * those that come out. */
static inline taut_answer answer_of(taut_ask in, taut_up lip, taut_up size, taut_up round)
{
    return (
        taut_answer){ .lip = lip, .size = up_add(size, round), .round = taut_round_of(in, round), .tokens = in.tokens };
}

/* The same, and all its real tokens together are no longer than `whole`. */
static inline taut_answer answer_within(taut_ask in, taut_up lip, taut_up size, taut_up round, taut_up whole)
{
    taut_answer b = answer_of(in, lip, size, round);
    b.whole = up_add(whole, up_mul(up_sqrt(up_int(in.tokens)), round));
    return b;
}
#endif
