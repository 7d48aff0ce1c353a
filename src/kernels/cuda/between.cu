/* Messages between the devices of ranks, by NCCL: whole pieces of memory from one to another, in the stream of everything else.
 * Nothing is added up here, since NCCL's sums have an order of their own.  libnccl.so.2 is opened when there are several ranks,
 * so that the kernels need none; what is used of it is declared here. */
#include "kernels/between.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/cuda/device.h"

enum { ID = 128, BYTES = 0 }; /* NCCL's ncclUniqueId, and ncclInt8 */
struct unique {
    char bytes[ID];
};
typedef void *comm;

static struct {
    int (*get_id)(unique *);
    int (*init)(comm *, int count, unique, int rank);
    int (*send)(const void *, size_t, int type, int to, comm, cudaStream_t);
    int (*receive)(void *, size_t, int type, int from, comm, cudaStream_t);
    int (*begin)(void);
    int (*end)(void);
    int (*destroy)(comm);
    const char *(*error)(int);
    comm all;
    bool begun; /* a group of messages */
} nccl;

static bool good(int error, const char *what)
{
    char why[200];
    if (error == 0) return true;
    snprintf(why, sizeof why, "NCCL: %s: %s", what, nccl.error(error));
    cuda_fault(why);
    return false;
}

/* Sends and receives are one group, so that no two ranks wait for each other. */
static bool group(void)
{
    if (!nccl.begun) nccl.begun = good(nccl.begin(), "a group of messages");
    return nccl.begun;
}

static void send(const void *x, int64_t bytes, int to)
{
    if (bytes > 0 && group()) good(nccl.send(x, (size_t)bytes, BYTES, to, nccl.all, cuda_stream()), "sending");
}

static void receive(void *x, int64_t bytes, int from)
{
    if (bytes > 0 && group()) good(nccl.receive(x, (size_t)bytes, BYTES, from, nccl.all, cuda_stream()), "receiving");
}

static void wait_all(void)
{
    if (nccl.begun) good(nccl.end(), "messages");
    (void)cuda_stream(); /* what is received is written from here on */
    nccl.begun = false;
}

static void close_all(void)
{
    if (nccl.all) (void)nccl.destroy(nccl.all);
    nccl.all = NULL;
}

static const char *open_library(void)
{
    static const char *const names[] = {
        "ncclGetUniqueId", "ncclCommInitRank", "ncclSend",        "ncclRecv",
        "ncclGroupStart",  "ncclGroupEnd",     "ncclCommDestroy", "ncclGetErrorString"
    };
    void *const into[] = { &nccl.get_id, &nccl.init, &nccl.send,    &nccl.receive,
                           &nccl.begin,  &nccl.end,  &nccl.destroy, &nccl.error };
    void *library = dlopen("libnccl.so.2", RTLD_NOW | RTLD_LOCAL);
    if (!library) return dlerror();
    for (int i = 0; i < 8; i++) {
        void *symbol = dlsym(library, names[i]);
        if (!symbol) return dlerror();
        memcpy(into[i], &symbol, sizeof symbol);
    }
    return NULL;
}

/* The first rank makes the id that they find each other by; MPI carries it, and whether all of them can. */
static const char *meet(const taut_ranks *r, const char *why)
{
    struct card {
        unique id;
        bool bad;
    };
    static char elsewhere[96];
    card *all = (card *)calloc((size_t)r->count, sizeof *all);
    if (!all) abort(); /* which ends them all */
    int error = why || r->rank > 0 ? 0 : nccl.get_id(&all[0].id);
    all[r->rank].bad = why || error;
    if (r->count > 1) r->m->gather(all, sizeof *all);
    for (int i = 0; i < r->count && !why && !error; i++)
        if (all[i].bad) {
            snprintf(elsewhere, sizeof elsewhere, "rank %d cannot", i);
            why = elsewhere;
        }
    if (!why && !error) error = nccl.init(&nccl.all, r->count, all[0].id, r->rank);
    free(all);
    return why ? why : error ? nccl.error(error) : NULL;
}

extern "C" __attribute__((visibility("default"))) const taut_messages *
taut_cuda_between(int layout, const taut_ranks *r, const taut_host *host)
{
    static taut_messages m = { 0, 0, send, receive, wait_all, NULL, close_all };
    const char *why = layout == TAUT_MESSAGES ? NULL : "libtaut_cuda.so is from another build of taut";
    why = meet(r, why ? why : open_library());
    if (why) {
        (void)host->fail(TAUT_DEVICE, "messages between devices: %s", why);
        return NULL;
    }
    m.rank = r->rank, m.count = r->count;
    return &m;
}
