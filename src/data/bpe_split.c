/* GPT-2's rule for words, without a regular expression: what starts here decides. */
#include <string.h>

#include "base/utf8.h"
#include "data/bpe.h"
#include "data/unicode.h"

typedef enum { LETTER, NUMBER, SPACE, SIGN, END } kind;

/* The class of what stands at text[at], and how many bytes it has. */
static kind look(const char *text, size_t len, size_t at, size_t *size)
{
    uint32_t code;
    *size = 0;
    if (at >= len) return END;
    *size = (size_t)taut_utf8_get(&code, text + at, len - at);
    if (*size == 0) {
        *size = 1;
        return SIGN;
    }
    return code_is_letter(code) ? LETTER : code_is_number(code) ? NUMBER : code_is_space(code) ? SPACE : SIGN;
}

static size_t contraction(const char *text, size_t len)
{
    static const char *const ends[] = { "s", "t", "re", "ve", "m", "ll", "d" };
    for (int i = 0; len > 1 && text[0] == '\'' && i < 7; i++) {
        const size_t size = strlen(ends[i]);
        if (len - 1 >= size && memcmp(text + 1, ends[i], size) == 0) return 1 + size;
    }
    return 0;
}

/* White space up to the end; else all but its last character, which may belong to the word behind; else that one. */
static size_t blank(const char *text, size_t len)
{
    size_t at = 0, before = 0, size;
    while (look(text, len, at, &size) == SPACE) {
        before = at;
        at += size;
    }
    return at < len && before > 0 ? before : at;
}

size_t taut_bpe_word(const char *text, size_t len)
{
    size_t size, at = contraction(text, len);
    if (at > 0 || len == 0) return at;
    at = text[0] == ' ';
    const kind what = look(text, len, at, &size);
    if (what == SPACE || what == END) return blank(text, len);
    while (look(text, len, at, &size) == what) at += size;
    return at;
}
