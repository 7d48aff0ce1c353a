/* Pretrained tokenizers answer as Hugging Face's do (tools/dump_tokens.py wrote the answers): two small ones that are here
 * and, where $TAUT_DATA has them, GPT-2's and BERT's own.  Any bytes survive byte-level pieces; a long word takes no time;
 * damaged files are one line. */
#include <cjson/cJSON.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/rng.h"
#include "data/bpe.h"
#include "data/find.h"
#include "data/vocab.h"
#include "harness.h"
#include "must.h"
#include "temp.h"

static int compared;

static void check_one(const taut_vocab *v, const char *text, const cJSON *want)
{
    int32_t *ids = NULL;
    int64_t count = 0;
    must(taut_vocab_encode(&ids, &count, v, text, strlen(text)));
    bool same = count == cJSON_GetArraySize(want);
    for (int64_t i = 0; same && i < count; i++) same = ids[i] == cJSON_GetArrayItem(want, (int)i)->valueint;
    CHECK(same, text);
    free(ids);
    compared++;
}

static void check_all(const char *folder, const char *name)
{
    taut_vocab *v = NULL, *again = NULL;
    size_t len;
    must(taut_vocab_open(&v, folder));
    char *rows = temp_get("tests/golden/tokens/encodings.jsonl", &len), *printed = taut_vocab_print(v);
    must(taut_vocab_parse(&again, printed));
    CHECK(taut_vocab_size(again) == taut_vocab_size(v), "printed and parsed");
    case_no = 0;
    for (char *line = rows; line && *line; case_no++) {
        char *end = strchr(line, '\n');
        *end = 0;
        cJSON *row = cJSON_Parse(line);
        check_one(case_no % 2 ? v : again, cJSON_GetObjectItem(row, "text")->valuestring,
                  cJSON_GetObjectItem(row, name));
        cJSON_Delete(row);
        line = end + 1;
    }
    CHECK(case_no > 100, "texts to compare");
    free(rows), free(printed);
    taut_vocab_free(v);
    taut_vocab_free(again);
}

/* Whatever the bytes, decoding gives them back. */
static void any_bytes(const char *folder)
{
    taut_vocab *v = NULL;
    must(taut_vocab_open(&v, folder));
    for (case_no = 0; case_no < effort(400); case_no++) {
        char text[64], *back = NULL;
        const size_t len = (size_t)rng_int(0, 63);
        size_t back_len = 0;
        int32_t *ids = NULL;
        int64_t count = 0;
        for (size_t i = 0; i < len; i++) text[i] = (char)(rng_int(0, 2) ? rng_int(0, 255) : rng_int(' ', '~'));
        must(taut_vocab_encode(&ids, &count, v, text, len));
        must(taut_vocab_decode(&back, &back_len, v, ids, count));
        CHECK(back_len == len && memcmp(back, text, len) == 0, "bytes, there and back");
        free(ids), free(back);
    }
    taut_vocab_free(v);
}

/* A word of a million letters: n log n, where joining the slow way would take hours. */
static void long_word(void)
{
    enum { LONG = 1000000 };
    taut_vocab *v = NULL;
    int32_t *ids = NULL;
    int64_t count = 0;
    size_t len = 0;
    char *text = malloc(LONG), *back = NULL;
    memset(text, 'a', LONG);
    must(taut_vocab_open(&v, "tests/golden/tokens/bpe"));
    must(taut_vocab_encode(&ids, &count, v, text, LONG));
    must(taut_vocab_decode(&back, &len, v, ids, count));
    CHECK(len == LONG && memcmp(text, back, LONG) == 0 && count < LONG / 2, "a long word");
    free(text), free(back), free(ids);
    taut_vocab_free(v);
}

/* A long text is cut into pieces that are encoded side by side: the ids are those of its words one by one, and a byte that
 * the vocabulary lacks is named where it stands. */
static void long_text(void)
{
    static const char *const part[] = { "Alice", " was", "  ",        "\n\n", "it's", " we'll", " 12",    "...",
                                        " \n x", "a",    " \xc3\xa9", " ",    "'re",  "\t",     " (don't" };
    enum { LONG = 3500000 };
    taut_vocab *v = NULL;
    int32_t *ids = NULL, *one = NULL;
    int64_t count = 0, few = 0, at = 0;
    size_t len = 0;
    bool same = true;
    char *text = malloc(LONG + 16);
    for (uint64_t i = 0; len < LONG; i++) {
        const char *next = part[taut_rng_below(taut_rng_key(seed, TAUT_RNG_BATCH, 3), i, 15)];
        memcpy(text + len, next, strlen(next));
        len += strlen(next);
    }
    must(taut_vocab_open(&v, "tests/golden/tokens/bpe"));
    must(taut_vocab_encode(&ids, &count, v, text, len));
    for (size_t from = 0, size; same && from < len; from += size, at += few) {
        size = taut_bpe_word(text + from, len - from);
        must(taut_vocab_encode(&one, &few, v, text + from, size));
        same = at + few <= count && memcmp(ids + at, one, (size_t)few * sizeof *one) == 0;
        free(one);
    }
    CHECK(same && at == count, "word by word");
    free(ids);
    taut_vocab_free(v);
    must(taut_vocab_parse(&v, "bpe:\n2\na\n\xc4\xa0\n"));
    for (size_t i = 0; i < LONG; i++) text[i] = i % 2 ? ' ' : 'a';
    text[3000000] = text[3300000] = 'x';
    CHECK(taut_vocab_encode(&ids, &count, v, text, LONG) == TAUT_BAD_DATA && !ids, "x is not in the vocabulary");
    CHECK(strstr(taut_last_error(), "byte 3000000, 0x78"), taut_last_error());
    taut_vocab_free(v);
    free(text);
}

static void words_back(void)
{
    taut_vocab *v = NULL;
    int32_t *ids = NULL;
    int64_t count = 0;
    size_t len;
    char *text = NULL;
    must(taut_vocab_open(&v, "tests/golden/tokens/wordpiece"));
    CHECK(strcmp(taut_vocab_kind(v), "wordpiece") == 0 && taut_vocab_mask(v) == 4, "a mask of its own");
    must(taut_vocab_encode(&ids, &count, v, "Hello,  WORLD", 13));
    must(taut_vocab_decode(&text, &len, v, ids, count));
    CHECK(strcmp(text, "hello , world") == 0, text);
    free(ids), free(text);
    CHECK(taut_vocab_encode(&ids, &count, v, "a\xFF", 2) == TAUT_BAD_DATA && !ids, "bytes that are no text");
    CHECK(strstr(taut_last_error(), "byte 1 is not UTF-8") != NULL, taut_last_error());
    taut_vocab_free(v);
    must(taut_vocab_open(&v, "tests/golden/tokens/bpe"));
    CHECK(strcmp(taut_vocab_kind(v), "bpe") == 0 && taut_vocab_mask(v) == 1, "a mask of its own");
    taut_vocab_free(v);
}

static void refused(const char *vocab_name, const char *vocab, const char *merges, const char *line)
{
    taut_vocab *v = NULL;
    char name[64];
    must(taut_dir_make(temp_path("t")));
    static const char *const names[] = { "t/vocab.json", "t/merges.txt", "t/vocab.txt" };
    for (int i = 0; i < 3; i++) remove(temp_path(names[i]));
    snprintf(name, sizeof name, "t/%s", vocab_name);
    temp_text(name, vocab);
    if (merges) temp_text("t/merges.txt", merges);
    CHECK(taut_vocab_open(&v, temp_path("t")) == TAUT_BAD_DATA && !v, line);
    CHECK(strstr(taut_last_error(), line) && !strchr(taut_last_error(), '\n'), taut_last_error());
}

static void damaged(void)
{
    refused("vocab.json", "{\"a\":0,\"b\":1}", NULL, "no tokenizer");
    refused("vocab.json", "[]", "", "no JSON object");
    refused("vocab.json", "{}", "", "no tokens");
    refused("vocab.json", "{\"a\":0,\"b\":2}", "", "no id from 0 to 1");
    refused("vocab.json", "{\"a\":0,\"b\":0}", "", "two tokens have the id 0");
    refused("vocab.json", "{\"a\":0,\"a\":1}", "", "tokens 0 and 1 are the same");
    refused("vocab.json", "{\"a\":0,\"b\\nc\":1}", "", "line break");
    refused("vocab.json", "{\"a\":0,\"\":1}", "", "token 1 is empty");
    refused("vocab.json", "{\"a\":0,\"b\":1}", "#version: 0.2\na b\n", "joins what the vocabulary lacks");
    refused("vocab.json", "{\"a\":0,\"b\":1,\"ab\":2}", "a b\na b\n", "merges 0 and 1 are the same");
    refused("vocab.json", "{\"a\":0,\"b\":1,\"ab\":2}", "ab\n", "merge 0 is not two tokens");
    refused("vocab.txt", "[UNK]\na\na\n", NULL, "tokens 1 and 2 are the same");
    refused("vocab.txt", "[UNK]\n\na\n", NULL, "token 1 is empty");
    refused("vocab.txt", "", NULL, "without tokens");
    refused("vocab.txt", "[UNK]\n\xFF\n", NULL, "not UTF-8");
    taut_vocab *v = NULL;
    int32_t *ids = NULL;
    int64_t count;
    must(taut_vocab_parse(&v, "bpe:\n3\na\nb\nab\na b\n"));
    CHECK(taut_vocab_encode(&ids, &count, v, "abc", 3) == TAUT_BAD_DATA && !ids, "a byte outside the vocabulary");
    CHECK(strstr(taut_last_error(), "byte 2, 0x63, is not in the vocabulary") != NULL, taut_last_error());
    must(taut_vocab_encode(&ids, &count, v, "abab", 4));
    CHECK(count == 2 && ids[0] == 2 && ids[1] == 2, "joined");
    free(ids);
    taut_vocab_free(v);
    must(taut_vocab_parse(&v, "wordpiece:\na\n"));
    CHECK(taut_vocab_encode(&ids, &count, v, "a", 1) == TAUT_BAD_DATA && !ids, "no [UNK]");
    taut_vocab_free(v);
    static const char *const bad[] = {
        "bpe:", "bpe:\n", "bpe:\n0\n", "bpe:\n3\na\nb\n", "bpe:\nx\na\n", "wordpiece:\n"
    };
    for (int i = 0; i < 6; i++) CHECK(taut_vocab_parse(&v, bad[i]) == TAUT_BAD_DATA && !v, bad[i]);
}

/* Printed vocabularies with bytes changed: refused, or another vocabulary that works within its memory (ASan watches). */
static void changed_bytes(void)
{
    static const char *const folders[] = { "tests/golden/tokens/bpe", "tests/golden/tokens/wordpiece" };
    for (case_no = 0; case_no < effort(600); case_no++) {
        taut_vocab *v = NULL, *w = NULL;
        int32_t *ids = NULL;
        int64_t count = 0;
        size_t len = 0;
        char *back = NULL;
        must(taut_vocab_open(&v, folders[case_no % 2]));
        char *printed = taut_vocab_print(v);
        for (int64_t i = rng_int(1, 4); i > 0; i--)
            printed[rng_int(0, (int64_t)strlen(printed) - 1)] = (char)(rng_int(0, 3) ? rng_int(9, 127)
                                                                                     : rng_int(1, 255));
        if (taut_vocab_parse(&w, printed) == TAUT_OK && !taut_vocab_encode(&ids, &count, w, "Hello, 1 world", 14)) {
            for (int64_t i = 0; i < count; i++) CHECK(ids[i] >= 0 && ids[i] < taut_vocab_size(w), "ids in range");
            must(taut_vocab_decode(&back, &len, w, ids, count));
        }
        free(back), free(ids), free(printed);
        taut_vocab_free(v);
        taut_vocab_free(w);
    }
}

/* Each allocation fails once: a status, and (under ASan) nothing leaks. */
static void out_of_memory(void)
{
    static const char *const folders[] = { "tests/golden/tokens/bpe", "tests/golden/tokens/wordpiece" };
    int done = 0;
    for (long n = 1; n < 80 && done < 4; n++) {
        taut_vocab *v = NULL;
        int32_t *ids = NULL;
        int64_t count = 0;
        taut_alloc_fail_at(n);
        taut_status s = taut_vocab_open(&v, folders[n % 2]);
        if (!s) s = taut_vocab_encode(&ids, &count, v, "Hello, world", 12);
        taut_alloc_fail_at(0);
        CHECK(s == TAUT_OK || s == TAUT_NO_MEMORY, "out of memory is said");
        done += s == TAUT_OK;
        free(ids);
        taut_vocab_free(v);
    }
    CHECK(done == 4, "every allocation was tried");
}

int main(void)
{
    test_begin();
    temp_begin();
    check_all("tests/golden/tokens/bpe", "bpe");
    check_all("tests/golden/tokens/wordpiece", "wordpiece");
    any_bytes("tests/golden/tokens/bpe");
    long_word();
    long_text();
    words_back();
    damaged();
    changed_bytes();
    out_of_memory();
    static const char *const published[] = { "gpt2", "bert-base-uncased" };
    int found = 0;
    for (int i = 0; i < 2; i++) {
        char name[64], *folder = NULL;
        snprintf(name, sizeof name, "tokenizers/%s", published[i]);
        if (taut_data_find(&folder, name)) continue;
        check_all(folder, published[i]);
        found++;
        free(folder);
    }
    return test_end("tokenizer", "%d encodings, %d published tokenizers", compared, found);
}
