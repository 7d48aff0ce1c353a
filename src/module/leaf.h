/* Small answers that many leaves share. */
#ifndef TAUT_MODULE_LEAF_H
#define TAUT_MODULE_LEAF_H
#include <stdlib.h>

#include "base/alloc.h"
#include "base/float32.h"
#include "module/module.h"

/* A leaf without weights, and one whose whole memory is its own struct. */
static inline void leaf_no_params(taut_module *m, taut_visitor *v)
{
    (void)m;
    (void)v;
}
static inline void leaf_free(taut_module *m) { free(m); }

/* The region behind a leaf: how long its tokens are, and how wrong it computes them; it holds both kinds. */
static inline taut_region region_after(taut_region in, taut_up size, taut_up round)
{
    in.size = up_add(size, round);
    in.round = taut_round_of(in, round);
    return in;
}
#endif
