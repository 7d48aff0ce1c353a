/* Two threads of a launch touch the same byte, one of them writes, and nothing settles who was first: they did not meet between,
 * in their block or, of one warp, by __syncwarp.  make check-emulated RACES=1 has the compiler call what stands at the end of
 * this file wherever the device's sources read or write.
 *
 * Of a byte's readers since the last write two are kept, so that one of many may be missed.  Shared memory is a block's own.
 * Reads by __ldcg and atomicInc are not looked at: rows.cu says how blocks hand over by them. */
#include "machine.h"

#include <cstdio>
#include <cstdlib>
#include <dlfcn.h>
#include <unordered_map>

struct touched {
    emulate_moment writer, reader[2]; /* launch 0: nobody */
};

static std::unordered_map<uintptr_t, touched> bytes;
static bool watching; /* the sources were compiled so that they call here */

/* Where a library's static memory lies: there is what __shared__ became. */
extern char __bss_start[] __attribute__((visibility("hidden"))), _end[] __attribute__((visibility("hidden")));

static bool is_shared(const void *address) { return address >= __bss_start && address < _end; }

static bool settled(const emulate_moment &a, const emulate_moment &b, bool shared)
{
    if (a.launch != b.launch || (a.block == b.block && a.thread == b.thread)) return true;
    if (a.block != b.block) return shared;
    return a.meetings != b.meetings || (a.thread / 32 == b.thread / 32 && a.warp_meetings != b.warp_meetings);
}

static void tell(const char *what, const emulate_moment &a, const emulate_moment &b, const void *from)
{
    Dl_info of = {};
    (void)dladdr(from, &of);
    fprintf(stderr,
            "emulated device: a race: %s, threads %d and %d of blocks %u and %u, at %s + 0x%zx (addr2line -Cfie)\n",
            what, a.thread, b.thread, a.block, b.block, of.dli_fname ? of.dli_fname : "?",
            (size_t)((const char *)from - (const char *)of.dli_fbase));
    abort();
}

static void touch_byte(uintptr_t at, const emulate_moment &now, bool writes, bool shared, const void *from)
{
    touched &t = bytes[at];
    if (!settled(t.writer, now, shared)) tell(writes ? "two writes" : "a read after a write", t.writer, now, from);
    for (int i = 0; writes && i < 2; i++)
        if (!settled(t.reader[i], now, shared)) tell("a write after a read", t.reader[i], now, from);
    if (writes)
        t.writer = now;
    else {
        if (t.reader[0].thread != now.thread || t.reader[0].block != now.block) t.reader[1] = t.reader[0];
        t.reader[0] = now;
    }
}

void emulate_touch(const void *address, size_t size, bool writes, const void *from)
{
    emulate_moment now;
    static unsigned launch;
    if (!watching || !emulate_moment_of(&now, address)) return;
    if (launch != now.launch) launch = now.launch, bytes.clear();
    const bool shared = is_shared(address);
    for (size_t i = 0; i < size; i++) touch_byte((uintptr_t)address + i, now, writes, shared, from);
}

#define FROM __builtin_return_address(0)
#define HOOKS(size)                                                                               \
    extern "C" void __tsan_read##size(void *p) { emulate_touch(p, size, false, FROM); }           \
    extern "C" void __tsan_write##size(void *p) { emulate_touch(p, size, true, FROM); }           \
    extern "C" void __tsan_unaligned_read##size(void *p) { emulate_touch(p, size, false, FROM); } \
    extern "C" void __tsan_unaligned_write##size(void *p) { emulate_touch(p, size, true, FROM); }
HOOKS(1)
HOOKS(2)
HOOKS(4)
HOOKS(8)
HOOKS(16)
extern "C" void __tsan_read_range(void *p, size_t size) { emulate_touch(p, size, false, FROM); }
extern "C" void __tsan_write_range(void *p, size_t size) { emulate_touch(p, size, true, FROM); }
extern "C" void __tsan_vptr_read(void **) {}
extern "C" void __tsan_vptr_update(void **, void *) {}
extern "C" void __tsan_init(void) { watching = true; }
