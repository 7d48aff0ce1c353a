/* One copy of the text, where each line starts, and an open hash table of their numbers. */
#include "data/strings.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"

struct taut_strings {
    char *text;
    uint32_t *start; /* count + 1 of them: line i is text[start[i] .. start[i+1] - 1), without its newline */
    int32_t *slot;   /* a number or -1 */
    uint32_t mask;
    int32_t count;
};

static uint32_t hash(const char *s, size_t len)
{
    uint32_t h = 2166136261u;
    for (size_t i = 0; i < len; i++) h = (h ^ (unsigned char)s[i]) * 16777619u;
    return h ^ h >> 15;
}

const char *taut_strings_get(const taut_strings *t, int32_t id, size_t *len)
{
    *len = t->start[id + 1] - t->start[id] - 1;
    return t->text + t->start[id];
}

/* Where s is, or the free place where it would be. */
static uint32_t place(const taut_strings *t, const char *s, size_t len)
{
    uint32_t at = hash(s, len) & t->mask;
    for (; t->slot[at] >= 0; at = (at + 1) & t->mask) {
        size_t other_len;
        const char *other = taut_strings_get(t, t->slot[at], &other_len);
        if (other_len == len && memcmp(other, s, len) == 0) break;
    }
    return at;
}

int32_t taut_strings_find(const taut_strings *t, const char *s, size_t len) { return t->slot[place(t, s, len)]; }

int32_t taut_strings_count(const taut_strings *t) { return t->count; }

void taut_strings_free(taut_strings *t)
{
    if (!t) return;
    free(t->text);
    free(t->start);
    free(t->slot);
    free(t);
}

/* Cuts the text into `wanted` lines; how many there are. */
static int32_t cut(taut_strings *t, int32_t wanted)
{
    int32_t count = 0;
    const char *at = t->text;
    while (count < wanted && *at) {
        const char *end = strchr(at, '\n');
        t->start[count++] = (uint32_t)(at - t->text);
        at = end ? end + 1 : at + strlen(at) + 1; /* the last line may have no newline */
        t->start[count] = (uint32_t)(at - t->text);
        if (!end) break;
    }
    return count;
}

static taut_status fill(taut_strings *t)
{
    for (uint32_t i = 0; i <= t->mask; i++) t->slot[i] = -1;
    for (int32_t i = 0; i < t->count; i++) {
        size_t len;
        const char *s = taut_strings_get(t, i, &len);
        const uint32_t at = place(t, s, len);
        if (len == 0) return taut_fail(TAUT_BAD_DATA, "token %" PRId32 " is empty", i);
        if (t->slot[at] >= 0)
            return taut_fail(TAUT_BAD_DATA, "tokens %" PRId32 " and %" PRId32 " are the same", t->slot[at], i);
        t->slot[at] = i;
    }
    return TAUT_OK;
}

static int32_t lines_of(const char *text)
{
    int32_t lines = 0;
    size_t len = 0;
    for (; len < UINT32_MAX - 1 && lines < INT32_MAX / 8 && text[len]; len++) lines += text[len] == '\n';
    return lines + (len > 0 && text[len - 1] != '\n');
}

taut_status taut_strings_create(taut_strings **out, const char *text, int32_t count, const char **rest)
{
    *out = NULL;
    if (strlen(text) >= UINT32_MAX - 1) return taut_fail(TAUT_BAD_DATA, "a vocabulary over 4 GiB");
    const int32_t wanted = count < 0 ? lines_of(text) : count;
    uint32_t size = 16;
    while (size < 2 * (uint32_t)wanted) size *= 2;
    taut_strings *t = taut_calloc(1, sizeof *t);
    if (!t) return taut_no_memory("vocabulary");
    t->mask = size - 1;
    t->text = taut_strdup(text);
    t->start = taut_malloc(((size_t)wanted + 1) * sizeof *t->start);
    t->slot = taut_malloc((size_t)size * sizeof *t->slot);
    taut_status s = t->text && t->start && t->slot ? TAUT_OK : taut_no_memory("vocabulary");
    if (!s) t->start[0] = 0;
    if (!s && (t->count = cut(t, wanted)) < wanted)
        s = taut_fail(TAUT_BAD_DATA, "%" PRId32 " tokens where %" PRId32 " are announced", t->count, wanted);
    if (!s) s = fill(t);
    if (s) {
        taut_strings_free(t);
        return s;
    }
    const size_t used = t->start[t->count];
    if (rest) *rest = text + (used < strlen(text) ? used : strlen(text));
    *out = t;
    return TAUT_OK;
}
