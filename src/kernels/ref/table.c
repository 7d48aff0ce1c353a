/* The ref table. */
#include "kernels/ref/ref.h"

extern const taut_kernels taut_ref_table;
const taut_kernels taut_ref_table = {
    .name = "ref",
    .elem = sizeof(double),
#define SLOT(result, name, arguments) .name = REF(name),
#include "kernels/slots.def"
};
