/* Texts: splits, samples, windows, and files that cannot be used. */
#include "data/text.h"

#include "base/alloc.h"
#include "base/rng.h"
#include "harness.h"
#include "temp.h"

static void refused(const char *source, const char *tokens, const taut_vocab *given, taut_status want, const char *why)
{
    taut_text *text;
    const taut_status status = taut_text_open(&text, source, tokens, 0.1, given, 1000, 1);
    CHECK(status == want && !text && strstr(taut_last_error(), why), taut_last_error());
    CHECK(!strchr(taut_last_error(), '\n'), "one line");
}

static void opening(void)
{
    taut_text *text;
    CHECK(!taut_text_open(&text, temp_text("a.txt", "0123456789abc"), "chars", 0.1, NULL, 0, 1), taut_last_error());
    CHECK(text->len == 13 && text->train_len == 11 && taut_text_split_len(text, TAUT_VALID) == 2, "int(0.9 * 13) = 11");
    CHECK(text->ids[0] == 0 && text->ids[12] == 12 && taut_vocab_size(text->vocab) == 13, "ids");
    refused(temp_text("b.txt", "0x"), "bytes", text->vocab, TAUT_BAD_DATA,
            "b.txt: the character 'x' (U+0078) at byte 1");
    taut_text_free(text);
    refused(temp_text("empty", ""), "chars", NULL, TAUT_BAD_DATA, "empty: the file is empty");
    refused(temp_path("empty"), "bytes", NULL, TAUT_BAD_DATA, "empty: the file is empty");
    refused(temp_put("nul", "a\0b", 3), "chars", NULL, TAUT_BAD_DATA, "nul: byte 1 is NUL");
    refused(temp_put("bad", "abc\xFF", 4), "chars", NULL, TAUT_BAD_DATA,
            "bad: byte 3 is not UTF-8 text; use tokens = bytes");
    refused(temp_dir, "chars", NULL, TAUT_BAD_FILE, "folder");
    refused("no-such-text", "chars", NULL, TAUT_BAD_DATA, "no-such-text: not found here");
    refused(temp_path("a.txt"), "words", NULL, TAUT_BAD_CONFIG, "neither bytes nor chars");
    refused(temp_path("a.txt"), "no-such-folder", NULL, TAUT_BAD_DATA, "no-such-folder: not found here");
    refused(temp_path("a.txt"), temp_dir, NULL, TAUT_BAD_DATA, "no tokenizer");
    CHECK(!taut_text_open(&text, temp_text("e.txt", "Alice was beginning"), "tests/golden/tokens/bpe", 0, NULL, 0, 1),
          taut_last_error());
    CHECK(text->len < 19 && text->train_len == text->len && taut_vocab_size(text->vocab) > 256, "a tokenizer's pieces");
    taut_text_free(text);
    CHECK(taut_text_open(&text, "brackets", "chars", 0.1, NULL, 0, 1) == TAUT_BAD_DATA, "a built-in text of nothing");
    CHECK(taut_text_open(&text, "brackets", "chars", NAN, NULL, 10, 1) == TAUT_BAD_CONFIG, "a fraction that is none");
    CHECK(taut_text_open(&text, "brackets", "chars", 1.5, NULL, 10, 1) == TAUT_BAD_CONFIG, "a fraction over 1");
    CHECK(!taut_text_open(&text, temp_path("nul"), "bytes", 1, NULL, 0, 1), "bytes take anything");
    CHECK(text->len == 3 && text->train_len == 0 && taut_vocab_size(text->vocab) == 256, "all validation");
    taut_text_free(text);

    taut_text *same;
    CHECK(!taut_text_open(&text, "brackets", "chars", 0.1, NULL, 5000, 1), taut_last_error());
    CHECK(!taut_text_open(&same, "brackets", "bytes", 0.1, text->vocab, 50, 1), taut_last_error());
    CHECK(text->len == 5000 && taut_vocab_size(same->vocab) == taut_vocab_size(text->vocab), "built in");
    CHECK(memcmp(text->ids, same->ids, 50 * sizeof *same->ids) == 0, "a shorter text is the beginning");
    taut_text_free(text);
    taut_text_free(same);
}

static void short_texts(void)
{
    taut_text *text;
    CHECK(!taut_text_open(&text, "brackets", "chars", 0.1, NULL, 100, 1), taut_last_error());
    CHECK(!taut_text_check(text, 9), "10 ids hold a context of 9");
    CHECK(taut_text_check(text, 10) == TAUT_BAD_DATA, "but not of 10");
    CHECK(strcmp(taut_last_error(),
                 "the text is too short: its validation part has 10 tokens, and a context of 10 needs "
                 "at least 11") == 0,
          taut_last_error());
    CHECK(taut_text_check(text, 90) == TAUT_BAD_DATA && strstr(taut_last_error(), "training part has 90"), "training");
    taut_text_free(text);
}

static void samples(void)
{
    taut_text *text;
    enum { CONTEXT = 8, COUNT = 3000 };
    CHECK(!taut_text_open(&text, "brackets", "chars", 0.1, NULL, 1000, 2), taut_last_error());
    for (int64_t i = 0; i < text->len; i++) text->ids[i] = (int32_t)i; /* so that an example says where it is from */
    static int32_t x[COUNT * CONTEXT], y[COUNT * CONTEXT], x1[CONTEXT], y1[CONTEXT];
    for (int split = 0; split < 2; split++) {
        const int64_t base = split ? 900 : 0, len = split ? 100 : 900;
        int seen[1000] = { 0 }, starts = 0;
        const uint64_t key = taut_rng_key(seed, TAUT_RNG_BATCH, 7);
        taut_text_sample(text, split ? TAUT_VALID : TAUT_TRAIN, CONTEXT, key, 5, COUNT, x, y);
        for (int i = 0; i < COUNT; i++) {
            const int32_t start = x[i * CONTEXT];
            starts += !seen[start]++;
            CHECK(start >= base && start + CONTEXT < base + len, "inside the split");
            for (int k = 0; k < CONTEXT; k++)
                CHECK(x[i * CONTEXT + k] == start + k && y[i * CONTEXT + k] == start + k + 1, "y is x shifted");
        }
        CHECK(split ? starts == 92 : starts > 800, "every start occurs"); /* 892 starts, 3000 draws: 861 expected */
        CHECK(!split || (seen[900] && seen[991]), "the first and the last");
        for (int i = 0; i < 20; i++) {
            const int64_t at = rng_int(0, COUNT - 1);
            taut_text_sample(text, split ? TAUT_VALID : TAUT_TRAIN, CONTEXT, key, 5 + at, 1, x1, y1);
            CHECK(memcmp(x1, x + at * CONTEXT, sizeof x1) == 0, "example i does not depend on the batch");
        }
    }
    taut_text_free(text);
}

static void windows(void)
{
    for (case_no = 0; case_no < effort(300); case_no++) {
        taut_text *text;
        const int64_t len = rng_int(1, 60), context = rng_int(1, 12);
        if (taut_text_open(&text, "brackets", "chars", rng_unit(), NULL, len, seed)) abort();
        for (int64_t i = 0; i < len; i++) text->ids[i] = (int32_t)i;
        for (int split = 0; split < 2; split++) {
            const int64_t base = split ? text->train_len : 0, have = taut_text_split_len(text, split);
            int32_t x[12], y[12];
            int64_t next = base + 1;
            for (int64_t i = 0; i < taut_text_windows(text, split, context); i++) {
                taut_text_at(text, split, context, i * context, x, y);
                CHECK(y[0] >= 0, "no empty window");
                for (int64_t k = 0; k < context; k++) {
                    if (y[k] < 0)
                        CHECK(y[k] == -1 && x[k] == 0 && next == base + have, "padding only at the end");
                    else
                        CHECK(y[k] == next++ && x[k] == y[k] - 1, "each target once, in order");
                }
            }
            CHECK(next == (have > 0 ? base + have : base + 1), "every target");
        }
        taut_text_free(text);
    }
}

static void memory(void)
{
    const char *path = temp_text("m.txt", "some text");
    for (int kind = 0; kind < 3; kind++) {
        taut_text *text;
        taut_status status;
        long n = 0;
        do {
            taut_alloc_fail_at(++n);
            status = taut_text_open(&text, kind == 2 ? "brackets" : path, kind ? "chars" : "bytes", 0.1, NULL, 100, 1);
            taut_alloc_fail_at(0);
            CHECK((!status || status == TAUT_NO_MEMORY) && !status == !!text, taut_last_error());
        } while (status && n < 100);
        CHECK(n > 4, "every allocation was made to fail");
        taut_text_free(text);
    }
}

int main(void)
{
    test_begin();
    temp_begin();
    opening();
    short_texts();
    samples();
    windows();
    memory();
    return test_end("text", "splits, samples, windows");
}
