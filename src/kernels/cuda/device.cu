/* The device: opening it, its stream, workspace, pinned memory, and the first error that was met. */
#include "kernels/cuda/device.h"
#include "kernels/cuda/lowered.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PIECES = 2 }; /* pinned: one is filled while the other travels */

static struct {
    const taut_host *host;
    int number;
    cudaStream_t stream;
    void *work;
    size_t size; /* of work */
    char *pinned[PIECES];
    cudaEvent_t sent[PIECES];
    int next;
    uint64_t asked; /* how many things */
    bool failed;
    char why[256];
} device;

void cuda_enter(void) { cuda_note(cudaSetDevice(device.number), "the device"); }

cudaStream_t cuda_stream(void)
{
    device.asked++;
    return device.stream;
}

uint64_t cuda_asked(void) { return device.asked; }

const taut_host *cuda_host(void) { return device.host; }

bool cuda_failed(void) { return device.failed; }

void cuda_fault(const char *why)
{
    if (device.failed) return;
    device.failed = true;
    snprintf(device.why, sizeof device.why, "%s", why);
}

void cuda_note(cudaError_t error, const char *what)
{
    if (error == cudaSuccess) return;
    char why[sizeof device.why];
    snprintf(why, sizeof why, "%s: %s", what, cudaGetErrorString(error));
    cuda_fault(why);
}

taut_status cuda_wait(void)
{
    cuda_note(cudaStreamSynchronize(device.stream), "the device");
    return device.failed ? device.host->fail(TAUT_DEVICE, "the device failed: %s", device.why) : TAUT_OK;
}

void *cuda_more(size_t bytes)
{
    void *p = NULL;
    if (cudaMalloc(&p, bytes) == cudaSuccess) return p;
    (void)cudaGetLastError(); /* else the next launch is taken for what failed */
    return NULL;
}

void *cuda_memory(size_t least, size_t most, size_t *size)
{
    void *p = NULL;
    if (!device.host->alloc_fails()) {
        p = cuda_more(*size = most);
        if (!p) p = cuda_more(*size = least);
        if (!p && cuda_lowered_give_back()) p = cuda_more(least);
    }
    if (!p) *size = 0;
    return p;
}

void *cuda_work(size_t bytes)
{
    if (bytes <= device.size) return device.work;
    cuda_note(cudaFree(device.work), "workspace"); /* waits for whoever uses it */
    device.work = cuda_memory(bytes, bytes + bytes / 2, &device.size);
    if (!device.work) {
        char why[96];
        snprintf(why, sizeof why, "out of memory: %.1f MB of workspace", (double)bytes / 1e6);
        cuda_fault(why);
    }
    return device.work;
}

void cuda_up(void *to, size_t elem, const void *from, size_t from_elem, int64_t len, cuda_convert *convert)
{
    const int64_t most = CUDA_PIECE / (int64_t)elem;
    for (int64_t at = 0; at < len && !device.failed; at += most) {
        const int64_t part = len - at < most ? len - at : most;
        const int piece = device.next++ % PIECES;
        cuda_note(cudaEventSynchronize(device.sent[piece]), "put");
        convert(device.pinned[piece], (const char *)from + (size_t)at * from_elem, part);
        cuda_note(cudaMemcpyAsync((char *)to + (size_t)at * elem, device.pinned[piece], (size_t)part * elem,
                                  cudaMemcpyHostToDevice, cuda_stream()),
                  "put");
        cuda_note(cudaEventRecord(device.sent[piece], cuda_stream()), "put");
    }
}

bool cuda_down(void *to, size_t to_elem, const void *from, size_t elem, int64_t len, cuda_convert *convert)
{
    const int64_t most = CUDA_PIECE / (int64_t)elem;
    for (int64_t at = 0; at < len && !device.failed; at += most) {
        const int64_t part = len - at < most ? len - at : most;
        const int piece = device.next++ % PIECES;
        cuda_note(cudaMemcpyAsync(device.pinned[piece], (const char *)from + (size_t)at * elem, (size_t)part * elem,
                                  cudaMemcpyDeviceToHost, cuda_stream()),
                  "get");
        cuda_note(cudaStreamSynchronize(cuda_stream()), "get");
        if (!device.failed) convert((char *)to + (size_t)at * to_elem, device.pinned[piece], part);
    }
    return !device.failed;
}

static __global__ void nothing(void) {}

/* Why this device cannot be used; NULL: it can. */
static const char *refused(void)
{
    static char why[160];
    int count = 0, driver = 0;
    cudaFuncAttributes kernel;
    cudaError_t e = cudaGetDeviceCount(&count);
    (void)cudaDriverGetVersion(&driver);
    if (driver == 0) return "no driver is installed";
    if (driver < CUDART_VERSION) {
        snprintf(why, sizeof why, "the driver is for CUDA %d.%d, too old: libtaut_cuda.so needs %d.%d", driver / 1000,
                 driver % 1000 / 10, CUDART_VERSION / 1000, CUDART_VERSION % 1000 / 10);
        return why;
    }
    if (e == cudaErrorNoDevice || (e == cudaSuccess && count == 0)) return "there is no device";
    if (e == cudaSuccess) e = cudaFuncGetAttributes(&kernel, nothing);
    if (e == cudaErrorNoKernelImageForDevice)
        return "libtaut_cuda.so was not built for this device (make CUDA=1 CUDA_ARCH=..., 90 and later)";
    return e == cudaSuccess ? NULL : cudaGetErrorString(e);
}

/* Of several processes on one machine each has a device of its own, by the number that its launcher gave it. */
static cudaError_t choose(void)
{
    static const char *const names[] = { "OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID", "SLURM_LOCALID",
                                         "LOCAL_RANK" };
    int count = 0;
    cudaError_t e = cudaGetDeviceCount(&count);
    for (int i = 0; i < 4 && e == cudaSuccess; i++) {
        const char *which = getenv(names[i]);
        if (which) device.number = atoi(which) % count;
        if (which) break;
    }
    return e == cudaSuccess ? cudaSetDevice(device.number) : e;
}

static const char *prepare(void)
{
    const char *why = refused();
    cudaError_t e = cudaSuccess;
    if (!why) e = choose();
    if (!why && e == cudaSuccess) e = cudaStreamCreateWithFlags(&device.stream, cudaStreamNonBlocking);
    for (int i = 0; i < PIECES && !why && e == cudaSuccess; i++) {
        e = cudaMallocHost((void **)&device.pinned[i], CUDA_PIECE);
        if (e == cudaSuccess) e = cudaEventCreateWithFlags(&device.sent[i], cudaEventDisableTiming);
    }
    return why ? why : e == cudaSuccess ? NULL : cudaGetErrorString(e);
}

extern const taut_kernels taut_cuda_table, taut_cuda64_table;

extern "C" __attribute__((visibility("default"))) const taut_kernels *
taut_cuda_open(const char *name, unsigned long build, const taut_host *host)
{
    const char *why = build == TAUT_TABLE ? NULL : "libtaut_cuda.so is from another build of taut";
    if (!why && device.host) cuda_enter();
    if (!why && !device.host) why = prepare();
    if (why) {
        (void)host->fail(TAUT_DEVICE, "kernels %s: %s", name, why);
        return NULL;
    }
    device.host = host;
    return strcmp(name, "cuda") == 0 ? &taut_cuda_table : &taut_cuda64_table;
}
