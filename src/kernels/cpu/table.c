/* The cpu table. */
#include "kernels/cpu/cpu.h"

extern const taut_kernels CPU(table);
const taut_kernels CPU(table) = {
    .name = "cpu",
    .elem = sizeof(float),
#define SLOT(result, name, arguments) .name = CPU(name),
#include "kernels/slots.def"
};
