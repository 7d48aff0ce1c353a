/* The tables: no slot may be NULL (tests/kernels/t_table.c).  A slot that the device has not learnt yet is a weak
 * function that notes an error, so whoever reads afterwards is told; a file that defines the slot takes its place. */
#include "kernels/cuda/cuda.h"

template <class T> static T nothing(void) { return T(); }

#define SLOT(result, name, arguments)                               \
    extern "C" __attribute__((weak)) result CUDA(name) arguments    \
    {                                                               \
        cuda_fault("the kernels of the device do not have " #name); \
        return nothing<result>();                                   \
    }
#include "kernels/slots.def"

extern const taut_kernels CUDA(table);
const taut_kernels CUDA(table) = {
    .name = sizeof(real) == 8 ? "cuda64" : "cuda",
    .dtype = sizeof(real) == 8 ? "F64" : "F32",
    .elem = sizeof(real),
    .unit = sizeof(real) == 8 ? 0x1p-53 : 0x1p-24,
    .host = false,
    .rigorous = false,
#define SLOT(result, name, arguments) .name = CUDA(name),
#include "kernels/slots.def"
};
