/* The header of a safetensors file: a strict JSON scanner for its one shape,
 *
 *     { "name": { "dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24] }, ...,
 *       "__metadata__": { "key": "value", ... } }
 *
 * Not cJSON, because cJSON takes what a header must not hold: broken UTF-8, NUL and control characters in
 * strings, numbers such as 01, and integers that a double rounds.  The shape is fixed, so nothing recurses.
 */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/utf8.h"
#include "model/safetensors_impl.h"

typedef struct {
    taut_st_header *h;
    char *at, *end;
} scanner;

static bool wrong(scanner *s, const char *why)
{
    snprintf(s->h->why, sizeof s->h->why, "%s at byte %td of the header", why, s->at - s->h->text);
    return false;
}

static bool wrong_tensor(scanner *s, const char *name, const char *why)
{
    char show[80];
    snprintf(s->h->why, sizeof s->h->why, "tensor \"%s\" %s", taut_st_show(show, name), why);
    return false;
}

static char peek(scanner *s)
{
    while (s->at < s->end && strchr(" \t\r\n", *s->at) && *s->at) s->at++;
    return s->at < s->end ? *s->at : 0;
}

static bool expect(scanner *s, char c)
{
    const char why[] = { 'n', 'o', ' ', '\'', c, '\'', 0 };
    if (peek(s) != c) return wrong(s, why);
    s->at++;
    return true;
}

/* After a member of an object or array: is there another? */
static bool more(scanner *s, char close, bool *another)
{
    *another = peek(s) == ',';
    if (!*another) return expect(s, close);
    s->at++;
    return true;
}

static bool hex4(scanner *s, uint32_t *code)
{
    *code = 0;
    if (s->end - s->at < 4) return wrong(s, "cut escape");
    for (int i = 0; i < 4; i++, s->at++) {
        const char *digits = "0123456789abcdefABCDEF", *d = *s->at ? strchr(digits, *s->at) : NULL;
        if (!d) return wrong(s, "bad \\u escape");
        *code = *code << 4 | (uint32_t)(d - digits < 16 ? d - digits : d - digits - 6);
    }
    return true;
}

/* Behind the backslash.  Writes at most as many bytes as the escape took. */
static bool escape(scanner *s, char **to)
{
    static const char from[] = "\"\\/bfnrt", into[] = "\"\\/\b\f\n\r\t";
    const char *simple = s->at < s->end && *s->at ? strchr(from, *s->at) : NULL;
    if (simple) {
        s->at++;
        *(*to)++ = into[simple - from];
        return true;
    }
    uint32_t code, low;
    if (s->at == s->end || *s->at++ != 'u') return wrong(s, "bad escape");
    if (!hex4(s, &code)) return false;
    if (code >= 0xD800 && code <= 0xDBFF) {
        if (s->end - s->at < 2 || s->at[0] != '\\' || s->at[1] != 'u') return wrong(s, "lone surrogate");
        s->at += 2;
        if (!hex4(s, &low)) return false;
        if (low < 0xDC00 || low > 0xDFFF) return wrong(s, "lone surrogate");
        code = 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00);
    }
    if (code >= 0xDC00 && code <= 0xDFFF) return wrong(s, "lone surrogate");
    if (code == 0) return wrong(s, "NUL in a string");
    char bytes[4];
    const int size = taut_utf8_put(bytes, code);
    memcpy(*to, bytes, (size_t)size);
    *to += size;
    return true;
}

/* Decodes in place: what it means is never longer than how it is spelled. */
static bool string(scanner *s, char **text)
{
    if (!expect(s, '"')) return false;
    char *to = *text = s->at;
    while (s->at < s->end && *s->at != '"') {
        if ((unsigned char)*s->at < ' ') return wrong(s, "control character in a string");
        if (*s->at != '\\') {
            *to++ = *s->at++;
            continue;
        }
        s->at++;
        if (!escape(s, &to)) return false;
    }
    if (s->at == s->end) return wrong(s, "string without end");
    s->at++;
    *to = 0;
    return true;
}

static bool whole(scanner *s, uint64_t *value)
{
    const char c = peek(s);
    if (c < '0' || c > '9') return wrong(s, "no whole number of at least 0");
    if (c == '0' && s->at + 1 < s->end && s->at[1] >= '0' && s->at[1] <= '9') return wrong(s, "leading zero");
    *value = 0;
    for (; s->at < s->end && *s->at >= '0' && *s->at <= '9'; s->at++)
        if (__builtin_mul_overflow(*value, 10u, value) ||
            __builtin_add_overflow(*value, (uint64_t)(*s->at - '0'), value))
            return wrong(s, "number over 64 bits");
    if (s->at < s->end && (*s->at == '.' || *s->at == 'e' || *s->at == 'E'))
        return wrong(s, "no whole number of at least 0");
    return true;
}

/* [1, 2, 3]: at most room of them. */
static bool wholes(scanner *s, uint64_t *values, int room, int *count)
{
    *count = 0;
    bool another = true;
    if (!expect(s, '[')) return false;
    if (peek(s) == ']') return expect(s, ']');
    while (another) {
        if (*count == room) return wrong(s, "list too long (a tensor has at most 8 dimensions)");
        if (!whole(s, &values[(*count)++]) || !more(s, ']', &another)) return false;
    }
    return true;
}

/* The sizes must agree, in arithmetic that cannot wrap. */
static bool tensor_check(scanner *s, taut_st_tensor *t, const uint64_t *shape)
{
    const taut_st_dtype *dtype = taut_st_dtype_find(t->dtype);
    if (!dtype) return wrong_tensor(s, t->name, "has an unknown dtype");
    t->dtype = dtype->name;
    t->count = 1;
    for (int i = 0; i < t->rank; i++) {
        if (shape[i] > INT64_MAX || __builtin_mul_overflow(t->count, (int64_t)shape[i], &t->count))
            return wrong_tensor(s, t->name, "has more elements than 64 bits can count");
        t->shape[i] = (int64_t)shape[i];
    }
    uint64_t bits;
    if (__builtin_mul_overflow((uint64_t)t->count, (uint64_t)dtype->bits, &bits))
        return wrong_tensor(s, t->name, "has more bits than 64 bits can count");
    if (bits % 8 != 0) return wrong_tensor(s, t->name, "does not fill whole bytes");
    if (t->begin > t->end) return wrong_tensor(s, t->name, "ends before it begins");
    if (t->end - t->begin != bits / 8) return wrong_tensor(s, t->name, "has data_offsets that do not fit its shape");
    return true;
}

static bool tensor(scanner *s, taut_st_tensor *t)
{
    uint64_t shape[TAUT_ST_RANK], offsets[2];
    int pair = 0;
    bool has_shape = false, another = true;
    if (!expect(s, '{')) return false;
    while (another) {
        char *field, *dtype;
        if (!string(s, &field) || !expect(s, ':')) return false;
        if (strcmp(field, "dtype") == 0 && !t->dtype) {
            if (!string(s, &dtype)) return false;
            t->dtype = dtype;
        } else if (strcmp(field, "shape") == 0 && !has_shape) {
            if (!wholes(s, shape, TAUT_ST_RANK, &t->rank)) return false;
            has_shape = true;
        } else if (strcmp(field, "data_offsets") == 0 && pair == 0) {
            if (!wholes(s, offsets, 2, &pair)) return false;
            if (pair != 2) return wrong_tensor(s, t->name, "wants two data_offsets");
        } else {
            return wrong_tensor(s, t->name, "has an unknown or repeated field");
        }
        if (!more(s, '}', &another)) return false;
    }
    if (!t->dtype || !has_shape || pair != 2) return wrong_tensor(s, t->name, "lacks dtype, shape or data_offsets");
    t->begin = offsets[0];
    t->end = offsets[1];
    return tensor_check(s, t, shape);
}

/* Room for one more; NULL without memory, which the caller can tell by why being empty. */
static void *grow(void *list, int count, int *room, size_t size)
{
    if (count < *room) return list;
    const int wanted = *room ? 2 * *room : 16;
    void *more_room = taut_realloc(list, (size_t)wanted * size);
    if (more_room) *room = wanted;
    return more_room;
}

static bool metadata(scanner *s)
{
    taut_st_header *h = s->h;
    bool another = true;
    if (!expect(s, '{')) return false;
    if (peek(s) == '}') return expect(s, '}');
    while (another) {
        char *key, *value;
        if (!string(s, &key) || !expect(s, ':')) return false;
        if (peek(s) != '"') return wrong(s, "__metadata__ with a value that is no string");
        if (!string(s, &value) || !more(s, '}', &another)) return false;
        taut_st_meta *list = grow(h->metas, h->meta_count, &h->meta_room, sizeof *list);
        if (!list) return false;
        h->metas = list;
        list[h->meta_count++] = (taut_st_meta){ key, value };
    }
    return true;
}

static bool members(scanner *s)
{
    taut_st_header *h = s->h;
    bool another = true, seen_metadata = false;
    if (!expect(s, '{')) return false;
    if (peek(s) == '}') return expect(s, '}');
    while (another) {
        char *name;
        if (!string(s, &name) || !expect(s, ':')) return false;
        if (strcmp(name, "__metadata__") == 0) {
            if (seen_metadata) return wrong(s, "a second __metadata__");
            seen_metadata = true;
            if (!metadata(s)) return false;
        } else {
            taut_st_tensor *list = grow(h->tensors, h->count, &h->room, sizeof *list), t = { .name = name };
            if (!list) return false;
            h->tensors = list;
            if (!tensor(s, &t)) return false;
            list[h->count++] = t;
        }
        if (!more(s, '}', &another)) return false;
    }
    return true;
}

taut_status taut_st_header_parse(taut_st_header *h, size_t len)
{
    scanner s = { h, h->text, h->text + len };
    h->why[0] = 0;
    const size_t bad = taut_utf8_check(h->text, len);
    bool good = false;
    if (len == 0 || h->text[0] != '{')
        snprintf(h->why, sizeof h->why, "the header does not start with {");
    else if (bad < len)
        snprintf(h->why, sizeof h->why, "byte %zu of the header is not UTF-8", bad);
    else
        good = members(&s);
    if (good && (peek(&s) != 0 || s.at != s.end)) good = wrong(&s, "something behind the closing }");
    return good ? TAUT_OK : h->why[0] ? TAUT_BAD_FILE : TAUT_NO_MEMORY;
}
