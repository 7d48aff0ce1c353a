/* JSON, strictly: RFC 8259 and no more.  cJSON reads numbers with leading zeros, raw control characters, bytes that are no
 * UTF-8 and whatever follows the text, and of two equal keys every reader takes another one; a certificate that two readers
 * understand differently proves nothing.  So the text is looked at byte by byte before cJSON reads it, and every key of
 * what it has read must stand alone in its object.
 *   numbers   -? (0 | 1-9 digits) (. digits)? (e|E (+|-)? digits)?
 *   strings   UTF-8, no control characters; \" \\ \/ \b \f \n \r \t \uXXXX, surrogates in pairs, not \u0000, where C ends
 *   depth     at most DEPTH objects and lists inside each other
 *   the end   nothing but white space follows */
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"
#include "check/ck.h"

enum { DEPTH = 100 };
typedef struct {
    const char *at, *end;
    int depth;
} scan;

static bool is(const scan *s, char c) { return s->at < s->end && *s->at == c; }
static bool any(const scan *s, const char *of) { return s->at < s->end && *s->at && strchr(of, *s->at); }
static bool take(scan *s, char c) { return is(s, c) && s->at++; }
static void skip(scan *s)
{
    while (any(s, " \t\n\r")) s->at++;
}

static bool digits(scan *s)
{
    const char *from = s->at;
    while (any(s, "0123456789")) s->at++;
    return s->at > from;
}

static bool number(scan *s)
{
    take(s, '-');
    if (!take(s, '0') && !digits(s)) return false;
    if (take(s, '.') && !digits(s)) return false;
    if (!any(s, "eE")) return true;
    s->at++;
    if (any(s, "+-")) s->at++;
    return digits(s);
}

/* The four digits behind \u, or 0, which is no character here. */
static unsigned unit(scan *s)
{
    unsigned code = 0;
    for (int i = 0; i < 4; i++, s->at++) {
        if (!any(s, "0123456789abcdefABCDEF")) return 0;
        code = code << 4 | (unsigned)(*s->at <= '9' ? *s->at - '0' : (*s->at | 32) - 'a' + 10);
    }
    return code;
}

static bool escape(scan *s)
{
    if (any(s, "\"\\/bfnrt")) return s->at++, true;
    const unsigned code = take(s, 'u') ? unit(s) : 0;
    if (code < 0xD800 || code > 0xDFFF) return code != 0;
    if (code > 0xDBFF || !take(s, '\\') || !take(s, 'u')) return false;
    const unsigned low = unit(s);
    return low >= 0xDC00 && low <= 0xDFFF;
}

static bool string(scan *s)
{
    if (!take(s, '"')) return false;
    while (s->at < s->end && *s->at != '"') {
        uint32_t code = 0;
        const int size = taut_utf8_get(&code, s->at, (size_t)(s->end - s->at));
        if (size == 0 || code < 0x20) return false;
        s->at += size;
        if (code == '\\' && !escape(s)) return false;
    }
    return take(s, '"');
}

static bool word(scan *s, const char *w)
{
    const size_t len = strlen(w);
    if ((size_t)(s->end - s->at) < len || memcmp(s->at, w, len) != 0) return false;
    s->at += len;
    return true;
}

static bool key(scan *s)
{
    skip(s);
    if (!string(s)) return false;
    skip(s);
    return take(s, ':');
}

/* From the bracket that opens to the one that closes. */
static bool value(scan *s);
static bool several(scan *s, char close, bool keys)
{
    s->at++;
    if (++s->depth > DEPTH) return false;
    skip(s);
    for (bool done = take(s, close); !done; done = take(s, close)) {
        if (keys && !key(s)) return false;
        if (!value(s)) return false;
        if (is(s, close)) continue;
        if (!take(s, ',') || (skip(s), is(s, close))) return false;
    }
    s->depth--;
    return true;
}

/* One value and the white space around it. */
static bool value(scan *s)
{
    skip(s);
    const bool good = is(s, '{')   ? several(s, '}', true)
                      : is(s, '[') ? several(s, ']', false)
                      : is(s, '"') ? string(s)
                                   : word(s, "true") || word(s, "false") || word(s, "null") || number(s);
    skip(s);
    return good;
}

static int by_key(const void *a, const void *b)
{
    return strcmp((*(const cJSON *const *)a)->string, (*(const cJSON *const *)b)->string);
}

void ck_once(ck *c, const cJSON *json, const char *what)
{
    const struct ck_block *mark = c->blocks;
    int64_t count = 0;
    for (const cJSON *k = json->child; k; k = k->next, count++) ck_once(c, k, what);
    if (!cJSON_IsObject(json)) return;
    const cJSON **keys = ck_room(c, count, sizeof *keys), **last = keys;
    for (const cJSON *k = json->child; k; k = k->next) *last++ = k;
    qsort(keys, (size_t)count, sizeof *keys, by_key);
    for (int64_t i = 1; i < count; i++)
        if (by_key(keys + i - 1, keys + i) == 0) ck_fail(c, "%s: the key %.60s is there twice", what, keys[i]->string);
    ck_give_back(c, mark);
}

cJSON *ck_json(size_t *flaw, const char *text, size_t len)
{
    scan s = { text, text + len, 0 };
    const bool good = value(&s) && s.at == s.end;
    *flaw = (size_t)(s.at - text);
    return good ? cJSON_ParseWithLength(text, len) : NULL;
}
