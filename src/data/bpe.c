/* A word starts as one token a byte.  Of all neighbours that some merge joins, those of the merge learned first are
 * joined, the leftmost first, until none is left; a heap keeps that at n log n for a word of n bytes.
 *
 * Tokens are spelled in an alphabet of 256 printable characters, one for each byte, so that a token has neither spaces
 * nor control characters: bytes that print stand for themselves, the others for U+0100, U+0101, ... in their order. */
#include "data/bpe.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/number.h"
#include "base/utf8.h"

typedef struct {
    int32_t left, right, joined, rank; /* left -1: free */
} merge;

struct taut_bpe {
    taut_strings *tokens;
    int32_t of_byte[256]; /* -1: the vocabulary lacks it */
    merge *merges;        /* an open hash table */
    uint32_t mask;
};

static bool prints(int byte) { return (byte >= 33 && byte <= 126) || (byte >= 161 && byte != 173); }

/* The character of a byte. */
static uint32_t code_of(int byte)
{
    uint32_t hidden = 0;
    if (prints(byte)) return (uint32_t)byte;
    for (int b = 0; b < byte; b++) hidden += !prints(b);
    return 256 + hidden;
}

/* Its inverse: -1 for a character of no byte. */
static int byte_of(uint32_t code)
{
    uint32_t hidden = 0;
    if (code < 256) return prints((int)code) ? (int)code : -1;
    for (int b = 0; b < 256; b++) {
        if (prints(b)) continue;
        if (256 + hidden++ == code) return b;
    }
    return -1;
}

static merge *place(const taut_bpe *b, int32_t left, int32_t right)
{
    uint64_t h = ((uint64_t)(uint32_t)left << 32 | (uint32_t)right) * UINT64_C(0x9E3779B97F4A7C15);
    uint32_t at = (uint32_t)(h >> 40) & b->mask;
    while (b->merges[at].left >= 0 && (b->merges[at].left != left || b->merges[at].right != right))
        at = (at + 1) & b->mask;
    return &b->merges[at];
}

/* One line "a b" of the merges. */
static taut_status add_merge(taut_bpe *b, const char *line, size_t len, int32_t rank)
{
    const char *space = memchr(line, ' ', len);
    const size_t left = space ? (size_t)(space - line) : 0;
    char joined[1024];
    if (!space || left == 0 || left + 1 == len || len > sizeof joined)
        return taut_fail(TAUT_BAD_DATA, "merge %" PRId32 " is not two tokens with a space between", rank);
    memcpy(joined, line, left);
    memcpy(joined + left, space + 1, len - left - 1);
    const int32_t l = taut_strings_find(b->tokens, line, left);
    const int32_t r = taut_strings_find(b->tokens, space + 1, len - left - 1);
    const int32_t both = taut_strings_find(b->tokens, joined, len - 1);
    if (l < 0 || r < 0 || both < 0)
        return taut_fail(TAUT_BAD_DATA, "merge %" PRId32 ", %.*s, joins what the vocabulary lacks", rank,
                         (int)(len < 60 ? len : 60), line);
    merge *m = place(b, l, r);
    if (m->left >= 0) return taut_fail(TAUT_BAD_DATA, "merges %" PRId32 " and %" PRId32 " are the same", m->rank, rank);
    *m = (merge){ l, r, both, rank };
    return TAUT_OK;
}

static taut_status read_merges(taut_bpe *b, const char *text)
{
    uint32_t lines = 1, size = 16;
    for (const char *p = text; *p; p++) lines += *p == '\n';
    while (size < 2 * lines) size *= 2;
    b->merges = taut_malloc((size_t)size * sizeof *b->merges);
    if (!b->merges) return taut_no_memory("vocabulary");
    for (uint32_t i = 0; i < size; i++) b->merges[i].left = -1;
    b->mask = size - 1;
    taut_status s = TAUT_OK;
    for (int32_t rank = 0; !s && *text; rank++) {
        const size_t len = strcspn(text, "\n");
        s = add_merge(b, text, len, rank);
        text += len + (text[len] == '\n');
    }
    return s;
}

taut_status taut_bpe_parse(taut_bpe **out, const char *printed)
{
    char number[16] = "";
    int64_t count = 0;
    const char *rest = NULL, *end = strchr(printed, '\n');
    *out = NULL;
    if (end && end - printed < 16) memcpy(number, printed, (size_t)(end - printed));
    if (!taut_number_int(&count, number) || count < 1 || count > 1 << 24)
        return taut_fail(TAUT_BAD_DATA, "damaged vocabulary: it does not say how many tokens it has");
    taut_bpe *b = taut_calloc(1, sizeof *b);
    if (!b) return taut_no_memory("vocabulary");
    taut_status s = taut_strings_create(&b->tokens, end + 1, (int32_t)count, &rest);
    if (!s) s = read_merges(b, rest);
    for (int byte = 0; !s && byte < 256; byte++) {
        char spelled[4];
        const int size = taut_utf8_put(spelled, code_of(byte));
        b->of_byte[byte] = taut_strings_find(b->tokens, spelled, (size_t)size);
    }
    if (s)
        taut_bpe_free(b);
    else
        *out = b;
    return s;
}

void taut_bpe_free(taut_bpe *b)
{
    if (!b) return;
    taut_strings_free(b->tokens);
    free(b->merges);
    free(b);
}

const taut_strings *taut_bpe_tokens(const taut_bpe *b) { return b->tokens; }

size_t taut_bpe_spell(char *dst, const taut_bpe *b, int32_t id)
{
    size_t len, used = 0;
    uint32_t code;
    const char *s = taut_strings_get(b->tokens, id, &len);
    for (size_t at = 0; at < len;) {
        const int size = taut_utf8_get(&code, s + at, len - at), byte = size ? byte_of(code) : -1;
        if (byte >= 0)
            dst[used++] = (char)byte;
        else /* a special token with characters of its own */
            memcpy(dst + used, s + at, (size_t)(size ? size : 1)), used += (size_t)(size ? size : 1);
        at += (size_t)(size ? size : 1);
    }
    return used;
}

/* A word being joined: a list of tokens, and a heap of the joints that some merge knows. */
typedef struct {
    int32_t id, next, before; /* next -1: the last; id -1: joined to the one before */
} bond;
typedef struct {
    int32_t rank, at, left, right;
} joint;
typedef struct {
    const taut_bpe *b;
    bond *list;
    joint *heap;
    size_t joints, room; /* joints in the heap; bytes of the longest word so far */
} word;

static bool sooner(const joint *a, const joint *b) { return a->rank != b->rank ? a->rank < b->rank : a->at < b->at; }

static void push(word *w, int32_t at)
{
    const bond *l = &w->list[at];
    if (l->next < 0) return;
    const merge *m = place(w->b, l->id, w->list[l->next].id);
    if (m->left < 0) return;
    const joint j = { m->rank, at, m->left, m->right };
    size_t i = w->joints++;
    for (; i > 0 && sooner(&j, &w->heap[(i - 1) / 2]); i = (i - 1) / 2) w->heap[i] = w->heap[(i - 1) / 2];
    w->heap[i] = j;
}

static joint pop(word *w)
{
    const joint top = w->heap[0], last = w->heap[--w->joints];
    size_t i = 0;
    for (size_t child = 1; child < w->joints; child = 2 * i + 1) {
        if (child + 1 < w->joints && sooner(&w->heap[child + 1], &w->heap[child])) child++;
        if (!sooner(&w->heap[child], &last)) break;
        w->heap[i] = w->heap[child];
        i = child;
    }
    w->heap[i] = last;
    return top;
}

static bool make_room(word *w, size_t len)
{
    if (len <= w->room) return true;
    bond *list = taut_realloc(w->list, len * sizeof *list);
    if (list) w->list = list;
    joint *heap = taut_realloc(w->heap, 3 * len * sizeof *heap); /* len - 1 at first, two more for each of len joins */
    if (heap) w->heap = heap;
    if (list && heap) w->room = len;
    return list && heap;
}

/* Joins until no merge fits, and writes the ids. */
static void join_all(word *w, size_t len, int32_t *ids, int64_t *count)
{
    w->joints = 0;
    for (size_t i = 0; i + 1 < len; i++) push(w, (int32_t)i);
    while (w->joints > 0) {
        const joint j = pop(w);
        bond *l = &w->list[j.at];
        if (l->id != j.left || l->next < 0 || w->list[l->next].id != j.right) continue; /* joined otherwise since */
        bond *r = &w->list[l->next];
        l->id = place(w->b, j.left, j.right)->joined;
        r->id = -1;
        l->next = r->next;
        if (l->next >= 0) w->list[l->next].before = j.at;
        push(w, j.at);
        if (l->before >= 0) push(w, l->before);
    }
    for (int32_t at = 0; at >= 0; at = w->list[at].next) ids[(*count)++] = w->list[at].id;
}

static taut_status encode_word(word *w, int32_t *ids, int64_t *count, const char *text, size_t len, size_t where)
{
    if (len > INT32_MAX / 4 || !make_room(w, len)) return taut_no_memory("token ids");
    for (size_t i = 0; i < len; i++) {
        const int byte = (unsigned char)text[i];
        w->list[i] = (bond){ w->b->of_byte[byte], i + 1 < len ? (int32_t)i + 1 : -1, (int32_t)i - 1 };
        if (w->list[i].id < 0)
            return taut_fail(TAUT_BAD_DATA, "byte %zu, 0x%02x, is not in the vocabulary", where + i, (unsigned)byte);
    }
    join_all(w, len, ids, count);
    return TAUT_OK;
}

/* The words of text[from .. to). */
static taut_status encode_piece(int32_t *ids, int64_t *count, const taut_bpe *b, const char *text, size_t from,
                                size_t to)
{
    word w = { .b = b };
    taut_status s = TAUT_OK;
    *count = 0;
    for (size_t at = from; !s && at < to;) {
        const size_t size = taut_bpe_word(text + at, to - at);
        s = encode_word(&w, ids, count, text + at, size, at);
        at += size;
    }
    free(w.list);
    free(w.heap);
    return s;
}

/* The first space behind a letter from `at` on, or the end: a word always ends there, whatever comes before and behind, so
 * that what lies between two such places is encoded by itself. */
static size_t cut(const char *text, size_t len, size_t at)
{
    for (; at > 0 && at < len; at++)
        if (text[at] == ' ' && ((text[at - 1] | 32) >= 'a' && (text[at - 1] | 32) <= 'z')) break;
    return at < len ? at : len;
}

enum { PIECE = 1 << 20 };

taut_status taut_bpe_encode(int32_t *ids, int64_t *count, const taut_bpe *b, const char *text, size_t len)
{
    const int64_t pieces = (int64_t)(len / PIECE) + 1;
    int64_t *counts = taut_malloc((size_t)pieces * sizeof *counts), bad = pieces;
    *count = 0;
    if (!counts) return taut_no_memory("token ids");
#pragma omp parallel for schedule(dynamic) reduction(min : bad) if (pieces > 1)
    for (int64_t i = 0; i < pieces;
         i++) { /* a token has a byte or more: each piece's have room where its bytes stand */
        const size_t from = cut(text, len, (size_t)i * PIECE), to = cut(text, len, (size_t)(i + 1) * PIECE);
        const taut_status failed = encode_piece(ids + from, &counts[i], b, text, from, to);
        if (failed && i < bad) bad = i;
    }
    for (int64_t i = 0; i < pieces && i < bad; i++) {
        memmove(ids + *count, ids + cut(text, len, (size_t)i * PIECE), (size_t)counts[i] * sizeof *ids);
        *count += counts[i];
    }
    free(counts);
    if (bad == pieces) return TAUT_OK;
    const taut_status again = encode_piece(ids, count, b, text, cut(text, len, (size_t)bad * PIECE), len);
    return again ? again : taut_no_memory("token ids"); /* said in the caller's own thread; memory alone comes back */
}
