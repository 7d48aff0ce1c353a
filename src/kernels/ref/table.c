/* The ref table. */
#include "kernels/ref/ref.h"

extern const taut_kernels taut_ref_table;
const taut_kernels taut_ref_table = {
    .name = "ref",
    .dtype = "F64",
    .elem = sizeof(double),
    .unit = 0x1p-53,
    .host = true,
    .rigorous = true,
#define SLOT(result, name, arguments) .name = REF(name),
#include "kernels/slots.def"
};
