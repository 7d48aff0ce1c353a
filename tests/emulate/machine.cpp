/* Blocks, one after the other, whose threads take turns on the host's: each has a stack of its own and runs until it waits
 * for its warp or its block.  A wait that cannot end is said, and ends the program. */
#include <csetjmp>
#include <cstdio>
#include <cstdlib>
#include <sys/mman.h>
#include <ucontext.h>
#include <vector>

#include "machine.h"

enum { MOST = 1024, WARP = 32, STACK = 256 << 10 };

dim3 threadIdx, blockIdx, blockDim, gridDim;
alignas(256) char emulate_room[EMULATE_ROOM];

/* Those who wait for each other. */
struct party {
    int first, last; /* threads first .. last - 1 */
    int live, here;
    unsigned turn;    /* how often they have met */
    bool word[2];     /* of meetings with an even and an odd number */
    bool settles;     /* this one is __syncwarp's, */
    unsigned settled; /* and how many were */
};

struct copy {
    void *to;
    const void *from;
    size_t size, there;
};

struct fiber {
    enum { READY, WAITS, DONE } state;
    jmp_buf at;
    bool begun;
    party *waits_for;
    std::vector<std::vector<copy>> copies; /* by group, the last one open */
};

static struct {
    fiber thread[MOST];
    party warp[MOST / WARP], block;
    alignas(64) char board[MOST / WARP][2][WARP * EMULATE_MOST];
    int count, now;
    const emulate_body *body;
    jmp_buf scheduler;
    char *stacks;
    unsigned seed, launch;
    bool runs;
} machine;

void emulate_fault(const char *why)
{
    fprintf(stderr, "emulated device: %s (block %u, thread %d)\n", why, blockIdx.x, machine.now);
    abort();
}

static void release(party *p)
{
    p->settled += p->settles;
    p->here = 0, p->turn++, p->settles = false;
    for (int i = p->first; i < p->last; i++) {
        fiber *t = &machine.thread[i];
        if (t->waits_for == p) t->waits_for = nullptr, t->state = fiber::READY;
    }
}

static party *my_warp(void) { return &machine.warp[machine.now / WARP]; }

static void wait_for(party *p)
{
    fiber *t = &machine.thread[machine.now];
    t->state = fiber::WAITS, t->waits_for = p;
    if (++p->here == p->live) release(p);
    if (!_setjmp(t->at)) _longjmp(machine.scheduler, 1);
}

static void leave(party *p)
{
    if (--p->live > 0 && p->here == p->live) release(p);
}

static void run_thread(void)
{
    machine.body->run();
    fiber *t = &machine.thread[machine.now];
    for (const auto &group : t->copies)
        if (!group.empty()) emulate_fault("a thread ends before its copies have arrived");
    t->state = fiber::DONE;
    leave(my_warp());
    leave(&machine.block);
    _longjmp(machine.scheduler, 1);
}

static void resume(int i)
{
    fiber *t = &machine.thread[i];
    static ucontext_t fresh, back;
    machine.now = i, machine.runs = true;
    threadIdx = dim3((unsigned)i % blockDim.x, (unsigned)i / blockDim.x);
    if (_setjmp(machine.scheduler)) {
        machine.runs = false;
        return;
    }
    if (t->begun) _longjmp(t->at, 1);
    t->begun = true;
    getcontext(&fresh);
    fresh.uc_stack.ss_sp = machine.stacks + (size_t)i * STACK;
    fresh.uc_stack.ss_size = STACK;
    fresh.uc_link = nullptr;
    makecontext(&fresh, run_thread, 0);
    swapcontext(&back, &fresh);
}

static unsigned next_random(void) { return machine.seed = machine.seed * 1664525u + 1013904223u; }

/* 0 .. n-1, shuffled if there is a seed. */
static std::vector<unsigned> order_of(unsigned n)
{
    std::vector<unsigned> order(n);
    for (unsigned i = 0; i < n; i++) order[i] = i;
    for (unsigned i = n; machine.seed && i > 1; i--) std::swap(order[i - 1], order[next_random() / 7 % i]);
    return order;
}

static party whole(int first, int count) { return { first, first + count, count, 0, 0, {}, false, 0 }; }

static void run_block(size_t shared)
{
    memset(emulate_room, 0xff, shared);
    machine.block = whole(0, machine.count);
    for (int i = 0; i < machine.count; i++) {
        fiber *t = &machine.thread[i];
        t->state = fiber::READY, t->begun = false, t->waits_for = nullptr, t->copies.assign(1, {});
        if (i % WARP == 0) machine.warp[i / WARP] = whole(i, machine.count - i < WARP ? machine.count - i : WARP);
    }
    const auto order = order_of((unsigned)machine.count);
    for (bool moved = true; moved;) {
        moved = false;
        for (unsigned i : order)
            if (machine.thread[i].state == fiber::READY) moved = true, resume((int)i);
    }
    for (int i = 0; i < machine.count; i++)
        if (machine.thread[i].state != fiber::DONE) emulate_fault("threads wait for each other for ever");
}

void emulate_launch(dim3 blocks, dim3 threads, size_t shared, const emulate_body &body)
{
    const char *seed = getenv("EMULATE_SEED");
    if (!machine.stacks) {
        machine.stacks = (char *)mmap(nullptr, (size_t)MOST * STACK, PROT_READ | PROT_WRITE,
                                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (machine.stacks == MAP_FAILED) emulate_fault("no memory for stacks");
        machine.seed = seed ? (unsigned)atoi(seed) : 0;
    }
    machine.count = (int)(threads.x * threads.y * threads.z);
    if (machine.count < 1 || machine.count > MOST || threads.z > 1) emulate_fault("no such number of threads");
    if (shared > EMULATE_ROOM) emulate_fault("no such shared memory");
    machine.body = &body, gridDim = blocks, blockDim = threads;
    machine.launch++;
    for (unsigned block : order_of(blocks.x * blocks.y)) {
        blockIdx = dim3(block % blocks.x, block / blocks.x);
        run_block(shared);
    }
}

bool emulate_meet(bool word)
{
    party *p = &machine.block;
    const unsigned turn = p->turn % 2;
    if (p->here == 0) p->word[turn] = false;
    p->word[turn] |= word;
    wait_for(p);
    return p->word[turn];
}

int emulate_lane(void) { return machine.now % WARP; }

char *emulate_board(void) { return machine.board[machine.now / WARP][my_warp()->turn % 2]; }

void emulate_meet_warp(void) { wait_for(my_warp()); }

const char *emulate_exchange(const void *mine, size_t size)
{
    char *board = emulate_board();
    if (size > EMULATE_MOST) emulate_fault("too much is exchanged");
    if (size > 0) memcpy(board + emulate_lane() * EMULATE_MOST, mine, size);
    my_warp()->settles = size == 0;
    wait_for(my_warp());
    return board;
}

bool emulate_moment_of(emulate_moment *now, const void *address)
{
    const bool own = address >= machine.stacks && address < machine.stacks + (size_t)MOST * STACK;
    if (!machine.runs || own) return false;
    *now = { machine.launch, blockIdx.x + gridDim.x * blockIdx.y, machine.block.turn, my_warp()->settled, machine.now };
    return true;
}

void emulate_copy(void *to, const void *from, size_t size, size_t there)
{
    machine.thread[machine.now].copies.back().push_back({ to, from, size, there });
}

void emulate_copies_end(void) { machine.thread[machine.now].copies.push_back({}); }

void emulate_copies_wait(int but)
{
    auto &all = machine.thread[machine.now].copies;
    for (size_t g = 0; g + 1 + (size_t)but < all.size(); g++) {
        for (const copy &c : all[g]) {
            emulate_touch(c.to, c.size, true, __builtin_return_address(0));
            if (c.there > 0) emulate_touch(c.from, c.there, false, __builtin_return_address(0));
            memset(c.to, 0, c.size);
            if (c.there > 0) memcpy(c.to, c.from, c.there);
        }
        all[g].clear();
    }
}
