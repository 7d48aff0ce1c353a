/* Characters are a sorted list of code points, bytes need no list; pieces are kept as they print, beside what reads them. */
#include "data/vocab.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/utf8.h"
#include "data/bpe.h"
#include "data/wordpiece.h"

enum { CODES = 0x110000 };

typedef enum { BYTES, CHARS, BPE, WORDPIECE, WORDPIECE_CASED } kind;
static const char *const kinds[] = { "bytes", "chars", "bpe", "wordpiece", "wordpiece-cased" };

struct taut_vocab {
    kind kind;
    int32_t size;
    char *printed; /* of pieces; NULL for bytes and chars */
    taut_bpe *bpe;
    taut_strings *pieces; /* of wordpiece */
    int32_t ascii[128];   /* id or -1: most text is ASCII, and this spares it the search */
    uint32_t codes[];     /* ascending */
};

static taut_vocab *vocab_new(int32_t size)
{
    taut_vocab *v = taut_calloc(1, sizeof *v + (size_t)size * sizeof *v->codes);
    if (!v) return NULL;
    v->kind = CHARS;
    v->size = size;
    return v;
}

static void ascii_fill(taut_vocab *v)
{
    for (int i = 0; i < 128; i++) v->ascii[i] = -1;
    for (int32_t i = 0; i < v->size && v->codes[i] < 128; i++) v->ascii[v->codes[i]] = i;
}

taut_status taut_vocab_bytes(taut_vocab **out)
{
    *out = vocab_new(0);
    if (!*out) return taut_no_memory("vocabulary");
    (*out)->kind = BYTES;
    (*out)->size = 256;
    return TAUT_OK;
}

taut_status taut_vocab_copy(taut_vocab **out, const taut_vocab *vocab)
{
    if (vocab->printed) return taut_vocab_parse(out, vocab->printed);
    const size_t size = sizeof *vocab + (vocab->kind == BYTES ? 0 : (size_t)vocab->size * sizeof *vocab->codes);
    *out = taut_malloc(size);
    if (!*out) return taut_no_memory("vocabulary");
    memcpy(*out, vocab, size);
    return TAUT_OK;
}

void taut_vocab_free(taut_vocab *vocab)
{
    if (!vocab) return;
    free(vocab->printed);
    taut_bpe_free(vocab->bpe);
    taut_strings_free(vocab->pieces);
    free(vocab);
}

int32_t taut_vocab_size(const taut_vocab *vocab) { return vocab->size; }

const char *taut_vocab_kind(const taut_vocab *vocab) { return kinds[vocab->kind]; }

static const taut_strings *pieces_of(const taut_vocab *v) { return v->bpe ? taut_bpe_tokens(v->bpe) : v->pieces; }

/* The id of a special token, by BERT's name or by RoBERTa's. */
static int32_t special(const taut_vocab *vocab, const char *bert, const char *roberta)
{
    const taut_strings *pieces = pieces_of(vocab);
    if (!pieces) return -1;
    const int32_t id = taut_strings_find(pieces, bert, strlen(bert));
    return id >= 0 ? id : taut_strings_find(pieces, roberta, strlen(roberta));
}

int32_t taut_vocab_mask(const taut_vocab *vocab) { return special(vocab, "[MASK]", "<mask>"); }
int32_t taut_vocab_pad(const taut_vocab *vocab) { return special(vocab, "[PAD]", "<pad>"); }

bool taut_vocab_ends(const taut_vocab *vocab, int32_t *first, int32_t *last)
{
    *first = special(vocab, "[CLS]", "<s>");
    *last = special(vocab, "[SEP]", "</s>");
    return *first >= 0 && *last >= 0;
}

static taut_status bad_utf8(size_t at)
{
    return taut_fail(TAUT_BAD_DATA, "byte %zu is not UTF-8 text; use tokens = bytes for such a file", at);
}

static taut_status bad_nul(size_t at)
{
    return taut_fail(TAUT_BAD_DATA, "byte %zu is NUL, so this is no text; use tokens = bytes for such a file", at);
}

/* Marks the code points of the text in seen; counts the distinct ones. */
static taut_status survey(unsigned char *seen, int32_t *distinct, const char *text, size_t len)
{
    *distinct = 0;
    for (size_t at = 0, size; at < len; at += size) {
        uint32_t code;
        size = (size_t)taut_utf8_get(&code, text + at, len - at);
        if (size == 0) return bad_utf8(at);
        if (code == 0) return bad_nul(at);
        *distinct += !seen[code];
        seen[code] = 1;
    }
    return TAUT_OK;
}

/* The vocabulary of the marked code points. */
static taut_status from_seen(taut_vocab **out, const unsigned char *seen, int32_t distinct)
{
    taut_vocab *v = vocab_new(distinct);
    if (!v) return taut_no_memory("vocabulary");
    int32_t used = 0;
    for (uint32_t code = 0; code < CODES; code++)
        if (seen[code]) v->codes[used++] = code;
    ascii_fill(v);
    *out = v;
    return TAUT_OK;
}

taut_status taut_vocab_chars(taut_vocab **out, const char *text, size_t len)
{
    *out = NULL;
    int32_t distinct;
    unsigned char *seen = taut_calloc(CODES, 1);
    if (!seen) return taut_no_memory("vocabulary");
    taut_status status = survey(seen, &distinct, text, len);
    if (!status && distinct == 0) status = taut_fail(TAUT_BAD_DATA, "an empty text has no characters");
    if (!status) status = from_seen(out, seen, distinct);
    free(seen);
    return status;
}

static int32_t id_of(const taut_vocab *v, uint32_t code)
{
    if (code < 128) return v->ascii[code];
    int32_t lo = 0, hi = v->size;
    while (lo < hi) {
        const int32_t mid = lo + (hi - lo) / 2;
        if (v->codes[mid] < code)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo < v->size && v->codes[lo] == code ? lo : -1;
}

static taut_status unknown(const char *text, int size, uint32_t code, size_t at)
{
    if (code < ' ' || code == 127)
        return taut_fail(TAUT_BAD_DATA, "the character U+%04" PRIX32 " at byte %zu is not in the vocabulary", code, at);
    return taut_fail(TAUT_BAD_DATA, "the character '%.*s' (U+%04" PRIX32 ") at byte %zu is not in the vocabulary", size,
                     text, code, at);
}

static taut_status encode_chars(int32_t *ids, int64_t *count, const taut_vocab *v, const char *text, size_t len)
{
    for (size_t at = 0, size; at < len; at += size) {
        uint32_t code;
        size = (size_t)taut_utf8_get(&code, text + at, len - at);
        if (size == 0) return bad_utf8(at);
        if (code == 0) return bad_nul(at);
        const int32_t id = id_of(v, code);
        if (id < 0) return unknown(text + at, (int)size, code, at);
        ids[(*count)++] = id;
    }
    return TAUT_OK;
}

taut_status taut_vocab_encode(int32_t **ids, int64_t *count, const taut_vocab *vocab, const char *text, size_t len)
{
    *count = 0;
    if (vocab->pieces) return taut_wordpiece_encode(ids, count, vocab->pieces, text, len, vocab->kind == WORDPIECE);
    *ids = len >= SIZE_MAX / sizeof **ids ? NULL : taut_malloc((len + 1) * sizeof **ids);
    if (!*ids) return taut_no_memory("token ids");
    taut_status status = TAUT_OK;
    if (vocab->bpe)
        status = taut_bpe_encode(*ids, count, vocab->bpe, text, len);
    else if (vocab->kind == CHARS)
        status = encode_chars(*ids, count, vocab, text, len);
    else
        for (; *count < (int64_t)len; ++*count) (*ids)[*count] = (unsigned char)text[*count];
    if (status) {
        free(*ids);
        *ids = NULL;
        *count = 0;
    }
    return status;
}

/* The bytes of one id, which is in range; returns how many. */
static size_t spell(char *dst, bool first, const taut_vocab *v, int32_t id)
{
    if (v->bpe) return taut_bpe_spell(dst, v->bpe, id);
    if (v->pieces) return taut_wordpiece_spell(dst, first, v->pieces, id);
    if (v->kind == CHARS) return (size_t)taut_utf8_put(dst, v->codes[id]);
    dst[0] = (char)(unsigned char)id;
    return 1;
}

/* Room for all of them. */
static size_t most_bytes(const taut_vocab *v, const int32_t *ids, int64_t count)
{
    size_t all = 1, len;
    if (!pieces_of(v)) return 4 * (size_t)count + 1;
    for (int64_t i = 0; i < count; i++)
        if (ids[i] >= 0 && ids[i] < v->size) all += (taut_strings_get(pieces_of(v), ids[i], &len), len + 1);
    return all;
}

taut_status taut_vocab_decode(char **text, size_t *len, const taut_vocab *vocab, const int32_t *ids, int64_t count)
{
    *len = 0;
    *text = taut_malloc(most_bytes(vocab, ids, count));
    if (!*text) return taut_no_memory("decoded text");
    for (int64_t i = 0; i < count; i++) {
        if (ids[i] < 0 || ids[i] >= vocab->size) {
            free(*text);
            *text = NULL;
            *len = 0;
            return taut_fail(TAUT_BAD_DATA, "token %" PRId32 " at place %" PRId64 " is not in a vocabulary of %" PRId32,
                             ids[i], i, vocab->size);
        }
        *len += spell(*text + *len, i == 0, vocab, ids[i]);
    }
    (*text)[*len] = 0;
    return TAUT_OK;
}

char *taut_vocab_print(const taut_vocab *vocab)
{
    if (vocab->kind == BYTES) return taut_strdup("bytes");
    if (vocab->printed) return taut_strdup(vocab->printed);
    char *text = taut_malloc(16 * (size_t)vocab->size + 8), *p = text;
    if (!text) return NULL;
    p += sprintf(p, "chars:");
    for (int32_t i = 0, last; i < vocab->size; i = last + 1) {
        for (last = i; last + 1 < vocab->size && vocab->codes[last + 1] == vocab->codes[last] + 1;) last++;
        p += sprintf(p, "%s%" PRIx32, i ? "," : "", vocab->codes[i]);
        if (last > i) p += sprintf(p, "-%" PRIx32, vocab->codes[last]);
    }
    return text;
}

/* One code point in lower-case hex; 0, which is no character, if there is none. */
static uint32_t parse_code(const char **p)
{
    uint32_t code = 0;
    if (**p == '0') return 0;
    for (int digits = 0; digits < 7; digits++, ++*p) {
        const char c = **p;
        if (c >= '0' && c <= '9')
            code = code << 4 | (uint32_t)(c - '0');
        else if (c >= 'a' && c <= 'f')
            code = code << 4 | (uint32_t)(c - 'a' + 10);
        else
            break;
    }
    return code < CODES && (code < 0xD800 || code > 0xDFFF) ? code : 0;
}

static bool parse_ranges(unsigned char *seen, int32_t *distinct, const char *p)
{
    *distinct = 0;
    for (uint32_t next = 1;; p++) { /* ascending, so every set of characters has one spelling */
        const uint32_t first = parse_code(&p);
        uint32_t last = first;
        if (*p == '-') {
            p++;
            last = parse_code(&p);
            if (last == first) return false;
        }
        if (first < next || last < first || (first < 0xD800 && last > 0xDFFF)) return false;
        memset(seen + first, 1, last - first + 1);
        *distinct += (int32_t)(last - first + 1);
        next = last + 2; /* a neighbour would have been printed inside the range */
        if (*p == 0) return true;
        if (*p != ',') return false;
    }
}

/* "bpe:", "wordpiece:" or "wordpiece-cased:" and a newline before the pieces. */
static taut_status parse_pieces(taut_vocab **out, const char *printed)
{
    static const char *const heads[] = { "bpe:\n", "wordpiece:\n", "wordpiece-cased:\n" };
    for (int i = 0; i < 3; i++) {
        const size_t head = strlen(heads[i]), len = strlen(printed), good = taut_utf8_check(printed, len);
        if (strncmp(printed, heads[i], head) != 0) continue;
        if (good < len) return taut_fail(TAUT_BAD_DATA, "damaged vocabulary: byte %zu is not UTF-8", good);
        taut_vocab *v = vocab_new(0);
        if (v) v->printed = taut_strdup(printed);
        if (v) v->kind = (kind)(BPE + i);
        taut_status s = v && v->printed ? TAUT_OK : taut_no_memory("vocabulary");
        if (!s)
            s = i ? taut_strings_create(&v->pieces, printed + head, -1, NULL) : taut_bpe_parse(&v->bpe, printed + head);
        if (!s && (v->size = taut_strings_count(pieces_of(v))) == 0)
            s = taut_fail(TAUT_BAD_DATA, "a vocabulary without tokens");
        if (s)
            taut_vocab_free(v);
        else
            *out = v;
        return s;
    }
    return taut_fail(TAUT_BAD_DATA, "damaged vocabulary: it starts with none of bytes, chars:, bpe:, wordpiece:");
}

taut_status taut_vocab_parse(taut_vocab **out, const char *printed)
{
    *out = NULL;
    if (strcmp(printed, "bytes") == 0) return taut_vocab_bytes(out);
    if (strncmp(printed, "chars:", 6) != 0) return parse_pieces(out, printed);
    int32_t distinct;
    unsigned char *seen = taut_calloc(CODES, 1);
    if (!seen) return taut_no_memory("vocabulary");
    const taut_status status = parse_ranges(seen, &distinct, printed + 6)
                                   ? from_seen(out, seen, distinct)
                                   : taut_fail(TAUT_BAD_DATA, "damaged vocabulary: no code points behind chars:");
    free(seen);
    return status;
}
