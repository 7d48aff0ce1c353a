/* The ref backend: double, plain loops, the definition of every slot.  Declarations are made of the list of slots, so a
 * definition that drifts from the contract does not compile. */
#ifndef TAUT_KERNELS_REF_H
#define TAUT_KERNELS_REF_H
#include "kernels/kernels.h"

#define REF(slot) taut_ref_##slot

#define SLOT(result, name, arguments) result REF(name) arguments;
#include "kernels/slots.def"
#endif
