/* Vocabularies: text to ids and back, to a string and back, and everything that must be refused. */
#include "data/vocab.h"

#include "base/alloc.h"
#include "base/utf8.h"
#include "harness.h"

static void round_trip(const taut_vocab *v, const char *text, size_t len)
{
    int32_t *ids;
    int64_t count;
    char *back;
    size_t back_len;
    CHECK(!taut_vocab_encode(&ids, &count, v, text, len), taut_last_error());
    for (int64_t i = 0; i < count; i++) CHECK(ids[i] >= 0 && ids[i] < taut_vocab_size(v), "ids are in range");
    CHECK(!taut_vocab_decode(&back, &back_len, v, ids, count), taut_last_error());
    CHECK(back && back_len == len && memcmp(back, text, len) == 0 && back[len] == 0, "the same text");
    free(ids);
    free(back);
}

static void bytes(void)
{
    taut_vocab *v;
    char all[256];
    for (int i = 0; i < 256; i++) all[i] = (char)(unsigned char)i;
    CHECK(!taut_vocab_bytes(&v) && taut_vocab_size(v) == 256 && strcmp(taut_vocab_kind(v), "bytes") == 0, "bytes");
    round_trip(v, all, 256);
    round_trip(v, "", 0);
    char *printed = taut_vocab_print(v);
    CHECK(strcmp(printed, "bytes") == 0, printed);
    free(printed);
    taut_vocab_free(v);
}

static void refused(const taut_vocab *v, const char *text, size_t len, const char *why)
{
    int32_t *ids;
    int64_t count;
    CHECK(taut_vocab_encode(&ids, &count, v, text, len) == TAUT_BAD_DATA && !ids && count == 0, why);
    CHECK(strcmp(taut_last_error(), why) == 0, taut_last_error());
}

static void chars(void)
{
    taut_vocab *v, *copy;
    const char *text = "hello, w\xC3\xB6rld \xF0\x9F\x98\x80\n";
    CHECK(!taut_vocab_chars(&v, text, strlen(text)), taut_last_error());
    CHECK(taut_vocab_size(v) == 12 && strcmp(taut_vocab_kind(v), "chars") == 0, "distinct code points");
    round_trip(v, text, strlen(text));
    int32_t *ids;
    int64_t count;
    CHECK(!taut_vocab_encode(&ids, &count, v, "\n \xF0\x9F\x98\x80", 6) && count == 3, "count");
    CHECK(ids[0] == 0 && ids[1] == 1 && ids[2] == 11, "in code point order");
    free(ids);
    refused(v, "hex", 3, "the character 'x' (U+0078) at byte 2 is not in the vocabulary");
    refused(v, "h\xC3\xA9", 3, "the character '\xC3\xA9' (U+00E9) at byte 1 is not in the vocabulary");
    refused(v, "\t", 1, "the character U+0009 at byte 0 is not in the vocabulary");
    refused(v, "h\xC3", 2, "byte 1 is not UTF-8 text; use tokens = bytes for such a file");
    refused(v, "he\0", 3, "byte 2 is NUL, so this is no text; use tokens = bytes for such a file");
    char *back;
    size_t len;
    CHECK(taut_vocab_decode(&back, &len, v, (int32_t[]){ 0, 12 }, 2) == TAUT_BAD_DATA && !back, "an id too large");
    CHECK(taut_vocab_decode(&back, &len, v, (int32_t[]){ -1 }, 1) == TAUT_BAD_DATA && !back, "an id below 0");
    char *printed = taut_vocab_print(v);
    CHECK(strcmp(printed, "chars:a,20,2c,64-65,68,6c,6f,72,77,f6,1f600") == 0, printed);
    CHECK(!taut_vocab_parse(&copy, printed) && taut_vocab_size(copy) == 12, taut_last_error());
    round_trip(copy, text, strlen(text));
    free(printed);
    taut_vocab_free(copy);
    CHECK(!taut_vocab_copy(&copy, v), "copy");
    round_trip(copy, text, strlen(text));
    taut_vocab_free(copy);
    taut_vocab_free(v);
    CHECK(taut_vocab_chars(&v, "", 0) == TAUT_BAD_DATA && !v, "no characters");
    CHECK(taut_vocab_chars(&v, "a\xFF", 2) == TAUT_BAD_DATA && !v, "not UTF-8");
    CHECK(taut_vocab_chars(&v, "a\0", 2) == TAUT_BAD_DATA && !v, "NUL");
}

static void hostile(void)
{
    static const char *const bad[] = { "",
                                       "byte",
                                       "bytes ",
                                       "chars",
                                       "chars:",
                                       "chars:g",
                                       "chars:0",
                                       "chars:41,",
                                       "chars:,41",
                                       "chars:42,41",
                                       "chars:41,41",
                                       "chars:41,42",
                                       "chars:41-41",
                                       "chars:42-41",
                                       "chars:41-",
                                       "chars:-41",
                                       "chars:41-43-45",
                                       "chars:110000",
                                       "chars:d800",
                                       "chars:d7ff-e000",
                                       "chars:1-10ffff",
                                       "chars:041",
                                       "chars:4A",
                                       "chars:0x41",
                                       "chars:41 ",
                                       "chars:41\n",
                                       "chars:ffffffffffffffffffff41",
                                       "chars:41-dfff",
                                       "chars:100000041" };
    taut_vocab *v;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        CHECK(taut_vocab_parse(&v, bad[i]) == TAUT_BAD_DATA && !v, bad[i]);
    CHECK(!taut_vocab_parse(&v, "chars:1-d7ff,e000-10ffff") && taut_vocab_size(v) == 0x110000 - 0x800 - 1,
          "all there are");
    taut_vocab_free(v);
    for (case_no = 0; case_no < effort(3000); case_no++) { /* whatever parses prints the same again */
        char text[40] = "chars:";
        static const char pieces[] = "0123456789abcdef,,,---";
        const int64_t len = rng_int(1, 20);
        for (int64_t i = 0; i < len; i++) text[6 + i] = pieces[rng_int(0, sizeof pieces - 2)];
        if (taut_vocab_parse(&v, text)) continue;
        char *printed = taut_vocab_print(v);
        CHECK(strcmp(printed, text) == 0, text);
        free(printed);
        taut_vocab_free(v);
    }
}

/* Random code points, every length of UTF-8. */
static void random_texts(void)
{
    for (case_no = 0; case_no < effort(50); case_no++) {
        char text[4000];
        size_t len = 0;
        for (int i = 0; i < 900; i++) {
            uint32_t code = (uint32_t)rng_int(1, 1 << rng_int(1, 20));
            if (code >= 0xD800 && code < 0xE000) code = 'x';
            const int size = taut_utf8_put(text + len, code);
            uint32_t back = 0;
            CHECK(taut_utf8_get(&back, text + len, (size_t)size) == size && back == code, "utf8 round trip");
            CHECK(!taut_utf8_get(&back, text + len, (size_t)size - 1), "a cut code point");
            len += (size_t)size;
        }
        taut_vocab *v, *again;
        CHECK(!taut_vocab_chars(&v, text, len), taut_last_error());
        round_trip(v, text, len);
        char *printed = taut_vocab_print(v);
        CHECK(!taut_vocab_parse(&again, printed) && taut_vocab_size(again) == taut_vocab_size(v), "print and parse");
        round_trip(again, text, len);
        free(printed);
        taut_vocab_free(again);
        taut_vocab_free(v);
    }
}

static taut_status whole(void)
{
    taut_vocab *v = NULL, *w = NULL;
    int32_t *ids = NULL;
    char *text = NULL, *printed = NULL;
    int64_t count;
    size_t len;
    taut_status status = taut_vocab_chars(&v, "abc", 3);
    if (!status) status = taut_vocab_encode(&ids, &count, v, "cab", 3);
    if (!status) status = taut_vocab_decode(&text, &len, v, ids, count);
    if (!status && !(printed = taut_vocab_print(v))) status = TAUT_NO_MEMORY;
    if (!status) status = taut_vocab_parse(&w, printed);
    taut_vocab_free(w);
    free(ids);
    free(text);
    free(printed);
    taut_vocab_free(v);
    return status;
}

int main(void)
{
    test_begin();
    bytes();
    chars();
    hostile();
    random_texts();
    long n = 0;
    taut_status status;
    do {
        taut_alloc_fail_at(++n);
        status = whole();
        taut_alloc_fail_at(0);
        CHECK(!status || status == TAUT_NO_MEMORY, taut_last_error());
    } while (status && n < 100);
    CHECK(n == 8, "every allocation was made to fail");
    return test_end("vocab", "round trips and refusals");
}
