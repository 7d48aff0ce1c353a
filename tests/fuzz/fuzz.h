/* A reader under bytes that nobody wrote.  Each t_NAME.c here defines
 *     fuzz_begin   seeds the corpus with fuzz_seed, once
 *     fuzz_one     reads one input; whatever the bytes are, it must come back, and leak and overrun nothing
 * and is two programs: an ordinary test (a short run of mutated seeds, always the same ones: make check, and with
 * SAN=1 under the sanitizers) and, with TAUT_LIBFUZZER, what libFuzzer drives for as long as you like (make fuzz). */
#ifndef FUZZ_H
#define FUZZ_H
#include <sys/mman.h>

#include "harness.h"
#include "temp.h"

static void fuzz_begin(void);
static void fuzz_one(const uint8_t *data, size_t len);

enum { FUZZ_SEEDS = 64, FUZZ_LONGEST = 1 << 16 };
static struct {
    uint8_t *data;
    size_t len;
} fuzz_corpus[FUZZ_SEEDS];
static int fuzz_seeds;

static inline void fuzz_seed(const void *data, size_t len)
{
    if (fuzz_seeds == FUZZ_SEEDS || len > FUZZ_LONGEST) abort();
    fuzz_corpus[fuzz_seeds].data = malloc(len + 1);
    memcpy(fuzz_corpus[fuzz_seeds].data, data, len);
    fuzz_corpus[fuzz_seeds++].len = len;
}
static inline void fuzz_seed_text(const char *text) { fuzz_seed(text, strlen(text)); }
static inline void fuzz_seed_file(const char *path)
{
    size_t len = 0;
    char *data = temp_get(path, &len);
    if (!data) abort();
    fuzz_seed(data, len);
    free(data);
}

/* The bytes as a file in memory: its name is good until the next call. */
static inline const char *fuzz_file(const uint8_t *data, size_t len)
{
    static int fd = -1;
    static char name[64];
    if (fd < 0) fd = memfd_create("fuzz", 0);
    if (fd < 0 || ftruncate(fd, 0) || pwrite(fd, data, len, 0) != (ssize_t)len) abort();
    snprintf(name, sizeof name, "/proc/self/fd/%d", fd);
    return name;
}

#ifdef TAUT_LIBFUZZER
int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    (void)argc, (void)argv;
    temp_begin();
    fuzz_begin();
    for (int i = 0; i < fuzz_seeds && getenv("FUZZ_CORPUS"); i++) { /* the seeds, for libFuzzer to start from */
        char path[2048];
        snprintf(path, sizeof path, "%s/seed%d", getenv("FUZZ_CORPUS"), i);
        FILE *f = fopen(path, "wb");
        if (f) fwrite(fuzz_corpus[i].data, 1, fuzz_corpus[i].len, f), fclose(f);
    }
    return 0;
}
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    fuzz_one(data, len);
    return 0;
}
#else

static size_t fuzz_mutate(uint8_t *b, size_t len)
{
    static const uint8_t strange[] = { 0, 1, 0x7f, 0x80, 0xff, '"', '{', '[', '-', '9', ',', '\n', 'e', '.' };
    const size_t at = len ? (size_t)rng_int(0, (int64_t)len - 1) : 0;
    const size_t some = len - at ? (size_t)rng_int(1, 1 + (int64_t)((len - at - (len > at)) / 4)) : 0;
    switch (rng_int(0, 6)) {
    case 0:
        if (len) b[at] ^= (uint8_t)(1 << rng_int(0, 7));
        return len;
    case 1:
        if (len) b[at] = strange[rng_int(0, (int64_t)sizeof strange - 1)];
        return len;
    case 2:
        return at; /* cut off */
    case 3:        /* a part goes */
        memmove(b + at, b + at + some, len - at - some);
        return len - some;
    case 4: /* a part comes twice */
        if (len + some > FUZZ_LONGEST) return len;
        memmove(b + at + some, b + at, len - at);
        return len + some;
    case 5: /* eight bytes of a huge or tiny number */
        for (size_t i = at; i < at + 8 && i < len; i++)
            b[i] = i == at ? (uint8_t)rng_int(0, 255) : (uint8_t)(rng_int(0, 1) * 255);
        return len;
    default: /* noise */
        for (size_t i = at; i < at + some && i < len; i++) b[i] = (uint8_t)rng_int(0, 255);
        return len;
    }
}

int main(void)
{
    static uint8_t b[2 * FUZZ_LONGEST];
    test_begin();
    temp_begin();
    fuzz_begin();
    const int rounds = effort(3000);
    for (case_no = 0; case_no < rounds; case_no++) {
        const int pick = (int)rng_int(0, fuzz_seeds - 1);
        size_t len = fuzz_corpus[pick].len;
        memcpy(b, fuzz_corpus[pick].data, len);
        for (int64_t i = rng_int(0, 4); i >= 0; i--) len = fuzz_mutate(b, len);
        fuzz_one(b, len);
    }
    for (int i = 0; i < fuzz_seeds; i++) free(fuzz_corpus[i].data);
    return test_end("fuzz", "%d inputs from %d seeds", rounds, fuzz_seeds);
}
#endif
#endif
