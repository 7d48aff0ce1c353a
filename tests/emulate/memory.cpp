/* The device's memory is the host's: arrays whose ends are guarded, the workspace of slots as one of them. */
#include <sys/mman.h>
#include <unordered_map>

#include "machine.h"

/* An array ends before a page that nobody may touch, but for up to 255 bytes, which must stay as they are. */
struct array {
    char *pages;
    size_t mapped, size;
};
static std::unordered_map<void *, array> arrays;
enum { PAGE = 64 << 10, UNIT = 256, UNTOUCHED = 0xff };

cudaError_t cudaMalloc(void **p, size_t size)
{
    const size_t whole = (size + UNIT - 1) / UNIT * UNIT, mapped = (whole + PAGE - 1) / PAGE * PAGE + PAGE;
    *p = nullptr;
    if (size > (size_t)8 << 30) return cudaErrorMemoryAllocation;
    char *pages = (char *)mmap(nullptr, mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1,
                               0);
    if (pages == MAP_FAILED) return cudaErrorMemoryAllocation;
    if (mprotect(pages + mapped - PAGE, PAGE, PROT_NONE)) emulate_fault("memory cannot be guarded");
    char *at = pages + mapped - PAGE - whole;
    memset(at, UNTOUCHED, whole);
    arrays[at] = { pages, mapped, size };
    *p = at;
    return cudaSuccess;
}

cudaError_t cudaFree(void *p)
{
    if (!p) return cudaSuccess;
    const auto found = arrays.find(p);
    if (found == arrays.end()) emulate_fault("memory is given back that was not taken");
    const array a = found->second;
    for (size_t i = a.size; i % UNIT; i++)
        if (((unsigned char *)p)[i] != UNTOUCHED) emulate_fault("an array was written past its end");
    arrays.erase(found);
    munmap(a.pages, a.mapped);
    return cudaSuccess;
}

cudaError_t cudaDeviceGetAttribute(int *value, int what, int)
{
    return *value = what == cudaDevAttrMultiProcessorCount ? 4 : EMULATE_ROOM - (1 << 10), cudaSuccess;
}
