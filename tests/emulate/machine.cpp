/* Blocks, one after the other, whose threads take turns on the host's: each has a stack of its own and runs until it waits
 * for its warp or its block.  A wait that cannot end is said, and ends the program. */
#include <csetjmp>
#include <cstdio>
#include <cstdlib>
#include <sys/mman.h>
#include <ucontext.h>
#include <unordered_map>
#include <vector>

#include "cuda_fp16.h"
#include "races.h"

enum { MOST = 1024, WARP = 32, STACK = 256 << 10 };

dim3 threadIdx, blockIdx, blockDim, gridDim;
alignas(256) char emulate_room[EMULATE_ROOM];

/* Those who wait for each other. */
struct party {
    int first, last; /* threads first .. last - 1 */
    int live, here;
    unsigned turn; /* how often they have met */
    bool word[2];  /* of meetings with an even and an odd number */
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
    alignas(64) char talk[MOST / WARP][2][WARP * EMULATE_MOST];
    int count, now;
    const emulate_body *body;
    jmp_buf scheduler;
    char *stacks;
    unsigned seed, launch;
    unsigned settled[MOST / WARP]; /* how often a warp met by __syncwarp */
    bool runs;
} machine;

[[noreturn]] static void fault(const char *why)
{
    fprintf(stderr, "emulated device: %s (block %u, thread %d)\n", why, blockIdx.x, machine.now);
    abort();
}

static void release(party *p)
{
    p->here = 0, p->turn++;
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
        if (!group.empty()) fault("a thread ends before its copies have arrived");
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

static party whole(int first, int count) { return { first, first + count, count, 0, 0, {} }; }

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
        if (machine.thread[i].state != fiber::DONE) fault("threads wait for each other for ever");
}

void emulate_launch(dim3 blocks, dim3 threads, size_t shared, const emulate_body &body)
{
    const char *seed = getenv("EMULATE_SEED");
    if (!machine.stacks) {
        machine.stacks = (char *)mmap(nullptr, (size_t)MOST * STACK, PROT_READ | PROT_WRITE,
                                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        machine.seed = seed ? (unsigned)atoi(seed) : 0;
    }
    machine.count = (int)(threads.x * threads.y * threads.z);
    if (machine.count < 1 || machine.count > MOST || threads.z > 1) fault("no such number of threads");
    if (shared > EMULATE_ROOM) fault("no such shared memory");
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

const char *emulate_exchange(const void *mine, size_t size)
{
    const int warp = machine.now / WARP;
    char *talk = machine.talk[warp][my_warp()->turn % 2];
    if (size > EMULATE_MOST) fault("too much is exchanged");
    if (size > 0) memcpy(talk + machine.now % WARP * EMULATE_MOST, mine, size);
    if (size == 0 && my_warp()->here + 1 == my_warp()->live) machine.settled[warp]++;
    wait_for(my_warp());
    return talk;
}

bool emulate_moment_of(emulate_moment *now, const void *address)
{
    const bool own = address >= machine.stacks && address < machine.stacks + (size_t)MOST * STACK;
    if (!machine.runs || own) return false;
    *now = { machine.launch, blockIdx.x + gridDim.x * blockIdx.y, machine.block.turn,
             machine.settled[machine.now / WARP], machine.now };
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

/* c (16 x 8) += a (16 x 8 J) b (8 J x 8), shared out over a warp: with g = lane / 4 and t = lane % 4, part i < 4 of c is in row
 * g + 8 (i / 2) and column 2t + i % 2; number J r + j of a's 4 J in row g + 8 (r % 2) and column J t + j + 4 J (r / 2); number
 * J r + j of b's 2 J in row J t + j + 4 J r and column g.  Sums in double, rounded once. */
template <int J, class T> struct factors {
    T rows[16][8 * J], columns[8][8 * J]; /* of a, and of b */
};
template <int J, class T> static void multiply(T (&c)[4], const T (&a)[4 * J], const T (&b)[2 * J])
{
    const int g = machine.now % WARP / 4, t = machine.now % 4;
    auto *all = (factors<J, T> *)machine.talk[machine.now / WARP][my_warp()->turn % 2];
    static_assert(sizeof *all <= sizeof machine.talk[0][0]);
    for (int i = 0; i < 4 * J; i++) all->rows[g + i / J % 2 * 8][J * t + i % J + i / J / 2 * 4 * J] = a[i];
    for (int i = 0; i < 2 * J; i++) all->columns[g][J * t + i % J + i / J * 4 * J] = b[i];
    wait_for(my_warp());
    double sum[4] = {};
    for (int k = 0; k < 8 * J; k++)
        for (int i = 0; i < 4; i++)
            sum[i] += (double)all->rows[g + i / 2 * 8][k] * (double)all->columns[2 * t + i % 2][k];
    for (int i = 0; i < 4; i++) c[i] = (T)((double)c[i] + sum[i]);
}

void emulate_multiply(double (&c)[4], const double (&a)[4], const double (&b)[2]) { multiply<1>(c, a, b); }

void emulate_multiply(float (&c)[4], const unsigned (&a)[4], const unsigned (&b)[2])
{
    float left[4], right[2];
    for (int i = 0; i < 4; i++) left[i] = __uint_as_float(a[i] & 0xffffe000u); /* the chip does not look at the rest */
    for (int i = 0; i < 2; i++) right[i] = __uint_as_float(b[i] & 0xffffe000u);
    multiply<1>(c, left, right);
}

static float number(unsigned pair, int which, bool brain)
{
    const uint16_t bits = (uint16_t)(pair >> 16 * which);
    return brain ? __uint_as_float((unsigned)bits << 16) : emulate_float(bits);
}

void emulate_multiply16(float (&c)[4], const unsigned (&a)[4], unsigned b0, unsigned b1, bool brain)
{
    float left[8], right[4];
    for (int i = 0; i < 8; i++) left[i] = number(a[i / 2], i % 2, brain);
    for (int i = 0; i < 4; i++) right[i] = number(i / 2 ? b1 : b0, i % 2, brain);
    multiply<2>(c, left, right);
}

/* Lane 8 b + r says where row r of block b begins; every lane gets two neighbours of each block. */
void emulate_blocks(unsigned (&x)[4], const void *row, bool turned)
{
    const char *all = emulate_exchange(&row, sizeof row);
    const int g = machine.now % WARP / 4, t = machine.now % 4;
    for (int b = 0; b < 4; b++) {
        uint16_t two[2];
        for (int i = 0; i < 2; i++) {
            const uint16_t *from;
            memcpy(&from, all + (8 * b + (turned ? 2 * t + i : g)) * EMULATE_MOST, sizeof from);
            two[i] = from[turned ? g : 2 * t + i];
        }
        memcpy(&x[b], two, sizeof x[b]);
    }
}

uint16_t emulate_half(float x)
{
    const uint16_t sign = (uint16_t)(__float_as_uint(x) >> 16 & 0x8000);
    const float size = fabsf(x);
    if (isnan(x)) return 0x7fff;
    if (size >= 65520) return sign | 0x7c00;
    const int e = size < 0x1p-14f ? -14 : ilogbf(size);            /* below 2^-14 steps are those of 2^-14 */
    const unsigned steps = (unsigned)rintf(scalbnf(size, 10 - e)); /* one too many moves on to the next exponent */
    return (uint16_t)(sign + ((unsigned)(e + 14) << 10) + steps);
}

float emulate_float(uint16_t half)
{
    const unsigned e = half >> 10 & 31, m = half & 1023;
    const float small = (float)m * 0x1p-24f;
    const unsigned bits = e == 31 ? 0x7f800000u | m << 13 : (e + 112) << 23 | m << 13;
    const float size = e ? __uint_as_float(bits) : small;
    return half & 0x8000 ? -size : size;
}

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
    if (mprotect(pages + mapped - PAGE, PAGE, PROT_NONE)) fault("memory cannot be guarded");
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
    if (found == arrays.end()) fault("memory is given back that was not taken");
    const array a = found->second;
    for (size_t i = a.size; i % UNIT; i++)
        if (((unsigned char *)p)[i] != UNTOUCHED) fault("an array was written past its end");
    arrays.erase(found);
    munmap(a.pages, a.mapped);
    return cudaSuccess;
}

cudaError_t cudaDeviceGetAttribute(int *value, int what, int)
{
    return *value = what == cudaDevAttrMultiProcessorCount ? 4 : EMULATE_ROOM - (1 << 10), cudaSuccess;
}
