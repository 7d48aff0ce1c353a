/* The cpu table. */
#include "kernels/cpu/cpu.h"

extern const taut_kernels CPU(table);
const taut_kernels CPU(table) = {
    .name = "cpu",
    .dtype = "F32",
    .elem = sizeof(float),
    .unit = 0x1p-24,
    .host = true,
    .rigorous = false,
#define SLOT(result, name, arguments) .name = CPU(name),
#include "kernels/slots.def"
};
