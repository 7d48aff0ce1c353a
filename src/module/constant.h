/* Numbers that make a module and that training never changes: sines, hash functions, gains.  `params` leads to them as it
 * does to weights (params.c). */
#ifndef TAUT_MODULE_CONSTANT_H
#define TAUT_MODULE_CONSTANT_H
#include "kernels/kernels.h"

/* The module owns both copies: the host's, reals or whole numbers, and the one where kernels read them. */
typedef struct {
    int64_t len;
    double *reals;
    int32_t *whole;
    const taut_kernels *k; /* where they were placed; NULL: nowhere yet */
    void *there;           /* taut_real or taut_index */
} taut_constant;

struct taut_visitor;
struct taut_module;
void taut_visit_constant(struct taut_visitor *, taut_constant *);
void taut_constant_free(taut_constant *);
/* Puts every constant of a tree where these kernels read it; to be called once before the first forward pass. */
taut_status taut_module_place(struct taut_module *, const taut_kernels *) TAUT_MUST_USE;
#endif
