/* One UTF-8 code point, strictly: no overlong forms, no surrogates, nothing above U+10FFFF. */
#ifndef TAUT_BASE_UTF8_H
#define TAUT_BASE_UTF8_H
#include <stddef.h>
#include <stdint.h>

/* Returns how many bytes of s it takes (1 to 4) and sets *code; 0 if s does not start with a code point. */
static inline int taut_utf8_get(uint32_t *code, const char *s, size_t len)
{
    static const uint32_t least[5] = { 0, 0, 0x80, 0x800, 0x10000 };
    if (len == 0) return 0;
    const unsigned char head = (unsigned char)s[0];
    const int size = head < 0x80 ? 1 : head >> 5 == 6 ? 2 : head >> 4 == 14 ? 3 : head >> 3 == 30 ? 4 : 0;
    if (size == 0 || (size_t)size > len) return 0;
    uint32_t c = size == 1 ? head : head & (0x7Fu >> size);
    for (int i = 1; i < size; i++) {
        if (((unsigned char)s[i] & 0xC0) != 0x80) return 0;
        c = c << 6 | ((unsigned char)s[i] & 0x3F);
    }
    if (c < least[size] || c > 0x10FFFF || (c >= 0xD800 && c <= 0xDFFF)) return 0;
    *code = c;
    return size;
}

/* Writes a legal code point; returns how many bytes. */
static inline int taut_utf8_put(char dst[4], uint32_t code)
{
    const int size = code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
    for (int i = size - 1; i > 0; i--, code >>= 6) dst[i] = (char)(0x80 | (code & 0x3F));
    dst[0] = (char)(size == 1 ? code : (0xF00u >> size & 0xFF) | code);
    return size;
}

/* The offset of the first byte that is not UTF-8; len if there is none. */
static inline size_t taut_utf8_check(const char *s, size_t len)
{
    uint32_t code;
    for (size_t i = 0, size; i < len; i += size) {
        size = (size_t)taut_utf8_get(&code, s + i, len - i);
        if (size == 0) return i;
    }
    return len;
}
#endif
