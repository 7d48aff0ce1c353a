#include "base/sha256.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#if defined __x86_64__
#include <cpuid.h>
#include <immintrin.h>
#elif defined __aarch64__ && !defined __clang__ /* older clangs have the instructions for whole files only */
#define BY_ARM 1
#include <arm_neon.h>
#include <sys/auxv.h>
#endif

/* The first 32 bits of the fractional parts of the cube roots of the first 64 primes. */
static const uint32_t K[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2,
};

static uint32_t turn(uint32_t x, int n) { return x >> n | x << (32 - n); }

/* Number j of eight stands at j - k, in a circle: one is replaced a round, and none is moved. */
static inline void rounded(uint32_t s[8], int k, uint32_t add)
{
    const uint32_t s0 = s[-k & 7], s1 = s[(1 - k) & 7], s2 = s[(2 - k) & 7], s4 = s[(4 - k) & 7], s5 = s[(5 - k) & 7],
                   s6 = s[(6 - k) & 7];
    const uint32_t e = turn(s4, 6) ^ turn(s4, 11) ^ turn(s4, 25), a = turn(s0, 2) ^ turn(s0, 13) ^ turn(s0, 22);
    const uint32_t choice = (s4 & s5) ^ (~s4 & s6), most = (s0 & s1) ^ (s0 & s2) ^ (s1 & s2);
    const uint32_t t = s[(7 - k) & 7] + e + choice + add;
    s[(3 - k) & 7] += t;
    s[(7 - k) & 7] = t + a + most;
}

static void compress_one(uint32_t h[8], const unsigned char block[64])
{
    uint32_t w[64], s[8];
    for (int i = 0; i < 16; i++)
        w[i] = (uint32_t)block[4 * i] << 24 | (uint32_t)block[4 * i + 1] << 16 | (uint32_t)block[4 * i + 2] << 8 |
               block[4 * i + 3];
    for (int i = 16; i < 64; i++) {
        const uint32_t a = turn(w[i - 15], 7) ^ turn(w[i - 15], 18) ^ w[i - 15] >> 3;
        const uint32_t b = turn(w[i - 2], 17) ^ turn(w[i - 2], 19) ^ w[i - 2] >> 10;
        w[i] = w[i - 16] + a + w[i - 7] + b;
    }
    memcpy(s, h, sizeof s);
    for (int i = 0; i < 64; i += 8)
        for (int k = 0; k < 8; k++) rounded(s, k, K[i + k] + w[i + k]);
    for (int i = 0; i < 8; i++) h[i] += s[i];
}

#if defined __x86_64__
/* By the processor's own instructions, which keep the eight numbers as (f e b a) and (h g d c), lowest first, and make two
 * rounds at a time. */
static __attribute__((target("sha,sse4.1"))) void compress_fast(uint32_t h[8], const unsigned char *p, size_t blocks)
{
    const __m128i flip = _mm_set_epi64x(0x0c0d0e0f08090a0b, 0x0405060700010203);
    const __m128i badc = _mm_shuffle_epi32(_mm_loadu_si128((const __m128i *)h), 0xb1),
                  hgfe = _mm_shuffle_epi32(_mm_loadu_si128((const __m128i *)(h + 4)), 0x1b);
    __m128i one = _mm_alignr_epi8(badc, hgfe, 8), two = _mm_blend_epi16(hgfe, badc, 0xf0), w[4];
    for (; blocks > 0; blocks--, p += 64) {
        const __m128i one_before = one, two_before = two;
        for (int i = 0; i < 4; i++) w[i] = _mm_shuffle_epi8(_mm_loadu_si128((const __m128i *)(p + 16 * i)), flip);
        for (int i = 0; i < 16; i++) {
            __m128i *now = &w[i % 4], last = w[(i + 3) % 4];
            const __m128i add = _mm_add_epi32(*now, _mm_loadu_si128((const __m128i *)(K + 4 * i)));
            two = _mm_sha256rnds2_epu32(two, one, add);
            one = _mm_sha256rnds2_epu32(one, two, _mm_shuffle_epi32(add, 0x0e));
            const __m128i sum = _mm_add_epi32(_mm_sha256msg1_epu32(*now, w[(i + 1) % 4]),
                                              _mm_alignr_epi8(last, w[(i + 2) % 4], 4));
            *now = _mm_sha256msg2_epu32(sum, last);
        }
        one = _mm_add_epi32(one, one_before), two = _mm_add_epi32(two, two_before);
    }
    const __m128i abef = _mm_shuffle_epi32(one, 0x1b), ghcd = _mm_shuffle_epi32(two, 0xb1);
    _mm_storeu_si128((__m128i *)h, _mm_blend_epi16(abef, ghcd, 0xf0));
    _mm_storeu_si128((__m128i *)(h + 4), _mm_alignr_epi8(ghcd, abef, 8));
}

static bool is_fast(void)
{
    unsigned a, b, c, d;
    const bool sse = __get_cpuid(1, &a, &b, &c, &d) && (c & bit_SSE4_1);
    return sse && __get_cpuid_count(7, 0, &a, &b, &c, &d) && (b & bit_SHA);
}
#elif defined BY_ARM
/* The same, four rounds at a time; the eight numbers are (a b c d) and (e f g h). */
static __attribute__((target("+crypto"))) void compress_fast(uint32_t h[8], const unsigned char *p, size_t blocks)
{
    uint32x4_t one = vld1q_u32(h), two = vld1q_u32(h + 4), w[4];
    for (; blocks > 0; blocks--, p += 64) {
        const uint32x4_t one_before = one, two_before = two;
        for (int i = 0; i < 4; i++) w[i] = vreinterpretq_u32_u8(vrev32q_u8(vld1q_u8(p + 16 * i)));
        for (int i = 0; i < 16; i++) {
            uint32x4_t *now = &w[i % 4];
            const uint32x4_t add = vaddq_u32(*now, vld1q_u32(K + 4 * i)), old = one;
            one = vsha256hq_u32(one, two, add);
            two = vsha256h2q_u32(two, old, add);
            *now = vsha256su1q_u32(vsha256su0q_u32(*now, w[(i + 1) % 4]), w[(i + 2) % 4], w[(i + 3) % 4]);
        }
        one = vaddq_u32(one, one_before), two = vaddq_u32(two, two_before);
    }
    vst1q_u32(h, one);
    vst1q_u32(h + 4, two);
}

static bool is_fast(void) { return getauxval(AT_HWCAP) & HWCAP_SHA2; }
#else
static void compress_fast(uint32_t h[8], const unsigned char *p, size_t blocks) { (void)h, (void)p, (void)blocks; }
static bool is_fast(void) { return false; }
#endif

static void compress(uint32_t h[8], const unsigned char *p, size_t blocks)
{
    if (is_fast())
        compress_fast(h, p, blocks);
    else
        for (; blocks > 0; blocks--, p += 64) compress_one(h, p);
}

void taut_sha256_begin(taut_sha256 *c)
{
    static const uint32_t start[8] = { 0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                       0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19 };
    memcpy(c->h, start, sizeof start);
    c->bytes = 0;
}

void taut_sha256_add(taut_sha256 *c, const void *data, size_t len)
{
    const unsigned char *p = data;
    while (len > 0) {
        const size_t at = c->bytes % 64, whole = at == 0 ? len / 64 : 0, part = len < 64 - at ? len : 64 - at;
        const size_t take = whole ? 64 * whole : part;
        if (whole)
            compress(c->h, p, whole);
        else
            memcpy(c->block + at, p, take);
        c->bytes += take;
        p += take;
        len -= take;
        if (!whole && c->bytes % 64 == 0) compress(c->h, c->block, 1);
    }
}

void taut_sha256_end(taut_sha256 *c, char hex[65])
{
    static const unsigned char pad[64] = { 0x80 };
    unsigned char length[8];
    for (int i = 0; i < 8; i++) length[i] = (unsigned char)(c->bytes * 8 >> (56 - 8 * i));
    taut_sha256_add(c, pad, 1 + (119 - c->bytes % 64) % 64);
    taut_sha256_add(c, length, 8);
    for (int i = 0; i < 8; i++) snprintf(hex + 8 * i, 9, "%08x", (unsigned)c->h[i]);
}

taut_status taut_sha256_file(char hex[65], uint64_t *bytes, const char *path)
{
    unsigned char chunk[65536];
    taut_sha256 c;
    const int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC); /* a pipe would be waited for */
    struct stat st = { 0 };
    FILE *f = fd >= 0 && !fstat(fd, &st) && !S_ISFIFO(st.st_mode) ? fdopen(fd, "rb") : NULL;
    if (!f) {
        const char *why = fd >= 0 && S_ISFIFO(st.st_mode) ? "a pipe cannot be hashed" : strerror(errno);
        if (fd >= 0) close(fd);
        return taut_fail(TAUT_BAD_FILE, "%s: %s", path, why);
    }
    taut_sha256_begin(&c);
    size_t got;
    while ((got = fread(chunk, 1, sizeof chunk, f)) > 0) taut_sha256_add(&c, chunk, got);
    const int failed = ferror(f);
    fclose(f);
    if (failed) return taut_fail(TAUT_BAD_FILE, "%s: could not be read to its end", path);
    *bytes = c.bytes;
    taut_sha256_end(&c, hex);
    return TAUT_OK;
}
