/* The ref backend: double, plain loops, the definition of every slot.  Declarations are made of the list of slots, so a
 * definition that drifts from the contract does not compile. */
#ifndef TAUT_KERNELS_REF_H
#define TAUT_KERNELS_REF_H
#include "kernels/kernels.h"

#define REF(slot) taut_ref_##slot

static inline double ref_factor(taut_factor f, int64_t e)
{
    return f.by && f.value != 0 ? f.value * ((const double *)f.by)[e] : f.value;
}

#define SLOT(result, name, arguments) result REF(name) arguments;
#include "kernels/slots.def"
#endif
