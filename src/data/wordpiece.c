#include "data/wordpiece.h"

#include <stdlib.h>
#include <string.h>
#include <uninorm.h>

#include "base/alloc.h"
#include "base/utf8.h"
#include "data/unicode.h"

static bool is_chinese(uint32_t c)
{
    static const uint32_t ranges[][2] = { { 0x4E00, 0x9FFF },   { 0x3400, 0x4DBF },   { 0x20000, 0x2A6DF },
                                          { 0x2A700, 0x2B73F }, { 0x2B740, 0x2B81F }, { 0x2B820, 0x2CEAF },
                                          { 0xF900, 0xFAFF },   { 0x2F800, 0x2FA1F } };
    for (int i = 0; i < 8; i++)
        if (c >= ranges[i][0] && c <= ranges[i][1]) return true;
    return false;
}

/* All ASCII signs count, such as $ and ^, which Unicode does not call punctuation. */
static bool is_punctuation(uint32_t c)
{
    if (c < 128) return c > ' ' && c < 127 && !code_is_letter(c) && !code_is_number(c);
    return code_is_punctuation(c);
}

static bool is_plain_blank(uint32_t c) { return c == '\t' || c == '\n' || c == '\r' || c == ' '; }

/* Goes without a trace: NUL, the replacement character, control and format characters, other white space among them. */
static bool is_noise(uint32_t c) { return !is_plain_blank(c) && (c == 0xFFFD || code_is_other(c)); }

/* Code points without noise; `lower`: decomposed, so that accents stand alone.  *count of them; the caller frees. */
static taut_status read_codes(uint32_t **codes, size_t *count, const char *text, size_t len, bool lower)
{
    size_t used = 0;
    uint32_t *list = taut_malloc((len + 1) * sizeof *list);
    *codes = NULL;
    if (!list) return taut_no_memory("token ids");
    for (size_t at = 0, size; at < len; at += size) {
        uint32_t code;
        size = (size_t)taut_utf8_get(&code, text + at, len - at);
        if (size == 0) {
            free(list);
            return taut_fail(TAUT_BAD_DATA, "byte %zu is not UTF-8 text", at);
        }
        if (!is_noise(code)) list[used++] = code;
    }
    *codes = list;
    *count = used;
    if (!lower || used == 0) return TAUT_OK;
    *codes = u32_normalize(UNINORM_NFD, list, used, NULL, count);
    free(list);
    return *codes ? TAUT_OK : taut_no_memory("token ids");
}

taut_status taut_wordpiece_words(char **words, const char *text, size_t len, bool lower)
{
    uint32_t *codes;
    size_t count = 0;
    bool inside = false;
    taut_status s = read_codes(&codes, &count, text, len, lower);
    *words = NULL;
    if (s) return s;
    char *p = *words = taut_malloc(5 * count + 1);
    for (size_t i = 0; p && i < count; i++) {
        uint32_t c = codes[i];
        const bool alone = is_chinese(c) || is_punctuation(c);
        if (lower && code_is_mark(c)) continue;
        if (is_plain_blank(c) || code_is_space(c)) {
            inside = false;
            continue;
        }
        if (lower) c = uc_tolower(c);
        if (alone || !inside) *p++ = '\n';
        p += taut_utf8_put(p, c);
        inside = !alone;
    }
    free(codes);
    if (p) *p = 0;
    return p ? TAUT_OK : taut_no_memory("token ids");
}

/* The longest piece at word[at..]; -1: none. */
static int32_t longest(const taut_strings *tokens, const char *word, size_t len, size_t at, size_t *end)
{
    char piece[512] = "##";
    const size_t mark = at > 0 ? 2 : 0;
    memcpy(piece + mark, word + at, len - at);
    for (*end = len; *end > at; --*end) {
        if (*end < len && ((unsigned char)word[*end] & 0xC0) == 0x80) continue; /* inside a character */
        const int32_t id = taut_strings_find(tokens, piece, mark + *end - at);
        if (id >= 0) return id;
    }
    return -1;
}

static void encode_word(int32_t *ids, int64_t *count, const taut_strings *tokens, int32_t unknown, const char *word,
                        size_t len)
{
    const int64_t mark = *count;
    size_t characters = 0;
    for (size_t i = 0; i < len; i++) characters += ((unsigned char)word[i] & 0xC0) != 0x80;
    for (size_t at = 0, end; characters <= 100 && at < len; at = end) {
        const int32_t id = longest(tokens, word, len, at, &end);
        if (id < 0) characters = SIZE_MAX; /* no pieces: forget those before it */
        if (id >= 0) ids[(*count)++] = id;
        if (id < 0) break;
    }
    if (characters <= 100) return;
    *count = mark;
    ids[(*count)++] = unknown;
}

taut_status taut_wordpiece_encode(int32_t **ids, int64_t *count, const taut_strings *tokens, const char *text,
                                  size_t len, bool lower)
{
    char *words = NULL;
    const int32_t unknown = taut_strings_find(tokens, "[UNK]", 5);
    *ids = NULL;
    *count = 0;
    if (unknown < 0) return taut_fail(TAUT_BAD_DATA, "the vocabulary has no [UNK]");
    taut_status s = taut_wordpiece_words(&words, text, len, lower);
    if (s) return s;
    *ids = taut_malloc((strlen(words) + 1) * sizeof **ids); /* a piece has at least one byte */
    if (!*ids) s = taut_no_memory("token ids");
    for (const char *p = words; !s && *p; p += strcspn(p, "\n")) {
        p++;
        encode_word(*ids, count, tokens, unknown, p, strcspn(p, "\n"));
    }
    free(words);
    return s;
}

size_t taut_wordpiece_spell(char *dst, bool first, const taut_strings *tokens, int32_t id)
{
    size_t len;
    const char *s = taut_strings_get(tokens, id, &len);
    const bool inside = len > 2 && s[0] == '#' && s[1] == '#';
    if (inside) {
        memcpy(dst, s + 2, len - 2);
        return len - 2;
    }
    if (!first) *dst++ = ' ';
    memcpy(dst, s, len);
    return len + !first;
}
